"""Training: filters, crops, weights, refusals and determinism, on texts made of random words."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard

from lab.detector.newton import fit_logistic
from lab.detector.overlaps import KnownTexts
from lab.detector.regression import rarity
from lab.detector.report import TrainingReport
from lab.detector.texts import TrainingText, balanced_weights, calibration_crop, read_pages, read_texts, training_crop
from lab.detector.training import run_training
from scoring.errors import BadTrainingData, TrainingRefused
from scoring.lite_ngram.detector import LiteNgram
from scoring.lite_ngram.ngrams import BUCKETS
from stream.text.user_errors import MissingExtra

pytestmark = pytest.mark.slow

POOLS = {
    "common": "the of and to in a is that it was for on with as at by this have from or",
    "human": "anyway guess stuff bloke rain bike kitchen muddy argued shrugged laughed yesterday pub train fence",
    "llm": "delve tapestry vibrant crucial moreover landscape foster underscore realm pivotal seamless robust",
    "other": "river paper number window season engine letter market garden bridge office corner summer",
}
COMMON, HUMAN, LLM, OTHER = (words.split() for words in POOLS.values())


def text(rng: random.Random, words: Sequence[str], size: int = 220) -> str:
    """Random words: half of them common, some typical of the label."""
    pools = [COMMON] * 5 + [OTHER] * 3 + [list(words)] * 2
    return " ".join(rng.choice(rng.choice(pools)) for _ in range(size)) + "."


def line(rng: random.Random, label: str, domain: str, source: str, number: int, words: Sequence[str]) -> dict[str, Any]:
    """A line of a training file."""
    return {
        "id": f"{source}-{label}-{domain}-{number}",
        "domain": domain,
        "generator": "human" if label == "human" else f"gen-{number % 2}",
        "label": label,
        "text": text(rng, words),
        "src": source,
        "lic": "CC0",
        "kind": "plain",
    }


def corpus(seed: int, each: int, unfair: bool = False) -> list[dict[str, Any]]:
    """Human texts of two web sources and an essay source, LLM texts of two generators in essays and chats."""
    rng = random.Random(seed)
    rows = []
    for number in range(each):
        rows.append(line(rng, "human", "web", "sites", number, HUMAN))
        rows.append(line(rng, "human", "web", "brochures", number, LLM if unfair else HUMAN))
        rows.append(line(rng, "human", "essay", "school", number, HUMAN))
        rows.append(line(rng, "llm", "essay", "made", number, LLM))
        rows.append(line(rng, "llm", "chat", "made", number, LLM))
    return rows


def write(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    """Write JSON lines, compressed if the name says so."""
    data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    path.write_bytes(zstandard.compress(data) if path.suffix == ".zst" else data)
    return path


Trained = tuple[Path, list[str], TrainingReport]  # folder, output, report


def files(folder: Path, unfair: bool = False) -> tuple[Path, Path, Path]:
    """A small corpus in `folder`, and the output path."""
    train = write(folder / "train.jsonl.zst", corpus(1, 40, unfair))
    return train, write(folder / "dev.jsonl", corpus(2, 20, unfair)), folder / "out"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """A finished training: its folder, its messages, its report."""
    folder = tmp_path_factory.mktemp("trained")
    said: list[str] = []
    report = run_training(*files(folder), say=said.append)
    return folder, said, report


def test_what_is_written_is_a_detector(trained: Trained) -> None:
    """The weights load with their numbers, tell the labels apart, and warn as the report does."""
    folder, _, report = trained
    detector = LiteNgram.load(folder / "out" / "lite-ngram.weights")
    rng = random.Random(9)
    human = detector.score([text(rng, HUMAN) for _ in range(20)])
    llm = detector.score([text(rng, LLM) for _ in range(20)])
    assert min(found.p_llm or 0 for found in llm) > max(found.p_llm or 0 for found in human)
    assert detector.warning == report.warning
    assert detector.weights.digest == report.digest


def test_the_command_gives_the_same_bytes_on_another_processor(trained: Trained, tmp_path: Path) -> None:
    """With BLAS for a processor of 2004, which sums in another order; --json prints the JSON file, tables on stderr."""
    train, dev, out = files(tmp_path)
    command = [
        sys.executable,
        "-m",
        "farmwatch",
        "lab",
        "train-detector",
        str(train),
        "--dev",
        str(dev),
        "--out",
        str(out),
    ]
    env = {**os.environ, "OPENBLAS_CORETYPE": "Prescott"}
    ran = subprocess.run([*command, "--json"], check=True, capture_output=True, text=True, env=env)
    assert json.loads(ran.stdout) == json.loads((out / "lite-ngram.json").read_bytes())
    assert "Leave one domain out" in ran.stderr
    for name in ("lite-ngram.weights", "lite-ngram.json"):
        assert (out / name).read_bytes() == (trained[0] / "out" / name).read_bytes()


def test_every_table_is_printed(trained: Trained) -> None:
    """A training prints its counts and every table, with the limit for each human source."""
    said = "\n".join(trained[1])
    left_out = [f"Leave one {kind} out" for kind in ("domain", "generator", "human source")]
    assert all(words in said for words in ("200 read", *left_out, "By length"))
    table = said[said.index("Leave one human source out") :]
    assert [row.split("|")[-2].strip() for row in table.splitlines()[4:7]] == ["web", "-", "web"]


def test_another_seed_gives_another_detector(trained: Trained, tmp_path: Path) -> None:
    """Crops are drawn anew."""
    assert run_training(*files(tmp_path), seed=1).digest != trained[2].digest


def test_flagging_an_unseen_web_source_refuses_the_training(tmp_path: Path) -> None:
    """If human web texts look like LLM texts when left out, the source is named, and nothing is written."""
    with pytest.raises(TrainingRefused, match=r"brochures \d+\.\d% of 40; at most 6%"):
        run_training(*files(tmp_path, unfair=True))
    assert not (tmp_path / "out").exists()


def test_without_scikit_learn_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without scikit-learn the error names the extra."""
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(MissingExtra) as refused:
        run_training(*files(tmp_path))
    assert refused.value.facts == {"extra": "train"}


