"""`rate` with cuts and splits, `canaries`, `sites` with and without canaries, and `panel`."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from contextlib import closing
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec
import pytest

from filters.rules.ruleset import load_ruleset
from scoring.rates.canary import CanaryName
from scoring.stages.site_tally import term_key
from stream.log.contract import CleanupPolicy, Output, Topic
from stream.opening import open_log
from stream.schema.control import Control, exclusive
from stream.schema.records import Sitemaps, SiteState, encode
from stream.schema.runs import Run
from stream.schema.topics import CONTROL, SITE_TERMS, SITEMAPS, SITES, all_topics
from stream.text.user_errors import Exit
from tests.support.front_door import DETECTOR, SITE, Runner, StandInDetector
from tests.support.logs.term_rows import DAY_MS, term_row
from tests.support.web.console_browser import answer_with, visited

pytestmark = pytest.mark.usefixtures("no_weights")

TODAY = int(time.time() // 86_400)
RULESET = load_ruleset("default")


def put(url: str, *rows: SiteState) -> None:
    """Site rows into a log."""
    with closing(open_log(url)) as log:
        log.append([Output(SITES, 0, row.site.encode(), encode(row)) for row in rows])


def row(site: str, verdict: str, **more: Any) -> SiteState:
    """A row of the active ruleset."""
    fields = {"detector": DETECTOR, "ruleset": RULESET.name, "digest": RULESET.digest, **more}
    return SiteState(id=site, site=site, verdict=verdict, **fields)


def canary(truth: str, number: int, verdict: str) -> SiteState:
    """The row of a canary site."""
    site = CanaryName(f"notes{number}", f"{number:016x}", 10, 7, truth).site
    now_ms = int(time.time() * 1000)
    return row(site, verdict, pages=10, articles=9, scored=8, abstained=1, flagged=4, updated_at=now_ms)


CANARIES = [canary("human", n, "human" if n else "llm") for n in range(3)] + [
    canary("llm", n, "llm" if n else "undecided") for n in range(4)
]


def test_articles_without_a_score_are_told(farmwatch: Runner, finished: str) -> None:
    """One line has the number of articles without a score; if all have a score, there is no line."""
    told = farmwatch("rate", "--log", finished).err
    assert "no score yet" not in told
    put(finished, row("bare.example", "unclassifiable", pages=9, articles=9, scored=1, abstained=1))
    assert "7 of 9 articles have no score yet: in no verdict\n" in farmwatch("rate", "--log", finished).err
    assert "no score" not in farmwatch("rate", "--log", finished, "--source", "file").err


def test_rate_is_cut_as_asked(farmwatch: Runner, finished: str) -> None:
    """Source, rank and days combine; stderr shows the cut; JSON has fields for missing data."""
    put(
        finished,
        row("a.example", "llm", sources=["searx"], best_rank=3, days=[TODAY]),
        row("b.example", "human", sources=["searx"], best_rank=30, days=[TODAY]),
        row("c.example", "human", sources=["searx"], best_rank=2),
    )
    options = ["--source", "searx", "--rank", "1-10", "--from", "2026-01-01", "--log", finished]
    ran = farmwatch("rate", *options, "--by", "month")
    heading, row_of_month = (line.split("\t") for line in ran.out.splitlines())
    shown = dict(zip(heading, row_of_month, strict=True))
    assert (ran.code, shown["group"][:2], shown["sites"], shown["llm"]) == (Exit.OK, "20", "1", "1")
    assert "only these sites: source searx, rank 1-10, since 2026-01-01" in ran.err
    assert "left out: 1 site without a known search day" in ran.err
    (found,) = farmwatch("rate", "--json", *options).lines
    assert (found["sites"], found["undated"]) == (1, 1)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--rank", "ten"], "such as 1-10"),
        (["--from", "yesterday"], "--from is 'yesterday', not a day: write it as 2026-11-22"),
        (["--from", "0001-01-01"], "--from is '0001-01-01', out of range: times from 1995-01-01"),
        (["--from", "9999-12-31"], "--from is '9999-12-31', out of range"),
        (["--to", "1970-08-23"], "--to is '1970-08-23', out of range"),
        (["--source", "nope"], "--source 'nope': the sources of the sites are file"),
        (["--from", "2026-05-02", "--to", "2026-05-01"], "--from 2026-05-02 is after --to 2026-05-01"),
        (["--history", "--from", "2026-05-02", "--to", "2026-05-01"], "is after --to"),
        (["--group", "health"], "the groups of rate.groups are other"),
        (["--least", "2"], "--least goes with --by published"),
        (["--by", "published", "--least", "0"], "--least"),
        (["--by", "published", "--history", "--least", "2"], "--least goes with --by published"),
    ],
)
def test_cuts_that_make_no_sense_are_refused(farmwatch: Runner, finished: str, options: list[str], said: str) -> None:
    """An invalid cut is exit code 2, and the message has the expected form."""
    ran = farmwatch("rate", *options, "--log", finished)
    assert (ran.code, said in ran.err) == (Exit.USAGE, True)


def test_the_share_of_farms_is_given_with_what_is_unknown(farmwatch: Runner, tmp_path: Path) -> None:
    """From those that are farms to those that may be, with all remarks; a log without sitemaps refuses."""
    url = f"sqlite:{tmp_path / 'farms'}"
    farmwatch("log", "topics", "--create", "--log", url)
    counts = {"scored": 10, "pages": 10, "articles": 10, "epoch": "e"}
    rows = [
        row(
            f"s{n}.example", "llm", flagged=9 if n < 30 else 0, signals={"ads:gam" if n % 2 else "cms:wix": 5}, **counts
        )
        for n in range(60)
    ]
    put(url, *rows)
    ran = farmwatch("rate", "--of", "farm", "--log", url)
    assert ran.code == Exit.OK and "no share: whether any site publishes in mass is unknown" in ran.out
    with closing(open_log(url)) as log:
        for site in (of.site for of in rows[:20]):
            maps = Sitemaps(id=site, site=site, urls=200, files_read=1, files_listed=1, months={})
            log.append([Output(SITEMAPS, 0, site.encode(), encode(maps))])
    (line,) = farmwatch("rate", "--of", "farm", "--json", "--log", url).lines
    assert [of["article_urls"] for of in line["farms"]] == [100, 50, 500]
    assert line["share"] == line["farms"][0]["share"] == pytest.approx(10 / 60, abs=0.03)
    assert line["farms"][0]["at_most"] == pytest.approx(15 / 60, abs=0.03)
    assert (line["farms"][0]["yes"], line["farms"][0]["unknown"]) == (10, 20)
    said = " ".join(farmwatch("rate", "--of", "farm", "--log", url).out.split())
    assert "content farms: 1" in said and "with 500 article URLs" in said and "not measurable" in said
    (of_source,) = farmwatch("rate", "--of", "farm", "--by", "source", "--json", "--log", url).lines
    assert of_source["group"] == "unknown" and of_source["farms"] == line["farms"]
    assert (of_source["share"], of_source["at_most"]) == (line["share"], line["at_most"])


def test_a_cut_of_a_series_by_publication_is_said(farmwatch: Runner, finished: str) -> None:
    """--from is of search results, not of articles: the line says so, and nothing is said without a cut."""
    said = "only sites by their search results, and all their articles: since 2020-01-02"
    cut = farmwatch("rate", "--by", "published", "--from", "2020-01-02", "--log", finished)
    assert said in " ".join(cut.err.split())
    assert "only sites" not in farmwatch("rate", "--by", "published", "--log", finished).err


def test_sites_that_turned_are_a_list_of_their_own(farmwatch: Runner, finished: str) -> None:
    """The false ones that --fdr allows are of the whole list, so --turned with --llm is refused.

    Each p of a site that turned is below .01, so two digits would be 0.00 for most.
    """
    assert farmwatch("sites", "--turned", "--llm", "--log", finished).code == Exit.USAGE
    dated = {"before_scored": 5, "since_scored": 5, "since_flagged": 5}
    put(finished, *(row(f"t{n}.example", "llm", turn_p=p, **dated) for n, p in enumerate((1 / 252, 1e-7))))
    shown = farmwatch("sites", "--turned", "--log", finished)
    assert [line.split("\t")[5] for line in shown.out.splitlines()[1:3]] == ["< .001", "0.004"]


def test_a_list_to_publish_leaves_out_what_was_removed(farmwatch: Runner, tmp_path: Path) -> None:
    """`crawl exclude` removes an entry for good, in each format; a blocklist needs a contact, and goes with --llm.

    Rows of JSON have what the top of a blocklist says, of the rows that are written.
    """
    url = f"sqlite:{tmp_path / 'lists'}"
    farmwatch("log", "topics", "--create", "--log", url)
    counts = {"scored": 10, "pages": 10, "articles": 10}
    put(url, *(row(f"s{n}.example", "llm", flagged=10 if n < 20 else 0, **counts) for n in range(60)))
    put(url, row("10.1.2.3", "llm", flagged=10, **counts))
    assert farmwatch("sites", "--format", "hosts", "--log", url).code == Exit.USAGE
    assert farmwatch("sites", "--farm", "--log", url).code == Exit.USAGE
    form = ["--llm", "--format", "hosts", "--log", url]
    assert farmwatch("sites", *form).code == Exit.USAGE
    contact = ["--set", "crawl.contact=mailto:who@operator.example"]
    listed = farmwatch("sites", *form, *contact)
    assert listed.out.count("\n0.0.0.0 s") == 20 and "10.1.2.3" not in listed.out
    assert "mailto:who@operator.example" in listed.out and "some-detector/1" in listed.out
    assert farmwatch("crawl", "exclude", "s3.example", "--why", "the owner asked", "--log", url).code == Exit.OK
    left = farmwatch("sites", *form, *contact, "--out", str(tmp_path / "list.txt"))
    assert left.code == Exit.OK
    text = (tmp_path / "list.txt").read_text()
    assert "s3.example" not in text and text.count("\n0.0.0.0 s") == 19
    none = farmwatch("sites", *form, *contact, "--where", "scored>99", "--out", str(tmp_path / "none.txt"))
    assert none.code == Exit.PROBLEM and not (tmp_path / "none.txt").exists()
    lines = farmwatch("sites", "--llm", "--json", "--log", url).lines
    assert len(lines) == 20 and {line["evidence"] for line in lines} == {""}  # without a page
    assert "s3.example" not in {line["site"] for line in lines}
    assert "\n# 20 sites in the list, of which" in listed.out and {line["list_sites"] for line in lines} == {20}
    part = farmwatch("sites", *form, *contact, "--where", "site!=s4.example", "--limit", "5")
    assert "\n# 5 of the 19 sites in the list (--where and --limit leave out the others), of which" in part.out
    few = farmwatch("sites", "--llm", "--json", "--limit", "5", *contact, "--log", url).lines
    assert {line["list_sites"] for line in few} == {20}
    false = sum(1 - line["p_llm"] for line in few)
    assert [line["expected_false"] for line in few] == pytest.approx([false] * 5, abs=1e-5)
    assert {(line["contact"], line["listed_by"]) for line in few} == {
        (contact[1][14:], f"farmwatch {version('farmwatch')}")
    }
    assert all(line["listed_at"] for line in few) and all("warning" in line for line in few)


def test_controls_are_said_beside_the_share(farmwatch: Runner, finished: str) -> None:
    """One line has the flagged share of control pages with its interval, and the control sites called llm.

    Pages declared older without a day of change are in --verbose and JSON only; without such pages nothing is said.
    """
    assert "controls" not in farmwatch("rate", "--verbose", "--log", finished).out
    controls = {"control_scored": 8, "control_flagged": 2}
    put(
        finished,
        *(row(f"c{n}.example", "llm" if n == 1 else "human", scored=8, flagged=2, **controls) for n in range(4)),
        row("d.example", "human", scored=9, declared_scored=5, declared_flagged=1),
    )
    said = " ".join(farmwatch("rate", "--log", finished).out.split())
    assert "controls: 25.0% of articles of before ChatGPT flagged (" in said
    few = "): 8 of 32, of 4 sites, too few: the share's interval needs 50"
    assert f"{few}; called llm: 1 of 4 sites that have no other articles" in said
    assert "declared older" not in said
    said = " ".join(farmwatch("rate", "--verbose", "--log", finished).out.split())
    assert "declared older, perhaps changed since: 20.0% of" in said
    put(finished, *(row(f"e{n}.example", "human", scored=2, control_scored=1) for n in range(46)))
    assert "too few" not in " ".join(farmwatch("rate", "--log", finished).out.split()).partition("controls:")[2]
    (line,) = farmwatch("rate", "--json", "--log", finished).lines
    assert (line["controls"]["pages"], line["controls"]["called_llm"], line["declared"]["flagged"]) == (78, 1, 1)


@pytest.mark.parametrize(
    ("sites", "changed"), [(3, False), (3, True), (12, False), (12, True), (60, False), (60, True), (1200, True)]
)
def test_the_default_output_is_six_short_lines(
    farmwatch: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sites: int, changed: bool
) -> None:
    """Six lines within 80 columns: share, main remark, not judged, decided, versions, caveat; --verbose has all."""
    monkeypatch.setattr(StandInDetector, "warning", "a style classifier; indicative only. Measured on")
    url = f"sqlite:{tmp_path / 'many'}"
    farmwatch("log", "topics", "--create", "--log", url)
    rows = []
    for n in range(sites):
        scored, is_llm = n % 19, n % 3 == 0 or (changed and n > sites // 2)
        more = {"flagged": (scored * 4 // 5) if is_llm else 0, "days": [TODAY - (1 if n > sites // 2 else 40)]}
        dropped = {"dropped_by": {"language": n % 2, "min_tokens": 1}, "pages": n % 5, "articles": scored}
        verdict = "unclassifiable" if scored < 9 else "llm" if is_llm else "human"
        rows.append(row(f"s{n}.example", verdict, scored=scored, queries=[f"q{n % 7}"], **more, **dropped))
    put(url, *rows)
    ran = farmwatch("rate", "--log", url)
    said = ran.out.splitlines() + ran.err.splitlines()
    assert 5 <= len(said) <= 6
    assert max(len(line) for line in said if "not judged" not in line) < 80  # it names every reason
    assert [line.split(":")[0].strip() for line in said[-4:-2]] == ["not judged", "decided one by one"]
    everything = farmwatch("rate", "--verbose", "--log", url)
    assert load_ruleset("default").digest in everything.out and "Measured on" in everything.err
    assert len(everything.out.splitlines()) > len(ran.out.splitlines())


def test_what_is_not_judged_is_a_table_of_reasons_with_bounds(farmwatch: Runner, tmp_path: Path) -> None:
    """Each reason has its sites, and how low and high the share would be with them, in the output and the console."""
    url = f"sqlite:{tmp_path / 'reasons'}"
    farmwatch("log", "topics", "--create", "--log", url)
    rows = [row(f"s{n}.example", "human", scored=12, pages=12, queries=[f"q{n}"]) for n in range(60)]
    rows += [row(f"d{n}.example", "unclassifiable", scored=0, pages=3, dropped_by={"language": 3}) for n in range(20)]
    rows += [row(f"e{n}.example", "unclassifiable", scored=0, pages=0) for n in range(5)]
    put(url, *rows)
    (line,) = farmwatch("rate", "--json", "--log", url).lines
    assert list(line["not_judged"].values()) == [20, 5]
    out = farmwatch("rate", "--verbose", "--log", url).out.splitlines()
    table = [text.split() for text in out if text.endswith("with them")]
    assert [int(cells[-6]) for cells in table] == [20, 5]
    for cells, (low, high) in zip(table, line["not_judged_bounds"].values(), strict=True):
        assert (cells[-5], cells[-3]) == (f"{low:.1%}", f"{high:.1%}")
        assert line["bound_low"] <= low <= line["low"] and line["high"] < high < line["bound_high"]
    (page,) = visited(url, tmp_path, "/answer")
    shown = re.sub(r"<[^>]+>", " ", page.text[page.text.index("The share with the sites of one reason") :])
    assert "another language 20" in " ".join(shown.split()) and "all of these 25" in " ".join(shown.split())


def test_a_share_of_visitors_text_says_so(farmwatch: Runner, tmp_path: Path) -> None:
    """The line of a ruleset that counts comments names their unit; that of another ruleset, or an unknown one, none."""
    url = f"sqlite:{tmp_path / 'visitors'}"
    farmwatch("log", "topics", "--create", "--log", url)
    comments = 'scores = "segments"\nkinds = ["comment"]\n'
    with closing(open_log(url)) as log:
        rulesets = {RULESET.digest: RULESET.source, "c0": comments}
        log.append([Output(CONTROL, 0, f"ruleset/{of}".encode(), text.encode()) for of, text in rulesets.items()])
    put(url, *(row(f"{digest}.example", "human", scored=9, digest=digest) for digest in (RULESET.digest, "c0", "c1")))
    said = farmwatch("rate", "--log", url).out
    assert said.count("visitors' text: ") == 1
    assert "ruleset default c0;" in said[said.index("visitors'") :].split("detector")[0]


def test_groups_come_from_the_configuration(farmwatch: Runner, finished: str) -> None:
    """`rate.groups` is a table that --by query-group and --group use; a reserved name is refused."""
    put(finished, row("a.example", "llm", queries=["health-1"]), row("b.example", "human", queries=["law"]))
    groups = ["--set", 'rate.groups={health = ["health-*"]}', "--log", finished, "--json"]
    found = {line["group"]: line["llm"] for line in farmwatch("rate", "--by", "query-group", *groups).lines}
    assert found == {"health": 1, "other": 0, "unknown": 1}
    (cut,) = farmwatch("rate", "--group", "health", *groups).lines
    assert cut["sites"] == 1
    ran = farmwatch("rate", "--set", 'rate.groups={other = ["x"]}', "--log", finished)
    assert (ran.code, "a group cannot be called 'other'" in ran.err) == (Exit.USAGE, True)


def test_canaries_are_in_no_rate_and_not_among_the_sites(farmwatch: Runner, finished: str) -> None:
    """The rate counts real sites only; `sites` shows canaries on request."""
    (before,) = farmwatch("rate", "--json", "--log", finished).lines
    put(finished, *CANARIES)
    (after,) = farmwatch("rate", "--json", "--log", finished).lines
    assert (after["sites"], after["judged_share"]) == (before["sites"], before["judged_share"])
    assert after["judged_method"] == "uncorrected"
    assert "not corrected by canaries: 4 LLM and 3 human ones could be classified, 20 of each" in after["judged_text"]
    split = farmwatch("rate", "--by", "source", "--verbose", "--log", finished)
    assert ("not corrected by canaries" in split.out, split.err.count("not corrected by canaries")) == (False, 1)
    assert ".invalid" not in farmwatch("sites", "--log", finished).out
    assert farmwatch("sites", "--canaries", "--log", finished).out.count(".canary.invalid") == len(CANARIES)


def test_canaries_shows_what_they_measure(farmwatch: Runner, finished: str) -> None:
    """`canaries` shows verdicts by truth, errors with intervals, kept shares, and whether they suffice."""
    put(finished, *CANARIES)
    ran = farmwatch("review", "canaries", "--log", finished)
    assert ran.code == Exit.OK
    table = {line.split("\t")[0]: line.split("\t")[1:] for line in ran.out.splitlines()}
    assert table["human"][:5] == ["3", "1", "2", "0", "0"] and table["llm"][:5] == ["4", "3", "0", "1", "0"]
    shares = [share.partition(" (")[0] for share in (*table["human"][5:8], *table["llm"][5:8])]
    assert shares == ["33.3%", "50.0%", "90.0%", "75.0%", "50.0%", "90.0%"]
    assert "not corrected by canaries: 4 LLM and 3 human" in ran.err and "canary.file names no file" in ran.err
    assert f"{DETECTOR}: indicative only" in ran.err


def test_canaries_are_told_for_each_detector(farmwatch: Runner, finished: str, tmp_path: Path) -> None:
    """A row per detector and truth, with separate counts; the console shows the same."""
    put(finished, *CANARIES, row(CanaryName("x", "f" * 16, 1, 1, "llm").site, "llm", detector="y/2", updated_at=1))
    lines = farmwatch("review", "canaries", "--json", "--log", finished).lines
    found = {(line["detector"], line["truth"]): line for line in lines}
    assert (found[DETECTOR, "llm"]["called_llm"], found["y/2", "llm"]["sites"]) == (0.75, 0)  # complete since long ago
    for line in answer_with(finished, tmp_path, "canaries"):
        for truth, pages in line["pages"].items():
            same = found[line["detector"], truth]
            assert pages == {name: same[name] for name in pages}


def test_canaries_says_what_is_sent(farmwatch: Runner, finished: str, tmp_path: Path) -> None:
    """With a file, `canaries` shows the sites and pages per round and truth, and the complete ones of this round."""
    file = tmp_path / "canaries.jsonl"
    file.write_text('{"truth": "llm", "site": "notes", "text": "x", "made_at": "2026-01-02"}\n', encoding="utf-8")
    ran = farmwatch("review", "canaries", "--log", finished, "--set", f"canary.file={file}")
    assert "llm: 1 site of 1 page a round, the newest written on 2026-01-02" in ran.err
    assert "0 rows" in ran.err


def test_a_log_without_sites_says_so(farmwatch: Runner, tmp_path: Path) -> None:
    """Before the first site is judged, the message names no ruleset and no detector."""
    (tmp_path / "hits.txt").write_text("http://a.example/\n", encoding="utf-8")
    url = f"sqlite:{tmp_path / 'log'}"
    assert farmwatch("hits", "add", "hits.txt", "--log", url).code == Exit.OK
    ran = farmwatch("rate", "--log", url)
    assert "no site yet" in ran.out and "ruleset" not in ran.out


def test_the_evidence_of_a_verdict_fits_80_columns(
    farmwatch: Runner, finished: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a terminal, `sites` keeps flagged, scored and what an open site needs; it explains only the shown columns."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "dumb")
    long = {"pages": 20, "articles": 15, "scored": 15, "flagged": 11, "pages_used": 15, "llr": 5.02}
    put(finished, row("archive.patientpages.example", "undecided", dropped_by={"min_tokens": 9}, **long))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    told = farmwatch("sites", "--log", finished)
    heading = told.out.splitlines()[0].split()
    assert heading == ["site", "verdict", "p_llm", "flagged", "scored", "needs"]
    assert "needs: further articles" in told.err and "stricter" in told.err and "most_dropped_by:" not in told.err


def test_every_open_site_has_the_reason_beside_it(farmwatch: Runner, finished: str) -> None:
    """An open site, however few its articles, says how many more would decide it; a decided or unread one does not."""
    put(
        finished,
        row("most.example", "undecided", pages=12, articles=12, scored=12, flagged=11, pages_used=12, llr=6.5),
        row("few.example", "unclassifiable", pages=3, articles=3, scored=3, flagged=3, pages_used=3, llr=2.0),
        row("none.example", "unclassifiable", pages=3),
        row("decided.example", "llm", pages=9, articles=9, scored=9, flagged=9, pages_used=9, llr=7.1),
    )
    needs = {found["site"]: found["needs"] for found in farmwatch("sites", "--json", "--log", finished).lines}
    assert needs["most.example"] == 1 and needs["few.example"] == 5
    assert needs["none.example"] is needs["decided.example"] is None
    assert (
        "open: a verdict asks for 1 more article in a row, flagged"
        in farmwatch("site", "most.example", "--log", finished).out
    )


def test_a_verdict_that_is_too_old_is_marked(farmwatch: Runner, finished: str) -> None:
    """`sites` shows the verdict and that it counts in no share any more."""
    put(finished, row("old.example", "llm", term_start=1, term_end=2))
    rows = farmwatch("sites", "--json", "--log", finished).lines
    assert {found["site"]: found["too_old"] for found in rows} == {"old.example": True, SITE: False, "b.example": False}
    assert [
        found["site"] for found in farmwatch("sites", "--where", "too_old=yes", "--json", "--log", finished).lines
    ] == ["old.example"]


def put_rows(url: str, topic: str, rows: Sequence[SiteState]) -> None:
    with closing(open_log(url)) as log:
        keys = [row.site if topic == SITES else term_key(row.site, row.term) for row in rows]
        log.append([Output(topic, 0, key.encode(), encode(row)) for key, row in zip(keys, rows, strict=True)])


def in_term(site: str, verdict: str, term: int) -> SiteState:
    """A row of a site whose first term began 80 days ago, or whose second one has just begun."""
    start = int(time.time() * 1000) - 80 * DAY_MS * (term == 0)
    return term_row(site, verdict, term, term_start=start, term_end=start + 90 * DAY_MS)


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A log with 80 human sites in their first term, and one that nobody crawls."""
    url = f"sqlite:{tmp_path / 'log'}"
    with closing(open_log(url)) as log:
        log.create(all_topics(1, "e"))
    rows = [in_term(f"s{number:02}.test", "human", 0) for number in range(80)]
    put_rows(url, SITES, [*rows, term_row("archive.test", "human", term_start=0, term_end=0)])
    return url


