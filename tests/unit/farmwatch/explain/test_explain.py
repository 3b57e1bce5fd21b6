"""`explain`: every rule, repeats with their pages, and the score; as text and as JSON."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zstandard

from crawler.web.urls import page_id
from farmwatch.explain.explanation import explain_page
from farmwatch.explain.page_records import PageRecords, find_page
from farmwatch.explain.report import ERRORS, PATHS, extraction
from farmwatch.explain.rules import shown_value
from filters.articles.model import ArticleModel, StepFunction
from filters.extraction.blocks import Block, pack
from filters.extraction.interface import ExtractError
from filters.measure.epoch import feature_epoch
from filters.rules.judgement import judge
from filters.rules.ruleset import load_ruleset
from filters.settings import MeasureSettings, SiteCaps
from filters.site_memory.measurer import Measurer
from filters.structure.names import MEASURES as STRUCTURE
from stream.log.contract import Output, partition_of
from stream.memory.log import MemoryLog
from stream.opening import open_log
from stream.schema.records import Features, Page, Record, RuleOutcome, Score, encode
from stream.schema.runs import LIVE, names_of
from stream.schema.topics import FEATURES, PAGES, SCORES, VERDICTS, all_topics
from stream.text.user_errors import Exit
from tests.support.front_door import DETECTOR, PARTITIONS, SHORT_URL, SITE, URL, Runner, article_html
from tests.support.golden import check_words
from tests.support.pages.extraction_here import extract_here
from tests.support.pages.page_records import text_score

pytestmark = pytest.mark.usefixtures("no_weights")

EPOCH = feature_epoch(MeasureSettings())
FOOTER = "Sign up for the letter that we send on the first Monday of each month, and read what is new in it. " * 3
HOSTILE = "\x7f\U000e0041\x1b]0;owned\x07\x1b[2J\r\x9b31m\u202egnp.exe\u2066\u200f\u2028\ufeff\x00 and more of it "


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are measured in this process. With a worker process: `test_explain_measures_a_file`."""
    extract_here(monkeypatch, "farmwatch.explain.explanation")


def _address(name: str) -> str:
    return f"https://{SITE}/{name}"


def _features(name: str, text: str, share: float | None = None, **more: Any) -> Features:
    fields: dict[str, Any] = {
        **{"id": f"{name} fetched", "site": SITE, "page_id": page_id(_address(name)), "url": _address(name)},
        **{"epoch": EPOCH, "extract_path": "recall", "text": text, "text_digest": f"digest of {name}"},
    }
    return Features(**{**fields, "measures": {"duplicate_share": share}, **more})


def _score(of: Features, detector: str = DETECTOR, p_llm: float = 0.5, site: str = SITE) -> Score:
    return text_score(site, of.text_digest, detector, p_llm > 0.95, of.page_id, of.id, score=1.0, p_llm=p_llm)


def _log(folder: Path, records: Sequence[Record]) -> str:
    url = f"sqlite:{folder / 'made'}"
    topics = {Features: FEATURES, Score: SCORES, Page: PAGES}
    with closing(open_log(url)) as log:
        log.create(all_topics(PARTITIONS, EPOCH))
        for record in records:
            key = f"{record.site} {record.id}" if isinstance(record, Score) else record.site
            topic = topics.get(type(record), VERDICTS)
            log.append([Output(topic, partition_of(SITE, PARTITIONS), key.encode(), encode(record))])
    return url


def _own(number: int) -> str:
    return " ".join(f"Sentence {word} of page {number} is told here and nowhere else." for word in range(9)) + "\n"


def _printable(text: str) -> bool:
    return all(character.isprintable() or character in "\n\t" for character in text)


def test_explain_finds_a_page_by_any_spelling_of_its_url(farmwatch: Runner, finished: str) -> None:
    """Any spelling finds the page, with rules, score and versions; an unknown page is said."""
    ran = farmwatch("page", "HTTPS://KEPT.example:443/garden#top", "--log", finished)
    assert ran.code == Exit.OK
    for part in (
        "article",
        "passed: extracted, no_page, min_tokens",
        "url_kind",
        "judged first",
        "p(llm) 0.970, flagged",
        "recall",
    ):
        assert part in ran.out
    assert ".0\t" not in ran.out
    assert farmwatch("page", f"{URL}/", "--log", finished).code == Exit.OK
    ran = farmwatch("page", f"{URL}s", "--log", finished)
    assert (ran.code, f"{URL}s: not in the log" in ran.err) == (Exit.PROBLEM, True)
    assert farmwatch("page", "ftp://x/y", "--log", finished).code == Exit.USAGE


