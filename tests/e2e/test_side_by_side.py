"""Roles with a pair of language models and the built-in detector, on the embedded log, as `up` runs them."""

from __future__ import annotations

import socket
import threading
import urllib.error
import urllib.request
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from farmwatch.config.config import Config, load
from farmwatch.config.opening import open_configured
from farmwatch.config.topic_limits import create_topics
from farmwatch.daemon.roles import build_stage
from farmwatch.doctor.checks import require_fit
from filters.rules.ruleset import load_ruleset
from replay.runs.configured import tally_identity
from scoring.detectors.registry import detector_identities, load_detectors
from scoring.errors import Uncalibrated
from scoring.interface import Detector
from scoring.pair.settings import PairSettings, pair_identity
from scoring.sites.sprt import SprtParams
from scoring.thresholds.threshold_set import Curve, ThresholdSet, write_thresholds
from stream.log.contract import Log, Output
from stream.processing.metrics import Metrics
from stream.schema.records import Hit, Record, Score, ScoreRequest, SiteState, Verdict, decode, encode
from stream.schema.roles import Role
from stream.schema.topics import HITS, REPLAY_REQUESTS, SCORE_REQUESTS, SCORES, SITES, VERDICTS
from tests.support.pairs import Pair, build_pair
from tests.support.processes.roles_here import roles_at_work
from tests.support.waiting import wait_until

SITE = "a.example"
ARTICLES = 3
ALL_THREE = "lite-ngram,binoculars,fast-detectgpt"


class World(NamedTuple):
    """A pair whose thresholds flag every text, and a folder for a log."""

    pair: Pair
    folder: Path

    def config(self, detectors: str = ALL_THREE, *more: str, calibrated: bool = True) -> Config:
        flags = [
            f"log.url=sqlite:{self.folder / 'log'}",
            "log.partitions=1",
            f"metrics.port={free_ports() - list(Role).index(Role.SCORE)}",
            f"score.detectors={detectors}",
            f"score.pair.observer={self.pair.observer}",
            f"score.pair.performer={self.pair.performer}",
            "score.pair.device=cpu",
            "score.pair.batch_tokens=2048",
        ]
        if calibrated:
            sets = ", ".join(f'"{name}" = "{file}"' for name, file in self.thresholds().items())
            flags.append(f"score.thresholds={{{sets}}}")
        return load(None, [*flags, *more], {"HOME": str(self.folder)}).config

    def thresholds(self) -> dict[str, Path]:
        """Threshold sets that flag every text, and decide a site of three pages."""
        settings = PairSettings(observer=str(self.pair.observer), performer=str(self.pair.performer), device="cpu")
        files = {}
        for name in ("binoculars", "fast-detectgpt"):
            chosen = ThresholdSet(
                name="all",
                detector=pair_identity(settings, name),
                threshold=1e6,
                llm_below=True,
                curve=Curve(slope=0.0, offset=1.0),
                site_test=SprtParams(min_articles=3, min_pages=3, alpha=0.05, beta=0.05),
            )
            files[name] = self.folder / f"{name}.json"
            write_thresholds(files[name], chosen, force=True)
        return files


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    import torch

    torch.set_num_threads(1)
    return build_pair(tmp_path_factory.mktemp("pair"), "gpt2")


@pytest.fixture
def world(pair: Pair, tmp_path: Path) -> World:
    return World(pair, tmp_path)


def free_ports() -> int:
    """A free port with a free next port, for SCORE and TALLY."""
    while True:
        with socket.socket() as first, socket.socket() as second:
            first.bind(("127.0.0.1", 0))
            port = int(first.getsockname()[1])
            with suppress(OSError, OverflowError):
                second.bind(("127.0.0.1", port + 1))
                return port


def _text(number: int) -> str:
    return " ".join(
        f"On day {day} the river rose again, and people of the {number}. village moved what they had to higher ground."
        for day in range(1, 15)
    )


def put_articles(log: Log, *, topic: str = SCORE_REQUESTS, run: str = "live") -> None:
    """JUDGE's records of three articles of a site."""
    ruleset = load_ruleset("default")
    by: dict[str, Any] = {"ruleset": ruleset.name, "digest": ruleset.digest}
    for n in range(ARTICLES):
        page: dict[str, Any] = {
            "id": f"f{n}",
            "site": SITE,
            "page_id": f"p{n}",
            "url": f"http://{SITE}/{n}",
            "text_digest": f"t{n}",
        }
        put: dict[str, Record] = {topic: ScoreRequest(**page, text=_text(n), run=run)}
        if run == "live":
            put[HITS] = Hit(id=f"h{n}", site=SITE, url=page["url"])
            put[VERDICTS] = Verdict(**page, verdict="article", **by)
        log.append([Output(to, 0, SITE.encode(), encode(record), {"run": run}) for to, record in put.items()])