def test_a_panel_shows_its_change_apart_from_new_sites(farmwatch: Runner, url: str) -> None:
    """60 sites of which 12 turn: 20 points, with the interval; a new site is none of it. Each panel is a version."""
    made = farmwatch("review", "panel", "make", "--sites", "60", "--json", "--log", url)
    assert made.code == Exit.OK, made.err
    panel = made.json
    assert (made.code, panel["version"], panel["drawn_from"], len(panel["sites"])) == (Exit.OK, 1, 80, 60)
    sites = panel["sites"]
    put_rows(url, SITE_TERMS, [in_term(site, "human", 0) for site in sites])
    put_rows(url, SITES, [in_term(site, "llm" if number < 12 else "human", 1) for number, site in enumerate(sites)])
    new = int(time.time() * 1000)
    put_rows(url, SITES, [term_row("new.test", "llm", term_start=new, term_end=new + DAY_MS)])
    shown = farmwatch("review", "panel", "show", "--json", "--log", url)
    found = shown.json
    assert (found["pairs"], found["turned"], found["turned_back"], found["change"]) == (60, 12, 0, 0.2)
    assert found["low"] < 0.2 < found["high"]
    assert [line["sites"] for line in found["new_sites"]] == [1]
    text = farmwatch("review", "panel", "show", "--log", url).out
    assert "+20.0 points (95% interval +" in text and "12 turned to llm, 0 back" in text
    assert f"turned to llm: {', '.join(sites[:12])}" in " ".join(text.split())
    assert "new since then: 1 site" in text
    again = farmwatch("review", "panel", "make", "--sites", "10", "--seed", "7", "--json", "--log", url).json
    same = farmwatch("review", "panel", "make", "--sites", "10", "--seed", "7", "--json", "--log", url).json
    assert (again["version"], same["version"], again["sites"]) == (2, 3, same["sites"])
    assert farmwatch("review", "panel", "show", "--version", "1", "--json", "--log", url).json["pairs"] == 60


