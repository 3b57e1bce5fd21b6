"""What the doctor says of records that could not be processed, and of files of the log that are gone."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, cast

from farmwatch.config.config import Config
from farmwatch.doctor.check_result import CheckResult, CheckState
from farmwatch.doctor.run_checks import opened_or_none
from stream.log.contract import At, Log
from stream.log.errors import StreamError
from stream.processing.dead_letters import DeadLetter
from stream.processing.topic_reader import UnreadableCounter, dead_letters_of
from stream.schema.topics import DEAD_LETTERS
from stream.text.spans import moment
from stream.text.user_errors import FarmwatchError
from stream.text.wording import counted, one_line

if TYPE_CHECKING:
    from stream.embedded.log import EmbeddedLog

_NEWEST = 100  # dead letters looked at, of each partition: a letter holds the record that it buries
_ERROR_CHARS = 200
_MEND = "if it says damaged, check the disk (dmesg); errors: docs/reference/topics.md, When something is wrong"


def dead_letters(config: Config) -> list[CheckResult]:
    """Dead letters by stage and error, and where the newest one comes from; nothing while no stage has ever begun."""
    with suppress(StreamError, FarmwatchError), opened_or_none(config) as log:
        if log is None or DEAD_LETTERS not in log.topics():
            return []
        return [_of_letters(log)]
    return []


def segments(config: Config) -> list[CheckResult]:
    """Segment files of the embedded log that records need and that are gone; nothing for another log."""
    if not config.log.url.startswith("sqlite:"):
        return []
    with suppress(StreamError, FarmwatchError), opened_or_none(config) as log:
        if log is None:
            return []
        missing = cast("EmbeddedLog", log).missing_segments()
        if not missing:
            return [CheckResult("segments", CheckState.OK, "every file that records need is there")]
        files = ", ".join(str(path) for path in list(missing)[:3])
        found = f"{counted(sum(missing.values()), 'record')} cannot be read, their files are gone: {files}"
        return [
            CheckResult("segments", CheckState.FAIL, found, "restore the files from a backup (docs/how-to/recover.md)")
        ]
    return []


def _of_letters(log: Log) -> CheckResult:
    spans = list(zip(log.beginning(DEAD_LETTERS), log.end(DEAD_LETTERS), strict=True))
    found: Counter[str] = Counter()
    newest: tuple[int, DeadLetter] | None = None
    unreadable = UnreadableCounter()
    newest_of_each = {At(DEAD_LETTERS, p): (max(first, end - _NEWEST), end) for p, (first, end) in enumerate(spans)}
    for message, letter in dead_letters_of(log.read_all(newest_of_each), unreadable):
        found[f"{letter.stage} {letter.error.partition(':')[0]}"] += 1
        if newest is None or newest[0] <= message.timestamp_ms:
            newest = message.timestamp_ms, letter
    if newest is None and not unreadable.lines():
        return CheckResult("dead letters", CheckState.OK, "none")
    said = [f"{name} {count:,}" for name, count in found.most_common()]
    if any(end - first > _NEWEST for first, end in spans):
        said.append(f"of the newest {_NEWEST} of each partition")
    if newest is not None:
        at_ms, letter = newest
        origin = f"{letter.topic} partition {letter.partition} offset {letter.offset}"
        said.append(f"the newest, {moment(at_ms)}, is {origin}: {letter.error[:_ERROR_CHARS]}")
    return CheckResult("dead letters", CheckState.WARN, one_line("; ".join([*said, *unreadable.lines()])), _MEND)
