"""The commands `replay` and `runs`: output, refusals and exit codes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from farmwatch.commands.runs.progress_line import ProgressLine, line_of
from replay.engine.lifecycle import RunNeeded, remove
from replay.engine.runner import Pace, ReplayStatus
from replay.rows.site_table import read_rows
from replay.runs.overview import run_state
from replay.runs.phases import PhaseProgress, RunProgress
from replay.runs.topology import lag_by_group
from stream.embedded.log import EmbeddedLog
from stream.log.contract import Log, Output, Topic
from stream.schema.control import Control, Scorers, write_scorers
from stream.schema.records import SiteState, encode
from stream.schema.runs import Alias, Cutover, RunStatus
from stream.schema.topics import PAGES
from tests.support.front_door import Ran, Runner
from tests.support.runs.replay_world import PARTITIONS, LiveWorld, live_world, put_rows, write_rules


def replay(farmwatch: Runner, world: LiveWorld, *arguments: str) -> Ran:
    """Run the command at full speed, because a process cannot undo its niceness."""
    return farmwatch("replay", "--full-speed", "--log", world.url, *arguments)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[LiveWorld]:
    with closing(EmbeddedLog(tmp_path / "log", lease_ms=500)) as log:
        yield live_world(tmp_path, 5, 12, log)


def state_of(world: LiveWorld, run: str) -> str:
    """State of a run as in `farmwatch runs`."""
    return run_state(world.log, Control(world.log), world.row(run), 0).state


def test_the_time_left_is_by_effort(world: LiveWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a tenth of the pages takes 100 s, the rest takes a little more than nine times as long."""
    run, _ = world.begin(ruleset=world.rules, name="r1")
    totals = {"measure": (4500, 45000), "judge": (0, 45000), "tally": (0, 100_000)}
    advances = [PhaseProgress(phase, done, total) for phase, (done, total) in totals.items()]
    monkeypatch.setattr("replay.runs.overview.progress_of", lambda *_, **__: RunProgress(advances))
    run = msgspec.structs.replace(run, began_at=0, began_done=0, began_effort=0.0)
    member = world.log.join("judge.r1", ["features"], member="m")
    state = run_state(world.log, Control(world.log), run, 100_000)
    member.close()
    assert state.eta_s is not None and 900 < state.eta_s < 1000


def test_the_lag_is_that_of_a_cutover(world: LiveWorld) -> None:
    """A run that judges features of another run counts the unmeasured pages too."""
    run, _ = world.begin(ruleset=world.rules, name="r1")
    world.log.create([Topic("features.base", PARTITIONS)])
    world.log.append([Output(PAGES, 0, b"k", b"v")] * 3)
    run = msgspec.structs.replace(run, features="features.base")
    control = Control(world.log)
    lag = run_state(world.log, control, run, 0).lag
    assert lag == sum(lag_by_group(world.log, control, run).values())
    assert lag - run_state(world.log, control, world.row("r1"), 0).lag == 3 - 60  # pages, and not 60 features


def test_a_run_that_is_live_has_no_end(world: LiveWorld, farmwatch: Runner) -> None:
    """It has no phases and no end of its window, also while a stage still leaves it; after a cutover it ended then."""
    world.replay(ruleset=world.rules, name="mine")
    row = world.row("mine")
    put_rows(
        world.log,
        Alias(run="mine", before="live"),
        Cutover(number=1, at=row.ended_at, by="me", from_run="live", to_run="mine"),
    )
    shown = farmwatch("runs", "show", "live", "--log", world.url).out
    assert "window: earliest .. live" in shown and "state: live" in shown
    assert not any(line.startswith(("ended", "phase")) for line in shown.splitlines())
    listed = farmwatch("runs", "--json", "--log", world.url).lines
    assert [(run["run"], run["to_at"], run["ended_at"], run["phases"]) for run in listed] == [
        ("mine", 0, 0, []),
        ("first", row.ended_at, row.ended_at, []),
    ]
    left_at = row.ended_at + 86_400_000
    running = msgspec.structs.replace(row, state=RunStatus.RUNNING, ended_at=0)
    put_rows(world.log, running, Alias(), Cutover(number=2, at=left_at, by="me", from_run="mine", to_run="live"))
    member = world.log.join("judge.mine", ["features"], member="judge-1")
    assert state_of(world, "mine") == "was live"
    put_rows(world.log, msgspec.structs.replace(running, began_at=left_at + 1))
    assert state_of(world, "mine") == "running"
    member.close()
    state = run_state(world.log, Control(world.log), row, 0)
    assert (state.to_at, state.ended_at, list(state.phases)) == (left_at, left_at, [])


