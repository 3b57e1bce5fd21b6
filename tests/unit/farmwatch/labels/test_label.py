"""`farmwatch review label`: its keys, its file, its output, its refusals, and the readers of the labels."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from farmwatch.labels.judgements import ANSWERS, Judgement, SamplePage, latest_judgements
from farmwatch.labels.label_lines import LabelFile
from farmwatch.labels.labels_file import LabelsFile
from farmwatch.labels.session import Session
from filters.rules.judgement import judge
from filters.rules.ruleset import load_ruleset
from stream.log.contract import Output, Topic, partition_of
from stream.opening import open_log
from stream.schema.control import exclusive
from stream.schema.records import Features, decode, encode
from stream.schema.runs import Alias, Run, features_of
from stream.schema.topics import FEATURES
from tests.support.front_door import PARTITIONS, SHORT_URL, SITE, URL, Ran, Runner


def page(number: int, **other: Any) -> dict[str, Any]:
    """A flip: odd pages are dropped by the run `strict`, even ones are let in."""
    kept, dropped = ("a", "b") if number % 2 else ("b", "a")
    failed = [{"name": "min_tokens", "value": 30.0, "op": "ge", "threshold": 50}]
    return {
        "fetch_id": f"f{number}",
        "url": f"https://s{number}.example/page",
        "site": f"s{number}.example",
        "page_id": f"p{number}",
        "kind": "out",
        "rule": "min_tokens",
        "run_a": "live",
        "run_b": "strict",
        f"verdict_{kept}": "article",
        f"verdict_{dropped}": "dropped",
        f"failed_{kept}": [],
        f"failed_{dropped}": failed,
        "text_digest": f"d{number}",
        "text": f"Text of page {number}. The garden was quiet that morning.",
        "fetched_at": 1_700_000_000_000,
        "sample": {"seed": 7, "size": 3},
        **other,
    }


def write(file: Path, *pages: dict[str, Any]) -> Path:
    file.write_text("".join(json.dumps(one) + "\n" for one in pages))
    return file


Keys = Callable[..., Ran]


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    return write(tmp_path / "sample.jsonl", page(0), page(1), page(2))


@pytest.fixture
def label(farmwatch: Runner, sample: Path, tmp_path: Path) -> Keys:
    def run(keys: str, *more: str | Path) -> Ran:
        answers = tmp_path / "keys.txt"
        answers.write_text(keys)
        return farmwatch("review", "label", sample, "--answers", answers, "--operator", "ada", *more)

    return run


def lines(file: Path = Path("labels.jsonl")) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_a_report_and_labels_are_no_sample(farmwatch: Runner, label: Keys, tmp_path: Path) -> None:
    """A file that is not a sample is refused, and the message names its kind."""
    report = tmp_path / "report.html"
    report.write_text("<!doctype html>\n" + "<p>line</p>\n" * 30)
    ran = farmwatch("review", "label", report)
    assert ran.code == 3
    assert "report.html: no page to label: name a sample of `review draw` or `compare --out`" in ran.err
    assert label("aaa").code == 0
    ran = farmwatch("review", "label", "labels.jsonl", "--out", tmp_path / "more.jsonl")
    assert (ran.code, ran.err.count("\n")) == (3, 1), ran.err
    assert "line 1 is a judgement, and no page of a sample" in ran.err
    assert not (tmp_path / "more.jsonl").exists()


def test_a_compressed_sample_is_a_sample(farmwatch: Runner, sample: Path) -> None:
    """A sample with a name in .zst is recognised by its content."""
    packed = Path("sample.jsonl.zst")
    packed.write_bytes(zstandard.ZstdCompressor().compress(sample.read_bytes()))
    Path("keys").write_text("a a a")
    assert farmwatch("review", "label", packed, "--answers", "keys").code == 0


def test_each_answer_is_a_line(label: Keys) -> None:
    """A line has page, label, operator, time and text; one key gives type and author."""
    assert label("anh").code == 0
    first, second, third = lines()
    assert {name: first[name] for name in ("fetch_id", "url", "site", "page_id", "by", "text_digest")} == {
        "fetch_id": "f0",
        "url": "https://s0.example/page",
        "site": "s0.example",
        "page_id": "p0",
        "by": "ada",
        "text_digest": "d0",
    }
    assert first["text"].startswith("Text of page 0") and first["labelled_at"] > 1_700_000_000_000
    assert [(line["page_type"], line["label"]) for line in (first, second, third)] == [
        ("article", ""),
        ("other", ""),
        ("article", "human"),
    ]


def test_goes_on_where_it_was_left(label: Keys) -> None:
    """A second run asks only for pages without a label, including skipped ones; the file only grows."""
    ran = label("as")
    assert ran.out.startswith("1 of 3 pages labelled in labels.jsonl; 2 left")
    before = Path("labels.jsonl").read_bytes()
    assert label("nl").out.startswith("3 of 3 pages labelled")
    assert Path("labels.jsonl").read_bytes().startswith(before)
    assert [line["fetch_id"] for line in lines()] == ["f0", "f1", "f2"]


def test_undo_takes_back_and_the_last_line_counts(label: Keys) -> None:
    """Undo adds a line that withdraws the last answer, even one of an earlier run, and shows its page again."""
    label("aa")
    assert label("uhn").code == 0
    assert [(line["fetch_id"], line["page_type"], line["label"]) for line in lines()] == [
        ("f0", "article", ""),
        ("f1", "article", ""),
        ("f1", "", ""),
        ("f1", "article", "human"),
        ("f2", "other", ""),
    ]


def test_says_what_the_judgements_say_of_the_runs_only_at_the_end(label: Keys) -> None:
    """The comparison of the runs is printed only at the end, with its interval, because it could bias labels."""
    assert "kept by" not in label("an").out
    told = label("n").out
    assert "kept by strict, dropped by live\t1 of 2\t50% (3%-97%)" in told
    assert "kept by live, dropped by strict\t0 of 1\t0% (0%-95%)" in told
    found = label("", "--json").json
    assert found["answers"] == {"article": 1, "not an article": 2} and found["labelled"] == found["pages"] == 3


def test_an_unknown_key_is_refused_with_its_place(label: Keys) -> None:
    """An unknown key is exit code 2 with line and key; earlier answers are kept, later ones are not read."""
    ran = label("a\n\nx n")
    assert ran.code == 2 and "keys.txt: line 3: 'x' is no key" in ran.err
    assert [line["fetch_id"] for line in lines()] == ["f0"]


def test_more_keys_than_pages_are_a_problem(label: Keys) -> None:
    """More keys than pages mean another sample: exit code 1, and the message names the first extra key."""
    ran = label("a n a\nh")
    assert ran.code == 1 and "line 2: h: there is no more page" in ran.err
    assert label("q").code == 0


def test_keys_come_from_stdin_where_it_is_no_terminal(
    farmwatch: Runner, sample: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys can come from a pipe; after q nothing is read."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a q nnn")))
    assert farmwatch("review", "label", sample).out.startswith("1 of 3")
    ran = farmwatch("review", "label", "-")
    assert ran.code == 2 and "stdin" in ran.err


def test_what_a_crash_left_is_cut_off(label: Keys, tmp_path: Path) -> None:
    """An incomplete last line (after kill -9) is removed when labelling resumes, and its page is shown again."""
    label("an")
    whole = Path("labels.jsonl").read_bytes()
    Path("labels.jsonl").write_bytes(whole[:-20])
    ran = label("hl")
    assert ran.code == 0 and ran.out.startswith("3 of 3")
    assert [(line["fetch_id"], line["label"]) for line in lines()] == [("f0", ""), ("f1", "human"), ("f2", "llm")]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("a shopping list", "line 1 is no label"),
        ("a shopping list\n", "line 1 is no label"),
        ('{"label": "human", "text": "mine"}', "add a newline"),
        ('{"fetch_id": 7}\n', "line 1 is no label"),
        ('{"fetch_id": "f", "page_type": []}\n', "line 1 is no label"),
    ],
)
def test_another_file_is_never_harmed(label: Keys, content: str, told: str) -> None:
    """A file without labels is refused with its line, and is not changed."""
    Path("labels.jsonl").write_text(content)
    ran = label("a")
    assert ran.code == 3 and told in ran.err and "--out" in ran.err
    assert Path("labels.jsonl").read_text() == content


def test_labels_of_another_origin_stay(label: Keys) -> None:
    """Labels are added to a file with labelled texts of another origin."""
    Path("labels.jsonl").write_text('{"label": 1, "text": "mine"}\n')
    assert label("a").code == 0
    assert lines()[0] == {"label": 1, "text": "mine"} and lines()[1]["fetch_id"] == "f0"


def test_the_sample_and_what_is_no_file_are_refused(label: Keys, sample: Path, tmp_path: Path) -> None:
    """--out must not be the sample, a device or a folder."""
    before = sample.read_bytes()
    assert (label("a", "--out", sample).code, sample.read_bytes()) == (2, before)
    assert label("a", "--out", "/dev/null").code == 3
    assert label("a", "--out", tmp_path).code == 3


def test_one_labels_file_has_one_writer(label: Keys, tmp_path: Path) -> None:
    """While one process adds to a file, another one is refused with a message."""
    with closing(LabelsFile(tmp_path / "labels.jsonl")):
        ran = label("a")
        assert ran.code == 3 and "another `farmwatch review label`" in ran.err
    assert label("a").code == 0


def test_bad_lines_of_a_sample_are_told(farmwatch: Runner, sample: Path, tmp_path: Path) -> None:
    """A repeated page, a line without an id and invalid JSON are reported by number; other pages are shown."""
    more = [json.dumps(page(0)), '{"url": "x"}', "no JSON", json.dumps(page(9, text=None))]
    sample.write_text(sample.read_text() + "\n".join(more) + "\n")
    (tmp_path / "keys").write_text("aaaa")
    ran = farmwatch("review", "label", sample, "--answers", "keys")
    assert ran.code == 1 and ran.out.startswith("4 of 4")
    assert [number for number in range(1, 8) if f"line {number}: " in ran.err] == [4, 5, 6]
    empty = write(tmp_path / "empty.jsonl")
    ran = farmwatch("review", "label", empty, "--answers", "keys")
    assert ran.code == 3 and "no page to label" in ran.err


@pytest.mark.parametrize("name", ["", "x" * 65, "a\x1b[31m"])
def test_a_name_is_the_login_name_or_one_that_prints(
    farmwatch: Runner, sample: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The file has the name of --operator, by default the login name."""
    monkeypatch.setenv("LOGNAME", "grace")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a")))
    ran = farmwatch("review", "label", sample, *(["--operator", name] if name else []))
    assert (ran.code == 0 and lines()[0]["by"] == "grace") if not name else (ran.code == 2 and "--operator" in ran.err)


