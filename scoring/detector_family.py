"""Which scores are on one scale: those of one detector, whatever its number type, length limit and threshold.

Numbers learned from scores (bell curves, decile weights) hold for a family, flags and verdicts for a whole identity.
"""

from __future__ import annotations

BINOCULARS_FALCON = "binoculars/falcon-7b+falcon-7b-instruct"


def family(detector: str) -> str:
    """Name and weights of an identity: "lite-ngram/<digest>", or "binoculars/<observer>+<performer>".

    The fingerprint after @ is left out: it tells copies of the models apart, which score alike.
    """
    name, _, rest = detector.partition("/")
    weights = rest.partition("/")[0].partition("@")[0]
    return f"{name}/{weights}" if weights else name


def same_family(detector: str, other: str) -> bool:
    """True where both are of one family; a bare name such as "binoculars" is of every family of that name."""
    one, two = family(detector), family(other)
    return one == two or one == two.partition("/")[0]
