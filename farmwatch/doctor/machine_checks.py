"""Checks of the machine: packages, disk, ports, and the clock, also against the times in the log."""

from __future__ import annotations

import importlib.util
import operator
import os
import shutil
import subprocess
import time
from contextlib import suppress
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

from crawler.frontier.report import newest_row_at
from crawler.frontier.stored_times import CLOCK_SLACK_MS
from farmwatch.config.member_names import names_folder, running_roles
from farmwatch.daemon.endpoints import PortTaken, addresses_of, listen
from farmwatch.doctor.check_result import CheckState, Results, Subject, fail, ok, warn
from farmwatch.upkeep.disk_forecast import existing_folder
from stream.log.contract import At, Log, wall_ms
from stream.log.errors import BadRecord
from stream.schema.records import Page, read
from stream.schema.topics import HITS, PAGES
from stream.text.wording import moment

PACKAGES = ("stream", "crawler", "filters", "scoring", "replay", "farmwatch")
_GIB = 1024**3
_NEWEST = 5  # offsets at the end of a partition, of which some may be markers of transactions
_DISK_FAIL_BYTES, _DISK_WARN_BYTES = 1 * _GIB, 10 * _GIB

_owners = cache(packages_distributions)  # a look at all installed packages takes longer than all other checks


def imports(_: Subject) -> Results:
    """`stream` and `filters` come from this distribution: another one may have packages of these common names."""
    home = folder_of("farmwatch")
    owners = _owners()
    others = {name: sorted(set(owners.get(name, ())) - {"farmwatch"}) for name in PACKAGES}
    strays = [f"{name} comes from {folder_of(name)}" for name in PACKAGES if folder_of(name) != home]
    strays += [f"{name} is also in {', '.join(of)}" for name, of in others.items() if of]
    if strays:
        yield fail(", ".join(strays), "install farmwatch in a virtual environment of its own")
    else:
        yield ok(f"all packages from {home}")


def folder_of(package: str) -> Path | None:
    """The folder from which a package is imported."""
    spec = importlib.util.find_spec(package)
    return Path(spec.origin).resolve().parent.parent if spec is not None and spec.origin else None


def ports(at: Subject) -> Results:
    """Whether the roles can serve: a running farmwatch of this log holds its own ports.

    Raises ConfigError for an address of another machine.
    """
    taken, running = [], running_roles(names_folder(at.config))
    for what, role, table, host, port in addresses_of(at.config, at.roles):
        if role in running:
            continue
        try:
            listen(host, port, table).close()
        except PortTaken:
            taken.append(f"{host}:{port} ({what})")
    if taken:
        mend = "set metrics.port or console.port to another one, or to 0 for any"
        yield warn(f"used by another program, or the farmwatch of another log: {', '.join(taken)}", mend)
    elif ours := [role.value for role in at.roles if role in running]:
        yield ok(f"served by the running {', '.join(ours)}")
    else:
        yield ok("metrics and console can be served")


def disk(at: Subject) -> Results:
    """Room for the log, and for local state on Kafka. Reading a log needs no write permission."""
    existing = existing_folder(at.config)
    free = shutil.disk_usage(existing).free
    room = f"{free / _GIB:.1f} GiB free at {existing}"
    if not os.access(existing, os.W_OK):
        yield warn(f"{room}; this user can read the log and not write it", "run `farmwatch up` as the folder's owner")
    elif free < _DISK_FAIL_BYTES:
        yield fail(room, "free disk, or lower the retention of `pages`")
    elif free < _DISK_WARN_BYTES:
        yield warn(room, "months of pages want more; watch it")
    else:
        yield ok(room)


def output_of(*command: str) -> str:
    """A program's output; nothing if it is not installed or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def clock(at: Subject) -> Results:
    """The clock is synchronised, and nothing in the log is from the future."""
    results = list(dates(at))
    yield from results
    if any(result.state is CheckState.FAIL for result in results):
        return
    if output_of("timedatectl", "show", "-p", "NTPSynchronized", "--value") == "no":
        yield warn("not synchronised", "turn on NTP: timedatectl set-ntp true")
    elif not results:
        yield ok(time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime()))


def dates(at: Subject) -> Results:
    """Hits, pages and sites of the crawl that are dated in the future; nothing if there are none."""
    if at.log is None:
        return
    limit_ms, topics = wall_ms() + CLOCK_SLACK_MS, at.log.topics()
    for topic in (name for name in (HITS, PAGES) if name in topics):
        ends = at.log.end(topic)  # before the look by date: records come meanwhile
        newest_ms = _newest(at.log, topic)
        if newest_ms > limit_ms:
            yield fail(f"the newest {topic} are from the future: {moment(newest_ms)}", "set this machine's clock")
        elif any(map(operator.lt, at.log.offset_at(topic, limit_ms), ends)):
            said = f"some {topic} are from the future, newer ones are not: a clock was ahead when they were written"
            yield warn(said, "nothing mends their dates; counts by time have them where they are dated")
    if not at.log.forgets_offsets and HITS in topics:  # on Kafka the whole changelog would be read
        rows_ms = newest_row_at(at.log, topics[HITS])
        if rows_ms > limit_ms:
            said = f"the crawl has noted times up to {moment(rows_ms)}: its clock was ahead, or this one is behind"
            yield warn(said, "set this machine's clock; a running crawl then limits these times by its rules")


def _newest(log: Log, topic: str) -> int:
    """The time of the newest record of the partitions, or of the fetch of its page."""
    bounds = enumerate(zip(log.beginning(topic), log.end(topic), strict=True))
    spans = {At(topic, at): (max(first, end - _NEWEST), end) for at, (first, end) in bounds if first < end}
    newest = {message.partition: message for message in log.read_all(spans)}.values()
    times = [0, *(message.timestamp_ms for message in newest)]
    for message in newest if topic == PAGES else ():
        with suppress(BadRecord):  # MEASURE reports it
            times.append(read(Page, message).fetched_at)
    return max(times)
