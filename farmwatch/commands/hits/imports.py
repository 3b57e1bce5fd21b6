"""The commands `hits imports` and `hits undo`: the files that were added, and taking one back."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Annotated

from cyclopts import Parameter
from msgspec.structs import replace

from farmwatch.commands.options import DEFAULTS, Common
from farmwatch.config.opening import opened
from farmwatch.tables.columns import Column, columns_of
from farmwatch.tables.listing import LISTING, Listing
from farmwatch.terminal.messages import message
from farmwatch.upkeep.deleted_groups import find_rereading_groups
from replay.runs.control_update import operator
from replay.runs.topology import READS
from stream.log.contract import Log, wall_ms
from stream.schema.imports import Import, Imports, import_of, import_row
from stream.schema.roles import Role
from stream.schema.topics import HITS
from stream.text.user_errors import Exit, NotFound, UsageError
from stream.text.wording import counted, moment

_COLUMNS: list[Column[Import]] = columns_of(Import)
_READERS = {group for group, topics in READS.items() if HITS in topics}  # of a run: tally.NAME


def imports(*, listing: Listing = LISTING, common: Common = DEFAULTS) -> int:
    """One row per file of `hits add` with new hits: when, by whom, its new hits and their sites."""
    selection = listing.of(_COLUMNS)
    with opened(common.load().config) as log:
        rows = list(Imports(log).by_id.values())
    selection.put(rows, "import", [column.name for column in _COLUMNS])
    return Exit.OK


def undo(
    ident: Annotated[str, Parameter(name="IMPORT", help="Its id in `hits imports`.")], /, *, common: Common = DEFAULTS
) -> int:
    """Take back the hits that a file of `hits add` brought, while no stage has read them. Stop farmwatch first.

    Files with some of the same hits that were added later brought only their other hits: add them again. Once the crawl
    has read hits, their sites are measured and count: `farmwatch crawl exclude` ends visits to a host, `farmwatch crawl
    forget` removes it from the log.
    """
    with opened(common.load().config, write=True) as log:
        row = undo_import(log, ident)
    message(
        f"undone: {counted(row.hits, 'hit')} of {counted(row.sites, 'site')} from {row.file}; add other files with some"
        " of these hits again"
    )
    return Exit.OK


def undo_import(log: Log, ident: str) -> Import:
    """Take an import back and return its row. Raises NotFound, UsageError if it cannot be taken back."""
    row = Imports(log).by_id.get(ident)
    if row is None:
        raise NotFound(f"no import {ident}: `farmwatch hits imports` lists them")
    if row.undone_at:
        raise UsageError(f"import {ident} was undone at {moment(row.undone_at)} by {row.undone_by}")
    if not row.hits:
        raise UsageError(f"import {ident} is not complete: `farmwatch hits add` is at work, or was killed")
    offsets = _offsets(log)
    if read := _read_hits(log, ident, offsets.values()):
        raise UsageError(
            f"import {ident}: {counted(read, 'hit')} read by a stage already, so that the sites count;"
            " `farmwatch crawl forget` removes a site"
        )
    log.append([import_row(replace(row, undone_at=wall_ms(), undone_by=operator()))])
    try:  # a stage that joins from here on does not see the hits
        if _offsets(log) != offsets:
            raise UsageError("a stage read hits meanwhile: stop farmwatch, and repeat")
    except BaseException:
        log.append([import_row(row)])
        raise
    return row


def _offsets(log: Log) -> dict[str, list[int | None]]:
    """The offsets in `hits` of the groups that read it. Raises UsageError if one is running, or lost its offsets."""
    groups = [group for group in log.groups() if group.partition(".")[0] in _READERS]
    if group := next(filter(log.members, groups), ""):
        raise UsageError(f"{group} is running: stop farmwatch, so that no hit is read meanwhile, and repeat")
    for lost in find_rereading_groups(log, (Role.CRAWL, Role.TALLY)):
        if HITS in lost.records:
            raise UsageError(
                f"the group {lost.group} {lost.why}, so nobody knows which hits it has read; `farmwatch crawl forget`"
                " removes a site"
            )
    return {group: log.committed(group, HITS) for group in groups}


def _read_hits(log: Log, ident: str, committed: Collection[Sequence[int | None]]) -> int:
    """The hits of an import that a group has read."""
    read = 0
    for partition, (first, end) in enumerate(zip(log.beginning(HITS), log.end(HITS), strict=True)):
        until = max((offsets[partition] or 0 for offsets in committed), default=0)
        if until > first:
            hits = log.read(HITS, partition, first, min(until, end))
            read += sum(hit.value is not None and import_of(hit.headers) == ident for hit in hits)
    return read
