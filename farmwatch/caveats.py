"""What must be said wherever scores, or verdicts and rates that rest on them, are shown."""

from __future__ import annotations

from collections.abc import Iterable

from farmwatch.config import Config
from farmwatch.messages import message


def caveats(config: Config, identities: Iterable[str]) -> dict[str, str]:
    """Detector identity -> its warning; "" has none. Only the warnings of configured detectors are known.

    Raises UnknownDetector, BadWeights, BadThresholds.
    """
    from farmwatch.roles import configured_warnings

    named = sorted(set(identities) - {""})
    if not named:
        return {"": ""}
    known = configured_warnings(config)
    unknown = "not a detector configured here; what its scores are worth is not known here"
    return {"": "", **{name: known.get(name, unknown) for name in named}}


def tell(found: dict[str, str], *, short: bool = False) -> None:
    """Say on stderr what `caveats` found; `short`: its first sentence, and where the rest stands."""
    for identity, warning in found.items():
        if not warning:
            continue
        first, _, rest = warning.partition(". ")
        message(f"{identity}: {first}. In full: `farmwatch rate`" if short and rest else f"{identity}: {warning}")
