"""kill -9 of a replay in every phase and up to its cutover: after resuming, it ends like an undisturbed replay."""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest

from farmwatch.audit.audit import audit
from farmwatch.audit.scope import RUN_STEPS
from farmwatch.config.config import Config
from filters.rules.ruleset import load_ruleset
from filters.stages.judge import JudgeStage
from replay.engine.runner import Ending
from replay.runs.phases import JUDGE, TALLY, progress_of
from scoring.stages.tally import TallyStage
from stream.embedded.log import EmbeddedLog
from stream.log.contract import Log, Output
from stream.schema.control import Control
from stream.schema.records import Hit
from stream.schema.runs import RunStatus, features_of
from stream.schema.topics import HITS, PAGES, REPLAY_REQUESTS
from stream.text.user_errors import Exit
from tests.support.front_door import article_html
from tests.support.kafka_broker import broker
from tests.support.pages.extraction_here import extract_here
from tests.support.pages.page_records import fetched_page
from tests.support.runs.replay_process import Command, Dies, flags_of
from tests.support.runs.replay_world import (
    DETECTOR,
    PARTITIONS,
    LiveWorld,
    config_of,
    features_of_pages,
    output,
    requests_of,
    write_rules,
)
from tests.support.sizes import LONG, kill_chance
from tests.support.waiting import wait_until
from tests.support.worlds import KafkaWorld

pytestmark = [pytest.mark.kill]

KILLS = 60 if LONG else 4
_MOST_KILLS = 5 * KILLS + 60
_PAGES = 1200 if LONG else 200
_FROM_PAGES = 40  # measured again
_SMALL = 10  # records of a batch, so that kills fall into the middle of a run
_SETTINGS = ("measure.workers=1", "measure.time_limit_s=60", "tally.sprt={p0=0.1, p1=0.6}")


@dataclass
class Killing:
    """Runs of one ruleset on one log, each a command in a process, killed and resumed."""

    folder: Path
    log: Log
    config: Config
    rules: str
    killed: Counter[str] = field(default_factory=Counter)  # phase -> kills

    def start(self, *arguments: str, records: int = _SMALL, dies: Dies = Dies.NEVER) -> Command:
        given = [*arguments, *flags_of(self.config, _SETTINGS)]
        return Command(self.folder / "replay.log", *given, records=records, dies=dies)

    def replay(self, name: str, dies: Dies = Dies.NEVER, records: int = 1000) -> int:
        """Begin or resume a run until the process ends; returns its exit code."""
        return self.start(*self._arguments(name), records=records, dies=dies).code()

    def killed_runs(self, kills: int, longest_s: float, phases: set[str]) -> list[str]:
        """Finished runs, killed this often in total, and in each of `phases`; others begin as needed."""
        chance = kill_chance()
        names: list[str] = []
        while not self._is_killed_enough(kills, phases):
            names.append(f"killed-{len(names) + 1}")
            while not self._is_killed_enough(kills, phases):
                if not self._killed_once(names[-1], chance.uniform(0.0, longest_s)):
                    break
            assert self.replay(names[-1]) == 0, said(self.folder)
            leave_unanswered(self.log)
        print(f"killed: {dict(self.killed)} in {len(names)} runs")
        assert phases <= self.killed.keys()
        return names

    def _is_killed_enough(self, kills: int, phases: set[str]) -> bool:
        """Random kills may miss a short phase for a while."""
        often = self.killed.total()
        return often >= kills and (phases <= self.killed.keys() or often >= _MOST_KILLS)

    def _killed_once(self, name: str, after_s: float) -> bool:
        """Begin or resume the run, and kill it this long after its row was written; False if all was processed."""
        before = Control(self.log).runs.get(name)
        process = self.start(*self._arguments(name))
        wait_until(lambda: not process.runs or Control(self.log).runs.get(name) != before, "its row", every_s=0.005)
        time.sleep(after_s)
        if not process.runs:
            assert process.code() == 0, process.said()
            return False
        process.kill()
        phase = progress_of(self.log, Control(self.log).runs[name]).phase or "end"
        self.killed[phase] += 1
        return phase != "end"

    def _arguments(self, name: str) -> list[str]:
        begins = name not in Control(self.log).runs
        return ["replay", "--name", name, "--full-speed", *(["--ruleset", self.rules] if begins else [])]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[LiveWorld]:
    """A live farmwatch on an embedded log."""
    with closing(EmbeddedLog(tmp_path / "log")) as log:
        yield LiveWorld(log, config_of(f"sqlite:{tmp_path / 'log'}", *_SETTINGS))