def scores(log: Log) -> list[Score]:
    return [decode(Score, m.value) for m in log.read(SCORES, 0) if m.value]


def rows(log: Log) -> list[SiteState]:
    return [decode(SiteState, m.value) for m in log.read(SITES, 0) if m.value]


def get(config: Config, page: str) -> tuple[int, str]:
    """The status of a page of SCORE's process; 0 without an answer."""
    url = f"http://127.0.0.1:{config.metrics.port_of(Role.SCORE)}/{page}"
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return int(answer.status), answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError:
        return 0, ""


@pytest.mark.parametrize(("judge", "verdict"), [("binoculars", "llm"), ("", "unclassifiable")])
def test_three_detectors_score_and_one_of_them_judges(world: World, judge: str, verdict: str) -> None:
    """Each article has a score of each identity; the row uses the scores of tally.detector, or else the first's."""
    config = world.config(ALL_THREE, f"tally.detector={judge}")
    identities = detector_identities(config.score)
    with closing(open_configured(config)) as log:
        create_topics(log, config)
        put_articles(log)
        with roles_at_work(config, {Role.SCORE: Metrics(), Role.TALLY: Metrics()}):
            wait_until(lambda: len(scores(log)) >= 3 * ARTICLES, "all scores")
            wait_until(lambda: bool(rows(log)) and rows(log)[-1].scored == ARTICLES, "the site's row")
            status, page = get(config, "metrics")
            assert get(config, "readyz")[0] == 200
        found = scores(log)
        assert sorted((s.fetch_id, s.detector) for s in found) == sorted(
            (f"f{n}", identity) for n in range(ARTICLES) for identity in identities
        )
        assert {s.flag for s in found if s.detector != identities[0]} == {True}
        row = rows(log)[-1]
        assert (row.detector, row.verdict, row.articles) == (tally_identity(config), verdict, ARTICLES)
    assert status == 200
    assert f'farmwatch_page_score_count{{detector="{identities[1]}",role="score",run="first"}} {ARTICLES}.0' in page
    assert f'farmwatch_score_cache_lookups_total{{result="miss",role="score"}} {ARTICLES}.0' in page
    assert 'farmwatch_score_device_errors_total{kind="oom",role="score"} 0.0' in page


def test_requests_of_a_replay_are_scored_under_their_run(world: World) -> None:
    """Scores of a replay's requests carry its run, and texts are read once for both runs."""
    config = world.config("lite-ngram,binoculars")
    with closing(open_configured(config)) as log:
        create_topics(log, config)
        put_articles(log, topic=REPLAY_REQUESTS, run="r7")
        put_articles(log)
        with roles_at_work(config, {Role.SCORE: Metrics()}):
            wait_until(lambda: len(scores(log)) >= 4 * ARTICLES, "all scores")
            scored = 'result="scored",role="score",ruleset="",run="r7",stage="score"} 3.0'
            wait_until(lambda: scored in get(config, "metrics")[1], "what is counted after its commit")
            page = get(config, "metrics")[1]
        runs = [message.headers.get("run") for message in log.read(SCORES, 0)]
    assert runs == ["live"] * (2 * ARTICLES) + ["r7"] * (2 * ARTICLES), "live requests go first"
    assert f'farmwatch_score_cache_lookups_total{{result="hit",role="score"}} {ARTICLES}.0' in page


def test_readyz_is_503_until_the_detectors_are_warm(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """While models load, the process holds its partitions and is healthy but not ready."""
    config = world.config("lite-ngram")
    release = threading.Event()

    def slowly(settings: object) -> list[Detector]:
        assert release.wait(60)
        return load_detectors(settings)  # type: ignore[arg-type]  # passed through

    monkeypatch.setattr("scoring.detectors.registry.load_detectors", slowly)
    with closing(open_configured(config)) as log:
        create_topics(log, config)
        put_articles(log)
        with roles_at_work(config, {Role.SCORE: Metrics()}):
            wait_until(
                lambda: 'farmwatch_log_rebalances_total{role="score"} 1.0' in get(config, "metrics")[1],
                "its partitions",
            )
            assert get(config, "readyz")[0] == 503
            assert get(config, "healthz")[0] == 200
            assert scores(log) == []
            release.set()
            wait_until(lambda: get(config, "readyz")[0] == 200, "the role to be ready")
            wait_until(lambda: len(scores(log)) >= ARTICLES, "all scores")


def test_an_uncalibrated_pair_is_refused_with_what_to_run(world: World) -> None:
    """An uncalibrated pair has no flags, and so no site verdicts: the stage is refused before anything is loaded."""
    config = world.config("lite-ngram,binoculars", calibrated=False)
    with pytest.raises(Uncalibrated):
        build_stage(Role.SCORE, config, Metrics())
    with pytest.raises(Uncalibrated) as refused:
        require_fit(config, [Role.SCORE])
    assert refused.value.facts == {"detector": "binoculars"}
