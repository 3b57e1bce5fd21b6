"""The command `review`, and the share from labels of its sample."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from farmwatch.config.config import load
from farmwatch.labels.judgements import LabelSample
from farmwatch.share.review_labels import read_review
from farmwatch.share.site_lines import site_labels
from scoring.rates.settings import RateSettings
from stream.log.contract import Output, wall_ms
from stream.opening import open_log
from stream.schema.records import RatePoint, encode
from stream.schema.topics import RATES
from stream.text.user_errors import Exit, FarmwatchError
from tests.support.front_door import DETECTOR, Runner
from tests.support.runs.two_runs import RULESETS, A, begin, page, put_features, put_run, site
from tests.support.web.console_browser import Browser, browse

SITES, PAGES = 60, 5
LLM = {f"s{n}.example" for n in range(0, SITES, 3)}  # a third
DAY_MS = 86_400_000


@pytest.fixture
def url(tmp_path: Path, no_weights: None) -> str:
    """URL of a log with sites, of which the detector sees a third as LLM sites, and one without an article."""
    url = f"sqlite:{tmp_path / 'log'}"
    log = open_log(url)
    begin(log)
    pages = [page(n, site=f"s{n % SITES}.example", text=f"Text {n}.") for n in range(SITES * PAGES)]
    put_features(log, pages)
    rows = [
        site(name, "undecided", pages=PAGES, articles=PAGES, scored=PAGES, flagged=PAGES - 1 if name in LLM else 0)
        for name in (f"s{n}.example" for n in range(SITES))
    ]
    put_run(log, A, RULESETS[A], pages, [*rows, site("bare.example", "unclassifiable")], live=True, detector=DETECTOR)
    log.close()
    return url


def test_a_running_farmwatch_with_another_review_is_named(farmwatch: Runner, url: str, tmp_path: Path) -> None:
    """Where the share was kept without the review a moment ago, `rate` with it says why the console shows another."""
    sample, labels = tmp_path / "review.jsonl", tmp_path / "labels.jsonl"
    farmwatch("review", "draw", "--sites", "51", "--pages", "1", "--out", sample, "--log", url)
    lines = [json.loads(line) for line in sample.read_text().splitlines()]
    labelled = ({**line, "label": "llm", "labelled_at": line["drawn_at"]} for line in lines)
    labels.write_text("".join(json.dumps(line) + "\n" for line in labelled))
    for method, is_named in (("ppi", False), ("direct", True)):
        with closing(open_log(url)) as log:
            point = RatePoint(id=method, site="", at=wall_ms(), share_method=method, run=A)
            log.append([Output(RATES, 0, method.encode(), encode(point))])
        ran = farmwatch("rate", "--log", url, "--set", f"rate.review={labels}")
        assert ("had another review" in ran.err) is is_named, ran.out
    assert "had another review" not in farmwatch("rate", "--log", url).err


def test_a_review_is_drawn_labelled_and_becomes_the_share(farmwatch: Runner, url: str, tmp_path: Path) -> None:
    """51 of 60 sites are drawn and labelled without the detector's result; `rate` uses them if they are enough."""
    sample, labels = tmp_path / "review.jsonl", tmp_path / "labels.jsonl"
    ran = farmwatch("review", "draw", "--sites", "51", "--pages", "2", "--out", sample, "--log", url, "--json")
    assert ran.code == Exit.OK
    assert json.loads(ran.out) == {"out": str(sample), "articles": 102, "sites": 51, "of": SITES}
    assert "102 articles of 51 sites, of 60" in ran.err
    assert f"set rate.review to {tmp_path / 'review-labels.jsonl'}" in ran.err
    pages = LabelSample(sample).pages
    assert set(Counter(one.site for one in pages).values()) == {2}
    assert not any(one.verdict_a or one.run_a for one in pages)
    assert all(one.text == f"Text {one.fetch_id.removeprefix('fetch-')}." for one in pages)
    drawn = {one.site for one in pages}
    assert len(drawn & LLM) == 17  # proportionally
    keys = tmp_path / "keys"
    keys.write_text("".join("l" if one.site in LLM else "h" for one in pages))
    ran = farmwatch("review", "label", sample, "--out", labels, "--answers", keys)
    assert "next: farmwatch rate --set rate.review=" in ran.out
    before = json.loads(farmwatch("rate", "--json", "--log", url).out)
    found = json.loads(farmwatch("rate", "--json", "--log", url, "--set", f"rate.review={labels}").out)
    assert (before["method"], found["method"]) == ("direct", "ppi")
    assert found["low"] < 1 / 3 < found["high"] and found["share"] == pytest.approx(1 / 3, abs=0.05)
    assert (found["labelled"], found["drawn"]) == (51, 51)
    assert all(words in found["text"] for words in ("by 51 labelled sites of", "(one labeller)", "without these"))
    listed = farmwatch("sites", "--json", "--log", url, "--set", f"rate.review={labels}").out.splitlines()
    said = {line["site"]: line["label"] for line in map(json.loads, listed)}
    assert {name for name in said if said[name]} == drawn
    assert {name for name in drawn if said[name] == "llm"} == drawn & LLM
    shown = farmwatch("runs", "show", A, "--log", url, "--set", f"rate.review={labels}").out
    assert "by 51 labelled sites of" in " ".join(shown.split())
    some = farmwatch("rate", "--of", "any-article", "--log", url, "--set", f"rate.review={labels}").out
    assert "have an article by a language model by 51 labelled sites" in " ".join(some.split())
    assert (found["judged_share"], found["scored_sites"]) == (before["judged_share"], SITES)
    labels.write_text("".join(line for line in labels.open() if json.loads(line)["site"] in sorted(drawn)[:19]))
    few = json.loads(farmwatch("rate", "--json", "--log", url, "--set", f"rate.review={labels}").out)
    assert "sites with scored articles; no review: 19 of these sites have labels, 20 are needed;" in few["text"]
    assert (few["method"], few["share"]) == ("direct", before["share"])


