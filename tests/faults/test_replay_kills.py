"""kill -9 of a replay at random moments of every phase: gone on with, it ends as one that was left alone."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
import zstandard

from crawler.urls import page_id
from farmwatch.runs.phases import progress_of
from stream.control import Control
from stream.embedded_log import EmbeddedLog
from stream.log import Log
from stream.records import Hit, Page, ScoreRequest, decode
from stream.runs import State, features_of
from stream.topics import HITS, PAGES, REPLAY_REQUESTS
from tests.front_door import article_html
from tests.replay_world import PARTITIONS, LiveWorld, config_of, features_of_pages, output, write_rules

pytestmark = [pytest.mark.kill]

KILLS = 60 if os.environ.get("FARMWATCH_LONG") else 20
_PAGES = 2400
_FROM_PAGES = 60  # measured anew
_PATIENCE_S = 300.0
# Batches of a few records, so that a run lasts through its kills and they fall into the midst of it.
_SMALL_BATCHES = """
import sys
from farmwatch.runs import stages
stages._RECORDS = {records}
from farmwatch.__main__ import run
sys.exit(run(sys.argv[1:]))
"""


def replay(folder: Path, *arguments: str, records: int = 10) -> subprocess.Popen[bytes]:
    """The command in a process of its own, with batches of so many records."""
    flags = [f"log.url=sqlite:{folder / 'log'}", f"log.partitions={PARTITIONS}", "measure.workers=1"]
    settings = [word for flag in (*flags, "measure.time_limit_s=60") for word in ("--set", flag)]
    script = _SMALL_BATCHES.format(records=records)
    with (folder / "replay.log").open("ab") as said:
        return subprocess.Popen(
            [sys.executable, "-c", script, "replay", *arguments, *settings], stdout=said, stderr=said, process_group=0
        )


def killed_runs(folder: Path, log: Log, kills: int, longest_s: float, rules: str) -> list[str]:
    """Runs that were killed so often in all, and that ended; where one ends before that, another one is begun."""
    seed = int(os.environ.get("FARMWATCH_KILL_SEED", random.randrange(2**32)))
    print(f"FARMWATCH_KILL_SEED={seed}")
    chance = random.Random(seed)
    killed: Counter[str] = Counter()
    names: list[str] = []
    while killed.total() < kills:
        names.append(f"killed-{len(names) + 1}")
        arguments = ["--ruleset", rules, "--name", names[-1]]
        while killed.total() < kills and (phase := killed_once(folder, log, arguments, chance.uniform(0.0, longest_s))):
            killed[phase] += 1
            arguments = ["--name", names[-1]]
        process = replay(folder, *arguments, records=1000)
        assert process.wait(_PATIENCE_S) == 0, (folder / "replay.log").read_text()[-3000:]
        leave_unanswered(log)
    print(f"killed: {dict(killed)}")
    return names


def killed_once(folder: Path, log: Log, arguments: list[str], after_s: float) -> str:
    """Begin or go on, and kill it so long after its row was written; the phase that it was in, "" where it ended."""
    name = arguments[-1]
    before = Control(log).runs.get(name)
    process = replay(folder, *arguments)
    until = time.monotonic() + _PATIENCE_S
    while process.poll() is None:
        assert time.monotonic() < until
        run = Control(log).runs.get(name)
        if run is not None and (before is None or run.began_at != before.began_at):
            break
        time.sleep(0.01)
    time.sleep(after_s)
    if process.poll() is not None:
        assert process.returncode == 0, (folder / "replay.log").read_text()[-3000:]
        return ""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return progress_of(log, Control(log).runs[name]).phase or "end"


def leave_unanswered(log: Log) -> None:
    """SCORE has passed all requests of replays, and scored none: the next run asks anew."""
    log.reset("score", REPLAY_REQUESTS, log.end(REPLAY_REQUESTS))


def requests_of(log: Log, run: str) -> list[tuple[str, str]]:
    """(site, text) of each request that a run made."""
    found = []
    for partition in range(PARTITIONS):
        for message in log.read(REPLAY_REQUESTS, partition):
            request = decode(ScoreRequest, message.value or b"")
            if request.run == run:
                found.append((request.site, request.text_digest))
    return found


def test_kills_from_features(tmp_path: Path) -> None:
    """Killed in every phase, the run has each verdict once and in order, the same rows, and asked for no text twice."""
    log = EmbeddedLog(tmp_path / "log")
    world = LiveWorld(log, config_of(f"sqlite:{tmp_path / 'log'}"))
    world.feed(features_of_pages(20, _PAGES // 20, world.epoch))
    world.carry_on(share_scored=0.5)
    before = world.live_traces()
    rules = write_rules(tmp_path, 5)
    world.replay(ruleset=rules, name="whole")
    leave_unanswered(log)
    for name in killed_runs(tmp_path, log, KILLS, 1.2, rules):
        assert world.row(name).state == State.DONE
        assert world.outcome(name) == world.outcome("whole")
        assert len(world.outcome(name)[0]) == _PAGES
        assert sorted(requests_of(log, name)) == sorted(requests_of(log, "whole"))
        assert len(set(requests_of(log, name))) == len(requests_of(log, name))
    assert world.live_traces() == before
    log.close()


def test_kills_from_pages(tmp_path: Path) -> None:
    """Killed while it measures pages anew: each page has its features once, and the rest follows from them."""
    log = EmbeddedLog(tmp_path / "log")
    config = config_of(f"sqlite:{tmp_path / 'log'}", "measure.workers=1", "measure.time_limit_s=60")
    world = LiveWorld(log, config)
    outputs = []
    for number in range(_FROM_PAGES):
        site = f"s{number % 5}.example"
        url = f"https://{site}/a/{number}"
        html = article_html(100 + 7 * number).encode()
        body = zstandard.ZstdCompressor().compress(html)
        outputs.append(
            output(PAGES, Page(id=f"f{number}", site=site, page_id=page_id(url), url=url, body=body, fetched_at=5))
        )
        outputs.append(output(HITS, Hit(id=f"h{number}", site=site, url=url, rank=1)))
    log.append(outputs)
    rules = write_rules(tmp_path, 200)
    assert replay(tmp_path, "--ruleset", rules, "--name", "whole", records=1000).wait(_PATIENCE_S) == 0
    for name in killed_runs(tmp_path, log, max(3, KILLS // 5), 3.0, rules):
        assert world.outcome(name) == world.outcome("whole")
        features = [message.key for p in range(PARTITIONS) for message in log.read(features_of(name), p)]
        assert len(features) == _FROM_PAGES
    log.close()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_drains_and_leaves_the_run_to_be_gone_on_with(tmp_path: Path, number: int, code: int) -> None:
    """What was under way is committed, the command that goes on is named, and it ends as an undisturbed run."""
    log = EmbeddedLog(tmp_path / "log")
    world = LiveWorld(log, config_of(f"sqlite:{tmp_path / 'log'}"))
    world.feed(features_of_pages(20, 60, world.epoch))
    world.carry_on()
    process = replay(tmp_path, "--ruleset", write_rules(tmp_path, 20), "--name", "mine", records=2)
    until = time.monotonic() + _PATIENCE_S
    while "mine" not in Control(log).runs or not progress_of(log, world.row("mine")).done:
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.02)
    process.send_signal(number)
    assert process.wait(_PATIENCE_S) == code
    assert "`farmwatch replay --name mine` goes on with it" in (tmp_path / "replay.log").read_text()
    assert world.row("mine").state == State.RUNNING
    assert log.members("judge.mine") == []
    assert replay(tmp_path, "--name", "mine", records=1000).wait(_PATIENCE_S) == 0
    assert world.outcome("mine") == world.outcome()
    log.close()
