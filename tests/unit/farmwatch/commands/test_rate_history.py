"""Series of rates: one point per hour from any process, thinned with age, shown by `rate --history`."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from farmwatch.share.rate_series import SeriesWriter, read_points
from scoring.rates.series import GROUPS_CAP, THIN_AFTER_DAYS
from scoring.rates.settings import RateSettings
from stream.log.contract import Output
from stream.memory.log import MemoryLog
from stream.opening import open_log
from stream.schema.records import SiteState, encode
from stream.schema.topics import RATES, SITES, all_topics
from stream.text.user_errors import Exit
from tests.support.front_door import DETECTOR, Runner
from tests.support.web.console_browser import answer_with

HOUR_S, DAY_S = 3600, 86_400
START_S = datetime(2026, 5, 1, tzinfo=UTC).timestamp()


def row(site: str, verdict: str = "llm", **more: Any) -> SiteState:
    """A site's row."""
    fields = {"detector": DETECTOR, "ruleset": "r", "digest": "d1", "sources": ["file"], "best_rank": 2, **more}
    return SiteState(id=site, site=site, verdict=verdict, **fields)


ROWS = [
    row("a", queries=["health-1"], scored=9, flagged=8),
    row("b", "human", sources=["file", "searx"], scored=9),
    row("c", "unclassifiable"),
]
SETTINGS = RateSettings(groups={"health": ["health-*"]})


class Clock:
    """The time that the test sets."""

    now_s = START_S


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def log(clock: Clock) -> Iterator[MemoryLog]:
    """A log with all topics."""
    log = MemoryLog(clock=lambda: int(clock.now_s * 1000))
    log.create(all_topics(2, "e"))
    yield log
    log.close()


def test_a_point_of_every_series_is_kept(log: MemoryLog) -> None:
    """Series of all sites, and of each source, rank band and query group, equal `rate` at the interval's start."""
    SeriesWriter(log, SETTINGS).append(ROWS, START_S + 59)
    points = {(point.by, point.group): point for point in read_points(log)}
    by_source = {("source", "file"), ("source", "searx")}
    by_query = {("query-group", "health"), ("query-group", "unknown")}
    assert set(points) == {("", ""), ("rank", "1-3"), *by_source, *by_query}
    assert {point.at for point in points.values()} == {int(START_S * 1000)}
    whole = points["", ""]
    assert (whole.llm, whole.human, whole.unclassifiable, whole.rate) == (1, 1, 1, 0.5)


def test_the_same_interval_written_again_replaces_itself(log: MemoryLog) -> None:
    """Two processes, or a restarted one, leave one point per series and interval, the newest."""
    for keeper in (SeriesWriter(log, SETTINGS), SeriesWriter(log, SETTINGS)):
        keeper.append(ROWS, START_S)
    SeriesWriter(log, SETTINGS).append(ROWS[:1], START_S + 1)
    (whole,) = [point for point in read_points(log) if not point.by]
    assert (whole.llm, whole.human) == (1, 0)


def test_old_points_are_thinned_to_one_a_day(log: MemoryLog, clock: Clock) -> None:
    """Beyond THIN_AFTER_DAYS the first point of each day stays, even after two days without thinning."""
    keeper = SeriesWriter(log, SETTINGS)
    for hours in range(0, 48, 6):
        clock.now_s = START_S + hours * HOUR_S
        keeper.append(ROWS, clock.now_s)
    clock.now_s = START_S + (THIN_AFTER_DAYS - 1) * DAY_S
    SeriesWriter(log, SETTINGS).append(ROWS[:0], clock.now_s)
    assert sum(not point.by for point in read_points(log)) >= 8
    clock.now_s = START_S + (THIN_AFTER_DAYS + 2) * DAY_S
    SeriesWriter(log, SETTINGS).append(ROWS, clock.now_s)
    kept = sorted(point.at for point in read_points(log) if not point.by)
    assert kept == [int(1000 * (START_S + days * DAY_S)) for days in (0, 1, THIN_AFTER_DAYS - 1, THIN_AFTER_DAYS + 2)]
    log.expire(int(clock.now_s * 1000))
    assert sorted(point.at for point in read_points(log) if not point.by) == kept