def test_labels_that_contradict_the_detector_win(farmwatch: Runner, url: str, tmp_path: Path) -> None:
    """If people label no site as LLM, the share is near 0, whatever the detector flags."""
    sample, labels = tmp_path / "review.jsonl", tmp_path / "labels.jsonl"
    farmwatch("review", "draw", "--sites", "60", "--pages", "1", "--out", sample, "--log", url)
    keys = tmp_path / "keys"
    keys.write_text("h" * len(LabelSample(sample).pages))
    farmwatch("review", "label", sample, "--out", labels, "--answers", keys)
    found = json.loads(farmwatch("rate", "--json", "--log", url, "--set", f"rate.review={labels}").out)
    assert found["share"] < 0.05 and found["method"] == "ppi"
    assert "labels and flags contradict each other" in found["text"] and "without these" in found["text"]
    assert found["text"].startswith("below ")


def test_drawn_sites_that_nobody_labelled_may_be_of_either_kind(farmwatch: Runner, url: str, tmp_path: Path) -> None:
    """If a sixth of the sites is skipped, the interval is wider by as much, and the text says so."""
    sample, labels, keys = tmp_path / "review.jsonl", tmp_path / "labels.jsonl", tmp_path / "keys"
    farmwatch("review", "draw", "--sites", "60", "--pages", "1", "--out", sample, "--log", url)
    found = []
    for skipped in (0, 10):
        keys.write_text("s" * skipped + "h" * (60 - skipped))
        labels.unlink(missing_ok=True)
        farmwatch("review", "label", sample, "--out", labels, "--answers", keys)
        found.append(json.loads(farmwatch("rate", "--json", "--log", url, "--set", f"rate.review={labels}").out))
    assert found[1]["high"] - found[1]["low"] > found[0]["high"] - found[0]["low"] + 0.12
    assert (found[1]["labelled"], found[1]["drawn"]) == (50, 60)
    assert "50 of 60 drawn sites labelled: the others may be of either kind" in found[1]["text"]


def test_sites_after_the_last_labelled_one_are_not_drawn_yet(farmwatch: Runner, url: str, tmp_path: Path) -> None:
    """Who stops after 25 of 60 sites in random order has a share of 25, in an honest wide interval."""
    sample, labels, keys = tmp_path / "review.jsonl", tmp_path / "labels.jsonl", tmp_path / "keys"
    farmwatch("review", "draw", "--sites", "60", "--pages", "1", "--out", sample, "--log", url)
    pages = LabelSample(sample).pages
    assert [one.place for one in pages] == list(range(1, 61))
    keys.write_text("s" + "".join("l" if one.site in LLM else "h" for one in pages[1:25]) + "q")
    farmwatch("review", "label", sample, "--out", labels, "--answers", keys)
    found = farmwatch("rate", "--json", "--log", url, "--set", f"rate.review={tmp_path}").json
    assert (found["method"], found["labelled"], found["drawn"]) == ("ppi", 24, 25)
    assert found["low"] < 1 / 3 < found["high"] and "24 of 25 drawn sites labelled" in found["text"]