def test_explain_json_has_the_names_of_the_pipes(farmwatch: Runner, finished: str) -> None:
    """JSON has first_failed and every rule with its value; a dropped page has no score, a score has its warning."""
    found = farmwatch("page", SHORT_URL, "--json", "--log", finished).json
    assert (found["verdict"], found["first_failed"], found["score"]) == ("dropped", "min_tokens", None)
    names = {"name", "value", "op", "threshold", "outcome", "in_force", "table", "fields", "matched", "contributions"}
    assert all(names == set(rule) for rule in found["rules"])
    assert found["warning"] == ""
    found = farmwatch("page", URL, "--json", "--log", finished).json
    assert (found["score"]["detector"], found["warning"]) == (DETECTOR, "indicative only")
    assert f"{DETECTOR}: indicative only" in farmwatch("page", URL, "--log", finished).err


def test_a_pair_does_not_score_a_file_without_its_unlikely_sentences(farmwatch: Runner, tmp_path: Path) -> None:
    """Refused as in a run, before its models are loaded."""
    (tmp_path / "page.html").write_text(article_html(), encoding="utf-8")
    (tmp_path / "fluent.toml").write_text('scores = "fluent"\n[rules.extracted]\nthreshold = "ok"\n')
    ran = farmwatch("page", "page.html", "--ruleset", "./fluent.toml", "--set", 'score.detectors=["binoculars"]')
    assert (ran.code, "binoculars divides by perplexity" in ran.err) == (Exit.PROBLEM, True), ran.err


def test_explain_measures_a_file(farmwatch: Runner, tmp_path: Path) -> None:
    """An HTML file is measured, judged and scored without a log."""
    (tmp_path / "page.html").write_text(article_html(), encoding="utf-8")
    ran = farmwatch("page", "page.html")
    assert ran.code == Exit.OK
    assert "article" in ran.out.splitlines()[0]
    assert "abstains: too_short" in ran.out
    assert "repeats: a file alone has no earlier pages" in ran.out


def test_repeats_are_shown_with_their_pages(farmwatch: Runner, tmp_path: Path) -> None:
    """For a footer of earlier pages: share, bytes, text, the first page with it, and the number of pages."""
    measurer = Measurer(MeasureSettings())
    pages = [
        measurer.measure(
            _address(str(number)),
            f"<html><body><article><p>{_own(number)}</p><p>{FOOTER if number else 'None.'}</p></article></body></html>",
            SITE,
            page_id=page_id(_address(str(number))),
        )
        for number in range(4)
    ]
    log = _log(tmp_path, pages)
    ran = farmwatch("page", _address("3"), "--log", log)
    assert re.search(r"^repeats: [1-9][0-9.]*%, .* are on 2 of 3 earlier pages of the site$", ran.out, re.MULTILINE)
    assert f"bytes on 2 pages, first on {_address('1')}\n" in ran.out
    assert "read what is new in it" in ran.out
    assert "recorded" not in ran.out
    found = farmwatch("page", _address("3"), "--json", "--log", log).json
    assert {tuple(part["seen_on"]) for part in found["repeats"]} == {(_address("1"), _address("2"))}
    assert all(set(part) == {"text", "bytes", "seen_on", "pages"} and part["pages"] == 2 for part in found["repeats"])
    size = found["scored_text"]["bytes"]
    assert sum(part["bytes"] for part in found["repeats"]) / size == found["measures"]["duplicate_share"]
    assert (found["earlier_pages"], found["repeats_differ"]) == (3, "")


def test_earlier_pages_are_those_that_measure_compared_with(farmwatch: Runner, tmp_path: Path) -> None:
    """A refetched page keeps its place, with its last text; other epochs and sites, later or textless pages do not."""
    once_more = " ".join(f"The newer visit has sentence {number}, and it counts all the same." for number in range(9))
    records = [
        _features("gone", FOOTER, epoch="older"),
        _features("first", _own(0) + FOOTER),
        _features("broken", "", extract_error="no_text"),
        _features("emptied", FOOTER),
        msgspec.structs.replace(_features("elsewhere", FOOTER), site="b.example"),
        _features("page", _own(1) + FOOTER + once_more),
        _features("later", FOOTER + once_more),
        _features("broken", FOOTER),
        _features("emptied", "", extract_error="no_text"),
        _features("first", _own(0) + once_more),
        _features("page", f"{_own(1)}{FOOTER}\n{once_more}", 0.0),
        _features("first", once_more),
    ]
    found = farmwatch("page", _address("page"), "--json", "--log", _log(tmp_path, records)).json
    assert found["earlier_pages"] == 1
    assert {tuple(part["seen_on"]) for part in found["repeats"]} == {(_address("first"),)}
    assert "counts all the same" in "".join(part["text"] for part in found["repeats"])
    assert "Monday" not in "".join(part["text"] for part in found["repeats"])


