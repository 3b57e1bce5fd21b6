"""The commands `hits imports` and `hits undo`: the files that were added, and taking one back."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter
from msgspec.structs import replace

from farmwatch.commands.options import DEFAULTS, Common
from farmwatch.config.opening import opened
from farmwatch.tables.columns import Column, columns_of
from farmwatch.tables.listing import LISTING, Listing
from farmwatch.terminal.messages import message
from replay.runs.control_update import operator
from stream.log.contract import Log, wall_ms
from stream.schema.imports import Import, Imports, import_of, import_row
from stream.schema.topics import HITS
from stream.text.user_errors import Exit, NotFound, UsageError
from stream.text.wording import counted, moment

_COLUMNS: list[Column[Import]] = columns_of(Import)


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
    """Take back a file of `hits add`, as if it had not been added, while no stage has read it. Stop farmwatch first.

    Once the crawl has read its hits, their sites are measured and count: `farmwatch crawl exclude` ends visits to a
    host, `farmwatch crawl forget` removes it from the log.
    """
    with opened(common.load().config, write=True) as log:
        found = Imports(log).by_id.get(ident)
        if found is None:
            raise NotFound(f"no import {ident}: `farmwatch hits imports` lists them")
        if found.undone_at:
            raise UsageError(f"import {ident} was undone at {moment(found.undone_at)} by {found.undone_by}")
        if group := next((group for group in log.groups() if log.members(group)), ""):
            raise UsageError(f"{group} is running: stop farmwatch, so that no hit is read meanwhile, and repeat")
        if read := _read_hits(log, ident):
            raise UsageError(
                f"import {ident}: {counted(read, 'hit')} read by a stage already, so that the sites count;"
                " `farmwatch crawl forget` removes a site"
            )
        log.append([import_row(replace(found, undone_at=wall_ms(), undone_by=operator()))])
    message(f"undone: {counted(found.hits, 'hit')} of {counted(found.sites, 'site')} from {found.file}")
    return Exit.OK


def _read_hits(log: Log, ident: str) -> int:
    """The hits of an import that a group has read."""
    committed = [log.committed(group, HITS) for group in log.groups()]
    read = 0
    for partition, (first, end) in enumerate(zip(log.beginning(HITS), log.end(HITS), strict=True)):
        until = max((offsets[partition] or 0 for offsets in committed), default=0)
        if until > first:
            hits = log.read(HITS, partition, first, min(until, end))
            read += sum(hit.value is not None and import_of(hit.headers) == ident for hit in hits)
    return read