@pytest.mark.parametrize("broken", [b"{not json", b'{"id": "1"}', b"\xff\xfe"])
def test_a_broken_line_is_named(tmp_path: Path, broken: bytes) -> None:
    """A line that is no labelled text, or no labelled page, is refused with file and line number."""
    path = tmp_path / "t.jsonl"
    path.write_bytes(json.dumps(corpus(1, 1)[0]).encode() + b"\n" + broken + b"\n")
    with pytest.raises(BadTrainingData, match=r"t\.jsonl, line 2"):
        read_texts(path, 0, KnownTexts())
    path.write_text('{}\n{"articleBody": 7}\n')
    with pytest.raises(BadTrainingData, match=r"t\.jsonl, line 2"):
        read_pages(path, KnownTexts())


def test_files_that_cannot_train_are_refused(tmp_path: Path) -> None:
    """A broken archive, an empty file and a file of one label are each refused."""
    good = write(tmp_path / "good.jsonl", corpus(1, 5))
    archive = tmp_path / "x.jsonl.zst"
    archive.write_bytes(b"no zstd")
    one_label = write(tmp_path / "one.jsonl", [row for row in corpus(3, 5) if row["label"] == "llm"])
    for path in (archive, write(tmp_path / "empty.jsonl", []), one_label):
        with pytest.raises(BadTrainingData):
            run_training(path, good, tmp_path / "out")


def test_filters_drop_and_count(tmp_path: Path) -> None:
    """Short, non-ASCII, duplicate, over-cap and already known texts are dropped and counted."""
    rng = random.Random(4)
    row = line(rng, "human", "essay", "s", 0, HUMAN)
    rows = [
        row,
        {**row, "id": "same"},
        {**row, "id": "short", "text": "too short"},
        {**row, "id": "greek", "text": "λόγος καὶ " * 200},
        *(line(rng, "human", "essay", "s", number, HUMAN) for number in range(1, 520)),
    ]
    known = KnownTexts()
    found = read_texts(write(tmp_path / "t.jsonl", rows), 0, known)
    assert found.report.dropped == {"known": 1, "not_ascii": 1, "over_cap": 20, "short": 1}
    assert len(found.samples) == found.report.used == 500 and found.report.read == 523
    marked = write(tmp_path / "u.jsonl", rows[:1])
    marked.write_bytes(b"\xef\xbb\xbf" + marked.read_bytes())  # as Windows editors write it
    again = read_texts(marked, 0, known)
    assert again.report.dropped["known"] == 1 and not again.samples


