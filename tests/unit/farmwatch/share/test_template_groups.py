"""Sites that share a template, read from the log."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farmwatch.share.template_groups import alike, read_template_groups
from filters.structure.tag_paths import PLACES, SAME_TEMPLATE
from stream.memory.log import MemoryLog
from stream.schema.topics import TEMPLATES
from tests.support.logs.shared_templates import fill


@pytest.fixture
def log() -> MemoryLog:
    """The rows of `fill`."""
    log = MemoryLog()
    fill(log)
    return log


def test_sites_of_a_template_are_a_group(log: MemoryLog) -> None:
    """The largest first, with a page of its most frequent sketch; removed and malformed rows are in none."""
    found = read_template_groups(log, TEMPLATES)
    assert [sorted(group.sites) for group in found.groups] == [
        ["a.example", "b.example", "x.c.example", "y.c.example"],
        ["a.example", "z.example"],
    ]
    assert [group.fields({})["domains"] for group in found.groups] == [3, 2]
    assert [group.url for group in found.groups] == ["https://a.example/1", "https://a.example/2"]
    assert (found.sites, found.is_whole) == (6, True)
    assert found.of("z.example") == found.groups[1]
    assert found.of("alone.example") is None
    assert read_template_groups(MemoryLog(), TEMPLATES).groups == []  # of a log without the topic


@pytest.mark.parametrize("cap", [1, 2, 5])
def test_of_a_large_log_a_part_is_read(log: MemoryLog, cap: int) -> None:
    """No more templates than the cap are held, and the answer says that it is of a part."""
    found = read_template_groups(log, TEMPLATES, cap=cap)
    assert 0 < found.sites <= cap and not found.is_whole


ORIGINS = [random.Random(number).randbytes(PLACES) for number in range(4)]


def changed(sketch: bytes, places: int, seed: int) -> bytes:
    """The sketch with other values in so many random places."""
    places_of, chance = bytearray(sketch), random.Random(seed)
    for place in chance.sample(range(PLACES), places):
        places_of[place] = (places_of[place] + 1 + chance.randrange(255)) % 256
    return bytes(places_of)


SKETCHES = st.builds(changed, st.sampled_from(ORIGINS), st.integers(0, PLACES), st.integers(0, 99))
SITES_OF = st.dictionaries(SKETCHES, st.sets(st.sampled_from("abcdef"), min_size=1), max_size=40)


@given(sites_of=SITES_OF, seed=st.integers(0, 9))
def test_every_sketch_is_in_one_group_and_like_its_leader(sites_of: Mapping[bytes, set[str]], seed: int) -> None:
    """The groups divide the sketches; members are as similar as a template's; a leader has the most sites."""
    groups = alike(sites_of)
    assert sorted(sketch for group in groups for sketch in group) == sorted(sites_of)
    for leader, *others in groups:
        assert all(sum(map(int.__eq__, leader, other)) >= SAME_TEMPLATE * PLACES for other in others)
        assert all(len(sites_of[leader]) >= len(sites_of[other]) for other in others)
    shuffled = list(sites_of)
    random.Random(seed).shuffle(shuffled)
    assert alike({sketch: sites_of[sketch] for sketch in shuffled}) == groups


def test_a_mass_produced_template_is_one_group() -> None:
    """Three hundred sites whose pages differ in a tenth of the places are found, among as many unlike ones."""
    of_one = {changed(ORIGINS[0], 6, seed): [f"{seed}.one.example"] for seed in range(300)}
    others = {random.Random(-seed).randbytes(PLACES): [f"{seed}.other.example"] for seed in range(1, 301)}
    groups = alike({**of_one, **others})
    assert len(groups) <= 302
    assert len(max(groups, key=len)) >= 298


def test_unlike_sketches_with_the_same_band_stay_apart() -> None:
    """Two thousand sketches with the same first places, as a hostile site may make them, are as many groups."""
    start = bytes(8)
    sketches = {start + random.Random(seed).randbytes(PLACES - 8): ["a.example"] for seed in range(2_000)}
    assert len(alike(sketches)) == 2_000
