"""`farmwatch log topics`."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from farmwatch.commands.options import DEFAULTS, AsJson, Common
from farmwatch.config.opening import opened
from farmwatch.config.topic_limits import create_topics
from farmwatch.terminal.messages import message, put_columns, put_json
from farmwatch.upkeep.disk_forecast import LEAST_DAYS, forecast_in_words, held_in_words, topic_growths
from replay.runs.topology import topic_states
from stream.log.contract import wall_ms
from stream.schema.control import Control
from stream.text.user_errors import Exit
from stream.text.wording import size


def topics(
    *,
    create: Annotated[
        bool, Parameter(negative="", help="Create missing topics; give existing ones the limits of [retention].")
    ] = False,
    json: AsJson = False,
    common: Common = DEFAULTS,
) -> int:
    """The topics of the log: size, growth and retention, and how far each group is behind.

    Below: how large the log becomes, when its disk is full, and what the next round of retention removes. The pace is
    the mean of the records that a topic holds.
    """
    config, now_ms = common.load().config, wall_ms()
    with opened(config, create=create) as log:
        if create:
            create_topics(log, config)
        states = topic_states(log)
        growths, age_days = topic_growths(log, now_ms)
        held = list(held_in_words(log, Control(log), now_ms)) if states else []
    if json:
        names = ("partitions", "records", "beginning", "end", "lag")
        put_json(
            [
                {
                    "topic": state.name,
                    **{name: getattr(state, name) for name in names},
                    "bytes": growth.size_bytes,
                    "bytes_a_day": round(growth.bytes_a_day),
                    "kept": growth.kept,
                }
                for state, growth in zip(states, growths, strict=True)
            ]
        )
        return Exit.OK
    put_columns(
        zip(states, growths, strict=True),
        {
            "topic": lambda row: row[0].name,
            "partitions": lambda row: row[0].partitions,
            "records": lambda row: row[0].records,
            "beginning": lambda row: sum(row[0].beginning),
            "end": lambda row: sum(row[0].end),
            "size": lambda row: size(row[1].size_bytes),
            "a day": lambda row: size(row[1].bytes_a_day) if age_days >= LEAST_DAYS else "",
            "kept": lambda row: row[1].kept,
            "lag": lambda row: ", ".join(f"{group} {behind}" for group, behind in row[0].lag.items()),
        },
        less=("beginning", "end", "partitions", "records"),
    )
    if states:
        message("records include the heartbeats that `up` sends through the stages")
        for line in [*forecast_in_words(config, growths, age_days, now_ms), *held]:
            message(line)
    else:
        message("no topics yet: `farmwatch log topics --create`, or `farmwatch up`")
    return Exit.OK
