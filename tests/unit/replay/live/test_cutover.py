"""The command `cutover`: its changes, its messages and its refusals."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import closing

import msgspec
import pytest

from farmwatch.terminal.remedies import in_full
from filters.rules.ruleset import load_ruleset
from filters.stages.judge import JudgeStage
from replay.engine.lifecycle import record_error, record_gap
from replay.live.cutover import CutoverRefused, CutoverRequest, OtherCutover, cut_over
from replay.runs import control_update as rows
from replay.runs.configured import site_method_to_keep
from replay.runs.lookup import names_to_read
from replay.runs.topology import lag_by_group
from scoring.sites.registry import method_of_text
from stream.log.contract import Log, Output
from stream.log.errors import Fenced
from stream.schema.control import Control, ControlWriter, exclusive
from stream.schema.records import SiteState, encode
from stream.schema.runs import Alias, Gap, Run, RunStatus
from stream.text.user_errors import Exit, FarmwatchError, NotFound
from tests.support.front_door import PARTITIONS, Runner
from tests.support.runs.cutover_world import CutoverWorld
from tests.support.runs.replay_world import count_writers, put_rows


@pytest.fixture(autouse=True)
def _begun(world: CutoverWorld) -> None:
    """Begin the live run, with some features."""
    world.begin_live()
    world.features(30)


def _to(name: str, **more: object) -> CutoverRequest:
    return CutoverRequest(name, "me@here", **more)  # type: ignore[arg-type]


def _alias(log: Log) -> tuple[str, str, int]:
    alias = Control(log).alias
    return alias.run, alias.before, alias.number


def test_a_finished_run_becomes_live_in_one_step(world: CutoverWorld) -> None:
    """Alias and audit trail agree; readers use its topics; `--back` returns, and can return again."""
    run = world.begin("r1")
    world.replay(run)
    moved = cut_over(world.log, _to("r1", why="too strict"), clock=lambda: 5_000)
    assert moved.cutover is not None and (moved.cutover.lag, moved.cutover.at) == (0, 5_000)
    assert _alias(world.log) == ("r1", "live", 1)
    assert names_to_read(world.log).sites == "sites.r1"
    assert names_to_read(world.log).requests == "score.requests"
    cut_over(world.log, _to(""))
    assert _alias(world.log) == ("live", "r1", 2)
    cut_over(world.log, _to(""))
    assert _alias(world.log) == ("r1", "live", 3)
    rows = world.control().cutovers
    assert [(row.number, row.from_run, row.to_run, row.back) for row in rows] == [
        (1, "live", "r1", False),
        (2, "r1", "live", True),
        (3, "live", "r1", True),
    ]
    assert {row.from_digest for row in rows} == {run.digest, load_ruleset("default").digest}


def _without_topics(world: CutoverWorld) -> None:
    rules = load_ruleset("notes")
    with exclusive(world.log) as writer:
        row = Run(name="r1", ruleset="notes", digest=rules.digest, detector="d/1", epoch="e")
        writer.put(row, rulesets=[(rules.digest, rules.source)])


def _behind(world: CutoverWorld) -> None:
    world.replay(world.begin("r1"))
    world.features(40)


def _partial(world: CutoverWorld) -> None:
    run = world.begin("r1", start={"features": [1] * PARTITIONS})
    world.log.reset("judge.r1", "features", [1] * PARTITIONS)
    world.replay(run)


@pytest.mark.parametrize(
    ("make", "error", "said"),
    [
        (lambda world: world.begin("other"), NotFound, r"there is no run 'r1'; the runs of this log: first, other"),
        (
            lambda world: world.begin("r1", state=RunStatus.REMOVED),
            NotFound,
            r"there is no run 'r1'; the runs of this log: first",
        ),
        (lambda world: world.begin("r1", state=RunStatus.CANCELLED), CutoverRefused, "cancelled: replay it again"),
        (_without_topics, CutoverRefused, r"no topic verdicts\.r1: `farmwatch replay --name r1` first"),
        (
            lambda world: world.begin("r1"),
            CutoverRefused,
            r"60 records behind \(judge\.r1 30, tally\.r1 30\); the limit is 20: .*farmwatch runs",
        ),
        (_behind, CutoverRefused, r"80 records behind \(judge\.r1 40, tally\.r1 40\).*replay --name r1 --to now`"),
        (_partial, CutoverRefused, rf"at most {PARTITIONS} of features: .*--partial"),
    ],
)
def test_a_run_that_cannot_take_over_is_refused(
    world: CutoverWorld, make: Callable[[CutoverWorld], object], error: type[Exception], said: str
) -> None:
    """Each refusal says why and what to do, and changes neither alias nor audit trail."""
    make(world)
    with pytest.raises(error) as refused:
        cut_over(world.log, _to("r1", max_lag=20))
    assert re.search(said, in_full(refused.value))
    assert _alias(world.log) == ("live", "", 0)
    assert world.control().cutovers == []


@pytest.mark.parametrize(("make", "more"), [(_behind, {"max_lag": 80}), (_partial, {"max_lag": 20, "partial": True})])
def test_the_operator_may_override_refusals(
    world: CutoverWorld, make: Callable[[CutoverWorld], None], more: dict[str, object]
) -> None:
    """A larger --max-lag accepts a run that is behind, --partial one with a later begin; the lag is in the trail."""
    make(world)
    moved = cut_over(world.log, _to("r1", **more))
    assert moved.cutover is not None and moved.cutover.lag == sum(moved.lag.values()) == (80 if make is _behind else 0)


@pytest.mark.parametrize("kept", [True, False], ids=["counted in its row", "counted from its sites"])
def test_a_run_without_scores_needs_partial(world: CutoverWorld, kept: bool) -> None:
    """If live has its scores, a run without most of them needs --partial, and the message counts them; --back does not.

    If live has none either, nothing is refused.
    """
    for name, live_scored in (("r1", 14), ("r2", 16)):
        run = world.begin(name)
        world.replay(run)
        if kept:
            put_rows(world.log, msgspec.structs.replace(run, state=RunStatus.DONE, articles=20, unscored=20))
        row = SiteState(id="a.example", site="a.example", articles=30, pages=30, scored=live_scored)
        world.log.append([Output("sites", 0, b"a.example", encode(row))])
        if name == "r1":
            cut_over(world.log, _to("r1"))
            cut_over(world.log, _to(""))
    with pytest.raises(CutoverRefused, match=r"r2 has no score yet for 20 of 20 articles, .* first for 14 of 30"):
        cut_over(world.log, _to("r2"))
    assert _alias(world.log) == ("live", "r1", 2)
    cut_over(world.log, _to("r2", partial=True))
    cut_over(world.log, _to(""))
    assert cut_over(world.log, _to("")).run.name == "r2"


def test_a_run_without_articles_does_not_take_the_place_of_one_with_them(world: CutoverWorld) -> None:
    """A run whose rules drop every page would have no rate: it needs --partial."""
    run = world.begin("r1")
    world.replay(run)
    put_rows(world.log, msgspec.structs.replace(run, state=RunStatus.DONE, articles=0, unscored=0))
    row = SiteState(id="a.example", site="a.example", articles=30, pages=30, scored=30)
    world.log.append([Output("sites", 0, b"a.example", encode(row))])
    with pytest.raises(CutoverRefused, match=r"r1 has no article, .* live run first has 30"):
        cut_over(world.log, _to("r1"))
    cut_over(world.log, _to("r1", partial=True))


def test_going_back_accepts_any_lag_but_no_gap(world: CutoverWorld) -> None:
    """The previous run is far behind: it becomes live and catches up; expired records need --partial."""
    world.work("judge", JudgeStage(load_ruleset("default")))
    world.replay(world.begin("r1"))
    cut_over(world.log, _to("r1"))
    world.features(50)
    assert cut_over(world.log, _to("", max_lag=0)).lag["judge"] == 50
    cut_over(world.log, _to("r1", max_lag=1000))
    world.log.expire(2**45)  # long after
    with pytest.raises(CutoverRefused, match="at most 50 of features"):
        cut_over(world.log, _to(""))
    assert cut_over(world.log, _to("", partial=True)).run.name == "live"


def test_going_back_to_a_cancelled_run_works(world: CutoverWorld) -> None:
    """A row with `cancelled` does not prevent going back to a run that was live."""
    world.replay(world.begin("r1"))
    cut_over(world.log, _to("r1"))
    put_rows(world.log, msgspec.structs.replace(world.control().runs["live"], state=RunStatus.CANCELLED))
    assert cut_over(world.log, _to("")).run.name == "live"


def _before_the_write(monkeypatch: pytest.MonkeyPatch, happen: Callable[[], object]) -> None:
    """Call a function once before `control` is written."""
    put, others = ControlWriter.put, [happen]

    def late(writer: ControlWriter, *rows: object, **more: object) -> None:
        if others:
            others.pop()()
        put(writer, *rows, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(ControlWriter, "put", late)


def test_one_of_two_concurrent_cutovers_wins(world: CutoverWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another cutover happens between check and write: it succeeds, and this one reports it."""
    world.replay(world.begin("r1"))
    world.replay(world.begin("r2"))
    _before_the_write(monkeypatch, lambda: cut_over(world.log, CutoverRequest("r2", "you@there")))
    with pytest.raises(OtherCutover, match=r"you@there moved live from first to r2 at.*nothing was changed"):
        cut_over(world.log, _to("r1"), sleep=lambda _: None)
    assert _alias(world.log) == ("r2", "live", 1)
    assert len(world.control().cutovers) == 1