def test_thinning_holds_few_days_in_memory(log: MemoryLog, clock: Clock) -> None:
    """Thinning a long series holds only the days to thin in memory and skips the rest of the topic."""
    keeper = SeriesWriter(log, SETTINGS)
    keeper.append(ROWS, clock.now_s)
    (model,) = [point for point in read_points(log) if not point.by]
    for days in range(1, THIN_AFTER_DAYS):
        clock.now_s = START_S + days * DAY_S
        points = (msgspec.structs.replace(model, id=f"{days} {n}", at=int(1000 * clock.now_s)) for n in range(200))
        log.append([Output(RATES, 0, point.id.encode(), encode(point)) for point in points])
    tracemalloc.start()
    assert sum(1 for _ in read_points(log, date(2026, 5, 1), date(2026, 5, 8))) == 1400 + 6
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 700_000  # a table of all 17,806 takes 1.0 MB, besides their bytes


def test_series_of_a_split_are_bounded(log: MemoryLog) -> None:
    """Beyond the cap, the groups with the most sites are kept, and the log has the number of others."""
    rows = [row(f"s{n}", sources=[f"source{n}"]) for n in range(GROUPS_CAP + 5)]
    rows += [row(f"t{n}", sources=["source7"]) for n in range(3)]
    with capture_logs() as events:
        SeriesWriter(log, SETTINGS).append(rows, START_S)
    groups = {point.group for point in read_points(log) if point.by == "source"}
    assert (len(groups), "source7" in groups) == (GROUPS_CAP, True)
    assert [(event["event"], event["by"], event["groups"]) for event in events] == [("series_left_out", "source", 5)]


def test_points_are_read_by_day(log: MemoryLog, clock: Clock) -> None:
    """--from and --to include both days of a point's time; a log without the topic has no points."""
    for days in range(5):
        clock.now_s = START_S + days * DAY_S
        SeriesWriter(log, SETTINGS).append(ROWS, clock.now_s)
    found = read_points(log, date(2026, 5, 2), date(2026, 5, 3))
    assert sorted(point.at for point in found if not point.by) == [int(1000 * (START_S + n * DAY_S)) for n in (1, 2)]
    assert list(read_points(MemoryLog())) == []


OF_NOW = ("low", "high", "ruleset", "digest", "detector", "scored_sites", "confidence", "method")


def kept(url: str, *ago_s: float) -> None:
    """Points with times before now."""
    with closing(open_log(url)) as log:
        for seconds in ago_s:
            SeriesWriter(log, SETTINGS).append(ROWS, time.time() - seconds)


@pytest.mark.usefixtures("no_weights")
class TestHistoryCommand:
    """`farmwatch rate --history`."""

    def test_a_table_of_the_last_week(self, farmwatch: Runner, finished: str) -> None:
        """Time, share, interval and counts of all sites of a week, oldest first; the judged share in --json only."""
        kept(finished, 20 * DAY_S, 2 * DAY_S, DAY_S)
        ran = farmwatch("rate", "--history", "--log", finished)
        heading, *lines = [line.split("\t") for line in ran.out.splitlines()]
        assert (ran.code, len(lines)) == (Exit.OK, 2)
        row = dict(zip(heading, lines[0], strict=True))
        assert (row["scored_sites"], row["share"][-1:]) == ("2", row["share"][-1:] and "%")
        assert not row.keys() & {"judged_share", "llm", "classifiable"}
        assert lines[0][0] < lines[1][0]
        since = (datetime.now(UTC).date() - timedelta(days=30)).isoformat()
        assert len(farmwatch("rate", "--history", "--from", since, "--log", finished).out.splitlines()) == 4

    def test_json_of_a_split(self, farmwatch: Runner, finished: str) -> None:
        """JSON has one object per point, with group, versions and the detector's warning."""
        kept(finished, HOUR_S)
        points = farmwatch("rate", "--history", "--by", "source", "--json", "--log", finished).lines
        told = [(point["by"], point["group"], point["llm"]) for point in points]
        assert told == [("source", "file", 1), ("source", "searx", 0)]
        assert {point["warning"] for point in points} == {"indicative only"}

    def test_names_are_those_of_the_rate(self, farmwatch: Runner, finished: str) -> None:
        """low, high and method belong to the share, as in `rate --json`."""
        kept(finished, HOUR_S)
        with closing(open_log(finished)) as log:
            (new,) = (point for point in read_points(log) if not point.by)
        after = farmwatch("rate", "--history", "--json", "--log", finished).json
        assert (after["share"], after["low"], after["method"]) == (new.share, new.share_low_once, new.share_method)
        looked = (after["look_low"], after["look_high"], after["high"])
        assert looked == (new.share_low, new.share_high, new.share_high_once)
        judged = [after[f"judged_{name}"] for name in ("share", "low", "high", "method")]
        assert judged == [new.rate, new.low, new.high, new.method]

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            (["--by", "day"], "series are kept of all sites, and of each source, rank, query-group"),
            (["--source", "file"], "a kept series cannot be cut"),
        ],
    )
    def test_what_is_not_kept_is_said(self, farmwatch: Runner, finished: str, options: list[str], said: str) -> None:
        """Series by day or with cuts are usage errors that list the possible series."""
        ran = farmwatch("rate", "--history", *options, "--log", finished)
        assert (ran.code, said in ran.err) == (Exit.USAGE, True)


