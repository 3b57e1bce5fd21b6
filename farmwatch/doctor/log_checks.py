"""Checks of the log, of its dead letters and files, and of the runs on it."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack, closing, suppress
from typing import TYPE_CHECKING, cast

from farmwatch.config.opening import log_exists, open_configured, refuse_unfinished, require_broker
from farmwatch.config.topic_limits import configured_topics
from farmwatch.doctor.check_result import Results, Subject, fail, ok, warn
from farmwatch.doctor.log_snapshot import LogSnapshot
from farmwatch.runs.notices import difference_text
from farmwatch.terminal.remedies import resume_command
from farmwatch.upkeep.deleted_groups import find_emptied_topics, find_rereading_groups, remedy
from farmwatch.upkeep.disk_forecast import held_for
from filters.errors import BadRuleset
from replay.live.handover import require_live
from replay.live.live_run import CHOSEN, ConfigDifference, differences
from replay.rows.dead_letters import NEWEST, LetterState, StoredLetter, older_letters, read_letters
from replay.runs.overview import STOPPED, state_of
from replay.runs.retention import topics_held
from replay.runs.run_rules import live_now, method_name
from stream.log.contract import wall_ms
from stream.log.forwarding import innermost
from stream.processing.topic_reader import UnreadableCounter
from stream.schema.control import Control
from stream.schema.topics import DEAD_LETTERS
from stream.text.wording import counted, moment, one_line

if TYPE_CHECKING:
    from stream.embedded.log import EmbeddedLog
    from stream.kafka.log import KafkaLog

_ERROR_CHARS = 200


def log(at: Subject, held: ExitStack) -> Results:
    """Open the log for reading, until `held` ends, for the following checks. Raises FarmwatchError."""
    config = at.config
    if not log_exists(config):
        yield ok(f"{config.log.url}: not made yet; `farmwatch up` makes it")
        return
    require_broker(config)
    opened = held.enter_context(closing(open_configured(config, read_only=True)))
    refuse_unfinished(opened)
    topics = opened.topics()
    at.log = LogSnapshot(opened)
    due = {topic.name: topic.partitions for topic in configured_topics(config)}
    odd = [f"{name} has {n}" for name, n in sorted(topics.items()) if n != due.get(name, config.log.partitions)]
    if odd:
        misfit = f"log.partitions is {config.log.partitions}, but {', '.join(odd[:3])}"
        yield fail(misfit, "restore log.partitions, or set another log.prefix")
    elif not topics:
        yield ok(f"{config.log.url}: no topics yet; `farmwatch up` makes them")
    else:
        yield ok(f"{config.log.url}: {len(topics)} topics of {config.log.partitions} partitions")


def broker(at: Subject) -> Results:
    """Version and limits of a Kafka broker, and the settings of its topics; each result has a remedy."""
    if at.log is None or not at.config.log.url.startswith("kafka:"):
        return
    # before the first `up`, all topics are missing as expected
    needed = configured_topics(at.config) if at.log.topics() else []
    for what, is_right, value in cast("KafkaLog", innermost(at.log)).check(needed):
        yield ok(f"{what}: {value}") if is_right else fail(f"{what}: {value}")


def database(at: Subject) -> Results:
    """The pages of the embedded log's database, all of which are read. Raises LogDamaged."""
    if at.log is None or not at.config.log.url.startswith("sqlite:"):
        return
    cast("EmbeddedLog", innermost(at.log)).require_sound()
    yield ok("every page of log.sqlite is sound")


def segments(at: Subject) -> Results:
    """Missing segment files of the embedded log that records need."""
    if at.log is None or not at.config.log.url.startswith("sqlite:"):
        return
    missing = cast("EmbeddedLog", innermost(at.log)).missing_segments()
    if not missing:
        yield ok("every file that records need is there")
        return
    files = ", ".join(str(path) for path in list(missing)[:3])
    loss = f"{counted(sum(missing.values()), 'record')} cannot be read, their files are gone: {files}"
    yield fail(loss, "restore the files from a backup (docs/how-to/recover.md)")


def dead_letters(at: Subject) -> Results:
    """Open dead letters by stage and error, and the origin of the newest one."""
    if at.log is None or DEAD_LETTERS not in at.log.topics():
        return
    counts: Counter[str] = Counter()
    newest: StoredLetter | None = None
    unreadable = UnreadableCounter()
    for stored in read_letters(at.log, unreadable, newest=True):
        if stored.state is not LetterState.OPEN:
            continue
        counts[f"{stored.letter.stage} {stored.letter.reason}"] += 1
        if newest is None or newest.message.timestamp_ms <= stored.message.timestamp_ms:
            newest = stored
    if newest is None and not unreadable.lines():
        yield ok("none is open")
        return
    said = [f"{name} {count:,}" for name, count in counts.most_common()]
    if older_letters(at.log):
        said.append(f"of the newest {NEWEST} of each partition")
    if newest is not None:
        letter = newest.letter
        origin = f"{letter.topic} partition {letter.partition} offset {letter.offset}"
        when = moment(newest.message.timestamp_ms)
        said.append(f"the newest, {when}, is {origin}: {letter.error[:_ERROR_CHARS]}")
    mend = "mend the cause, then `farmwatch log dead retry` or `drop`; errors: docs/how-to/runbook/dead-letters.md"
    yield warn(one_line("; ".join([*said, *unreadable.lines()])), mend)


def live_run(at: Subject) -> Results:
    """The rules of the live stages, and differences from the configuration. Raises LiveRunUnfit."""
    if at.log is None:
        return
    control = Control(at.log)
    live = live_now(control)
    if live is None:
        return
    require_live(control, at.config, live, at.roles)
    differing: list[ConfigDifference] = []
    with suppress(BadRuleset):  # of the configuration, which has its own check
        differing = differences(live, at.config, control)
    is_chosen = any(move.to_run == live.run.name for move in control.cutovers)
    for differs in differing:
        say = ok if is_chosen and differs.what in CHOSEN else warn
        yield say(one_line(difference_text(differs)))
    if not differing:
        detector = f" and scores of {live.run.detector}" if live.run.detector else ""
        method = f", sites by {method_name(live.run.site_method)}" if live.run.site_method else ""
        yield ok(f"{live.run.shown}: {live.ruleset.name} {live.ruleset.digest}{detector}{method}")


def groups(at: Subject) -> Results:
    """Live groups that would read a topic again."""
    if at.log is not None:
        for group in find_rereading_groups(at.log, at.roles):
            yield warn(group.text, remedy(group))


def topics(at: Subject) -> Results:
    """Topics whose records are gone, although the stage that writes them has worked."""
    if at.log is not None:
        for name, mend in find_emptied_topics(at.log):
            yield warn(f"{name} is empty, though its stage has worked: it was deleted and made again", mend)


def runs(at: Subject) -> Results:
    """Unfinished runs without a process; nothing if there is only the live run."""
    if at.log is None:
        return
    control = Control(at.log)
    others = [run for run in control.runs.values() if run.name != control.alias.run]
    stopped = [run for run in others if state_of(at.log, control, run) == STOPPED]
    for run in stopped:
        why = f", by an error: {run.error}" if run.error else ""
        mend = f"`{resume_command(run)}` resumes it, `farmwatch runs cancel {run.shown}` ends it"
        held = held_for(topics_held(at.log, control, run, wall_ms()))
        yield warn(one_line(f"{run.shown} is stopped{why}{held}"), mend)
    if others and not stopped:
        yield ok(f"{counted(len(others), 'run')} beside the live one, and none is stopped")
