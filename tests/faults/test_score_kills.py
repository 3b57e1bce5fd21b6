"""kill -9 of SCORE with a pair and an encoder whose devices are full and lost: every text is scored once, as ever."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from farmwatch.config.config import Config, load
from farmwatch.config.opening import open_configured
from farmwatch.config.topic_limits import create_topics
from scoring.detectors.detector_set import DetectorSet
from scoring.detectors.registry import DETECTORS, base_of, detector_identities, load_detectors
from scoring.interface import TextScore, name_of
from scoring.thresholds.threshold_set import ThresholdSet, write_thresholds
from stream.log.contract import Log, Output
from stream.schema.records import Score, ScoreRequest, decode, encode
from stream.schema.topics import SCORE_REQUESTS, SCORES
from tests.support.encoders import build_encoder
from tests.support.kafka_broker import broker
from tests.support.pairs import build_pair
from tests.support.paths import ROOT
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.kill, pytest.mark.xdist_group("torch")]

DETECTORS_HERE = "binoculars,encoder,fast-detectgpt"
TEXTS = [
    " ".join(f"the boats of {day} and {number} were quiet" for day in range(1 + number % 9)) for number in range(48)
]
PATIENCE_S = 240
DEVICE = os.environ.get("FARMWATCH_TEST_DEVICE", "cpu")  # `make gpu` has the card
CLOSE = 1e-4 if DEVICE == "cpu" else 0.05  # batches differ after a loss; a card computes in bfloat16


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Settings of a tiny pair and a tiny encoder that read up to three windows of a text."""
    import torch

    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("models")
    pair = build_pair(folder / "pair", "gpt2")
    usual = {"device": DEVICE, "max_tokens": 32, "windows": 3, "min_tokens": 8, "english_only": "false"}
    own = {
        "pair": {**usual, "observer": pair.observer, "performer": pair.performer, "batch_tokens": 256},
        "encoder": {**usual, "model": build_encoder(folder / "encoder", "deberta-v2", pooled=True)},
    }
    return [f"score.{table}.{name}={value}" for table, of in own.items() for name, value in of.items()]


def flags_of(models: list[str], folder: Path, url: str) -> list[str]:
    """Settings of SCORE on this log, with thresholds."""
    flags = [
        *models,
        f"log.url={url}",
        f"log.prefix=score-{uuid.uuid4().hex[:12]}.",
        f"log.state_folder={folder / 'state'}",
        "log.partitions=1",
        "metrics.port=0",
        f"score.detectors={DETECTORS_HERE}",
    ]
    files = {}
    for identity in detector_identities(load(None, flags, {"HOME": str(folder)}).config.score):
        base, name = base_of(identity), name_of(identity)
        files[name] = folder / f"{name}.json"
        below = DETECTORS[name].llm_below
        write_thresholds(files[name], ThresholdSet(name="mine", detector=base, threshold=1.0, llm_below=below))
    return [*flags, f"score.thresholds={{{', '.join(f'{name}={str(file)!r}' for name, file in files.items())}}}"]


@contextmanager
def score_at_work(flags: list[str], folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process of SCORE alone; killed with -9 at the end, unless it has ended."""
    command = [sys.executable, "-m", "tests.faults.failing_score", "up", "--role", "score", "--in-process"]
    command += [word for flag in flags for word in ("--set", flag)]
    (folder / "tmp").mkdir(exist_ok=True)
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "TMPDIR": str(folder / "tmp")}
    with (folder / "score.log").open("ab") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, cwd=folder, env=env)
    try:
        yield process
    finally:
        process.kill()
        process.wait(60)


def scores_on(log: Log) -> list[Score]:
    return [decode(Score, message.value) for message in log.read(SCORES, 0) if message.value]


@pytest.mark.parametrize(
    ("kind", "kills"),
    [
        ("embedded", 1),
        pytest.param("kafka", 1, marks=pytest.mark.kafka),
        pytest.param("embedded", 10, marks=pytest.mark.chaos),
        pytest.param("kafka", 10, marks=[pytest.mark.chaos, pytest.mark.kafka]),
    ],
)
def test_each_text_is_scored_once(models: list[str], tmp_path: Path, kind: str, kills: int) -> None:
    """Each process runs out of memory and loses its devices, and all but the last are killed while they work."""
    flags = flags_of(models, tmp_path, f"sqlite:{tmp_path / 'log'}" if kind == "embedded" else f"kafka:{broker()}")
    config: Config = load(None, flags, {"HOME": str(tmp_path)}).config
    identities = detector_identities(config.score)
    expected: list[Any] = DetectorSet(load_detectors(config.score)).score(TEXTS)
    assert max(score.windows for of_text in expected for score in of_text) == 3

    def tail() -> str:
        return (tmp_path / "score.log").read_text(errors="replace")[-3000:]

    with closing(open_configured(config)) as log:
        create_topics(log, config)
        share = -(-len(TEXTS) // (kills + 1))
        for first in range(0, len(TEXTS), share):
            for number, text in list(enumerate(TEXTS))[first : first + share]:
                page: dict[str, Any] = {"id": str(number), "site": "a.example", "page_id": f"p{number}", "url": "u"}
                request = ScoreRequest(**page, text=text, text_digest=f"t{number}")
                log.append([Output(SCORE_REQUESTS, 0, b"a.example", encode(request), {"run": "live"})])
            before = len(scores_on(log))
            wanted = before + 1 if first + share < len(TEXTS) else len(TEXTS) * len(identities)
            with score_at_work(flags, tmp_path):
                wait_until(lambda wanted=wanted: len(scores_on(log)) >= wanted, tail, PATIENCE_S)
        found = scores_on(log)
    said = tail()
    assert "device was lost" in said or "fallen off the bus" in said
    assert sorted((score.fetch_id, score.detector) for score in found) == sorted(
        (str(number), identity) for number in range(len(TEXTS)) for identity in identities
    )
    for score in found:
        wanted_score: TextScore = expected[int(score.fetch_id)][identities.index(score.detector)]
        assert score.score == pytest.approx(wanted_score.score, abs=CLOSE)
        assert (score.abstain, score.tokens, score.windows) == (
            wanted_score.abstain,
            wanted_score.tokens,
            wanted_score.windows,
        )