@pytest.mark.parametrize(
    ("share", "epoch", "why"),
    [
        (0.01, EPOCH, "earlier pages have left the log, or MEASURE remembers the newest 5,000 chunks of a site"),
        (0.5, "0123456789ab", "other settings (epoch 0123456789ab)"),
    ],
)
def test_a_difference_from_the_recorded_share_is_shown(
    farmwatch: Runner, tmp_path: Path, share: float, epoch: str, why: str
) -> None:
    """If the passages do not add up to the share of the rule, one line has both shares and the likely cause."""
    pages = [_features("a", FOOTER, 0.0, epoch=epoch), _features("b", _own(1) + FOOTER, share, epoch=epoch)]
    ran = farmwatch("page", _address("b"), "--log", _log(tmp_path, pages))
    (line,) = [line for line in ran.out.splitlines() if "recorded when measured" in line]
    assert f"{share:.1%}" in line and why in line


def test_the_words_of_explain(farmwatch: Runner, tmp_path: Path) -> None:
    """Each kind of line: repeats, extraction, measures, unknown rules, scores."""
    near = {"template_share": 0.425, "simhash_distance": 3.0, "template_block_share": 19 / 37, "expected_f1": 0.31}
    rich: dict[str, Any] = {"structure": [1200.0, 0.25, None], "quality": {"main": [120.0, 4.25], "c4": [None, 3.0]}}
    by_auto = {"template_share": 0.0, "expected_f1": 0.925, "first_article": 0.031}
    first = _features("first", _own(0), measures=by_auto, extract_path="blocks")
    letter = _features("letter", "Our letter\nA story\nRead more", measures=near, template_lines=b"\5", **rich)
    others = [_features(str(number), _own(number)) for number in range(1, 13)]
    repeated = _features("repeated", "".join(_own(number) for number in range(12)))
    deep = _features("deep", "", extract_path="none", extract_error="too_deep", text_digest="", measures={})
    twin = _features("twin", _own(1), text_digest="digest of 1")
    uncalibrated = "binoculars/a+b@12345678/float32/512/uncalibrated"
    scores = [
        _score(others[0], "old/2/p0.95", p_llm=0.99),
        msgspec.structs.replace(_score(others[1], detector=uncalibrated), p_llm=None, flag=None),
        msgspec.structs.replace(_score(others[2]), abstain="too_short", flag=None),
        msgspec.structs.replace(
            _score(others[4], "encoder/a@12345678/float32/512x8/mine-12345678"),
            **{"windows": 4, "windows_flagged": 1, "windows_spread": 0.25},
        ),
    ]
    kept = [msgspec.structs.replace(judge(page, load_ruleset("notes")), verdict="article") for page in others[:5]]
    old = _features("old", _own(40), epoch="older")
    log = _log(tmp_path, [first, letter, *others, repeated, deep, twin, *kept, *scores, old])
    names = ("first", "repeated", "deep", "1", "twin", "2", "3", "4", "5")
    runs = [farmwatch("page", _address(name), "--log", log) for name in names]
    runs += [farmwatch("page", _address(name), "--verbose", "--log", log) for name in ("letter", "repeated", "old")]
    runs += [farmwatch("page", _address("old"), "--ruleset", "gopher", "--log", log)]
    check_words("page", *runs)
    found = farmwatch("page", _address("5"), "--json", "--log", log).json["score"]
    assert (found["windows"], found["windows_flagged"], found["windows_spread"]) == (4, 1, 0.25)
    listed = farmwatch("pages", "--json", "--log", log).lines
    assert [page["flagged_windows"] for page in listed if page["url"] == _address("5")] == [0.25]


def _thread(name: str, words: int = 80) -> Features:
    """The features of a thread of three posts, all but the first by visitors."""
    said = (f"<b class=author>{who}</b> {' '.join(f'{name} {n} says {who}' for n in range(words))}." for who in "abc")
    posts = "".join(f"<li class=post>{post}</li>" for post in said)
    html = f"<html><body><main><h1>Ask</h1><ol>{posts}</ol></main></body></html>"
    found = Measurer(MeasureSettings()).measure(_address(name), html, SITE, page_id=page_id(_address(name)))
    english = {"language": "en", "language_probability": 1.0, "repetition": 0.0}
    segments = [msgspec.structs.replace(of_kind, **english) for of_kind in found.segments or ()]
    return msgspec.structs.replace(found, measures={**found.measures, "language": "en"}, segments=segments)


