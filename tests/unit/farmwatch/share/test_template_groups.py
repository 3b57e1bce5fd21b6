"""Sites that share a template, read from the log."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from farmwatch.share.template_groups import read_template_groups
from stream.memory.log import MemoryLog
from stream.schema.topics import TEMPLATES
from tests.support.logs.shared_templates import fill


@pytest.fixture
def log() -> Iterator[MemoryLog]:
    """The rows of `fill`."""
    log = MemoryLog()
    fill(log)
    yield log
    log.close()


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


def test_a_log_without_the_topic_has_no_group() -> None:
    """Such as one of an older farmwatch."""
    assert read_template_groups(MemoryLog(), TEMPLATES).groups == []


@pytest.mark.parametrize("cap", [1, 2, 5])
def test_of_a_large_log_a_part_is_read(log: MemoryLog, cap: int) -> None:
    """No more templates than the cap are held, and the answer says that it is of a part."""
    found = read_template_groups(log, TEMPLATES, cap=cap)
    assert 0 < found.sites <= cap and not found.is_whole
