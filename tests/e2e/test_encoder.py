"""A tiny encoder end to end: `lab calibrate` on the controls of a log, then SCORE and TALLY on either log."""

from __future__ import annotations

import random
import uuid
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from farmwatch.__main__ import run
from farmwatch.config.config import Config, load
from farmwatch.config.opening import open_configured
from farmwatch.config.topic_limits import create_topics
from farmwatch.daemon.roles import build_stage
from farmwatch.doctor.checks import require_fit
from filters.rules.ruleset import load_ruleset
from replay.live.live_run import ensure_live_run
from scoring.detectors.registry import detector_identities
from scoring.encoder.detector import load_encoder_engine
from scoring.errors import Uncalibrated
from scoring.rates.canary import CanaryName
from stream.log.contract import Output
from stream.processing.metrics import Metrics
from stream.schema.records import Features, Hit, Record, Score, ScoreRequest, SiteState, Verdict, decode, encode
from stream.schema.roles import Role
from stream.schema.topics import FEATURES, HITS, SCORE_REQUESTS, SCORES, SITES, VERDICTS
from tests.support.encoders import build_encoder, settings_of
from tests.support.kafka_broker import broker
from tests.support.processes.roles_here import roles_at_work
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("torch")]

ARTICLES = 8  # of a site
SITE_TEST = "tally.sprt={p0=0.1, p1=0.8, min_pages=3, min_articles=3}"
KINDS = ("the of and", "river boat harbour")
BEFORE_CHATGPT_MS = 1_600_000_000_000
OLD_LOG = [f"log.prefix=old-{uuid.uuid4().hex[:12]}.", "score.detectors=lite-ngram", "judge.ruleset=all.toml"]


def text_of(kind: str, number: object) -> str:
    dice = random.Random(f"{kind} {number}")
    return " ".join(dice.choice(kind.split()) for _ in range(60))


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import torch

    torch.set_num_threads(1)
    return build_encoder(tmp_path_factory.mktemp("encoder") / "tiny", "deberta-v2", pooled=True)


def flags_of(encoder: Path, folder: Path, kind: str) -> list[str]:
    return [
        f"log.url=sqlite:{folder / 'log'}" if kind == "embedded" else f"log.url=kafka:{broker()}",
        f"log.prefix=encoder-{uuid.uuid4().hex[:12]}.",
        f"log.state_folder={folder / 'state'}",
        "log.partitions=1",
        "metrics.port=0",
        "score.detectors=encoder",
        f"score.encoder.model={encoder}",
        "score.encoder.max_tokens=64",
        "score.encoder.windows=2",
        "score.encoder.min_tokens=16",
        "score.encoder.english_only=false",
    ]


def put_known_pages(config: Config, human: str, llm: str) -> None:
    """A log that another detector judges, with 120 control pages of 12 sites, and as many of LLM canaries."""
    Path("all.toml").write_text('[rules.extracted]\nthreshold = "ok"\n')
    sites = {
        **{f"human{number}.example": human for number in range(12)},
        **{CanaryName(f"notes{number}", f"{number:016x}", 10, 7, "llm").site: llm for number in range(12)},
    }
    with closing(open_configured(config)) as log:
        create_topics(log, config)
        ensure_live_run(log, config, by="test")
        for site, kind in sites.items():
            for number in range(10):
                page = Features(
                    id=f"{site}{number}",
                    site=site,
                    page_id=f"p{number}",
                    url=f"http://{site}/{number}",
                    text=text_of(kind, f"{site} {number}"),
                    epoch="e",
                    fetched_at=BEFORE_CHATGPT_MS,
                )
                log.append([Output(FEATURES, 0, site.encode(), encode(page), {"run": "live"})])


