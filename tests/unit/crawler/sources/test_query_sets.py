"""The query set that ships: by topic, versioned, without duplicates."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from crawler.sources.queries import query_file, read_queries


def test_the_shipped_queries_are_stratified() -> None:
    """The set has 500 different how-to queries, 50 for each of 10 topics; ids contain version and topic."""
    with query_file(Path("how-to")).open("rb") as lines:
        queries, bad = read_queries(lines, is_table=True)
    assert bad == [] and len({query.text for query in queries}) == 500
    topics = Counter(tuple(query.id.split("/")[:2]) for query in queries)
    assert len(topics) == 10 and set(topics.values()) == {50}
    assert {version for version, _ in topics} == {"how-to-1"}
    assert all(query.text.startswith("how to ") and query.language == "en" for query in queries)


def test_a_file_of_the_same_name_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file in the working folder comes before a set of the same name; any other name is a file."""
    monkeypatch.chdir(tmp_path)
    assert query_file(Path("how-to")).name == "how-to.csv"
    Path("how-to").touch()
    assert query_file(Path("how-to")) == Path("how-to")
    assert query_file(Path("other.txt")) == Path("other.txt")
    assert query_file(Path("folder/how-to")) == Path("folder/how-to")
