"""The cached rate of a large log: stored by maintenance, equal to that of the rows, and used while it is valid."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from farmwatch.share import rate_cache
from farmwatch.share.live_share import LiveShare
from farmwatch.share.rate_cache import read_cached_rate, store_rate
from farmwatch.share.rate_series import read_points
from replay.rows.site_table import ends_of, read_rows
from scoring.rates.settings import RateSettings
from scoring.rates.split_rates import RateQuery, rate_lines
from stream.log.contract import Log, Output
from stream.opening import open_log
from stream.processing.metrics import Metrics
from stream.schema.records import ANSWER_KEY, AdsTxt, RatePoint, encode
from stream.schema.topics import ADS_TXT, RATES, SITES, all_topics
from tests.support.front_door import Runner
from tests.support.runs.live_rows import CONFIG, LIVE, METHOD, row
from tests.support.sizes import LONG

pytestmark = pytest.mark.slow

LARGE = rate_cache.LARGE if LONG else 2_000  # sites of the large log, and from which on its rate is cached


def site_row(number: int) -> Output:
    """A row; most articles of every fifth site are flagged."""
    return row(
        f"s{number}.example",
        "undecided",
        sources=[("file", "searx")[number % 2]],
        best_rank=number % 30,
        queries=[f"q{number % 97}"],
        articles=7,
        pages=9,
        scored=6,
        flagged=0 if number % 5 else 5,
    )


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A large log, with gauges updated once."""
    url = f"sqlite:{tmp_path_factory.mktemp('large') / 'log'}"
    with closing(open_log(url)) as log, pytest.MonkeyPatch.context() as patch:
        patch.setattr("farmwatch.share.live_share.LARGE", LARGE)
        log.create(all_topics(2, "e"))
        log.append([site_row(number) for number in range(LARGE)])
        share = LiveShare(log, CONFIG.rate, Metrics(), LIVE, METHOD)
        share.update_gauges()
        share.append_points(time.time())
    return url


@pytest.fixture
def log(large: str) -> Iterator[Log]:
    """The log itself."""
    with closing(open_log(large)) as log:
        yield log


@pytest.mark.usefixtures("no_weights")
def test_rate_prints_the_cached_rate_and_it_is_that_of_the_rows(farmwatch: Runner, large: str) -> None:
    """The line equals that of settings without a cached rate; the time is printed."""
    kept = farmwatch("rate", "--json", "--log", large)
    read = farmwatch("rate", "--json", "--log", large, "--set", "rate.series_s=7200")
    assert kept.json == read.json and kept.json["scored_sites"] == LARGE
    assert "as TALLY's process found it at" in kept.err and "as TALLY's process" not in read.err
    printed = farmwatch("rate", "--log", large)
    assert printed.out.startswith("LLM: 20.0% (")
    assert f"{LARGE:,} of {7 * LARGE:,} articles have no score yet" in printed.err


@pytest.mark.usefixtures("no_weights")
def test_a_split_is_printed_from_what_was_kept(farmwatch: Runner, large: str) -> None:
    """The groups equal those of settings without a cached split."""
    kept = farmwatch("rate", "--by", "source", "--json", "--log", large)
    read = farmwatch("rate", "--by", "source", "--json", "--log", large, "--set", "rate.series_s=7200")
    assert kept.out == read.out and kept.out.count("\n") == 2
    assert "as TALLY's process found it at" in kept.err and "as TALLY's process" not in read.err


def test_a_cached_rate_is_used_while_it_is_new_or_exact(log: Log) -> None:
    """After its time it is used only without new rows; never for other settings or rows, or kept in another form."""
    now_ms = int(time.time() * 1000)
    answer = read_cached_rate(log, SITES, CONFIG.rate, now_ms)
    assert answer is not None and answer.until > now_ms
    assert read_cached_rate(log, SITES, RateSettings(confidence=0.9), now_ms) is None
    assert read_cached_rate(log, "sites.other", CONFIG.rate, now_ms) is None
    store_rate(log, SITES, msgspec.structs.replace(answer, until=now_ms - 1), "")
    assert read_cached_rate(log, SITES, CONFIG.rate, now_ms) is not None
    log.append([site_row(1)])
    assert read_cached_rate(log, SITES, CONFIG.rate, now_ms) is None
    store_rate(log, SITES, answer, "")
    assert read_cached_rate(log, SITES, CONFIG.rate, now_ms) == answer
    store_rate(log, SITES, msgspec.structs.replace(answer, ends=ends_of(log, SITES), until=now_ms - 1), "")
    assert read_cached_rate(log, SITES, CONFIG.rate, now_ms) is not None
    stated = AdsTxt(id="a", site="a", owner_domain="owner.example")  # it links sites to an operator
    log.append([Output(ADS_TXT, 0, b"a", encode(stated))])
    assert read_cached_rate(log, SITES, CONFIG.rate, now_ms) is None
    key = f"{ANSWER_KEY}{SITES}"  # as it was kept when answers were points of the series
    point = RatePoint(id=key, site="", at=answer.at, by="answer", group=SITES, answer=msgspec.json.encode(answer))
    log.append([Output(RATES, 0, key.encode(), encode(point))])
    assert read_cached_rate(log, SITES, CONFIG.rate, now_ms) is None
    assert all(kept.by != "answer" for kept in read_points(log))


@pytest.mark.parametrize("by", ["source", "rank", "query-group"])
def test_splits_are_cached_when_the_series_is_written(log: Log, by: str) -> None:
    """Cached splits equal the lines of the rows; splits without a series, or with another grouping, are not cached."""
    now_ms = int(time.time() * 1000)
    answer = read_cached_rate(log, SITES, CONFIG.rate, now_ms, by)
    assert answer is not None
    assert answer.lines == rate_lines(read_rows(log, SITES), RateQuery(by=by, settings=CONFIG.rate, now_ms=answer.at))
    assert read_cached_rate(log, SITES, CONFIG.rate, now_ms, "week") is None
    assert read_cached_rate(log, SITES, RateSettings(groups={"a": ["b"]}), now_ms, by) is None


def test_the_rate_of_a_small_log_is_not_cached(tmp_path: Path) -> None:
    """For a small log, `rate` reads the rows."""
    with closing(open_log(f"sqlite:{tmp_path / 'log'}")) as log:
        log.create(all_topics(2, "e"))
        log.append([site_row(number) for number in range(50)])
        LiveShare(log, CONFIG.rate, Metrics(), LIVE, METHOD).update_gauges()
        assert read_cached_rate(log, SITES, CONFIG.rate, int(time.time() * 1000)) is None
