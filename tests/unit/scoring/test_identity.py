"""Identities of detectors: the part with the thresholds, and invalid strings."""

from __future__ import annotations

import pytest

from scoring.detectors.registry import base_of, refuse_bad_identity
from scoring.errors import BadIdentity

PAIR = "binoculars/x+y@0a1b2c3d/float32/512"


@pytest.mark.parametrize("base", [PAIR, "fast-detectgpt/x+y@0a1b2c3d/bfloat16/64", "lite-ngram/0a1b2c3d", "other"])
def test_a_base_is_the_identity_without_its_thresholds(base: str) -> None:
    """The last part is removed from a whole identity, and from nothing else."""
    for tag in ("uncalibrated", "p0.95", "mine-ff6f2814"):
        assert base_of(f"{base}/{tag}") == base
    with pytest.raises(BadIdentity):
        base_of(base)


@pytest.mark.parametrize("identity", [PAIR, f"{PAIR}/a/b", "lite-ngram/0a1b2c3d"])
def test_the_message_says_the_right_form(identity: str) -> None:
    """An identity without thresholds, or with an extra part, is refused with the right form for its detector."""
    form = "lite-ngram/WEIGHTS/THRESHOLDS" if "lite" in identity else "OBSERVER+PERFORMER@DIGITS/DTYPE/TOKENS/THRESH"
    with pytest.raises(BadIdentity) as refused:
        base_of(identity)
    assert form in str(refused.value) and identity in str(refused.value)


@pytest.mark.parametrize("identity", ["", "x", "x/y/z\n", "x/\x1b[1m/z", "x/$a$/z", "x//z", "a.b/c/d", "x/y/z" * 100])
def test_names_out_of_other_characters_are_none(identity: str) -> None:
    """Any other string is refused with a printable message."""
    with pytest.raises(BadIdentity) as refused:
        refuse_bad_identity(identity)
    assert str(refused.value).isprintable()
