"""Krippendorff's alpha against worked examples of Krippendorff, Computing Krippendorff's Alpha-Reliability, 2011."""

from __future__ import annotations

import pytest

from scoring.statistics.labeller_agreement import nominal_alpha


def units(*of_labellers: str) -> list[list[str]]:
    """The labels of each unit; a dot is none."""
    return [[label for label in unit if label != "."] for unit in zip(*of_labellers, strict=True)]


@pytest.mark.parametrize(
    ("of_labellers", "alpha"),
    [
        (("0100000010", "1110010000"), 0.095),  # A: binary, two observers, no missing data
        (("aabbdcccedda", "babbbccceddd"), 0.692),  # B: nominal, two observers
        (("123321412...", "1233224125.3", ".3332342251.", "12332441251."), 0.743),  # C: four, with missing data
    ],
)
def test_alpha_is_that_of_the_published_examples(of_labellers: tuple[str, ...], alpha: float) -> None:
    """Examples A, B and C."""
    assert nominal_alpha(units(*of_labellers)) == pytest.approx(alpha, abs=0.0005)


def test_full_agreement_is_one_and_labels_of_one_kind_say_nothing() -> None:
    """Alpha is 1 where labellers agree, and unknown where all labels are equal or no unit has two."""
    assert nominal_alpha(units("0110", "0110")) == 1
    assert nominal_alpha(units("0000", "0000")) is None
    assert nominal_alpha(units("01..", "..10")) is None and nominal_alpha([]) is None