def leave_unanswered(log: Log) -> None:
    """Let SCORE pass all requests of replays without scoring: the next run requests them again."""
    log.reset("score", REPLAY_REQUESTS, log.end(REPLAY_REQUESTS))


def pages(number: int) -> list[Output]:
    """Pages of five sites, each text at two addresses, and their hits."""
    found = []
    for place in range(number):
        site = f"s{place % 5}.example"
        url = f"https://{site}/a/{place}"
        html = article_html(100 + 7 * (place % (number // 2)))
        found.append(output(PAGES, fetched_page(url, html, id=f"f{place}", fetched_at=5)))
        found.append(output(HITS, Hit(id=f"h{place}", site=site, url=url, rank=1)))
    return found


def assert_same(world: LiveWorld, name: str, whole: str) -> None:
    """Check that a run has the verdicts, rows and requests of an undisturbed run, each once and in order."""
    verdicts, rows = world.outcome(name)
    assert (verdicts, rows) == world.outcome(whole)
    assert max(Counter(verdict.id for verdict in verdicts).values()) == 1
    requests = requests_of(world, name)
    assert sorted(requests) == sorted(requests_of(world, whole))
    assert len(set(requests)) == len(requests)


def test_kills_from_features(world: LiveWorld, tmp_path: Path) -> None:
    """Killed in every phase, the run has each verdict once and in order, the same rows, and no repeated request."""
    log = world.log
    world.feed(features_of_pages(20, _PAGES // 20, world.epoch))
    world.carry_on(share_scored=0.5)
    before = world.live_traces()
    killing = Killing(tmp_path, log, world.config, write_rules(tmp_path, 5))
    began = time.monotonic()
    world.replay(ruleset=killing.rules, name="whole")
    longest_s = time.monotonic() - began  # the machine decides how long a phase takes
    leave_unanswered(log)
    assert len(requests_of(world, "whole")) > 0
    for name in killing.killed_runs(KILLS, longest_s, {JUDGE, TALLY}):
        assert world.row(name).state == RunStatus.DONE
        assert len(world.outcome(name)[0]) == _PAGES
        assert_same(world, name, "whole")
    assert world.live_traces() == before


@pytest.mark.kafka
def test_kills_on_kafka(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed in each phase with an open transaction, at its end, and at its cutover: it equals an undisturbed run.

    Each page has its features once and each record its verdict, no request is repeated, and the audit is clean.
    """
    kafka = KafkaWorld(tmp_path)
    place = (f"log.prefix={kafka.prefix}", f"log.state_folder={tmp_path / 'state'}")
    world = LiveWorld(kafka.log, config_of(f"kafka:{broker()}", *place, *_SETTINGS))
    world.log.append(pages(_FROM_PAGES))
    killing = Killing(tmp_path, world.log, world.config, write_rules(tmp_path, 200))
    extract_here(monkeypatch)
    assert world.replay(ruleset=killing.rules, name="whole") is Ending.DONE
    leave_unanswered(world.log)
    assert requests_of(world, "whole")
    for dies in (Dies.MEASURE, Dies.JUDGE, Dies.TALLY, Dies.BEFORE_DONE):
        assert killing.replay("killed", dies, records=_SMALL) == -signal.SIGKILL, said(tmp_path)
    assert world.row("killed").state == RunStatus.RUNNING
    assert_same(world, "killed", "whole")
    features = [message.key for p in range(PARTITIONS) for message in world.log.read(features_of("killed"), p)]
    assert len(features) == _FROM_PAGES
    assert killing.start("cutover", "killed", dies=Dies.AFTER_MOVE).code() == -signal.SIGKILL
    control = Control(world.log)
    assert (control.alias.run, [move.to_run for move in control.cutovers]) == ("killed", ["killed"])
    assert audit(world.log).broken == []
    kafka.close()


MOMENTS = [(Dies.AFTER_DONE, Dies.BEFORE_MOVE), *([(Dies.BEFORE_DONE, Dies.AFTER_MOVE)] if LONG else [])]


@pytest.mark.parametrize(("replay_dies", "cutover_dies"), MOMENTS)
def test_kills_between_the_end_and_the_cutover(
    world: LiveWorld, tmp_path: Path, replay_dies: Dies, cutover_dies: Dies
) -> None:
    """Killed at its end and around its cutover, it equals an undisturbed run; live continues it once."""
    log = world.log
    world.feed(features_of_pages(10, 20, world.epoch))
    world.carry_on()
    killing = Killing(tmp_path, log, world.config, write_rules(tmp_path, 5))
    world.replay(ruleset=killing.rules, name="whole")
    leave_unanswered(log)
    assert killing.replay("killed", replay_dies) == -signal.SIGKILL, said(tmp_path)
    assert world.row("killed").state == (RunStatus.DONE if replay_dies is Dies.AFTER_DONE else RunStatus.RUNNING)
    assert_same(world, "killed", "whole")
    assert audit(log, "killed").broken == []

    assert killing.start("cutover", "killed", dies=cutover_dies).code() == -signal.SIGKILL, said(tmp_path)
    moved = [move.to_run for move in Control(log).cutovers]
    assert (Control(log).alias.run, moved) == (
        ("killed", ["killed"]) if cutover_dies is Dies.AFTER_MOVE else ("live", [])
    )
    assert killing.start("cutover", "killed").code() == Exit.OK, said(tmp_path)
    control = Control(log)
    assert (control.alias.run, [move.to_run for move in control.cutovers]) == ("killed", ["killed"])

    later = [msgspec.structs.replace(one, id=f"n{one.id}") for one in features_of_pages(10, 5, world.epoch, seed=2)]
    world.feed(later)
    names = world.row("killed").names(is_live=True)
    world.run_stage(JudgeStage(load_ruleset(killing.rules), run="killed", names=names), names.judge_group)
    world.run_stage(TallyStage(DETECTOR, world.config.tally, run="killed", names=names), names.tally_group)
    assert Counter(verdict.id for verdict in world.outcome("killed")[0]) == Counter(world.fed)
    assert [broken for broken in audit(log).broken if broken.step in RUN_STEPS] == []  # this log has no pages


def said(folder: Path) -> str:
    return (folder / "replay.log").read_text()[-3000:]


def test_a_signal_drains_and_leaves_the_run_to_be_resumed(world: LiveWorld, tmp_path: Path) -> None:
    """The batch is committed, and the resumed run equals an undisturbed one; exit code 0 (SIGTERM) or 130 (SIGINT)."""
    log = world.log
    world.feed(features_of_pages(20, 40, world.epoch))
    world.carry_on()
    killing = Killing(tmp_path, log, world.config, write_rules(tmp_path, 20))
    begins, done = ["--ruleset", killing.rules], 0
    for number, code in ((signal.SIGTERM, 0), (signal.SIGINT, 130)):
        (tmp_path / "replay.log").unlink(missing_ok=True)
        process = killing.start("replay", *begins, "--full-speed", "--name", "mine", records=2)

        def works(process: Command = process, done: int = done) -> bool:
            assert process.runs
            return "mine" in Control(log).runs and progress_of(log, world.row("mine")).done > done

        wait_until(works, "its next records")
        process.signal(number)
        assert process.code() == code
        assert "`farmwatch replay --name mine` resumes it" in process.said()
        assert world.row("mine").state == RunStatus.RUNNING
        assert log.members("judge.mine") == []
        begins, done = [], progress_of(log, world.row("mine")).done
    assert killing.replay("mine") == 0
    assert world.outcome("mine") == world.outcome()