NAMES = [f"f{number}" for number in range(4)]
PAGES = [SamplePage(fetch_id=name, url="https://a.example/", site="a.example", text="Text") for name in NAMES]


@settings(max_examples=60)
@given(keys=st.text("anlhsu", max_size=14), cut=st.floats(0, 1))
def test_what_counts_is_what_was_said_last(tmp_path_factory: pytest.TempPathFactory, keys: str, cut: float) -> None:
    """For any keys, the file reads back as the last answers; cut anywhere, as its whole lines."""
    file = tmp_path_factory.mktemp("labels") / "labels.jsonl"
    meant: dict[str, str] = {}
    seen: list[str] = []
    with closing(LabelsFile(file)) as labels:
        session = Session(PAGES, labels, "ada", lambda: 1)
        for key in keys:
            session.press(key)
            if key == "u" and seen:
                meant.pop(seen.pop(), None)
            elif key != "u" and len(seen) < len(NAMES):
                name = NAMES[len(seen)]
                seen.append(name)
                if key != "s":
                    meant[name] = key
            assert session.labelled == len(meant)
    wanted = {name: (ANSWERS[key].page_type, ANSWERS[key].label) for name, key in meant.items()}
    with closing(LabelsFile(file)) as labels:
        assert {name: (said.page_type, said.label) for name, said in labels.of("ada").items()} == wanted
    whole = file.read_bytes()
    part = whole[: int(cut * len(whole))]
    kept = part[: part.rfind(b"\n") + 1]
    file.write_bytes(part)
    if part + b"\n" in whole and part != kept:
        return  # it lacks only the end of its line: a whole object, which is refused (see below)
    said: dict[str, tuple[str, str]] = {}
    for line in map(json.loads, kept.splitlines()):
        said.pop(line["fetch_id"], None)
        if line["page_type"]:
            said[line["fetch_id"]] = line["page_type"], line["label"]
    with closing(LabelsFile(file)) as labels:
        assert file.read_bytes() == kept
        assert {name: (one.page_type, one.label) for name, one in labels.of("ada").items()} == said