def test_other_readers_of_control_pass_over_panels(farmwatch: Runner, url: str) -> None:
    """The runs of a log with a panel are read as without one."""
    farmwatch("review", "panel", "make", "--sites", "5", "--log", url)
    with closing(open_log(url)) as log:
        assert Control(log).runs == {}


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["make", "--sites", "81"], Exit.USAGE, "--sites 81: 80 crawled sites with a scored article so far"),
        (["show"], Exit.PROBLEM, "no panel yet: `farmwatch review panel make` draws one"),
    ],
)
def test_what_cannot_be_is_said(farmwatch: Runner, url: str, arguments: list[str], code: Exit, said: str) -> None:
    """Too few sites, and no panel."""
    ran = farmwatch("review", "panel", *arguments, "--log", url)
    assert ran.code == code and said in ran.err


def test_a_second_detector_has_its_own_line(farmwatch: Runner, finished: str) -> None:
    """The share of a run that follows for another detector stands below, and is pooled with nothing.

    In JSON it is another object. Cuts, and a named run, show one detector.
    """
    with closing(open_log(finished)) as log:
        live = Run(name="live", ruleset=RULESET.name, digest=RULESET.digest, detector=DETECTOR, epoch="e")
        second = msgspec.structs.replace(live, name="second", detector="other/1")
        log.create([Topic(second.names().sites, 1, CleanupPolicy.COMPACT)])
        with exclusive(log) as control:
            control.put(live, second)
        of_second = {"detector": "other/1", "run": "second", "scored": 8, "pages": 8, "articles": 8}
        rows = [row(f"s{n}.example", "human", **of_second, flagged=8 * (n < 10)) for n in range(40)]
        log.append([Output(second.names().sites, 0, one.site.encode(), encode(one)) for one in rows])
    put(finished, *(row(f"s{n}.example", "human", scored=8, pages=8, articles=8, flagged=0) for n in range(40)))
    said = " ".join(farmwatch("rate", "--log", finished).out.split())
    assert "second detector (run second): 25.0% (95% interval" in said
    assert "of 40 sites, ruleset default" in said and "detector other/1" in said
    assert "of 40 sites the first flags -25.0 points more than it" in said
    shares = {line["detector"]: line["scored_sites"] for line in farmwatch("rate", "--json", "--log", finished).lines}
    assert shares["other/1"] == 40 and len(shares) == 2
    assert "second detector" not in farmwatch("rate", "--log", finished, "--source", "file").out
    assert "second detector" not in farmwatch("rate", "--log", finished, "--run", "live").out