def test_a_fenced_cutover_is_retried(world: CutoverWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cutover fenced by a beginning replay is retried; after too many attempts it fails with a message."""
    world.replay(world.begin("r1"))
    _before_the_write(monkeypatch, lambda: world.begin("r2"))
    assert cut_over(world.log, _to("r1"), sleep=lambda _: None).cutover is not None
    monkeypatch.setattr(rows, "exclusive", _always_fenced)
    with pytest.raises(OtherCutover, match="keep changing the runs"):
        cut_over(world.log, _to(""), sleep=lambda _: None)


def _always_fenced(log: Log) -> object:
    raise Fenced("another process")


def test_the_command_reports_and_lists(farmwatch: Runner, world: CutoverWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line has the change, stderr the remaining work and configuration differences, the trail the reason."""
    world.replay(world.begin("r1"))
    settings = ["--log", world.config.log.url, "--set", "tally.sprt={p0=0.1, p1=0.6}"]
    monkeypatch.setenv("FARMWATCH_TALLY_DETECTOR", world.config.tally.detector)
    empty = farmwatch("cutover", *settings)
    assert (empty.code, empty.err) == (Exit.OK, "0 cutovers\n")
    ran = farmwatch("cutover", "r1", "--why", "fewer\nfalse ones", "--operator", "lea", *settings)
    assert ran.code == Exit.OK, ran.err
    assert ran.out.startswith("live: first -> r1, ruleset notes ")
    down = "no live stage runs: start `farmwatch up`; no record to catch up with; `farmwatch cutover"
    assert down in ran.err
    assert "judge.ruleset" not in ran.err  # the operator chose it
    again = farmwatch("cutover", "r1", *settings)
    assert (again.code, "is live already" in again.err) == (Exit.OK, True)
    back = farmwatch("cutover", "--back", "--json", *settings).json
    assert (back["live"], back["moved"], back["cutover"]["back"]) == ("first", True, True)
    listed = farmwatch("cutover", *settings)
    assert [line.split("\t")[0] for line in listed.out.splitlines()] == ["number", "1", "2"]
    assert "lea" in listed.out and "fewer false ones" in listed.out
    rows = farmwatch("cutover", "--json", *settings).lines
    assert [(row["by"] == "lea", row["to_run"]) for row in rows] == [(True, "r1"), (False, "first")]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["nope"], Exit.PROBLEM, "there is no run 'nope'; the runs of this log: first"),
        (["r1", "--back"], Exit.USAGE, "--back"),
        (["r1", "--sort", "at"], Exit.USAGE, "the options of lists"),
        (["r1", "--max-lag", "-1"], Exit.USAGE, "--max-lag"),
        (["--back"], Exit.PROBLEM, "nothing to go back to"),
    ],
)
def test_the_command_refuses_with_its_exit_code(
    farmwatch: Runner, world: CutoverWorld, arguments: list[str], code: Exit, said: str
) -> None:
    """Usage errors are 2, refusals 1, each with one line."""
    ran = farmwatch("cutover", *arguments, "--log", world.config.log.url)
    assert (ran.code, said in ran.err) == (code, True), ran.err


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"site_method": '{"method":"sprt","of":"later"}'}, "has a site method that this farmwatch cannot read"),
        (
            {"site_method": '{"method":"sprt","numbers":{"p0":0.9,"p1":0.6},"close_after_ms":1}'},
            "has a site method that this farmwatch cannot read",
        ),
        ({"detector": "binoculars/a+b@2/bf16/512/none"}, "uses scores of binoculars/"),
    ],
    ids=["another field", "numbers that it refuses", "a detector without numbers"],
)
def test_a_run_that_tally_cannot_process_is_refused(
    world: CutoverWorld, farmwatch: Runner, more: dict[str, str], said: str
) -> None:
    """Its site method is of another version, or nowhere: it does not become live, and the doctor reports a live one."""
    run = world.begin("r1")
    world.replay(run)
    put_rows(world.log, msgspec.structs.replace(run, **more))
    log = ("--log", world.config.log.url)
    ran = farmwatch("cutover", "r1", *log)
    assert (ran.code, f"the run r1 {said}" in ran.err) == (Exit.PROBLEM, True), ran.err
    assert _alias(world.log) == ("live", "", 0)
    of_another = "site_method: of another version of farmwatch" in farmwatch("runs", "show", "r1", *log).out
    assert of_another is ("site_method" in more)
    put_rows(world.log, Alias(run="r1", before="live", number=1))
    told = farmwatch("doctor", *log)
    assert "FAIL  live run     the live run r1 cannot be processed" in told.out, told


