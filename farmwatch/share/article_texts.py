"""The texts of a run's articles, for a detector that has not scored them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from farmwatch.share.topic_records import newest_fetches, topic_records
from filters.rules.judgement import judge_and_text
from replay.runs.run_rules import live_now
from stream.log.contract import Log
from stream.schema.control import Control
from stream.schema.page_age import age_of
from stream.schema.projection import projection_of
from stream.schema.records import Features, Record
from stream.schema.vocabulary import KEPT


@projection_of(Features)
class _Fetch(Record, frozen=True, kw_only=True):
    """The fields of a features record that tell the newest of a page."""

    page_id: str
    fetched_at: int


class ArticleText(NamedTuple):
    """The newest fetch of an article, with the text that its ruleset gives to SCORE."""

    id: str
    site: str
    age: str  # PageAge
    text: str
    language: str


def article_texts(log: Log, is_wanted: Callable[[str, str], bool]) -> Iterator[ArticleText]:
    """The articles of the live run whose site and age are wanted; none before the first live stage.

    Raises BadRuleset, NotFound for a ruleset that the log does not have.
    """
    live = live_now(Control(log))
    if live is None:
        return
    for partition in range(log.topics().get(live.names.features, 0)):
        fetches = topic_records(log, _Fetch, live.names.features, [partition])
        ids = {fetch.id for fetch in newest_fetches(fetches)}
        for features in topic_records(log, Features, live.names.features, [partition]):
            if features.id in ids and is_wanted(features.site, age_of(features.dates, features.fetched_at)):
                verdict, text = judge_and_text(features, live.ruleset)
                if verdict.verdict in KEPT:
                    language = str(features.measures.get("language") or "")
                    yield ArticleText(features.id, features.site, verdict.age, text, language)