def test_why_splits_the_change_since_a_day(farmwatch: Runner, tmp_path: Path) -> None:
    """--why, and the console for a week: sites that stay, three expired, twelve new ones; parts sum to the change."""
    days = int(time.time() // DAY_S)
    old = [row(f"h{n}", "human", scored=9, articles=9, days=[days - 30]) for n in range(12)]
    ends = int((time.time() - 1.5 * DAY_S) * 1000)  # with its grace, the term ended a day ago
    term: dict[str, Any] = {"term_start": ends - 2 * DAY_S * 1000, "term_end": ends}
    left = [row(f"e{n}", scored=9, flagged=8, articles=9, days=[days - 30], **term) for n in range(3)]
    new = [row(f"l{n}", scored=9, flagged=8, articles=9, days=[days]) for n in range(12)]
    where = f"sqlite:{tmp_path / 'log'}"
    with closing(open_log(where)) as log:
        log.create(all_topics(1, "e"))
        SeriesWriter(log, SETTINGS).append([*old, *left], (days - 2) * DAY_S)
        log.append([Output(SITES, 0, found.site.encode(), encode(found)) for found in [*old, *left, *new]])
    since = (date(1970, 1, 1) + timedelta(days=days - 3)).isoformat()
    found = farmwatch("rate", "--why", since, "--json", "--log", where).json
    assert (found["new"], found["known"], found["left"], found["seams"]) == (12, 12, 3, [])
    assert found["new_sites"] > 0.4 and found["left_sites"] < -0.15 and found["instrument"] == 0
    parts = [found[name] for name in ("new_sites", "sources", "left_sites", "known_sites", "instrument")]
    assert sum(parts) == pytest.approx(found["after"] - found["before"], abs=1e-7)
    now = farmwatch("rate", "--json", "--log", where).json
    assert all(found[name] == now[name] for name in (*OF_NOW, "run", "warning")) and found["after"] == now["share"]
    printed = farmwatch("rate", "--why", since, "--log", where)
    of_now = f"now {now['share']:.1%} (95% interval {now['low']:.1%} to {now['high']:.1%}) of 24 sites, ruleset r d1,"
    before = f"{found['before']:.1%} (95% interval {found['before_low']:.1%} to {found['before_high']:.1%}) of 15 sites"
    assert of_now in printed.out and before in printed.out
    assert "12 new sites, against the sites known before of the same sources" in printed.out
    assert f"{100 * found['new_sites']:+.1f}  12 new sites" in printed.out
    assert f"{100 * found['left_sites']:+.1f}  3 left sites, whose verdicts are too old now" in printed.out
    week = (date(1970, 1, 1) + timedelta(days=days - 7)).isoformat()
    shown = answer_with(where, tmp_path, "change")
    assert farmwatch("rate", "--why", week, "--json", "--log", where).json.items() <= shown.items()
    for more in (["--by", "source"], ["--history"], ["--of", "articles"], ["--source", "file"]):
        assert farmwatch("rate", "--why", since, *more, "--log", where).code == Exit.USAGE
    assert "--why is '2099-01-01', out of range" in farmwatch("rate", "--why", "2099-01-01", "--log", where).err
    nothing = farmwatch("rate", "--why", (date(1970, 1, 1) + timedelta(days=days)).isoformat(), "--log", where)
    assert nothing.code == Exit.PROBLEM and "no share was kept since then" in nothing.err