def test_only_a_run_at_work_follows(world: LiveWorld) -> None:
    """A cancelled or stopped run does not follow, and shows no finished share."""
    run, _ = world.begin(ruleset=world.rules, name="mine", end="follow")
    for state in (RunStatus.RUNNING, RunStatus.CANCELLED):
        shown = run_state(world.log, Control(world.log), msgspec.structs.replace(run, state=state), 0)
        assert (shown.state, shown.done) == ("stopped" if state == RunStatus.RUNNING else state, "")


def test_a_replay_prints_its_result(world: LiveWorld, farmwatch: Runner) -> None:
    """Pages, articles, sites by verdict, the rate beside the live one, unscored articles, and the next step."""
    ran = replay(farmwatch, world, "--ruleset", world.rules, "--name", "mine", "--why", "shorter ones")
    assert ran.code == 0, ran.err
    unscored = "7 articles have no score yet: they count as unscored, in no verdict"
    steps = ("next: farmwatch compare live mine", "next: farmwatch cutover mine")
    for said in ("mine: 59 pages judged by rules-5", "first (live): ", unscored, *steps):
        assert said in ran.out
    assert "from features, because" in ran.err and "/metrics" in ran.err
    assert world.row("mine").why == "shorter ones"
    world.score()
    again = replay(farmwatch, world, "--name", "mine", "--json")
    assert again.code == 0, again.err
    summary = again.json
    assert (summary["run"], summary["state"], summary["unscored"], summary["pages"]) == ("mine", "done", 0, 59)


def test_a_cutover_tells_the_articles_without_a_score(world: LiveWorld, farmwatch: Runner) -> None:
    """They count in no verdict of the new live run."""
    world.replay(ruleset=world.rules, name="mine")
    ran = farmwatch("cutover", "mine", "--log", world.url)
    assert (ran.code, "7 of its 57 articles had no score: they count in no verdict" in ran.err) == (0, True)


def test_runs_are_listed_with_their_state(world: LiveWorld, farmwatch: Runner) -> None:
    """The live run first; a stopped run with the command that resumes it; a finished one with its results."""
    world.replay(ruleset=world.rules, name="done")
    world.begin(ruleset=world.rules, name="half")
    ran = farmwatch("runs", "--log", world.url)
    assert ran.code == 0
    lines = [line.split("\t") for line in ran.out.splitlines()]
    assert [line[0] for line in lines] == ["run", "first", "done", "half"]
    assert "half is stopped: `farmwatch replay --name half` resumes it" in ran.err
    long = "binoculars/observer+performer@0a1b2c3d/float32/512/calibrated-2026"
    world.alter("half", detector=long)
    assert f"\t{long}\n" in farmwatch("runs", "--log", world.url).out  # a pipe shows all of it
    listed = farmwatch("runs", "--json", "--log", world.url).lines
    states = [("first", "live"), ("done", "done"), ("half", "stopped")]
    assert [(run["run"], run["state"]) for run in listed] == states
    assert listed[1]["done"] == 1.0
    assert listed[1]["lag"] == 0
    assert (listed[1]["articles"], listed[1]["unscored"]) == (57, 7)
    assert (listed[2]["articles"], listed[2]["unscored"]) == (None, None)
    assert listed[2]["phase"] == "judge"
    assert listed[2]["resume"] == "farmwatch replay --name half"


def test_a_cutover_that_would_be_refused_is_no_next_step(world: LiveWorld, farmwatch: Runner) -> None:
    """If records, articles or most scores are missing, the next step is to fix that, not a cutover."""
    world.replay(ruleset=world.rules, name="mine")
    world.replay(ruleset=write_rules(Path(world.rules).parent, 10**6), name="none")

    def steps(run: str = "mine") -> str:
        return farmwatch("runs", "show", run, "--log", world.url).out.partition("next: ")[2]

    assert "compare live none" in steps("none") and "cutover" not in steps("none")

    assert "farmwatch cutover mine" in steps()
    row = world.row("mine")
    world.alter("mine", start={"features": [1] * PARTITIONS})
    assert "compare live mine" in steps() and "cutover" not in steps()
    put_rows(world.log, row)
    bare = SiteState(id="bare.example", site="bare.example", articles=1000, pages=1000)
    world.log.append([Output("sites.mine", 0, b"bare.example", encode(bare))])
    assert "replay --name mine    # adds newer scores, requests missing ones" in steps()
    assert "cutover" not in steps()


