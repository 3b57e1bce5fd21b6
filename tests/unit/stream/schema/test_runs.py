"""Names of runs and of their topics, groups and stores."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream.schema.runs import LIVE, RESERVED, RUN_NAME, Run, features_of, memory_store, names_of
from stream.schema.topics import DEFAULT_PARTITIONS, all_topics, site_memory

_KAFKA_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")
names = st.from_regex(RUN_NAME, fullmatch=True).filter(lambda name: name not in RESERVED)


def run(name: str, **more: object) -> Run:
    """A run with its required fields."""
    return Run(name=name, ruleset="r", digest="d", detector="x", epoch="e", **more)  # type: ignore[arg-type]


def test_the_first_run_has_the_plain_names() -> None:
    """The run `live` uses the topics of a log without runs, so that the first run moves no record."""
    live = names_of(LIVE)
    assert live == (
        "features",
        "templates",
        "verdicts",
        "sites",
        "sites.terms",
        "score.requests",
        "tally",
        "measure",
        "judge",
        "tally",
    )
    topics = {topic.name for topic in all_topics(DEFAULT_PARTITIONS, "e")}
    assert {*live[:6], f"state.{live.tally_store}"} <= topics


@given(names, names)
def test_runs_share_nothing_that_they_write(one: str, other: str) -> None:
    """Two runs have separate topics, stores and groups, none of them live, all with names that Kafka accepts."""
    topics = {topic.name for topic in all_topics(DEFAULT_PARTITIONS, "e")}

    def written(name: str) -> set[str]:
        owned = names_of(name, features_of(name))
        stores = (owned.tally_store, memory_store(owned.features, "e"))
        made = {*owned[:5], *(f"state.{store}" for store in stores)}
        return made | {f"group {group}" for group in (owned.measure_group, owned.judge_group, owned.tally_group)}

    assert not written(one) & (topics | {"group measure", "group judge", "group tally"})
    assert one == other or not written(one) & written(other)
    assert all(_KAFKA_NAME.fullmatch(made.removeprefix("group ")) for made in written(one))


@pytest.mark.parametrize("name", ["", "-a", "A", "a.b", "a_b", "a/b", "a b", "a\n", "ä", "a" * 41])
def test_names_that_are_no_part_of_a_topic_are_refused(name: str) -> None:
    """Empty and long names, upper case, separators and control characters are refused as names of runs."""
    assert RUN_NAME.fullmatch(name) is None


def test_a_run_that_judges_others_features_has_their_measure_group() -> None:
    """A run that measures again has its own topic and group; a run on its features uses that group."""
    own = run("slow", features=features_of("slow"), remeasures=True)
    assert (own.names().features, own.names().measure_group) == ("features.slow", "measure.slow")
    on_it = run("tight", features="features.slow")
    assert (on_it.names().verdicts, on_it.names().measure_group) == ("verdicts.tight", "measure.slow")
    assert (memory_store("features", "e"), memory_store("features.slow", "e")) == (
        site_memory("e"),
        "site-memory.e.slow",
    )


def test_only_the_live_run_asks_for_scores_first() -> None:
    """A run requests scores on the topic of replays until it is live; the first run always uses the live one."""
    assert run("tight").names().requests == "score.requests.replay"
    assert run("tight").names(is_live=True).requests == "score.requests"
    assert run(LIVE).names().requests == "score.requests"


def test_where_a_run_begins_and_whether_it_ends() -> None:
    """A run reads pages if it measures again, otherwise features; without a stop it follows."""
    assert (run("a").source, run("a", remeasures=True).source) == ("features", "pages")
    assert run("a").follows
    assert not run("a", stop={"features": [1]}).follows