def test_another_person_labels_the_same_pages_in_the_same_file(label: Keys, farmwatch: Runner, sample: Path) -> None:
    """Each resumes at his own pages, and undoes his own labels only."""
    label("aa")
    Path("keys").write_text("nu")
    assert farmwatch("review", "label", sample, "--operator", "bob", "--answers", "keys").out.startswith("0 of 3")
    assert [(line["by"], line["page_type"]) for line in lines()] == [
        *[("ada", "article")] * 2,
        *[("bob", "other"), ("bob", "")],
    ]
    assert label("n").out.startswith("3 of 3")


def test_a_labels_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    """The mark that Windows editors write hides no label."""
    file = tmp_path / "labels.jsonl"
    with closing(LabelsFile(file)) as labels:
        Session(PAGES, labels, "ada", lambda: 1).press("a")
        latest = labels.latest
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    with closing(LabelsFile(file)) as labels:
        assert labels.latest == latest and len(latest) == 1


class Typed(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_person_is_asked_for_one_key_a_page(farmwatch: Runner, sample: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page is shown once, blind, without control characters; what is no key is said in a line; the end is `q`'s."""
    write(sample, page(0, text="The \x1b[3Jtext.\nIts end.", text_cut=9), page(1, text=None))
    monkeypatch.setattr(sys, "stdin", Typed("x\n\nA\n"))
    ran = farmwatch("review", "label", sample)
    assert ran.out.startswith("1 of 2") and [line["fetch_id"] for line in lines()] == ["f0"]
    assert all(f"'{typed}' is no key; there are a n l h s u q\n" in ran.err for typed in ("x", ""))
    assert ran.err.count("text.\nIts end.") == 1 and "\x1b" not in ran.err and "9 characters more" in ran.err
    assert not any(word in ran.err for word in ("live", "strict", "dropped", "min_tokens"))


def sampled(folder: str) -> list[dict[str, Any]]:
    """A sample of the two pages of `finished_log`, as a comparison would make it."""
    log = open_log(folder)
    found = [
        decode(Features, message.value)
        for message in log.read(FEATURES, partition_of(SITE, PARTITIONS))
        if message.value
    ]
    log.close()
    return [
        page(number, fetch_id=one.id, url=one.url, site=one.site, text=one.text) for number, one in enumerate(found)
    ]


def labelled(farmwatch: Runner, finished: str, keys: str, *more: dict[str, Any]) -> None:
    pages = write(Path("flips.jsonl").absolute(), *sampled(finished), *more)
    Path("keys").write_text(keys)
    assert farmwatch("review", "label", pages, "--answers", "keys").code == 0


def test_evaluate_counts_labelled_pages(farmwatch: Runner, finished: str) -> None:
    """`rulesets evaluate` reads the features of two labelled pages from the log and counts both."""
    labelled(farmwatch, finished, "an" if sampled(finished)[0]["url"] == URL else "na")
    ran = farmwatch("rulesets", "evaluate", "default", "--labels", "labels.jsonl", "--log", finished)
    assert (ran.code, ran.err.count("\n")) == (0, 1)
    assert ran.err.startswith("default: pages that the article model learned from are judged better")
    rows = [line.split("\t") for line in ran.out.splitlines()]
    assert ["default", "1 of 2", "1 of 1", "0 of 1", "1.000", "1.000", "1.000"] in rows
    assert ["labels.jsonl", "2", "50 (3-97)"] in rows


def test_evaluate_takes_the_last_word(farmwatch: Runner, finished: str) -> None:
    """A page labelled twice counts once, with its last label; a withdrawn label does not count."""
    labelled(farmwatch, finished, "aunauq")
    found = farmwatch("rulesets", "evaluate", "default", "--labels", "labels.jsonl", "--log", finished, "--json").json[
        "rulesets"
    ][0]
    assert (found["pages"], found["articles"]["pages"], found["others"]["pages"]) == (1, 0, 1)


def test_evaluate_tells_pages_that_the_log_has_not(farmwatch: Runner, finished: str) -> None:
    """Pages without features are named and skipped (exit code 1), other lines are counted; if none is left, it is 3."""
    strange = page(7)
    labelled(farmwatch, finished, "ana", strange)
    labels = Path("labels.jsonl")
    labels.write_text('{"label": 1, "text": "mine"}\n' + labels.read_text())
    ran = farmwatch("rulesets", "evaluate", "default", "--labels", labels, "--log", finished, "--json")
    assert ran.code == 1 and strange["url"] in ran.err and "1 line left out" in ran.err
    assert ran.json["skipped"] == 1 and ran.json["rulesets"][0]["pages"] == 2
    labels.write_text("".join(line + "\n" for line in labels.read_text().splitlines() if strange["url"] in line))
    assert farmwatch("rulesets", "evaluate", "--labels", labels, "--log", finished).code == 3
    labels.write_text('{"label": 1, "text": "mine"}\n')
    ran = farmwatch("rulesets", "evaluate", "--labels", labels, "--log", finished)
    assert ran.code == 3 and "judges no page" in ran.err


def test_evaluate_of_a_file_wants_no_source_and_a_log(farmwatch: Runner, label: Keys) -> None:
    """--source is for folders: exit code 2; a missing log is reported."""
    label("a")
    assert farmwatch("rulesets", "evaluate", "--labels", "labels.jsonl", "--source", "x").code == 2
    ran = farmwatch("rulesets", "evaluate", "--labels", "labels.jsonl", "--log", "sqlite:nowhere")
    assert ran.code == 3 and "there is no log yet" in ran.err


def test_evaluate_reads_the_features_of_the_live_run(farmwatch: Runner, finished: str) -> None:
    """If the live run measured again, its features are judged, not the older ones of the same fetch."""
    labelled(farmwatch, finished, "aa")
    log = open_log(finished)
    topic, partition = features_of("anew"), partition_of(SITE, PARTITIONS)
    log.create([Topic(topic, PARTITIONS)])
    kept = next(
        found
        for message in log.read(FEATURES, partition)
        if message.value and (found := decode(Features, message.value)).url == URL
    )
    assert judge(kept, load_ruleset("default")).verdict == "article"
    log.append([Output(topic, partition, SITE.encode(), encode(kept))])
    run = Run(name="anew", ruleset="default", digest="d", detector="x/1", epoch="e", features=topic, remeasures=True)
    with exclusive(log) as control:
        control.put(run, Alias(run="anew"), rulesets=[("d", "")])
    log.close()
    ran = farmwatch("rulesets", "evaluate", "default", "--labels", "labels.jsonl", "--log", finished, "--json")
    found = ran.json["rulesets"][0]
    assert (found["kept"], found["pages"]) == (1, 1) and SHORT_URL in ran.err


def test_calibrate_takes_the_last_word(label: Keys, capfd: pytest.CaptureFixture[str]) -> None:
    """Changed and withdrawn labels do not contradict; pages without a labelled author are counted."""
    label("lhluuhuln")
    file = LabelFile(Path("labels.jsonl"))
    assert [(text.llm, text.site) for text in file] == [(True, "s0.example"), (True, "s1.example")]
    file.end()
    assert "1 page left out: no author label" in capfd.readouterr().err


def test_standing_keeps_the_order_of_the_last_words() -> None:
    """The page labelled last is last in the file, so that `undo` in a later run returns to it."""

    said = [("a", "x"), ("b", "x"), ("c", "x"), ("a", "y"), ("b", "")]
    found = latest_judgements(Judgement(fetch_id=fetch_id, page_type=page_type) for fetch_id, page_type in said)
    assert [(one.fetch_id, one.page_type) for one in found] == [("c", "x"), ("a", "y")]