def test_the_site_method_of_the_operator_changes_nothing(world: CutoverWorld, farmwatch: Runner) -> None:
    """The run keeps its own method and becomes live even if the configuration has no numbers for it."""
    method = site_method_to_keep(world.config, world.config.tally.detector)
    world.replay(world.begin("r1", site_method=method))
    other = method.replace("0.6", "0.7")
    world.replay(world.begin("r2", site_method=other))
    flags = ("--log", world.config.log.url, "--set", "tally.method=deciles")
    ran = farmwatch("cutover", "r1", *flags)
    assert ran.code == Exit.OK, ran.err
    digest = method_of_text(method).digest
    assert (f", site method sprt {digest}" in ran.out, "the site method changes too" in ran.err) == (True, False)
    with closing(world.log.join("judge.r1", ["features"], member="judge-1")):
        changed = farmwatch("cutover", "r2", *flags)
    assert "the live stages switch within a second; no record to catch up with" in changed.err
    assert f"the site method changes too: it was sprt {digest}" in changed.err
    shorter = other.replace('"min_pages":1,', "")  # as an older version wrote it
    world.replay(world.begin("r3", site_method=shorter))
    same = farmwatch("cutover", "r3", *flags)
    assert (same.code, shorter != other, "the site method changes too" in same.err) == (Exit.OK, True, False), same.err


