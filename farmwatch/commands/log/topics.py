"""`farmwatch log topics`."""

from __future__ import annotations

from operator import attrgetter
from typing import Annotated, NamedTuple

from cyclopts import Parameter

from farmwatch.commands.options import DEFAULTS, Common
from farmwatch.config.opening import opened
from farmwatch.config.topic_limits import create_topics
from farmwatch.tables.columns import Column
from farmwatch.tables.listing import LISTING, Listing
from farmwatch.terminal.messages import message
from farmwatch.upkeep.disk_forecast import TopicGrowth, forecast_in_words, topic_growths
from replay.runs.topology import TopicState, topic_states
from stream.log.contract import wall_ms
from stream.text.user_errors import Exit
from stream.text.wording import size

_MARKERS = "heartbeats, replaced records and, on Kafka, transaction markers"  # offsets count: they cost no reading


class _Topic(NamedTuple):
    """A topic with its growth."""

    state: TopicState
    growth: TopicGrowth


_COLUMNS: list[Column[_Topic]] = [
    Column("topic", "text", attrgetter("state.name")),
    Column("records", "integer", attrgetter("state.records"), "sum", f"with {_MARKERS}"),
    Column("bytes", "integer", attrgetter("growth.size_bytes"), said=lambda topic: size(topic.growth.size_bytes)),
    Column(
        *("bytes_a_day", "integer", lambda topic: round(topic.growth.bytes_a_day)),
        said=lambda topic: size(topic.growth.bytes_a_day) if topic.growth.bytes_a_day else "",
    ),
    Column("kept", "text", attrgetter("growth.kept"), meaning="older and further records are removed"),
    Column(
        *("lag", "json", attrgetter("state.lag")),
        meaning="records that a stage has not read yet",
        said=lambda topic: ", ".join(f"{group} {lag}" for group, lag in topic.state.lag.items() if lag),
    ),
    Column("partitions", "integer", attrgetter("state.partitions")),
]


def topics(
    *,
    create: Annotated[
        bool, Parameter(negative="", help="Create missing topics; give existing ones the limits of [retention].")
    ] = False,
    listing: Listing = LISTING,
    common: Common = DEFAULTS,
) -> int:
    """One row per topic of the log: its size, its growth, what is kept, and what stages have not read yet.

    Below: how large the log becomes, and when its disk is full. The pace is the mean of the records that a topic holds.
    """
    selection = listing.of(_COLUMNS)
    config, now_ms = common.load().config, wall_ms()
    with opened(config, create=create) as log:
        if create:
            create_topics(log, config)
        states = topic_states(log)
        growths, age_days = topic_growths(log, now_ms)
    selection.put(map(_Topic, states, growths), "topic")
    if listing.is_table and states:
        message(f"records: with {_MARKERS}")
        for line in forecast_in_words(config, growths, age_days, now_ms):
            message(line)
    return Exit.OK