def test_crops_of_both_kinds_stay_in_their_ranges() -> None:
    """Training crops have 150-500 words, calibration crops 150-1,000, from varying places of the text."""
    words = [str(number) for number in range(1500)]
    rng = random.Random(0)
    for crop, low, high in ((training_crop, 150, 500), (calibration_crop, 150, 1000)):
        cuts = [crop(words, rng) for _ in range(500)]
        sizes = [len(cut) for cut in cuts]
        assert low <= min(sizes) < 1.3 * low and 0.9 * high < max(sizes) <= high
        assert all(cut == words[int(cut[0]) : int(cut[0]) + len(cut)] for cut in cuts)
        assert len({cut[0] for cut in cuts}) > 200
    assert [len(crop(words[:120], rng)) for crop in (training_crop, calibration_crop)] == [120, 120]


def test_weights_balance_labels_and_dampen_large_groups() -> None:
    """Both labels weigh the same in total; a group four times as large weighs twice as much, web pages `web` times."""

    def sample(llm: bool, domain: str) -> TrainingText:
        return TrainingText("", domain, "g", llm, "s", "", [])

    samples = [sample(True, "a")] * 40 + [sample(True, "b")] * 10 + [sample(False, "a")] * 7
    weights = balanced_weights(samples)
    totals = Counter[tuple[bool, str]]()
    for one, weight in zip(samples, weights.tolist(), strict=True):
        totals[one.llm, one.domain] += weight
    assert np.isclose(totals[True, "a"], 2 * totals[True, "b"])
    assert np.isclose(totals[True, "a"] + totals[True, "b"], totals[False, "a"])
    assert np.isclose(weights.mean(), 1)
    three = [sample(False, "web"), sample(False, "essay"), sample(True, "essay")]
    web, essay, llm = balanced_weights(three, 6.0).tolist()
    assert np.isclose(web, 6 * essay) and np.isclose(web + essay, llm)


def test_rare_buckets_are_made_cheap() -> None:
    """A bucket in two of 32 crops has twice the scale of one in all; one in fewer than two crops has no weight."""
    from scipy import sparse

    columns = [[0, 2], *([0, 1] for _ in range(2)), *([0] for _ in range(29))]
    starts = np.cumsum([0, *map(len, columns)])
    flat = np.concatenate(columns)
    scale = rarity(sparse.csr_matrix((np.ones(len(flat)), flat, starts), shape=(32, BUCKETS)))
    assert np.isclose(scale[1], 2 * scale[0]) and scale[2] == scale[3] == 0


def test_the_fit_is_the_minimum() -> None:
    """At the fitted point the gradient of the penalised loss is zero, also where the labels are separable."""
    from scipy import sparse

    rng = np.random.default_rng(5)
    for noise in (0.0, 1.0):
        rows = rng.normal(size=(300, 6))
        llm = rows[:, 0] + noise * rng.normal(size=300) > 0.3
        weights, scale, penalty = rng.uniform(0.1, 2, 300), np.array([1, 1, 2, 0.5, 1, 0]), 1e-4
        fit = fit_logistic(sparse.csr_matrix(rows), llm, weights, scale, penalty=penalty, tolerance=1e-9)
        errors = weights / weights.sum() * (1 / (1 + np.exp(-rows @ fit.vector - fit.intercept)) - llm)
        scaled = np.divide(fit.vector, scale, out=np.zeros(6), where=scale > 0)
        assert np.abs(scale * (rows.T @ errors) + penalty * scaled).max() < 1e-8
        assert abs(errors.sum()) < 1e-8 and fit.vector[5] == 0


def test_pages_are_learned_from_and_each_collection_is_left_out(trained: Trained, tmp_path: Path) -> None:
    """Pages given to a training change the weights; its tables have their collection, measured without it."""
    rng = random.Random(4)
    rows = [{"articleBody": text(rng, HUMAN), "publish_date": "2019"} for _ in range(4)]
    rows += [{"articleBody": text(rng, LLM), "publish_date": "2025"} for _ in range(4)]
    said: list[str] = []
    report = run_training(*files(tmp_path), pages=(write(tmp_path / "blogs.jsonl", rows),), say=said.append)
    assert report.digest != trained[2].digest
    assert report.files["pages 1: blogs"].used == 4
    cells = {row.name: row.cells[0] for row in report.evaluation.pages}
    assert (cells["blogs"].texts, cells["blogs"].flagged) == (4, 0.0)
    assert (cells["blogs later or undated"].texts, cells["blogs later or undated"].flagged) == (4, 1.0)
    assert cells["all surely human"].texts == 4 + cells["sites"].texts + cells["brochures"].texts
    assert "100.0% of recent pages" in report.warning
    assert any(row.startswith("| blogs | yes |") for row in said)