@pytest.mark.parametrize("files", [("labels", "labels"), ("ada", "bob")], ids=["one file", "a file each"])
def test_two_people_label_the_same_sample(farmwatch: Runner, url: str, tmp_path: Path, files: tuple[str, str]) -> None:
    """In one file or in a folder, each labels all pages; the share has their agreement, and says where they differ."""
    folder, keys = tmp_path / "labels", tmp_path / "keys"
    folder.mkdir()
    sample = folder / "review.jsonl"
    farmwatch("review", "draw", "--sites", "60", "--pages", "1", "--out", sample, "--log", url)
    pages = LabelSample(sample).pages
    found = []
    for wrong, by, file in zip((0, 6), ("ada", "bob"), files, strict=True):
        keys.write_text("".join("l" if one.site in LLM or n < wrong else "h" for n, one in enumerate(pages)))
        ran = farmwatch(
            "review", "label", sample, "--out", folder / f"{file}.jsonl", "--operator", by, "--answers", keys
        )
        assert ran.out.startswith("60 of 60 pages labelled")
        found.append(farmwatch("rate", "--json", "--log", url, "--set", f"rate.review={folder}").json)
    one, two = found
    assert [(line["labellers"], line["labelled"], line["drawn"]) for line in found] == [(1, 60, 60), (2, 60, 60)]
    assert one["alpha"] is None and 0.7 < two["alpha"] < 1
    assert two["high"] - two["low"] > one["high"] - one["low"] and two["low"] < 1 / 3 < two["high"]
    assert "(2 labellers, 60 sites by more than one, alpha 0." in two["text"] and "1.0 times" not in two["text"]
    told = " ".join(farmwatch("rate", "--log", url, "--set", f"rate.review={folder}").out.split())
    assert "they differ, see `farmwatch sites --where 'dissent>0'`" in told


def people(url: str, file: Path, farmwatch: Runner, wrong: dict[str, set[str]], sites: int = 60) -> list[str]:
    """The lines of people who label all drawn sites rightly but for these, in `file`; the drawn sites in order."""
    sample = file.with_name("sample.jsonl")
    sample.unlink(missing_ok=True)
    farmwatch("review", "draw", "--sites", str(sites), "--pages", "1", "--out", sample, "--log", url)
    drawn = [json.loads(line) for line in sample.read_text().splitlines()]
    file.write_text(
        "".join(
            json.dumps(
                {**line, "label": "llm" if (line["site"] in LLM) != (line["site"] in of_one) else "human", "by": by}
                | {"labelled_at": line["drawn_at"]}
            )
            + "\n"
            for by, of_one in wrong.items()
            for line in drawn
        )
    )
    return [line["site"] for line in drawn]


def test_a_tie_is_no_label(farmwatch: Runner, url: str, tmp_path: Path) -> None:
    """A site that one calls llm and one human is `differ` in lists, no contradiction, and left out of no list."""
    labels = tmp_path / "labels.jsonl"
    people(url, labels, farmwatch, {"ada": set(), "bob": set(LLM), "cy": set()}, 30)
    lines = [json.loads(line) for line in labels.read_text().splitlines()]
    tied = next(line["site"] for line in lines if line["site"] in LLM)
    both = [line for line in lines if line["by"] != "cy" or line["site"] != tied]
    labels.write_text("".join(json.dumps(line) + "\n" for line in both))
    flags = ("--log", url, "--set", f"rate.review={labels}")
    listed = farmwatch("sites", "--json", "--where", "label=differ", *flags).lines
    assert [(line["site"], line["label"], line["dissent"]) for line in listed] == [(tied, "differ", 1)]
    disputed = {line["site"] for line in farmwatch("sites", "--json", "--where", "dissent>0", *flags).lines}
    assert disputed == {line["site"] for line in lines if line["site"] in LLM}
    assert "people differ (1 llm, 1 human)" in farmwatch("site", tied, *flags).out
    other = next(iter(disputed - {tied}))
    assert "people called it llm (2 llm, 1 human)" in farmwatch("site", other, *flags).out
    assert "dissent" in farmwatch("sites", "--where", "dissent>0", *flags).out
    assert "farmwatch sites --where 'dissent>0'" in " ".join(farmwatch("rate", *flags).out.split())

    async def shown(browser: Browser) -> list[str]:
        asked = (("/sites", {"label": "differ"}), ("/site", {"site": tied}), ("/site", {"site": other}))
        return [(await browser.get(path, query)).text for path, query in asked]

    config = load(None, [f"log.url={url}", f"rate.review={labels}"], {}).config
    page_of_ties, page_of_tie, page_of_other = browse(url, tmp_path, shown, config=config)
    assert "people differ (1 llm, 1 human)" in page_of_ties and other not in page_of_ties
    assert "people differ (1 llm, 1 human)" in page_of_tie
    assert "people called it llm (2 llm, 1 human)" in page_of_other


