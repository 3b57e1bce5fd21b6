"""`farmwatch topics`."""

from __future__ import annotations

import os
import shutil
import time
from typing import Annotated

from cyclopts import Parameter

from farmwatch.commands.options import DEFAULTS, AsJson, Common
from farmwatch.config.config import Config
from farmwatch.config.member_names import names_folder
from farmwatch.config.opening import opened
from farmwatch.config.topic_limits import create_topics
from farmwatch.daemon.disk_forecast import LEAST_DAYS, DiskForecast, TopicGrowth, forecast, topic_growths
from farmwatch.terminal.messages import message, put_columns, put_json
from replay.runs.topology import TopicState, topic_states
from stream.text.user_errors import Exit
from stream.text.wording import lasting, size

_DAY_S = 86_400


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
    config = common.load().config
    with opened(config, create=create) as log:
        if create:
            create_topics(log, config)
        states = topic_states(log)
        growths, age_days = topic_growths(log, time.time_ns() // 1_000_000)
    free_bytes = _free_bytes(config)
    found = forecast(growths, float("inf") if free_bytes is None else free_bytes)
    if json:
        put_json([_as_json(state, growth) for state, growth in zip(states, growths, strict=True)])
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
        for line in _lines(found, free_bytes, age_days):
            message(line)
    else:
        message("no topics yet: `farmwatch topics --create`, or `farmwatch up`")
    return Exit.OK


def _lines(found: DiskForecast, free_bytes: int | None, age_days: float) -> list[str]:
    if age_days < LEAST_DAYS:
        return [f"the log holds {size(found.size_bytes)}; a forecast needs records of a day"]
    lines = [f"the log holds {size(found.size_bytes)} and grows by {size(found.bytes_a_day)} a day"]
    if free_bytes is None:
        lines.append("farmwatch does not see the brokers' disks: compare this with their free space")
    elif found.full_in_days is None:
        lines.append(f"retention ends the growth before the disk is full ({size(free_bytes)} free)")
    else:
        due = time.strftime("%Y-%m-%d", time.gmtime(time.time() + found.full_in_days * _DAY_S))
        span = lasting(found.full_in_days * _DAY_S)
        lines.append(
            f"at this pace the disk ({size(free_bytes)} free) is full in {span}, on {due}: add disk, or lower the"
            " limits of the largest topics ([retention], docs/how-to/disk.md)"
        )
    if found.freed_bytes:
        lines.append(f"the next round of retention frees about {size(found.freed_bytes)}")
    return lines


def _as_json(state: TopicState, growth: TopicGrowth) -> dict[str, object]:
    names = ("partitions", "records", "beginning", "end", "lag")
    return {
        "topic": state.name,
        **{name: getattr(state, name) for name in names},
        "bytes": growth.size_bytes,
        "bytes_a_day": round(growth.bytes_a_day),
        "kept": growth.kept,
    }


def _free_bytes(config: Config) -> int | None:
    """Free bytes on the disk of an embedded log; None for a broker's."""
    if config.log.url.startswith("kafka:"):
        return None
    folder = names_folder(config).absolute()
    existing = next(path for path in (folder, *folder.parents) if os.path.exists(path))  # noqa: PTH110 - no error
    return shutil.disk_usage(existing).free