def test_a_run_is_shown_in_full(world: LiveWorld, farmwatch: Runner) -> None:
    """Window, source and reason, operator and time, each phase; an unknown name lists the existing runs."""
    world.replay(ruleset=world.rules, name="mine", why="to see")
    ran = farmwatch("runs", "show", "mine", "--log", world.url)
    assert ran.code == 0
    for part in (
        "state: done",
        "source: features",
        "why_source: ",
        "window: earliest .. ",
        "why: to see",
        "judge: 63 of 63",
    ):
        assert part in ran.out
    shown = farmwatch("runs", "show", "mine", "--json", "--log", world.url).json
    assert (shown["why"], shown["pages"], shown["lags"]) == ("to see", 59, {"judge.mine": 0, "tally.mine": 0})
    live = farmwatch("runs", "show", "live", "--log", world.url)
    assert "next:" not in live.out  # no replay of or cutover to the live run
    assert live.out.count("share") == 1
    world.alter("mine", measured_by={"measure.tokenizer": "words"})
    assert "measured_by: --set measure.tokenizer=words" in farmwatch("runs", "show", "mine", "--log", world.url).out
    unknown = farmwatch("runs", "show", "nobody", "--log", world.url)
    assert (unknown.code, "first, mine" in unknown.err) == (1, True)


def test_the_text_of_a_ruleset_is_printed_unchanged(world: LiveWorld, farmwatch: Runner) -> None:
    """Byte by byte, even if its file is gone; a missing text is reported."""
    world.begin(ruleset=world.rules, name="mine")
    text = Path(world.rules).read_text()
    Path(world.rules).unlink()
    assert farmwatch("runs", "show", "mine", "--ruleset-text", "--log", world.url).out == text
    world.alter("mine", digest="0" * 16)
    gone = farmwatch("runs", "show", "mine", "--ruleset-text", "--log", world.url)
    assert (gone.code, gone.out, "is not in this log" in gone.err) == (1, "", True)