def test_ties_neither_contradict_the_flags_nor_leave_a_list(farmwatch: Runner, url: str, tmp_path: Path) -> None:
    """Two people of whom one errs on some LLM sites: no label contradicts, and these sites stay listed."""
    labels = tmp_path / "labels.jsonl"
    people(url, labels, farmwatch, {"ada": set(), "bob": set(sorted(LLM)[:9])})
    flags = ("--log", url, "--set", f"rate.review={labels}")
    assert "contradict" not in farmwatch("rate", "--verbose", *flags).out
    alone = farmwatch("sites", "--llm", "--fdr", "20%", "--json", "--log", url).lines
    listed = farmwatch("sites", "--llm", "--fdr", "20%", "--json", *flags)
    assert listed.code == Exit.OK, listed.err
    assert {line["site"] for line in listed.lines} == {line["site"] for line in alone} == LLM


def test_the_order_of_the_lines_does_not_matter(farmwatch: Runner, url: str, tmp_path: Path) -> None:
    """Lines of people and sites in any order give the same bytes."""
    labels, found = tmp_path / "labels.jsonl", []
    people(url, labels, farmwatch, {"ada": {"s0.example", "s3.example"}, "bob": {f"s{n}.example" for n in range(9)}})
    lines = labels.read_text().splitlines(keepends=True)
    for order in (lines, lines[::-1], lines[60:] + lines[:60], sorted(lines[::2]) + lines[1::2]):
        labels.write_text("".join(order))
        found.append(farmwatch("rate", "--json", "--log", url, "--set", f"rate.review={labels}").out)
    assert len(set(found)) == 1 and json.loads(found[0])["method"] == "ppi"


def test_the_same_seed_gives_the_same_sample(farmwatch: Runner, url: str, tmp_path: Path) -> None:
    """The same seed gives the same sample, another seed another one."""
    files = []
    for number, seed in enumerate(("1", "1", "2")):
        files.append(tmp_path / f"{number}.jsonl")
        assert (
            farmwatch("review", "draw", "--sites", "50", "--seed", seed, "--out", files[-1], "--log", url).code
            == Exit.OK
        )
    texts = [file.read_text() for file in files]
    same = [[{**json.loads(line), "drawn_at": 0} for line in text.splitlines()] for text in texts]
    assert same[0] == same[1] != same[2]


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--sites", "5"], Exit.USAGE, "a review needs 20 sites or more"),
        (["--pages", "0"], Exit.USAGE, "Must be >= 1"),
        (["--run", "nothing"], Exit.PROBLEM, "nothing"),
    ],
)
def test_what_cannot_be_drawn_is_refused(farmwatch: Runner, url: str, options: list[str], code: int, said: str) -> None:
    """Too few sites, no pages, or an unknown run: one sentence, and no file."""
    ran = farmwatch("review", "draw", "--log", url, *options)
    assert (ran.code, said in ran.err) == (code, True)
    assert not Path("review.jsonl").exists()


def _labels(folder: Path, *lines: dict[str, object]) -> RateSettings:
    file = folder / "labels.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return RateSettings(review=str(file), review_days=10)


def test_a_site_is_what_at_least_half_of_its_articles_are(tmp_path: Path) -> None:
    """A site has the label of half of its articles by the last lines; none and withdrawn labels do not count."""
    lines = [
        {"fetch_id": "1", "site": "half.example", "label": "llm", "labelled_at": 5},
        {"fetch_id": "2", "site": "half.example", "label": "human", "labelled_at": 6},
        {"fetch_id": "3", "site": "human.example", "label": "llm", "labelled_at": 7},
        {"fetch_id": "3", "site": "human.example", "label": "human", "labelled_at": 8},
        {"fetch_id": "4", "site": "none.example", "label": "", "page_type": "other", "labelled_at": 9},
        {"fetch_id": "5", "site": "back.example", "label": "llm", "labelled_at": 9},
        {"fetch_id": "5", "labelled_at": 10},
    ]
    found = read_review(_labels(tmp_path, *lines), 20)
    assert found is not None
    assert {site: said.label for site, said in site_labels(found).items()} == {
        "half.example": "llm",
        "human.example": "human",
    }
    assert (found.at_ms, found.drawn) == (5, 2)


