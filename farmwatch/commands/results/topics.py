"""`farmwatch topics`."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from farmwatch.commands.options import DEFAULTS, AsJson, Common
from farmwatch.config.opening import create_topics, opened
from farmwatch.terminal.messages import message, put_columns, put_json
from replay.runs.topology import topic_states
from stream.text.user_errors import Exit


def topics(
    *,
    create: Annotated[bool, Parameter(negative="", help="Create the topics that are missing.")] = False,
    json: AsJson = False,
    common: Common = DEFAULTS,
) -> int:
    """The topics of the log: partitions, records, first and last offsets, and how far each group is behind."""
    config = common.load().config
    with opened(config, create=create) as log:
        if create:
            create_topics(log, config)
        states = topic_states(log)
    if json:
        names = ("partitions", "records", "beginning", "end", "lag")
        put_json([{"topic": state.name, **{name: getattr(state, name) for name in names}} for state in states])
        return Exit.OK
    put_columns(
        states,
        {
            "topic": "name",
            "partitions": "partitions",
            "records": "records",
            "beginning": lambda state: sum(state.beginning),
            "end": lambda state: sum(state.end),
            "lag": lambda state: ", ".join(f"{group} {behind}" for group, behind in state.lag.items()),
        },
    )
    if states:
        message("records include the heartbeats that `up` sends through the stages")
    else:
        message("no topics yet: `farmwatch topics --create`, or `farmwatch up`")
    return Exit.OK
