"""`review controls` and `lab calibrate --from-controls`: the detector's errors on pages of before ChatGPT."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from filters.quality.names import MEASURES
from scoring.detectors.registry import detector_identities
from scoring.detectors.settings import ScoreSettings
from scoring.rates.canary import CanaryName
from scoring.stages.score import score_key
from scoring.thresholds.threshold_set import Measured, load_thresholds
from stream.log.contract import Output, partition_of
from stream.opening import open_log
from stream.schema.control_sites import control_site
from stream.schema.records import Features, Record, Verdict, encode
from stream.schema.topics import FEATURES, SCORES, VERDICTS
from stream.text.user_errors import Exit
from tests.support.front_door import DETECTOR, Runner
from tests.support.pages.page_records import text_score

LITE = "lite-ngram/0a1b2c3d/p0.5"
pytestmark = pytest.mark.usefixtures("no_weights")


def new_log(
    folder: Path, farmwatch: Runner, pages: Iterable[tuple[str, float, str, str, int]], detector: str = DETECTOR
) -> str:
    """A log of judged and scored pages: site, p_llm, age, language, words; flagged above .5."""
    url = f"sqlite:{folder}"
    farmwatch("log", "topics", "--create", "--log", url)
    outputs: list[Output] = []
    with closing(open_log(url)) as log:
        partitions = log.topics()[VERDICTS]

        def put(topic: str, record: Record, key: str = "") -> None:
            place = partition_of(record.site, partitions)
            outputs.append(Output(topic, place, (key or record.site).encode(), encode(record)))

        for number, (site, p_llm, age, language, words) in enumerate(pages):
            of: dict[str, Any] = {"id": f"f{number}", "site": site, "page_id": f"p{number}", "url": f"https://{site}/"}
            main = [float(words) if name == "words" else None for name in MEASURES]
            put(FEATURES, Features(**of, epoch="e", measures={"language": language}, quality={"main": main}))
            put(VERDICTS, Verdict(**of, verdict="article", text_digest=f"t{number}", fetched_at=1, age=age))
            score = text_score(site, f"t{number}", detector, p_llm > 0.5, f"p{number}", f"f{number}", p_llm=p_llm)
            put(SCORES, score, score_key(score))
        log.append(outputs)
    return url


def test_controls_are_shown_by_register(farmwatch: Runner, tmp_path: Path) -> None:
    """A row for all and each kind, length and language; the worst register and the missing ones are said.

    Pages of other ages count as articles only, control sites of archives as control pages only; declared ones have rows
    apart, canaries none.
    """
    pages = [(f"en{n % 8}.example", 0.9 if n < 2 else 0.1, "control", "en", 400) for n in range(24)]
    pages += [(f"de{n % 6}.example", 0.9 if n % 2 else 0.1, "control", "de", 100) for n in range(12)]
    pages += [(f"fr{n}.example", 0.9, "", "fr", 400) for n in range(12)]
    pages += [("old.example", 0.9, "declared", "en", 400)]
    pages += [(control_site("archived.example"), 0.9, "control", "en", 400)]
    pages += [(CanaryName("notes", "0" * 16, 10, 7, "human").site, 0.9, "control", "en", 400)]
    url = new_log(tmp_path / "log", farmwatch, pages)
    rows = {
        (row["age"], row["by"], row["register"]): row
        for row in farmwatch("review", "controls", "--json", "--log", url).lines
    }
    of_all, german = rows["control", "all", "all"], rows["control", "language", "de"]
    assert (of_all["sites"], of_all["pages"], of_all["flagged"], of_all["articles"]) == (15, 37, 9, 49)
    assert (german["sites"], german["share"], german["articles"]) == (6, 0.5, 12)
    assert rows["control", "length", "0-149 words"]["pages"] == 12
    assert rows["control", "language", "fr"]["pages"] == 0 and rows["declared", "language", "en"]["flagged"] == 1
    ran = farmwatch("review", "controls", "--log", url)
    assert ran.code == Exit.OK
    assert "15 control sites: the interval of the share needs 50" in ran.err
    assert "worst: language de, 50.0% (" in ran.err or "worst: length 0-149 words, 50.0% (" in ran.err
    assert "the detector has no card" in ran.err
    assert "few controls, add some: language fr (12 articles)" in ran.err


def test_without_controls_there_is_nothing_to_show(farmwatch: Runner, tmp_path: Path) -> None:
    """A log without a control page: its registers, no share, and how many controls are needed."""
    url = new_log(tmp_path / "log", farmwatch, [("a.example", 0.9, "", "en", 400)])
    ran = farmwatch("review", "controls", "--log", url)
    assert (ran.code, "0 control sites" in ran.err, "worst" in ran.err) == (Exit.OK, True, False)


def known_pages() -> list[tuple[str, float, str, str, int]]:
    """600 control pages of 30 sites, which differ, 120 pages of 12 LLM canaries, and later pages, which are unknown."""
    rng = np.random.default_rng(7)
    means = rng.beta(2, 6, 30)
    pages = [(f"h{n % 30}.example", float(rng.normal(means[n % 30], 0.02)), "control", "en", 400) for n in range(600)]
    for number in range(12):
        site = CanaryName(f"novels{number}", f"{number:016x}", 10, 7, "llm").site
        pages += [(site, float(rng.normal(0.9, 0.02)), "", "en", 400) for _ in range(10)]
    return [*pages, *(("later.example", 0.99, "", "en", 400) for _ in range(50))]


def test_a_threshold_is_calibrated_on_the_controls_of_the_log(farmwatch: Runner, tmp_path: Path) -> None:
    """Control pages are the human texts and LLM canaries the LLM ones; pages of unknown authors do not enter.

    The set flags at most the stated share of the controls, and names its error here, with an interval over sites.
    """
    pages = known_pages()
    url = new_log(tmp_path / "log", farmwatch, pages, LITE)
    options = ["--detector", LITE, "--fpr", "0.05", "--out", tmp_path, "--json", "--log", url]
    ran = farmwatch("lab", "calibrate", "--from-controls", *options)
    assert ran.code == Exit.OK, ran.err
    (report,) = ran.lines
    assert (report["human_sites"], report["llm_sites"], report["knows_sites"]) == (30, 12, True)
    flagged = sum(p > report["thresholds"]["threshold"] for _, p, age, *_ in pages if age == "control")
    errors = report["all"]["false_positives"]
    assert (errors["count"], errors["total"]) == (flagged, 600) and 0 < flagged <= 30
    assert errors["high"] > 1.5 * errors["share"]  # whole sites vary: binomial, it would end at 1.4 times the share
    made = load_thresholds(str(tmp_path / "calibrated.json"), "lite-ngram/0a1b2c3d")
    assert made.measured == Measured(threshold=made.threshold, flags=round(flagged / 600, 6))
    assert made.measured_on.startswith("600 human and 120 LLM texts of 42 sites, on which it was chosen; flags ")
    ends = f"({flagged} of 600 pages of 30 sites; 95% interval {errors['low']:.2%} to {errors['high']:.2%})"
    assert made.measured_on.endswith(f"of the controls of the log {ends}")


def test_a_repeated_text_is_one_control(farmwatch: Runner, tmp_path: Path) -> None:
    """A text under several hosts counts once: it says no more of the detector each time it is repeated."""
    url = new_log(tmp_path / "log", farmwatch, known_pages(), LITE)
    with closing(open_log(url)) as log:
        for number in range(40):
            of: dict[str, Any] = {"id": f"r{number}", "site": f"copy{number}.example", "page_id": f"r{number}"}
            again = Verdict(**of, url="u", verdict="article", text_digest="t0", fetched_at=1, age="control")
            score = text_score(of["site"], "t0", LITE, True, of["page_id"], of["id"], p_llm=0.99)
            place = partition_of(of["site"], log.topics()[VERDICTS])
            log.append([Output(VERDICTS, place, of["site"].encode(), encode(again))])
            log.append([Output(SCORES, place, score_key(score).encode(), encode(score))])
    ran = farmwatch("lab", "calibrate", "--from-controls", "--detector", LITE, "--fpr", "0.05", "--json", "--log", url)
    (report,) = ran.lines
    assert report["all"]["false_positives"]["total"] == 600


def test_controls_and_labels_are_told_apart(farmwatch: Runner, tmp_path: Path) -> None:
    """The texts of --labels help to choose the threshold; what it flags of controls is counted over the log's alone."""
    url = new_log(tmp_path / "log", farmwatch, known_pages(), LITE)
    lines = [{"label": "human", "p_llm": 0.01, "detector": LITE, "site": f"f{n % 20}.example"} for n in range(400)]
    (tmp_path / "labels.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    options = ["--detector", LITE, "--fpr", "0.05", "--out", tmp_path, "--json", "--log", url]
    ran = farmwatch("lab", "calibrate", "--labels", tmp_path / "labels.jsonl", "--from-controls", *options)
    assert ran.code == Exit.OK, ran.err
    made = load_thresholds(str(tmp_path / "calibrated.json"), "lite-ngram/0a1b2c3d")
    of_log = sum(p > made.threshold for _, p, age, *_ in known_pages() if age == "control")
    assert f"({of_log} of 600 pages of 30 sites" in made.measured_on and "1,000 human" in made.measured_on
    assert made.measured is not None and made.measured.flags == round(of_log / 600, 6)


def test_two_versions_of_a_detector_are_not_pooled(farmwatch: Runner, tmp_path: Path) -> None:
    """By a name the scores are those of the detector that judges the log's sites, whatever others the log holds."""
    (judging,) = detector_identities(ScoreSettings())
    url = new_log(tmp_path / "log", farmwatch, known_pages(), judging)
    with closing(open_log(url)) as log:
        again = text_score("h1.example", "t1", LITE, True, "p1", "f1", p_llm=0.9)
        place = partition_of("h1.example", log.topics()[SCORES])
        log.append([Output(SCORES, place, score_key(again).encode(), encode(again))])
    options = ["--fpr", "0.05", "--out", tmp_path, "--json", "--log", url]
    ran = farmwatch("lab", "calibrate", "--from-controls", "--detector", "lite-ngram", *options)
    assert ran.code == Exit.OK, ran.err
    (report,) = ran.lines
    assert report["all"]["false_positives"]["total"] == 600
    assert report["thresholds"]["detector"] == judging.rpartition("/")[0]


def test_calibration_needs_controls_or_labels(farmwatch: Runner, tmp_path: Path) -> None:
    """Neither is a usage error; a log without a control page is a problem, said in a line."""
    assert farmwatch("lab", "calibrate").code == Exit.USAGE
    url = new_log(tmp_path / "log", farmwatch, [("a.example", 0.9, "", "en", 400)], LITE)
    ran = farmwatch("lab", "calibrate", "--from-controls", "--detector", LITE, "--out", tmp_path, "--log", url)
    assert (ran.code, "the log has no control page with a score of lite-ngram" in ran.err) == (Exit.PROBLEM, True)
