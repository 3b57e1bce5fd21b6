"""The ruleset, detector and site method that the settings name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from replay.settings import ReplaySettings
from stream.text.user_errors import ConfigError, FarmwatchError, RunRefused
from stream.text.wording import one_line

if TYPE_CHECKING:
    from filters.rules.ruleset import Ruleset
    from scoring.sites.registry import SiteMethod
    from scoring.sites.sprt import SprtParams
    from stream.schema.runs import Run


def tallied_name(config: ReplaySettings) -> str | None:
    """Name of the detector that decides site verdicts; None if tally.detector is an identity. Raises ConfigError."""
    chosen, names = config.tally.detector, config.score.detectors
    if "/" in chosen:
        return None
    if chosen and chosen not in names:
        raise ConfigError(
            f"tally.detector: {chosen!r} is not among score.detectors ({', '.join(names)}), nor a whole identity"
        )
    return chosen or names[0]


def tally_identity(config: ReplaySettings) -> str:
    """Identity of the detector whose scores decide the site verdicts. Raises ConfigError, and as `load_detectors`."""
    name = tallied_name(config)
    return config.tally.detector if name is None else identity_of(config, name)


def identity_of(config: ReplaySettings, name: str) -> str:
    """Identity of the detector with this name. Raises as `load_detectors`."""
    from scoring.detectors.registry import detector_identities

    return detector_identities(msgspec.structs.replace(config.score, detectors=[name]))[0]


def configured_detectors(config: ReplaySettings) -> list[str]:
    """Identities of the detectors that SCORE runs after a restart; [] = unknown on this machine."""
    from scoring.detectors.registry import detector_identities

    try:
        return detector_identities(config.score)
    except FarmwatchError:  # the files of a detector may be only where SCORE runs
        return []


def site_test_of(config: ReplaySettings, identity: str = "") -> SprtParams | None:
    """The site test in the threshold set of a detector (default: `tally_identity`); None if it has none.

    A run may use a detector whose threshold set is no longer configured: the result is None then. Raises BadThresholds
    if the configured set does not match the configured identity, and as `tally_identity`.
    """
    from scoring.detectors.registry import threshold_set_of
    from scoring.errors import BadThresholds

    try:
        chosen = threshold_set_of(config.score, identity or tally_identity(config))
    except BadThresholds:
        if not identity or identity == config.tally.detector:
            raise
        return None
    return None if chosen is None else chosen.site_test


def configured_site_method(config: ReplaySettings, identity: str = "") -> SiteMethod:
    """The site method of [tally], with its numbers, for the scores of a detector (default: `tally_identity`)."""
    from scoring.sites.registry import method_of_text

    return method_of_text(site_method_to_keep(config, identity or tally_identity(config)))


def site_method_of(config: ReplaySettings, run: Run) -> SiteMethod:
    """The site method stored with a run; without one, the configured method for its detector."""
    from scoring.sites.registry import method_of_text

    return method_of_text(run.site_method) if run.site_method else configured_site_method(config, run.detector)


def site_method_to_keep(config: ReplaySettings, identity: str) -> str:
    """The configured site method for a detector, as text to store with a run. Raises as `configured_site_method`."""
    from scoring.sites.registry import site_method, text_of_method

    test = site_test_of(config, identity)
    return text_of_method(site_method(config.tally, identity, test))


def load_configured_ruleset(config: ReplaySettings) -> Ruleset:
    """The ruleset of [judge]. Raises BadRuleset."""
    from filters.rules.ruleset import load_ruleset

    return load_ruleset(config.judge.ruleset)


def refuse_perplexity(ruleset: Ruleset, detectors: Iterable[str]) -> None:
    """Raises RunRefused if one of them, by name or identity, divides by perplexity and would read fluent text only."""
    from scoring.detectors.registry import DETECTORS
    from scoring.interface import name_of

    if ruleset.fluent is None or ruleset.fluent.allow_perplexity:
        return
    for name in map(name_of, detectors):
        if (kind := DETECTORS.get(name)) and kind.divides_by_perplexity:
            raise RunRefused(
                f"the ruleset {ruleset.name} drops unlikely sentences, and {name} divides by perplexity: human text"
                " would look machine-made to it. Take another detector, or set allow_perplexity = true in [fluent]"
            )


def require_processable(config: ReplaySettings, ruleset: Ruleset, run: Run) -> None:
    """Raises RunRefused if the live stages, as configured, cannot process a run with this ruleset."""
    refuse_perplexity(ruleset, [run.detector, *config.score.detectors])
    require_site_method(config, run)


def require_site_method(config: ReplaySettings, run: Run) -> None:
    """Raises RunRefused if the stored site method of a run is unreadable, or none is stored and none is configured."""
    from scoring.errors import BadSiteNumbers, BadThresholds, NoSiteTest

    try:
        site_method_of(config, run)
    except (BadSiteNumbers, BadThresholds, NoSiteTest) as error:
        problem = f"uses scores of {run.detector}: {error}. Restore the setting, or set tally.sprt"
        if run.site_method:
            problem = f"has {error}"
        raise RunRefused(one_line(f"the run {run.shown} {problem}")) from error
