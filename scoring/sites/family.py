"""Detector families: scores of one family are on one scale, for any number type, length limit and threshold.

Numbers learned from scores (bell curves, decile weights) hold for a family, flags and verdicts for one identity.
"""

from __future__ import annotations

BINOCULARS_FALCON = "binoculars/falcon-7b+falcon-7b-instruct"
_DTYPE, _TOKENS = "bfloat16", 512  # with which its numbers were measured; longer texts were cut to this many tokens


def family(detector: str) -> str:
    """Name and weights of an identity: "lite-ngram/<digest>", or "binoculars/<observer>+<performer>".

    The fingerprint after @ is left out: it tells copies of the models apart, which score alike.
    """
    name, _, rest = detector.partition("/")
    weights = rest.partition("/")[0].partition("@")[0]
    return f"{name}/{weights}" if weights else name


def same_family(detector: str, other: str) -> bool:
    """True if both are of one family; a bare name such as "binoculars" is of every family of that name."""
    one, two = family(detector), family(other)
    return one == two or one == two.partition("/")[0]


def not_as_measured(detector: str) -> str:
    """The reason that numbers of Binoculars with Falcon-7B do not apply to this identity or name; "" = they apply.

    They were measured in bfloat16 on the first 512 tokens: in another number type a score shifts, and on fewer tokens
    it scatters more. A bare name counts as measured. A model is known by its folder's name, which does not prove that
    its weights are the original ones.
    """
    if not same_family(detector, BINOCULARS_FALCON):
        return f"they are for {BINOCULARS_FALCON}"
    dtype, tokens = [*detector.split("/")[2:4], "", ""][:2]
    if dtype and dtype != _DTYPE:
        return f"they were measured in {_DTYPE}, not in {dtype}"
    if tokens and not (tokens.isdecimal() and int(tokens) >= _TOKENS):
        return f"they were measured on the first {_TOKENS} tokens of a text, not on {tokens}"
    return ""
