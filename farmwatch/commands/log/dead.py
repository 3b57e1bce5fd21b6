"""The commands `dead`: the dead letters of a log; retry their records, or drop them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from cyclopts import App, Parameter

from farmwatch.commands.options import DEFAULTS, AsJson, Common
from farmwatch.config.opening import opened
from farmwatch.terminal.messages import message, put_columns, put_json, put_wrapped
from farmwatch.upkeep.letter_fields import ID, existing_letter, letter_content, letter_fields, place_of
from replay.rows.dead_letters import LetterState, Settled, StoredLetter, Wanted, letter_groups, read_letters, settle
from stream.schema.runs import shown_run
from stream.text.user_errors import Exit, UsageError
from stream.text.wording import counted, moment, one_line

_SHOWN = 400  # characters of an error
Letters = Annotated[list[str] | None, Parameter(help=f"{ID}; several.", negative="")]
OfStage = Annotated[
    Literal["crawl", "measure", "judge", "score", "tally"] | None, Parameter(help="Only letters of this stage.")
]
OfReason = Annotated[str, Parameter(help="Only letters with this reason: the class of the error.")]
All = Annotated[bool, Parameter(name="--all", negative="", help="All open letters.")]
DryRun = Annotated[bool, Parameter(negative="", help="Only print the outcome.")]
dead = App(name="dead")


@dead.command(name="list")
def list_letters(
    *,
    stage: OfStage = None,
    reason: OfReason = "",
    each: Annotated[bool, Parameter(negative="", help="A line for each letter.")] = False,
    json: AsJson = False,
    common: Common = DEFAULTS,
) -> int:
    """List the dead letters of the log by stage and reason: records that a stage could not process.

    A letter is open until `dead retry` or `dead drop` settles it, and kept for 30 days. A retry is waiting until its
    stage has read it; if it fails again, there is a new letter. JSON: one object a line.
    """
    config = common.load().config
    with opened(config) as log:
        letters = (stored for stored in read_letters(log) if _is_of(stored, stage, reason))
        if each:
            return _list_each(letters, json)
        groups = letter_groups(letters)
    if json:
        for group in groups:
            states = {str(state): group.states[state] for state in LetterState}
            newest = letter_fields(group.newest)
            put_json({"stage": group.stage, "run": group.run, "reason": group.reason, **states, "newest": newest})
        return Exit.OK
    if not groups:
        message("no dead letters" if stage is None and not reason else "no dead letters of this stage and reason")
        return Exit.OK
    put_columns(
        groups,
        {
            "stage": "stage",
            "run": lambda group: shown_run(group.run),
            "reason": "reason",
            "open": lambda group: group.states[LetterState.OPEN],
            "settled": "settled",
            "newest": lambda group: group.newest.id,
            "at": lambda group: moment(group.newest.message.timestamp_ms),
            "error": lambda group: group.newest.letter.error.removeprefix(f"{group.reason}: ")[:_SHOWN],
        },
        less=("run",),
    )
    message("`farmwatch log dead show NEWEST` shows a letter, `log dead retry` and `log dead drop` settle open ones")
    return Exit.OK


@dead.command(name="show")
def show_letter(
    letter: Annotated[str, Parameter(help=f"{ID}.")], /, *, json: AsJson = False, common: Common = DEFAULTS
) -> int:
    """Show a dead letter: the cause, the origin of its record, and the record, with long fields shortened."""
    place_of(letter)
    config = common.load().config
    with opened(config) as log:
        stored = existing_letter(log, letter)
    content = letter_content(stored)
    if json:
        put_json(content)
        return Exit.OK
    for name, value in letter_fields(stored).items():
        put_wrapped(one_line(f"{name}: {value}"), "  ")
    put_wrapped(one_line(f"size: {len(stored.letter.value or b''):,} bytes"), "  ")
    record = content["record"]
    for name, value in record.items() if isinstance(record, dict) else [("record", record)]:
        put_wrapped(f"  {one_line(f'{name}: {value}')}", "    ")
    return Exit.OK


@dead.command(name="retry")
def retry_letters(
    letters: Letters = None,
    /,
    *,
    stage: OfStage = None,
    reason: OfReason = "",
    every: All = False,
    again: Annotated[
        bool, Parameter(negative="", help="Also records that failed three retries, and named dropped letters.")
    ] = False,
    dry_run: DryRun = False,
    json: AsJson = False,
    common: Common = DEFAULTS,
) -> int:
    """Give the records of open dead letters to their stage once more, in their order.

    Only the stage that failed reads a retry, in its next batch, also while the daemon runs; other stages, and replays,
    read nothing twice. If it fails again, there is a new letter. A letter of a run that is not live is refused, and so
    is a record that failed three retries.

    Exit code 1 if a chosen letter was refused, or none was found.
    """
    wanted = _wanted(letters or (), stage, reason, every=every, expired=False)
    with opened(common.load().config, write=not dry_run) as log:
        for letter in letters or ():
            existing_letter(log, letter)
        settled = settle(log, wanted, retry=True, again=again, dry_run=dry_run)
    return _report(settled, "would retry" if dry_run else "retried", dry_run, json)


@dead.command(name="drop")
def drop_letters(
    letters: Letters = None,
    /,
    *,
    stage: OfStage = None,
    reason: OfReason = "",
    every: All = False,
    dry_run: DryRun = False,
    json: AsJson = False,
    common: Common = DEFAULTS,
) -> int:
    """Mark open dead letters as settled: their pages stay out of the share. The letters stay as evidence.

    Exit code 1 if a chosen letter was refused, or none was found.
    """
    wanted = _wanted(letters or (), stage, reason, every=every, expired=True)
    with opened(common.load().config, write=not dry_run) as log:
        for letter in letters or ():
            existing_letter(log, letter)
        settled = settle(log, wanted, retry=False, dry_run=dry_run)
    return _report(settled, "would drop" if dry_run else "dropped", dry_run, json)


def _wanted(letters: Sequence[str], stage: str | None, reason: str, *, every: bool, expired: bool) -> Wanted:
    """Whether a letter is chosen: by its id, or open and by stage and reason. Raises UsageError.

    `expired`: also letters of records that retention removed unread.
    """
    if not (letters or stage or reason or every):
        raise UsageError("name letters, or give --stage, --reason or --all")
    if letters and (stage or reason or every):
        raise UsageError("name letters, or give --stage, --reason or --all: not both")
    places = {place_of(letter) for letter in letters}

    def wanted(stored: StoredLetter) -> bool:
        if places:
            return (stored.message.partition, stored.message.offset) in places
        is_open = stored.state is LetterState.OPEN and (expired or not stored.letter.expired)
        return is_open and _is_of(stored, stage, reason)

    return wanted


def _is_of(stored: StoredLetter, stage: str | None, reason: str) -> bool:
    return stage in (None, stored.letter.stage) and reason in ("", stored.letter.reason)


def _report(settled: Settled, done: str, dry_run: bool, json: bool) -> int:
    if json:
        by = [{"stage": stage, "reason": reason, "letters": n} for (stage, reason), n in settled.settled.items()]
        put_json({"settled": settled.count, "dry_run": dry_run, "by": by, "refused": dict(settled.refused)})
    else:
        for (stage, reason), number in settled.settled.items():
            put_wrapped(one_line(f"{done} {counted(number, 'letter')} of {stage}: {reason}"), "  ")
    for cause, number in settled.refused.items():
        message(one_line(f"refused {counted(number, 'letter')}: {cause}"))
    if not settled.count and not settled.refused:
        message("no open dead letter was chosen: `farmwatch log dead list` shows them")
    return Exit.OK if settled.count and not settled.refused else Exit.PROBLEM


def _list_each(letters: Iterator[StoredLetter], json: bool) -> int:
    if json:
        for stored in letters:
            put_json(letter_fields(stored))
        return Exit.OK
    put_columns(
        letters,
        {
            "letter": "id",
            "state": "state",
            "stage": lambda stored: stored.letter.stage,
            "run": lambda stored: shown_run(stored.letter.run),
            "origin": lambda stored: f"{stored.letter.topic}-{stored.letter.partition} {stored.letter.offset}",
            "retries": lambda stored: stored.letter.retries or "",
            "at": lambda stored: moment(stored.message.timestamp_ms),
            "error": lambda stored: stored.letter.error,
        },
        less=("run",),
    )
    return Exit.OK