def put_articles(config: Config, texts: dict[str, list[str]]) -> None:
    """JUDGE's records of the articles of each site."""
    ruleset = load_ruleset("default")
    with closing(open_configured(config)) as log:
        create_topics(log, config)
        for site, of_site in texts.items():
            for number, text in enumerate(of_site):
                page: dict[str, Any] = {"id": f"{site}{number}", "site": site, "url": f"http://{site}/{number}"}
                page |= {"page_id": f"p{page['id']}", "text_digest": f"t{page['id']}"}
                put: dict[str, Record] = {
                    SCORE_REQUESTS: ScoreRequest(**page, text=text, run="live"),
                    HITS: Hit(id=page["id"], site=site, url=page["url"]),
                    VERDICTS: Verdict(**page, verdict="article", ruleset=ruleset.name, digest=ruleset.digest),
                }
                log.append([Output(to, 0, site.encode(), encode(one), {"run": "live"}) for to, one in put.items()])


def read(config: Config, topic: str, kind: type[Any]) -> list[Any]:
    with closing(open_configured(config, read_only=True)) as log:
        return [decode(kind, message.value) for message in log.read(topic, 0) if message.value]


@pytest.mark.parametrize("kind", ["embedded", pytest.param("kafka", marks=pytest.mark.kafka)])
def test_an_encoder_is_calibrated_and_judges_sites(
    encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], kind: str
) -> None:
    """Uncalibrated it is refused; with the set of control pages that it had never scored, its flags decide sites."""
    monkeypatch.chdir(tmp_path)
    flags = flags_of(encoder, tmp_path, kind)
    config = load(None, flags, {"HOME": str(tmp_path)}).config
    with pytest.raises(Uncalibrated):
        build_stage(Role.SCORE, config, Metrics())
    with pytest.raises(Uncalibrated) as refused:
        require_fit(config, [Role.SCORE])
    assert refused.value.facts == {"detector": "encoder"}

    engine = load_encoder_engine(settings_of(encoder, max_tokens=64, windows=2))
    low, high = sorted(KINDS, key=lambda kind: engine.read([text_of(kind, 0)])[0][0].logit)  # type: ignore[index]
    put_known_pages(load(None, [*flags, *OLD_LOG], {"HOME": str(tmp_path)}).config, low, high)
    made = ["--from-controls", "--detector", "encoder", "--fpr", "0.05", "--name", "mine"]
    options = [word for flag in [*flags, *OLD_LOG] for word in ("--set", flag)]
    assert run(["lab", "calibrate", *made, *options]) == 0
    assert f'encoder = "{tmp_path}/mine.json"' in capfd.readouterr().out

    flags += [f"score.thresholds={{encoder='{tmp_path}/mine.json'}}", SITE_TEST]
    config = load(None, flags, {"HOME": str(tmp_path)}).config
    require_fit(config, [Role.SCORE, Role.TALLY])
    (identity,) = detector_identities(config.score)
    assert identity.startswith("encoder/tiny@") and "/float32/64x2/mine-" in identity
    texts = {
        "human.example": [text_of(low, 1000 + number) for number in range(ARTICLES)],
        "llm.example": [text_of(high, 1000 + number) for number in range(ARTICLES)],
    }
    put_articles(config, texts)
    with roles_at_work(config, {Role.SCORE: Metrics(), Role.TALLY: Metrics()}):
        wait_until(lambda: len(read(config, SCORES, Score)) >= 2 * ARTICLES, "all scores")
        wait_until(lambda: {row.verdict for row in read(config, SITES, SiteState)} >= {"human", "llm"}, "verdicts")
    scores = read(config, SCORES, Score)
    assert {score.detector for score in scores} == {identity}
    assert all(score.windows == 2 and score.windows_spread is not None for score in scores)
    right = sum(score.flag == (score.site == "llm.example") for score in scores)
    assert right >= 2 * ARTICLES - 2
    verdicts = {row.site: (row.verdict, row.detector) for row in read(config, SITES, SiteState)}
    assert verdicts == {"human.example": ("human", identity), "llm.example": ("llm", identity)}