@pytest.fixture
def through(world: CutoverWorld) -> None:
    """The finished run `r1`, next to the live one."""
    world.replay(world.begin("r1", created_at=1))


def _while_looking(monkeypatch: pytest.MonkeyPatch, happen: Callable[[], object]) -> list[Log]:
    """The logs on which `control` was updated during the check."""
    taken = count_writers(monkeypatch)

    def looked(*arguments: object) -> dict[str, int]:
        happen()
        taken.clear()
        return lag_by_group(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr("replay.live.cutover.lag_by_group", looked)
    return taken


def _write(world: CutoverWorld, **changes: object) -> None:
    put_rows(world.log, msgspec.structs.replace(world.control().runs["r1"], **changes))


def _forget(world: CutoverWorld) -> None:
    with exclusive(world.log) as writer:
        writer.forget("r1")


@pytest.mark.parametrize(
    "happen",
    [
        lambda world: world.begin("r2"),
        lambda world: record_error(world.log, "r1", OSError("disk full")),
        lambda world: _write(world, state=RunStatus.DONE, ended_at=5),
    ],
    ids=["another run begins", "a process of it fails", "its replay ends"],
)
@pytest.mark.usefixtures("through")
def test_checks_do_not_block_control(
    world: CutoverWorld, monkeypatch: pytest.MonkeyPatch, happen: Callable[[CutoverWorld], object]
) -> None:
    """A slow check blocks no other change, and no other change undoes it: the first write succeeds."""
    taken = _while_looking(monkeypatch, lambda: happen(world))
    moved = cut_over(world.log, _to("r1"))
    assert moved.cutover is not None
    assert len(taken) == 1
    assert (world.control().alias.run, world.control().alias.number) == ("r1", 1)


@pytest.mark.parametrize(
    ("happen", "error", "said"),
    [
        (_forget, NotFound, "there is no run 'r1'"),
        (lambda world: _write(world, state=RunStatus.REMOVED), NotFound, "there is no run 'r1'"),
        (lambda world: _write(world, state=RunStatus.CANCELLED), OtherCutover, "has just changed the run r1"),
        (lambda world: _write(world, created_at=2), OtherCutover, "has just changed the run r1: nothing was"),
        (
            lambda world: record_gap(world.log, "r1", Gap("features", 0, 0, 1)),
            OtherCutover,
            "has just changed the run r1",
        ),
    ],
    ids=["removed", "being removed", "cancelled", "begun anew", "lacks records"],
)
@pytest.mark.usefixtures("through")
def test_changes_of_the_run_after_the_checks_count(
    world: CutoverWorld,
    monkeypatch: pytest.MonkeyPatch,
    happen: Callable[[CutoverWorld], object],
    error: type[FarmwatchError],
    said: str,
) -> None:
    """A run that would be refused by now does not become live, although its checks passed."""
    _while_looking(monkeypatch, lambda: happen(world))
    with pytest.raises(error, match=said):
        cut_over(world.log, _to("r1"))
    assert (world.control().alias.run, world.control().cutovers) == ("live", [])
