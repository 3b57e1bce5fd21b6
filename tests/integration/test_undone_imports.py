"""An import of hits is taken back on both logs: beside members, foreign groups, and lost offsets."""

from __future__ import annotations

import pytest

from farmwatch.commands.hits.imports import undo_import
from farmwatch.crawl.append_hits import append_hits
from stream.log.contract import CleanupPolicy, Log, Output, Topic
from stream.masked import masked
from stream.schema.imports import Imports
from stream.schema.topics import CONTROL, HITS, SITES
from stream.text.user_errors import UsageError
from tests.support.worlds import World, drain

GROUP = "tally"
LINES = [b"https://a.example/\n", b"https://b.example/\n", b"https://c.example/\n"]


def added(log: Log) -> str:
    """The id of an import of three hits, after the topics were made."""
    rows = [Topic(name, 2, CleanupPolicy.COMPACT) for name in (SITES, "state.tally")]
    log.create([Topic(CONTROL, 1, CleanupPolicy.COMPACT), Topic(HITS, 2), *rows])
    append_hits(log, LINES, lambda _: None)
    (ident,) = Imports(log).by_id
    return ident


def test_an_import_is_undone_before_it_is_read(world: World) -> None:
    """Groups of other programs do not matter, running or not; a reader that is live does, even before its first offset.

    Afterwards a process that opened the log before reads tombstones, and the same file brings its hits again.
    """
    early = masked(world.again(), look_s=3600)
    ident = added(world.log)
    world.owner(2, HITS, group="theirs")
    reader = world.owner(2, HITS, group=GROUP)
    with pytest.raises(UsageError, match="tally is running"):
        undo_import(world.log, ident)
    reader.close()
    undo_import(world.log, ident)
    with pytest.raises(UsageError, match="was undone at"):
        undo_import(world.again(), ident)
    assert [message.value for message in drain(world.join(HITS, group=GROUP, name="n", log=early), 3)] == [None] * 3
    assert append_hits(masked(world.again()), LINES, lambda _: None).new == 3


def test_an_import_that_was_read_stays(world: World) -> None:
    """By the offset of a stage that has ended; without it, if its results are there, nobody knows."""
    ident = added(world.log)
    world.log.reset(GROUP, HITS, world.log.end(HITS))
    with pytest.raises(UsageError, match="3 hits read by a stage already"):
        undo_import(world.log, ident)
    world.log.append([Output(SITES, 0, b"a.example", b"row")])
    world.log.remove(groups=[GROUP])
    with pytest.raises(UsageError, match="nobody knows which hits it has read"):
        undo_import(world.log, ident)
    assert not Imports(world.again()).undone
