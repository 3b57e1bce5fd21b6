"""Names of members as Kafka takes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream.kafka.settings import instance_name, name_of


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_name_reads_back(name: str) -> None:
    """Whatever is in it."""
    assert name_of(instance_name(name)) == name


@pytest.mark.parametrize("name", ["x_fffffff_", "x_110000_", "_ffffffffffffffffffff_", "_d800_", "__", "a_b", "_xyz_"])
def test_a_name_that_is_not_ours_stays_as_it_is(name: str) -> None:
    """Anybody may join a group: no name of a member is an error, and none is unprintable."""
    assert name_of(name) == name
