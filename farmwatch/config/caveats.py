"""What must be said wherever scores, or verdicts and rates that rest on them, are shown."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from farmwatch.config.config import Config
from farmwatch.terminal.messages import message


def caveats(config: Config, identities: Iterable[str]) -> dict[str, str]:
    """Detector identity -> its warning; "" has none. Known are those configured here, and pairs of language models.

    Raises UnknownDetector, BadWeights, BadThresholds.
    """
    from farmwatch.config.configured import configured_warnings

    named = sorted(set(identities) - {""})
    if not named:
        return {"": ""}
    known = configured_warnings(config)
    return {"": "", **{name: known.get(name) or _of_another(name) for name in named}}


def _of_another(identity: str) -> str:
    """What an identity alone says of its detector: of a pair of language models, all that its warning has."""
    from scoring.interface import is_pair
    from scoring.pair.detector import pair_warning

    with suppress(ValueError):  # it has other parts than ours
        if is_pair(identity):
            return pair_warning(identity)
    return "not a detector configured here; what its scores are worth is not known here"


def tell(found: dict[str, str], *, short: bool = False) -> None:
    """Say on stderr what `caveats` found; `short`: its first sentence, and where the rest stands."""
    for identity, warning in found.items():
        if not warning:
            continue
        first, _, rest = warning.partition(". ")
        message(
            f"{identity}: {first}. In full: `farmwatch rate --verbose`" if short and rest else f"{identity}: {warning}"
        )