def test_a_page_that_counts_through_its_segments(farmwatch: Runner, tmp_path: Path) -> None:
    """A line for each kind: whether it counts, or why not; the text is that of the kinds that count."""
    thread, brief, older = _thread("forums/thread"), _thread("brief", 10), _thread("forums/older")
    kept = judge(thread, load_ruleset("whole-web"))
    log = _log(tmp_path, [thread, brief, msgspec.structs.replace(older, segments=None), kept])
    of = ("--ruleset", "whole-web", "--log", log)
    ran = [
        farmwatch("page", thread.url, "--log", log),
        *(farmwatch("page", p.url, *of) for p in (thread, brief, older)),
    ]
    check_words("page-segments", *ran, farmwatch("page", thread.url, "--ruleset", "default", "--log", log))
    found = farmwatch("page", thread.url, "--json", "--log", log).json
    assert [(part["kind"], part["records"], part["counts"]) for part in found["segments"]] == [
        ("article", 0, True),
        ("post", 1, True),
        ("comment", 2, False),
    ]
    assert (found["scored_text"]["name"], found["scored_text"]["digest"]) == ("segments", kept.text_digest)
    assert [rule["table"] for rule in found["rules"] if rule["name"] == "extracted"] == ["", "otherwise"]
    assert farmwatch("page", older.url, "--json", "--log", log).json["segments"] is None


def test_sentences_are_those_of_an_article(farmwatch: Runner, tmp_path: Path) -> None:
    """No sentence is marked as not scored of a page that counts by its segments, or not at all."""
    thread, ruleset = _thread("forums/thread"), tmp_path / "fluent.toml"
    extracted = 'extracted]\nthreshold = "ok"\n'
    for tokens, words, verdict in ((9000, 1, "segments"), (9000, 9000, "dropped"), (1, 1, "article")):
        ruleset.write_text(
            f'scores = "fluent"\n[rules.{extracted}[rules.min_tokens]\nthreshold = {tokens}\n'
            f'[otherwise]\nscores = "segments"\n[otherwise.rules.{extracted}'
            f'[otherwise.rules.segment_words]\nthreshold = {words}\non_unknown = "drop"\n'
        )
        log = _log(tmp_path / verdict, [thread, judge(thread, load_ruleset(ruleset))])
        found = farmwatch("page", thread.url, "--ruleset", ruleset, "--json", "--log", log).json
        assert (found["verdict"], bool(found["sentences"])) == (verdict, verdict == "article")


def test_a_rule_of_both_tables_fails_in_the_one_where_it_does(farmwatch: Runner, tmp_path: Path) -> None:
    """`otherwise` has the same rule, and there the measure is unknown, or the rule is not in force."""
    thread = _thread("forums/thread")
    thread = msgspec.structs.replace(thread, measures={**thread.measures, "language_probability": 0.5})
    extracted = 'extracted]\nthreshold = "ok"\n'
    ruleset = tmp_path / "both.toml"
    ruleset.write_text(
        f'[rules.{extracted}[rules.language]\nthreshold = ["de"]\n[rules.min_tokens]\nthreshold = 9000\n'
        f'[otherwise]\nscores = "segments"\n[otherwise.rules.{extracted}'
        '[otherwise.rules.segment_words]\nthreshold = 1\non_unknown = "drop"\n[otherwise.rules.min_tokens]\n'
        '[otherwise.rules.language]\nthreshold = ["de"]\nmin_probability = 0.9\n'
    )
    log = _log(tmp_path, [thread, judge(thread, load_ruleset(ruleset))])
    lines = farmwatch("page", thread.url, "--ruleset", ruleset, "--log", log).out.splitlines()
    said = [line.partition(" (")[0] for line in lines if line.startswith(("failed", "unknown", "not in"))]
    assert said == [
        "failed: language en",
        f"failed: min_tokens {thread.measures['tokens']:g}",
        "not in force: otherwise.min_tokens",
        "unknown: otherwise.language",
    ]


