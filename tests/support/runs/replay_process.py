"""`farmwatch replay` and `cutover` as processes that tests start and kill, at any moment or at a named one.

They are forked from a server that has imported farmwatch, so that each starts in a fraction of a second.
"""

from __future__ import annotations

import contextlib
import enum
import itertools
import multiprocessing
import os
import signal
from collections.abc import Callable, Sequence
from functools import partial
from multiprocessing import forkserver
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

from farmwatch.__main__ import run
from farmwatch.commands.runs import cutover as cutover_command
from farmwatch.commands.runs import progress_line as telling
from farmwatch.commands.runs import replay as replay_command
from farmwatch.config.config import Config
from filters import known_scores
from filters.stages import judge as judge_stage
from filters.stages import measure as measure_stage
from filters.stages.measure import MeasureStage
from replay.engine import runner as engine
from replay.engine import summary
from replay.engine.bounded_member import BoundedMember
from replay.live import cutover
from scoring.stages import tally as tally_stage
from stream.embedded import log as embedded_log
from stream.kafka import log as kafka_log
from stream.kafka.client import TransactionalProducer
from stream.log.contract import Commit
from stream.schema.control import ControlWriter
from tests.support.pages.extraction_here import ExtractionHere
from tests.support.paths import ROOT

# lazy imports of the commands, done in advance
LOADED = (cutover_command, replay_command, cutover, engine, summary, telling, judge_stage, known_scores, tally_stage)
LOGS = (embedded_log, kafka_log)
PATIENCE_S = 300.0
_SERVER = multiprocessing.get_context("forkserver")
_SERVER.set_forkserver_preload([__name__])


class Dies(enum.Enum):
    """A moment at which a process kills itself with signal 9."""

    NEVER = ""
    MEASURE = "measure"  # in the third commit of the phase; on Kafka in the open transaction, after all records
    JUDGE = "judge"
    TALLY = "tally"
    BEFORE_DONE = "before done"  # all is judged and tallied; the row is not updated yet
    AFTER_DONE = "after done"
    BEFORE_MOVE = "before move"  # the cutover is decided
    AFTER_MOVE = "after move"


_IN_COMMITS = (Dies.MEASURE, Dies.JUDGE, Dies.TALLY)


class Command:
    """A command in a separate process. Its output is appended to a file."""

    def __init__(self, said: Path, *arguments: str, records: int = 1000, dies: Dies = Dies.NEVER) -> None:
        """Start it; `records` is the size of a replay's batches."""
        self._said = said
        said.touch()
        with contextlib.chdir(ROOT):  # Python 3.11 looks for the modules to load in the folder where the server starts
            forkserver.ensure_running()
        self._process: ForkServerProcess = _SERVER.Process(
            target=_carry_out, args=(arguments, said, records, dies), daemon=True
        )
        self._process.start()

    @property
    def runs(self) -> bool:
        return self._process.is_alive()

    def signal(self, number: int) -> None:
        assert self._process.pid is not None
        os.kill(self._process.pid, number)

    def kill(self) -> None:
        self._process.kill()
        self._process.join(PATIENCE_S)

    def code(self) -> int:
        self._process.join(PATIENCE_S)
        assert self._process.exitcode is not None, self.said()
        return self._process.exitcode

    def said(self) -> str:
        return self._said.read_text()[-3000:]


def flags_of(config: Config, settings: Sequence[str]) -> list[str]:
    """The options that give a command the log of `config`, and further settings."""
    log = config.log
    place = [f"log.url={log.url}", f"log.prefix={log.prefix}", f"log.state_folder={log.state_folder}"]
    given = [*place, f"log.partitions={log.partitions}", *settings]
    return [word for setting in given for word in ("--set", setting)]


def _carry_out(arguments: Sequence[str], said: Path, records: int, dies: Dies) -> None:
    with said.open("ab") as output:
        for descriptor in (1, 2):
            os.dup2(output.fileno(), descriptor)
    paced = partial(engine.Replay, tempo=engine.Tempo(records=records))
    setattr(replay_command, "Replay", paced)  # noqa: B010 - mypy knows a class
    telling._EVERY_S = 0.5
    setattr(measure_stage, "ExtractionPool", ExtractionHere)  # noqa: B010
    MeasureStage.max_records = min(records, MeasureStage.max_records)
    if dies in _IN_COMMITS:
        _die_in_commits_of(dies)
    elif dies in (Dies.BEFORE_DONE, Dies.AFTER_DONE):
        _die_around(engine, "finish", before=dies is Dies.BEFORE_DONE)
    elif dies in (Dies.BEFORE_MOVE, Dies.AFTER_MOVE):
        _die_around(ControlWriter, "put", before=dies is Dies.BEFORE_MOVE)
    os._exit(run(list(arguments)))


def _die_in_commits_of(phase: Dies) -> None:
    """The third commit of the phase; on Kafka before the request for its marker."""
    commit, count = BoundedMember.commit, itertools.count(1)

    def counted(member: BoundedMember, changes: Commit) -> None:
        if member.group.startswith(f"{phase.value}.") and next(count) == 3:
            setattr(TransactionalProducer, "_await", _die)  # noqa: B010 - mypy has no word for it
            commit(member, changes)
            _die()
        commit(member, changes)

    setattr(BoundedMember, "commit", counted)  # noqa: B010


def _die_around(owner: Any, name: str, *, before: bool) -> None:
    work: Callable[..., Any] = getattr(owner, name)

    def dying(*args: Any, **more: Any) -> None:
        if not before:
            work(*args, **more)
        _die()

    setattr(owner, name, dying)


def _die(*_: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)
