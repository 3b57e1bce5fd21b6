"""The commands `dead`: the dead letters of a log; retry their records, or drop them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from cyclopts import App, Parameter

from farmwatch.commands.options import DEFAULTS, AsJson, Common
from farmwatch.config.opening import opened
from farmwatch.tables.listing import LISTING, Listing, shown_cell
from farmwatch.terminal.messages import message, put_json, put_wrapped
from farmwatch.upkeep.letter_fields import ID, LETTER_COLUMNS, existing_letter, letter_content, place_of
from replay.rows.dead_letters import LetterState, Settled, StoredLetter, Wanted, read_letters, settle
from stream.text.user_errors import Exit, UsageError
from stream.text.wording import counted, one_line

Letters = Annotated[list[str] | None, Parameter(help=f"{ID}; several.", negative="")]
Where = Annotated[
    list[str] | None,
    Parameter(negative="", help="Open letters of which this holds, as of `dead list`: stage=judge, reason=BadRecord."),
]
All = Annotated[bool, Parameter(name="--all", negative="", help="All open letters.")]
DryRun = Annotated[bool, Parameter(negative="", help="Only print the outcome.")]
dead = App(name="dead")
_LISTED = ("letter", "state", "stage", "reason", "at", "error", "retries", "run")


@dead.command(name="list")
def list_letters(*, listing: Listing = LISTING, common: Common = DEFAULTS) -> int:
    """One row per dead letter: a record that a stage could not process, with the error.

    A letter is open until `dead retry` or `dead drop` settles it, and kept for 30 days. A retry is waiting until its
    stage has read it; if it fails again, there is a new letter.
    """
    selection = listing.of(LETTER_COLUMNS)
    config = common.load().config
    with opened(config) as log:
        selection.put(read_letters(log), "dead letter", _LISTED)
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
    for column in LETTER_COLUMNS:
        put_wrapped(one_line(f"{column.name}: {shown_cell(column, stored)}"), "  ")
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
    where: Where = None,
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
    wanted = _wanted(letters or (), where or [], every=every, expired=False)
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
    where: Where = None,
    every: All = False,
    dry_run: DryRun = False,
    json: AsJson = False,
    common: Common = DEFAULTS,
) -> int:
    """Mark open dead letters as settled: their pages stay out of the share. The letters stay as evidence.

    Exit code 1 if a chosen letter was refused, or none was found.
    """
    wanted = _wanted(letters or (), where or [], every=every, expired=True)
    with opened(common.load().config, write=not dry_run) as log:
        for letter in letters or ():
            existing_letter(log, letter)
        settled = settle(log, wanted, retry=False, dry_run=dry_run)
    return _report(settled, "would drop" if dry_run else "dropped", dry_run, json)


def _wanted(letters: Sequence[str], where: list[str], *, every: bool, expired: bool) -> Wanted:
    """Whether a letter is chosen: by its id, or open and by its columns. Raises UsageError.

    `expired`: also letters of records that retention removed unread.
    """
    if bool(letters) == bool(where or every):
        raise UsageError("name letters, or give --where or --all")
    places = {place_of(letter) for letter in letters}
    conditions = Listing(where=where).of(LETTER_COLUMNS).conditions

    def wanted(stored: StoredLetter) -> bool:
        if places:
            return (stored.message.partition, stored.message.offset) in places
        is_open = stored.state is LetterState.OPEN and (expired or not stored.letter.expired)
        return is_open and all(holds(stored) for holds in conditions)

    return wanted


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