def test_each_person_has_a_last_word(tmp_path: Path) -> None:
    """A later line of one person replaces or withdraws his label, and not that of another."""
    lines = [
        {"fetch_id": "1", "site": "a.example", "label": "llm", "labelled_at": 5, "by": "ada"},
        {"fetch_id": "1", "site": "a.example", "label": "llm", "labelled_at": 6, "by": "bob"},
        {"fetch_id": "1", "site": "a.example", "label": "human", "labelled_at": 7, "by": "ada"},
        {"fetch_id": "2", "site": "b.example", "label": "llm", "labelled_at": 8, "by": "ada"},
        {"fetch_id": "2", "site": "b.example", "label": "human", "labelled_at": 9, "by": "bob"},
        {"fetch_id": "2", "labelled_at": 10, "by": "bob"},
    ]
    found = read_review(_labels(tmp_path, *lines), 20)
    assert found is not None
    assert found.labels == {"ada": {"a.example": 0.0, "b.example": 1.0}, "bob": {"a.example": 1.0}}
    assert (found.sites, found.twice) == (["a.example", "b.example"], 1)


def test_a_label_is_as_old_as_the_draw_of_its_sample(tmp_path: Path) -> None:
    """Labels are dated by the draw of their sample; drawn sites without a label count."""
    old = [
        {"fetch_id": f"{n}", "site": f"o{n}.example", "label": "llm", "labelled_at": 5 + n, "drawn": 3, "drawn_at": 5}
        for n in range(3)
    ]
    new = {"fetch_id": "9", "site": "n.example", "label": "human", "drawn": 4, "drawn_at": 12 * DAY_MS}
    found = read_review(_labels(tmp_path, *old, {**new, "labelled_at": 13 * DAY_MS}), 15 * DAY_MS)
    assert found is not None
    assert (found.labels, found.drawn, found.too_old) == ({"": {"n.example": 0.0}}, 4, 3)
    assert (found.at_ms, found.until_ms, found.unlabelled) == (12 * DAY_MS, 22 * DAY_MS, 0.75)


def test_a_site_of_two_samples_counts_once(tmp_path: Path) -> None:
    """Two samples of two sites with one in common, labelled once on the same article, give three sites."""
    lines = [
        {"fetch_id": fetch_id, "site": site, "label": "llm", "labelled_at": at + 1, "drawn": 2, "drawn_at": at}
        for at, fetch_id, site in ((5, "1", "a.example"), (5, "2", "b.example"), (6, "1", "a.example"))
    ]
    found = read_review(_labels(tmp_path, *lines), 20)
    assert found is not None and (len(found.sites), found.drawn) == (2, 3)


def test_a_review_ends_with_its_age_and_a_lost_file_is_said(tmp_path: Path) -> None:
    """A review older than `rate.review_days` is ignored; a missing file is an error that names the setting."""
    settings = _labels(tmp_path, {"fetch_id": "1", "site": "a.example", "label": "llm", "labelled_at": 5})
    assert read_review(settings, 10 * DAY_MS) is not None
    old = read_review(settings, 11 * DAY_MS)
    assert old is not None and (old.labels, old.too_old) == ({}, 1)
    assert read_review(RateSettings(), 0) is None
    with pytest.raises(FarmwatchError, match=r"rate\.review"):
        read_review(RateSettings(review=str(tmp_path / "gone.jsonl")), 0)


def test_a_site_of_two_draws_is_labelled_once_and_drawn_once(farmwatch: Runner, url: str, tmp_path: Path) -> None:
    """Pages of a second draw that the person labelled in the first one count for both: no drawn site is unlabelled."""
    labels = tmp_path / "labels.jsonl"
    for seed in ("1", "2", "3"):
        sample = tmp_path / f"{seed}.jsonl"
        farmwatch("review", "draw", "--sites", "30", "--pages", "1", "--seed", seed, "--out", sample, "--log", url)
        (tmp_path / "keys").write_text("h" * len(sample.read_text().splitlines()))
        farmwatch("review", "label", sample, "--out", labels, "--answers", tmp_path / "keys")
    found = farmwatch("rate", "--json", "--log", url, "--set", f"rate.review={labels}").json
    assert found["labelled"] == found["drawn"] > 30
