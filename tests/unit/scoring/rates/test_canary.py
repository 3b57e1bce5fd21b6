"""Canary sites tell their truth by their name, and no real site is taken for one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.rates.canary import is_canary, truth_of


@pytest.mark.parametrize(
    ("site", "truth"),
    [
        ("news.r19000.human.canary.invalid", "human"),
        ("news.r19000.llm.canary.invalid", "llm"),
        ("x.llm.canary.invalid", "llm"),
    ],
)
def test_the_truth_stands_in_the_name(site: str, truth: str) -> None:
    """Whatever label stands before it, the label before `canary.invalid` is the truth."""
    assert truth_of(site) == truth
    assert is_canary(site)


@pytest.mark.parametrize(
    "site",
    [
        "example.org",
        "human.canary.invalid",
        "llm.canary.invalid",
        ".llm.canary.invalid",
        "canary.invalid",
        "x.robot.canary.invalid",
        "x.llm.canary.invalid.example.org",
        "x.llm.canary.example",
        "xllm.canary.invalid",
        "",
    ],
)
def test_what_is_no_canary_has_no_truth(site: str) -> None:
    """A real site, a name without a label of its own, another truth or another end: none is a canary."""
    assert truth_of(site) is None
    assert not is_canary(site)


@given(st.text())
def test_only_the_reserved_end_makes_a_canary(site: str) -> None:
    """No name outside of the reserved domain is ever a canary."""
    assert not is_canary(site) or site.endswith(".canary.invalid")