def test_the_list_reads_no_row_of_a_site(world: LiveWorld, farmwatch: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its cost depends on the number of runs: only `runs show` reads site rows."""
    world.replay(ruleset=world.rules, name="mine")
    read: list[str] = []

    def watched(log: Log, topic: str) -> list[SiteState]:
        read.append(topic)
        return read_rows(log, topic)

    monkeypatch.setattr("replay.engine.summary.read_rows", watched)
    assert "57" in farmwatch("runs", "--log", world.url).out
    assert read == []
    assert farmwatch("runs", "show", "mine", "--log", world.url).code == 0
    assert sorted(read) == ["sites", "sites.mine"]


def test_several_runs_are_removed_at_once(world: LiveWorld, farmwatch: Runner) -> None:
    """Each prints its freed space; one refusal keeps all; a run and the run on its features go together."""
    for name in ("base", "top", "third"):
        world.begin(ruleset=world.rules, name=name)
    base = msgspec.structs.replace(world.row("base"), features="features.base", remeasures=True)
    put_rows(world.log, base, msgspec.structs.replace(world.row("top"), features="features.base"))
    refused = farmwatch("runs", "rm", "third", "live", "--log", world.url)
    assert (refused.code, refused.out, "is live" in refused.err) == (1, "", True)
    assert "remove these first" in farmwatch("runs", "rm", "base", "--log", world.url).err
    assert set(Control(world.log).runs) == {"live", "base", "top", "third"}
    freed = farmwatch("runs", "rm", "base", "top", "third", "--log", world.url)
    assert freed.code == 0, freed.err
    assert [line.split(": ")[0] for line in freed.out.splitlines() if ": freed " in line] == ["top", "third", "base"]
    assert set(Control(world.log).runs) == {"live"}


def test_a_run_is_cancelled_and_removed(world: LiveWorld, farmwatch: Runner) -> None:
    """rm prints the freed space; a dry run frees nothing; afterwards the name is free and live unchanged."""
    world.begin(ruleset=world.rules, name="mine", end="follow")
    before = world.live_traces()
    ran = farmwatch("runs", "cancel", "mine", "--json", "--log", world.url)
    assert (ran.code, ran.json) == (0, {"run": "mine", "cancelled": True})
    assert state_of(world, "mine") == RunStatus.CANCELLED
    assert farmwatch("runs", "cancel", "mine", "--log", world.url).code == 1
    dry = farmwatch("runs", "rm", "mine", "--dry-run", "--log", world.url)
    assert (dry.code, dry.out.split("\n")[0].startswith("mine: would free 5 topics, ")) == (0, True)
    assert "verdicts.mine" in world.log.topics()
    freed = farmwatch("runs", "rm", "mine", "--json", "--log", world.url).json
    assert (freed["removed"], freed["topics"]) == (
        True,
        ["sites.mine", "sites.terms.mine", "state.asked.mine", "state.tally.mine", "verdicts.mine"],
    )
    assert "verdicts.mine" not in world.log.topics()
    assert "mine" not in Control(world.log).runs
    assert world.log.committed("judge.mine", "features") == [None] * 3
    assert world.live_traces() == before
    assert farmwatch("runs", "rm", "mine", "--log", world.url).code == 1


def test_needed_runs_are_not_removed(world: LiveWorld, farmwatch: Runner) -> None:
    """Refused: the live run, the previous one without --force, one with a process at work, and the first run."""
    for name in ("old", "new"):
        world.replay(ruleset=world.rules, name=name)
    put_rows(world.log, Alias(run="new", before="old"))
    refusals = {"new": "is live", "old": "cutover --back", "first": "cannot be removed", "live": "new is live"}
    for name, said in refusals.items():
        ran = farmwatch("runs", "rm", name, "--log", world.url)
        assert (ran.code, said in ran.err) == (1, True), ran.err
    assert state_of(world, "new") == "live"
    member = world.log.join("judge.old", ["features"], member="somebody")
    with pytest.raises(RunNeeded, match="somebody is at work"):
        remove(world.log, "old", force=True)
    member.close()
    assert farmwatch("runs", "rm", "old", "--force", "--log", world.url).code == 0


def test_a_run_that_was_live_is_not_cancelled(world: LiveWorld, farmwatch: Runner) -> None:
    """Neither the live run nor an earlier live run: the way back stays open."""
    world.replay(ruleset=world.rules, name="mine")
    moved = farmwatch("cutover", "mine", "--operator", "me", "--set", "tally.sprt={p0=0.1, p1=0.6}", "--log", world.url)
    assert moved.code == 0, moved.err
    for name, said in {"live": "mine is live", "before": "first was live", "first": "cutover first` does"}.items():
        ran = farmwatch("runs", "cancel", name, "--log", world.url)
        assert (ran.code, said in ran.err) == (1, True), ran.err
    assert world.row("live").state == RunStatus.RUNNING
    assert farmwatch("cutover", "--back", "--set", "tally.sprt={p0=0.1, p1=0.6}", "--log", world.url).code == 0
    member = world.log.join("judge.mine", ["features"], member="somebody")
    assert "stop them first" in farmwatch("runs", "rm", "before", "--force", "--log", world.url).err
    member.close()


def test_an_interrupted_removal_is_finished(world: LiveWorld, farmwatch: Runner) -> None:
    """The next rm finishes the removal of a row with state `removed`, and no replay resumes it."""
    world.begin(ruleset=world.rules, name="mine")
    world.alter("mine", state=RunStatus.REMOVED)
    assert "is being removed" in replay(farmwatch, world, "--name", "mine").err
    assert farmwatch("runs", "rm", "mine", "--log", world.url).code == 0
    assert "mine" not in Control(world.log).runs
    assert "verdicts.mine" not in world.log.topics()


def test_refusals_have_their_exit_codes(world: LiveWorld, farmwatch: Runner, tmp_path: Path) -> None:
    """Usage is 2, nothing to replay or a wrong state 1, no log 3; each with one line that says what to do."""
    for arguments in ([], ["--ruleset", "nonesuch"], ["--ruleset", world.rules, "--name", "live"]):
        assert replay(farmwatch, world, *arguments).code == 2
    put_rows(
        world.log, msgspec.structs.replace(world.row("live"), name="now-live"), Alias(run="now-live", before="live")
    )
    assert replay(farmwatch, world, "--name", "now-live").code == 1
    window = ("--from", "2020-01-01", "--to", "2020-01-02")
    nothing = replay(farmwatch, world, "--ruleset", world.rules, *window)
    assert (nothing.code, "features has records from" in nothing.err) == (1, True)
    nowhere = f"sqlite:{tmp_path / 'nowhere'}"
    assert farmwatch("replay", "--full-speed", "--ruleset", world.rules, "--log", nowhere).code == 3
    assert farmwatch("runs", "--log", nowhere).code == 3


@pytest.mark.parametrize(
    ("runs", "configured", "said"),
    [
        ("other/1", [], "Add it to score.detectors and restart SCORE"),
        ("fake/1-before", ["other/1", "fake/1"], "It is configured here: restart SCORE with this configuration"),
    ],
)
def test_a_detector_that_score_does_not_run_causes_a_warning(
    world: LiveWorld, farmwatch: Runner, monkeypatch: pytest.MonkeyPatch, runs: str, configured: list[str], said: str
) -> None:
    """Its missing scores would never come; the warning at the begin says what to do."""
    write_scorers(world.log, Scorers(detectors=[runs], at=1))
    monkeypatch.setattr("scoring.detectors.registry.detector_identities", lambda _: configured)
    ran = replay(farmwatch, world, "--ruleset", world.rules, "--name", "mine")
    assert f"warning: SCORE runs {runs}, not fake/1: texts without its score are not requested" in ran.err
    assert f"stay unscored. {said}: `farmwatch" in ran.err


def test_the_progress_line_is_complete() -> None:
    """The line has phase, records, share, rate, time left, and the live groups that the replay waits for."""
    progress = RunProgress([PhaseProgress("judge", 1200, 2000), PhaseProgress("tally", 0, 4000)])
    line = line_of("v5", ReplayStatus(progress, 312.4, 65.0, "measure 120"))
    assert line == ("v5: judge 1200 of 2000, 38%, 312/s, 1 min 5 s left, waits for live (measure 120)")
    assert line_of("v5", ReplayStatus(progress, None, None, "")) == "v5: judge 1200 of 2000, 38%"


def test_the_line_of_a_follower_has_its_position() -> None:
    """Read records and lag, where a record counts once for two phases."""
    progress = RunProgress([PhaseProgress("judge", 1997, 2000), PhaseProgress("tally", 3996, 4000)])
    standing = ReplayStatus(progress, 0.3, 2.0, "measure 120", follows=True)
    line = "v5: follows, 1997 read, 4 behind, waits for live (measure 120)"
    assert line_of("v5", standing) == line


def test_processes_that_begin_a_run_together_share_it(
    world: LiveWorld, farmwatch: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second of two processes with one new name resumes the run of the first; with other rules it is refused."""
    first: list[str] = []

    def another_is_first(*_: object) -> None:
        if first:
            world.begin(ruleset=first.pop(), name="mine")

    monkeypatch.setattr("farmwatch.commands.runs.replay.refuse_unfit", another_is_first)
    first.append(world.rules)
    ran = replay(farmwatch, world, "--ruleset", world.rules, "--name", "mine")
    assert (ran.code, "run mine resumed" in ran.err) == (0, True), ran.err
    assert (state_of(world, "mine"), world.row("mine").articles) == ("done", 57)
    assert farmwatch("runs", "rm", "mine", "--log", world.url).code == 0
    first.append(write_rules(Path(world.rules).parent, 6))
    ran = replay(farmwatch, world, "--ruleset", world.rules, "--name", "mine")
    assert (ran.code, "was begun with other parameters: the ruleset is rules-5" in ran.err) == (2, True), ran.err


def test_progress_is_written_every_ten_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    """A line each, however often the replay tells it."""
    standing = ReplayStatus(RunProgress([PhaseProgress("judge", 1, 2)]), None, None, "")
    seconds = iter(range(0, 400, 4))
    line = ProgressLine("v5", lambda: float(next(seconds)))
    for _ in range(8):
        line.show(standing)
    assert capsys.readouterr().err.splitlines() == ["v5: judge 1 of 2, 50%"] * 2


def test_the_pace_is_that_of_the_last_half_minute() -> None:
    """The rate is that of the current phase; the rest is weighted by the cost of each phase."""
    pace = Pace()

    def update(now_s: int, judged: int, to_tally: int) -> tuple[float | None, float | None]:
        advances = [PhaseProgress("judge", judged, 1000), PhaseProgress("tally", 0, to_tally)]
        return pace.update(float(now_s), RunProgress(advances))

    assert update(0, 0, 0) == (None, None)
    assert update(10, 500, 0) == pytest.approx((50.0, 10.0))
    rate, eta_s = update(20, 1000, 350)
    assert (rate, eta_s and round(eta_s, 6)) == (None, 2.0)
    assert [update(now_s, 1000, 350) for now_s in range(60, 100)][-1] == (0.0, None)