def test_json_has_every_measure_by_name(farmwatch: Runner, tmp_path: Path) -> None:
    """Structure and quality measures by name, and the numbers of template lines; none of a record without them."""
    more: dict[str, Any] = {
        "quality": {"main": [120.0, 4.25], "c4": [None, 3.0]},
        "measures": {"tokens": 382.0, "x": 0.5, "big": 1e300},
    }
    rich = _features("new", "A\nB\nC", structure=[1200.0, 0.25, None], template_lines=b"\5", **more)
    log = _log(tmp_path, [rich, _features("old", _own(2))])
    found, bare = (farmwatch("page", _address(n), "--json", "--log", log).json for n in ("new", "old"))
    structure = found["structure"]
    assert (structure["page_bytes"], structure["anchor_share"], list(structure)) == (1200, None, [*STRUCTURE])
    assert (found["quality"]["main"]["words"], found["quality"]["c4"]["mean_word_chars"]) == (120, 3)
    assert (found["template_lines"], bare["structure"], bare["quality"]) == ([0, 2], {}, {})


@pytest.mark.parametrize("form", ["pipe", "terminal"])
def test_nothing_of_a_page_steers_the_terminal(
    farmwatch: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    """Escapes, carriage returns, bidirectional marks and huge lines are printed as printable text."""
    text = HOSTILE * 40 + "x" * 1_000_000
    earlier = _features("a", text, url=f"{_address('a')}{HOSTILE}")
    page = _features("b", text, 1.0, url=f"{_address('b')}{HOSTILE}", epoch=EPOCH, extract_path=HOSTILE)
    verdict = msgspec.structs.replace(
        judge(page, load_ruleset("default")),
        first_failed=HOSTILE,
        failed=[HOSTILE],
        ruleset=HOSTILE,
        rules=[RuleOutcome(HOSTILE, HOSTILE, HOSTILE, [HOSTILE], HOSTILE)],
    )
    score = msgspec.structs.replace(_score(page), detector=HOSTILE, abstain=HOSTILE, flag=None)
    measured = msgspec.structs.replace(page, measures={HOSTILE: HOSTILE, "duplicate_share": 1.0})
    if form == "terminal":
        monkeypatch.setattr("sys.stdout.isatty", lambda: True)
        monkeypatch.setenv("TERM", "dumb")
    log = _log(tmp_path, [earlier, measured, verdict, score])
    ran = farmwatch("page", _address("b"), "--verbose", "--log", log)
    assert ran.code == Exit.OK
    assert _printable(ran.out)
    assert "and more of it" in ran.out
    assert len(ran.out) < 20_000
    as_json = farmwatch("page", _address("b"), "--json", "--log", log).out.removesuffix("\n")
    assert as_json.isprintable()
    assert json.loads(as_json)["repeats"][0]["text"] == text
    near = farmwatch("page", _address("bb"), "--log", log)
    assert (near.code, _printable(near.err)) == (Exit.PROBLEM, True)


def test_every_outcome_has_its_own_word(farmwatch: Runner, tmp_path: Path) -> None:
    """Passed, failed, unknown and not in force differ; a failed rule has value, bound and meaning."""
    rules = tmp_path / "mine.toml"
    rules.write_text(
        '[rules.extracted]\nthreshold = "ok"\n[rules.min_tokens]\nthreshold = 200\n[rules.link_code_share]\n'
        'threshold = 0.2\n[rules.language]\nthreshold = ["en"]\non_unknown = "drop"\n[rules.duplicate_share]\n',
        encoding="utf-8",
    )
    measures = {"tokens": 12.0, "link_code_share": None, "language": None, "duplicate_share": 0.25}
    log = _log(tmp_path, [_features("a", _own(1), measures=measures, extract_path="fallback")])
    ran = farmwatch("page", _address("a"), "--ruleset", rules, "--log", log)
    lines = ran.out.splitlines()
    assert "passed: extracted" in lines and "unknown: link_code_share" in lines
    assert "not in force: duplicate_share" in lines
    failed = [line.partition("): ") for line in lines if line.startswith("failed: ")]
    assert [line for line, _, meaning in failed if meaning] == [
        "failed: min_tokens 12 (passes when >= 200",
        "failed: language unknown (passes when in en",
    ]
    every = farmwatch("page", _address("a"), "--ruleset", rules, "--verbose", "--log", log).out
    assert "\npassed: extracted ok (passes when == ok): " in every
    assert "\nnot in force: duplicate_share 0.25: " in every
    assert "flat fallback: links, lists and tables in it are unknown" in ran.out


def test_a_value_is_shown_with_the_digits_that_decide() -> None:
    """A value that fails narrowly is not shown as the threshold; no exponent and no superfluous digits."""
    cases = {
        (0.74996, 0.75): "0.74996",
        (0.123456, 0.75): "0.123",
        (123456.75, 200.0): "123456.8",
        (0.00001234, 0.5): "0.0000123",
        (250.0, 250.0): "250",
        (0.1 + 0.2, 0.3): "0.30000000000000004",
    }
    assert {at: shown_value(RuleOutcome("r", at[0], ">=", at[1], "fail")) for at in cases} == cases


def test_extraction_has_a_text() -> None:
    """Every path and every error has a text; an error also keeps its name."""
    assert {"recall", "precision", "blocks", "fallback", "plain", "none"} == set(PATHS)
    assert {str(error) for error in ExtractError} == set(ERRORS)
    assert extraction("none", "timeout").endswith("exceeded measure.time_limit_s (timeout)")
    assert extraction("none", "new_one") == "no main text: new one (new_one)"


def test_the_score_is_of_the_site_and_of_the_configured_detector(farmwatch: Runner, tmp_path: Path) -> None:
    """With the text on another site, or a later detector, the configured detector on this site counts."""
    page = _features("a", _own(1))
    scores = [_score(page, p_llm=0.1), _score(page, p_llm=0.2), _score(page, "newer/2", p_llm=0.3)]
    log = _log(tmp_path, [page, *scores, _score(page, p_llm=0.4, site="b.example")])
    found = farmwatch("page", _address("a"), "--json", "--log", log).json["score"]
    assert (found["detector"], found["p_llm"]) == (DETECTOR, 0.2)


@pytest.mark.parametrize("judged", ["live", "now"])
def test_the_text_that_is_scored_is_named_and_its_score_found(farmwatch: Runner, tmp_path: Path, judged: str) -> None:
    """If a ruleset scores the C4-cleaned text, its name, size and score are shown, not those of the main text."""
    rules = tmp_path / "cleaned.toml"
    rules.write_text('reads = "c4"\nscores = "c4"\n[rules.extracted]\nthreshold = "ok"\n', encoding="utf-8")
    page = _features("a", "This line ends as a sentence does.\nMenu Home About\n")
    verdict = judge(page, load_ruleset(str(rules)))
    cleaned = msgspec.structs.replace(_score(page, p_llm=0.7), text_digest=verdict.text_digest, id="cleaned")
    log = _log(tmp_path, [page, *([verdict] if judged == "live" else []), _score(page, p_llm=0.1), cleaned])
    ran = farmwatch("page", _address("a"), *(["--ruleset", rules] if judged == "now" else []), "--log", log)
    assert f"judged {'first' if judged == 'live' else judged}" in ran.out
    assert "scored text: main text cleaned as C4 does, 7 words, 34 characters, 34 bytes\n" in ran.out
    assert ("quality rules read the main text cleaned as C4 does" in ran.out) is (judged == "now")
    assert "p(llm) 0.700" in ran.out
    ran = farmwatch("page", _address("a"), "--ruleset", "notes", "--log", log)
    assert "scored text: main text, 10 words" in ran.out


def test_a_dropped_page_may_have_no_known_scored_text(farmwatch: Runner, tmp_path: Path) -> None:
    """If an unavailable ruleset dropped the page, its scored text is unknown."""
    rules = tmp_path / "cleaned.toml"
    tokens = "[rules.min_tokens]\nthreshold = 200\non_unknown = 'drop'\n"
    rules.write_text(f'scores = "c4"\n[rules.extracted]\nthreshold = "ok"\n{tokens}', encoding="utf-8")
    page = _features("a", "This line ends as a sentence does.\nMenu Home About\n")
    log = _log(tmp_path, [page, judge(page, load_ruleset(str(rules)))])
    ran = farmwatch("page", _address("a"), "--log", log)
    assert "judged first" in ran.out
    assert "scored text" not in ran.out
    assert "\ntext: main text, 10 words, " in ran.out and "; not scored: this ruleset scores another text" in ran.out
    found = farmwatch("page", _address("a"), "--log", log, "--json").json
    assert found["scored_text"] == {"name": "", "chars": 0, "bytes": 0, "digest": ""}
    found = farmwatch("page", _address("a"), "--log", log, "--ruleset", rules, "--json").json
    assert found["scored_text"] == {"name": "c4", "chars": 34, "bytes": 34, "digest": ""}


@pytest.mark.parametrize("pages", [500, 2, 3])
def test_passages_add_up_whatever_the_order_of_visits(monkeypatch: pytest.MonkeyPatch, pages: int) -> None:
    """With refetched pages and few remembered ones, the passages equal the recorded share at every visit."""
    chance = random.Random(7)
    settings, caps = MeasureSettings(), SiteCaps(pages_per_site=pages)
    monkeypatch.setattr("farmwatch.explain.page_records.SITE_CAPS", caps)
    measurer = Measurer(settings, caps=caps)
    log = MemoryLog()
    log.create(all_topics(1, measurer.epoch))
    ruleset, shares = load_ruleset("default"), set()
    for visit in range(40):
        address = _address(str(chance.randrange(6)))
        text = "".join(f"<p>{_own(number)}</p>" for number in chance.sample(range(9), chance.randrange(4)))
        features = measurer.measure(address, f"<html><body>{text}</body></html>", SITE, page_id=page_id(address))
        log.append([Output(FEATURES, 0, SITE.encode(), encode(msgspec.structs.replace(features, id=str(visit))))])
        records = PageRecords(log, names_of(LIVE), find_page(log, address))
        found = explain_page(records, ruleset, settings, live=True, detector_identity=lambda: DETECTOR)
        share = features.measures["duplicate_share"]
        shares.add(share)
        assert found.differs == ""
        assert (found.repeats is None) is (share is None)
        if found.repeats is not None:
            assert found.repeats.repeated_bytes / found.repeats.size_bytes == share
    assert {None, 0.0} < shares
    assert max(share for share in shares if isinstance(share, float)) > 0.4


_MINE = """
[rules.extracted]
threshold = "ok"
[rules.min_tokens]
[rules.large_block_share]
threshold = 0.5
block_chars = 300
[rules.language]
threshold = ["en"]
min_probability = 0.5
[rules.url_kind]
threshold = ["shop"]
[rules.url_kind.patterns]
news = '/\\d{4}/'
shop = '/(?:product|item)s?/'
"""


def test_a_rule_is_shown_with_its_fields(farmwatch: Runner, tmp_path: Path) -> None:
    """The condition has the other fields of the rule; the URL kind has its pattern and match."""
    blocks = pack([Block(0, 250, 0, 0), Block(0, 750, 0, 0)])
    measures = {"tokens": None, "url_path": "/a/Items/7?x=1", "language": "en", "language_probability": 1.0}
    log = _log(tmp_path, [_features("a", _own(1), measures=measures, blocks=blocks)])
    mine = tmp_path / "mine.toml"
    mine.write_text(_MINE, encoding="utf-8")
    ran = farmwatch("page", _address("a"), "--ruleset", mine, "--log", log)
    assert "failed: url_kind shop (passes when not in shop): " in ran.out
    assert '\n  shop, because the URL matches /(?:product|item)s?/: "/Items/"\n' in ran.out
    every = farmwatch("page", _address("a"), "--ruleset", mine, "--verbose", "--log", log).out
    assert "\npassed: large_block_share 0.75 (passes when >= 0.5, block_chars 300): " in every
    assert "\npassed: language en (passes when in en, min_probability 0.5): " in every
    found = farmwatch("page", _address("a"), "--ruleset", mine, "--json", "--log", log).json
    rules = {rule["name"]: rule for rule in found["rules"]}
    matched = {"kind": "shop", "pattern": "/(?:product|item)s?/", "found": "/Items/"}
    assert (rules["url_kind"]["matched"], rules["language"]["matched"]) == (matched, None)
    assert rules["large_block_share"]["fields"] == {"block_chars": 300}
    assert (rules["min_tokens"]["outcome"], rules["min_tokens"]["in_force"]) == ("n/a", False)


def test_the_probability_of_an_article_is_shown_with_the_measures_that_move_it(
    farmwatch: Runner, tmp_path: Path
) -> None:
    """The six largest contributions, and a rest with which they add up; none where the probability is unknown."""
    names = ("tokens", "forms", "links", "h1_words", "title_words", "noindex", "path_depth", "password_fields")
    steps = {name: StepFunction((-0.5,), ((-0.5, 0.0), (place / 4, 0.0))) for place, name in enumerate(names)}
    model = ArticleModel(1, "made for tests", ("article", "forum"), (0.5, 0.0), steps)
    (tmp_path / "model.json").write_bytes(msgspec.json.encode(model))
    mine = tmp_path / "mine.toml"
    rule = f'[rules.article_probability]\nthreshold = 0.5\nmodel = "{tmp_path / "model.json"}"\n'
    mine.write_text(f'[rules.extracted]\nthreshold = "ok"\n\n{rule}')
    structure = [4.0 if name in names and name != "links" else None for name in STRUCTURE]
    pages = [_features("a", _own(1), measures={"tokens": 300}, structure=structure), _features("b", _own(2))]
    log = _log(tmp_path, pages)
    ran = farmwatch("page", _address("a"), "--ruleset", mine, "--verbose", "--log", log)
    row = re.search(r"^passed: article_probability (\S+) \(passes when >= 0.5, model (\w+)\)", ran.out, re.MULTILINE)
    assert row is not None and 0.99 < float(row[1]) < 1 and row[2] == model.digest
    shown = [line.strip() for line in ran.out.splitlines() if " by " in line and "logit" in line]
    assert shown[0] == "logit +1.75 by password_fields 4 (password fields)" and len(shown) == 7
    assert "logit -0.50 by links unknown (links)" in shown
    assert shown[-1] == "logit +0.75 by rest (the bias, and all other measures)"
    found = farmwatch("page", _address("a"), "--ruleset", mine, "--json", "--log", log).json
    (rule_found,) = [one for one in found["rules"] if one["name"] == "article_probability"]
    assert rule_found["fields"] == {"model": model.digest} and len(rule_found["contributions"]) == 7
    logits = model.logits(pages[0])
    assert logits and sum(part["logit"] for part in rule_found["contributions"]) == pytest.approx(logits[0])
    largest = {"name": "password_fields", "value": 4, "logit": 1.75, "meaning": "password fields"}
    assert rule_found["contributions"][0] == largest
    assert "logit" not in farmwatch("page", _address("b"), "--ruleset", mine, "--verbose", "--log", log).out


@pytest.mark.usefixtures("here")
def test_a_file_may_have_an_assumed_url(farmwatch: Runner, tmp_path: Path) -> None:
    """--url gives a file, perhaps compressed, the measures of a URL; wrong uses are refused."""
    (tmp_path / "page.html").write_text(article_html(), encoding="utf-8")
    (tmp_path / "page.html.zst").write_bytes(zstandard.compress(article_html().encode()))
    assert re.search("^unknown: .*url_kind", farmwatch("page", "page.html.zst").out, re.MULTILINE)
    ran = farmwatch("page", "page.html", "--url", "https://a.example/forum/7")
    assert ran.out.startswith("page.html, as https://a.example/forum/7: dropped, first by url_kind\n")
    assert "\n  forum, because the URL matches " in ran.out
    found = farmwatch("page", "page.html", "--url", "https://a.example/forum/7", "--json").json
    assert (found["url"], found["site"]) == ("https://a.example/forum/7", "a.example")
    assert (found["repeats"], found["earlier_pages"], found["scored_text"]["name"]) == ([], None, "main")
    assert farmwatch("page", "page.html", "--url", "nothing").code == Exit.USAGE
    ran = farmwatch("page", "host.example/path")
    assert (ran.code, "such as https://host.example/path" in ran.err) == (Exit.UNAVAILABLE, True)
    assert farmwatch("page", "https://a.example/", "--url", "https://a.example/").code == Exit.USAGE


@pytest.mark.usefixtures("here")
def test_a_limit_is_named_with_its_setting(farmwatch: Runner, tmp_path: Path) -> None:
    """For a page beyond a limit, the setting of the limit is named."""
    (tmp_path / "page.html").write_text(article_html() + "<!-- no other test has measured it -->", encoding="utf-8")
    arguments = ("page", "page.html", "--set", "measure.max_elements=1")
    assert "more elements than measure.max_elements (too_many_elements)" in farmwatch(*arguments).out
    cut = farmwatch("page", "page.html", "--set", "measure.max_html_bytes=1000").out
    assert "more bytes than measure.max_html_bytes (1000)" in cut
    assert extraction("recall", "") == PATHS["recall"]


def test_a_ruleset_that_scores_another_text_has_no_score_yet(farmwatch: Runner, finished: str) -> None:
    """Nor has one that drops the page: the score of the log is of the live ruleset's text."""
    extracted = '[rules.extracted]\nthreshold = "ok"\n'
    dropping = Path("dropping.toml")
    dropping.write_text(f"{extracted}[rules.min_tokens]\nthreshold = 90000\n", encoding="utf-8")
    lines = farmwatch("page", URL, "--ruleset", dropping, "--log", finished).out.splitlines()
    assert "score: none, a dropped page is not scored" in lines
    assert not any(line.startswith("scored text") for line in lines)
    cleaning = Path("cleaning.toml")
    cleaning.write_text(f'scores = "c4"\n{extracted}', encoding="utf-8")
    assert "score: none yet" in farmwatch("page", URL, "--ruleset", cleaning, "--log", finished).out.splitlines()
    assert farmwatch("page", URL, "--ruleset", cleaning, "--json", "--log", finished).json["score"] is None
