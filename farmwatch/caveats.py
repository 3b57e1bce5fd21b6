"""What must be said wherever scores, or verdicts and rates that rest on them, are shown."""

from __future__ import annotations

from collections.abc import Iterable

from farmwatch.config import Config
from farmwatch.messages import message


def caveats(config: Config, identities: Iterable[str]) -> dict[str, str]:
    """Detector identity -> its warning; "" has none. Only the configured detector's own warning is known.

    Raises UnknownDetector, BadWeights.
    """
    from farmwatch.roles import load_configured_detector

    named = sorted(set(identities) - {""})
    if not named:
        return {"": ""}
    detector = load_configured_detector(config)
    unknown = "not the detector configured here; what its scores are worth is not known here"
    return {"": "", **{name: detector.warning if name == detector.identity else unknown for name in named}}


def tell(found: dict[str, str], *, short: bool = False) -> None:
    """Say on stderr what `caveats` found; `short`: its first sentence, and where the rest stands."""
    for identity, warning in found.items():
        if not warning:
            continue
        first, _, rest = warning.partition(". ")
        message(f"{identity}: {first}. In full: `farmwatch rate`" if short and rest else f"{identity}: {warning}")
