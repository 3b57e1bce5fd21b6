"""Segments of labelled pages: what they make scorable, how often human text is flagged, how exact they are, their cost.

    python -m tests.bench.bench_segments [every nth page, default 1]

Prints the tables of docs/explanation/segments.md. A page is surely human if its metadata dates it to before the release
of ChatGPT, or if its collection is older, as on the card of lite-ngram. The article model has learned from many of
these pages. With 10 it takes half a minute.
"""

from __future__ import annotations

import json
import random
import re
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, NamedTuple, TypeVar
from unittest.mock import patch

from farmwatch.labels.labelled_pages import Label, LabelledPages
from filters.measure import page_measures
from filters.quality.names import TextName
from filters.rules.judgement import judge_and_text, scored_text
from filters.rules.ruleset import Ruleset, load_ruleset
from filters.segments import records
from filters.segments.names import OF_SITE, SegmentKind
from filters.settings import MeasureSettings
from filters.site_memory import measurer
from filters.site_memory.measurer import Measurer
from scoring.estimate.intervals import Z95, wilson
from scoring.interface import TextScore
from scoring.lite_ngram.detector import LiteNgram
from scoring.sites.registry import site_method
from scoring.sites.settings import TallySettings
from scoring.stages.pipes import FlagLine, tally_scores
from stream.schema.records import Features
from stream.schema.vocabulary import PageClass, SiteClass
from tests.bench.studies.segmentation import print_fits, splices, threads
from tests.bench.timing import argument, cpu_s, json_lines, labelled_pages_folder
from tests.support.pages.spliced import TEMPLATES, spliced
from tests.support.paths import data_root

HUMAN_SOURCES = ("aeb", "cleaneval", "cleanportaleval", "dragnet", "readability")
LEARNED_SOURCE = "dragnet"  # lite-ngram has learned from its articles
CHATGPT = "2022-11-30"
ROUNDS, COST_PAGES, SPLICES = 3, 300, 210
PARTS = {
    "records": (records, "records_of"),
    "segments": (page_measures, "segments_of"),
    "language and repetition": (page_measures, "measured_segments"),
    "own lines": (measurer, "own_measured"),
}
ARTICLES, ALL_SEGMENTS = "articles, main text", "all that count, joined"

T = TypeVar("T")
_DEFAULT, _WHOLE_WEB = load_ruleset("default"), load_ruleset("whole-web")
_LITE = LiteNgram.load()


class Judged(NamedTuple):
    """A labelled page and what its texts score: of both rulesets, and of each kind of its segments alone."""

    label: Label
    is_human: bool
    is_article: bool
    scores: dict[str, tuple[int, TextScore]]  # words and score; of a ruleset by its name, of segments by their kind


def main() -> None:
    every = argument(1, 1)
    root = labelled_pages_folder()
    names = ", ".join(f"{name} {version(name)}" for name in ("trafilatura", "lxml", "numpy"))
    print(f"{datetime.now(UTC):%Y-%m-%d}; {names}; {_LITE.identity}; whole-web {_WHOLE_WEB.digest}")
    folder = LabelledPages(root)
    folder.labels = folder.labels[::every]
    more = {line["id"]: line for file in root.glob("*/gold.jsonl") for line in map(json.loads, file.open("rb"))}
    pages, texts = [], list[tuple[str, dict[str, Any], Features, bool]]()
    for page in folder.measured(MeasureSettings(workers=2, time_limit_s=120)):
        judged = _judged(page.label, page.features, is_human(page.label, more[page.label.id]))
        pages.append(judged)
        if page.label.source == LEARNED_SOURCE:
            texts.append((page.label.id, more[page.label.id], page.features, judged.is_article))
    print_kinds_of_pages(pages)
    print_kinds_of_segments(pages)
    print_comments(texts)
    print_sites(every)
    print_fits("Threads of known forum software", list(threads(LabelledPages(root, ["wcxb"]), every)))
    print_fits("Pages spliced", list(splices(LabelledPages(root, ["wcxb", "aeb"]), SPLICES // every)))
    print_cost(folder, every)


def is_human(label: Label, gold: Mapping[str, Any]) -> bool:
    return label.source in HUMAN_SOURCES or "1990" < (gold.get("publish_date") or "") < CHATGPT


def _judged(label: Label, features: Features, is_human: bool) -> Judged:
    assert _WHOLE_WEB.otherwise and features.segments is not None
    rules = {ruleset.name: ruleset for ruleset in (_DEFAULT, _WHOLE_WEB)}
    rules |= {of.kind: replace(_WHOLE_WEB.otherwise, kinds=(SegmentKind(of.kind),)) for of in features.segments}
    rules[ALL_SEGMENTS] = _WHOLE_WEB.otherwise
    texts = {name: _text(features, ruleset) for name, ruleset in rules.items()}
    scores = _LITE.score(list(texts.values()))
    of_texts = {name: (len(texts[name].split()), score) for name, score in zip(texts, scores, strict=True)}
    return Judged(label, is_human, judge_and_text(features, _DEFAULT)[0].verdict == PageClass.ARTICLE, of_texts)


def _text(features: Features, ruleset: Ruleset) -> str:
    """The text to score; "" for a dropped page."""
    return judge_and_text(features, ruleset)[1]


def print_kinds_of_pages(pages: Sequence[Judged]) -> None:
    """By kind of page, or by source: those with a score, their words, and the flags of the surely human ones."""
    by_kind: dict[str, list[Judged]] = {}
    for page in sorted(pages, key=lambda page: (not page.label.page_type, page.label.page_type)):
        name = f"wcxb: {page.label.page_type}" if page.label.page_type else page.label.source
        by_kind.setdefault(name, []).append(page)
    others = [page for page in pages if page.label.page_type not in ("", PageClass.ARTICLE)]
    by_kind |= {"all but articles of wcxb": others, "all": list(pages)}
    print("\nBy kind of page: default, then whole-web\n")
    _print_line("kind", "pages", "scored", "", "words", "", "flagged", "", "surely human", "flagged of scored", "")
    _print_line(*["---"] * 11)
    for name, group in by_kind.items():
        cells = [name, len(group)]
        for of in (_scored, _words, lambda some, ruleset: _flags(some, ruleset)[0]):
            cells += [f"{of(group, ruleset.name):,}" for ruleset in (_DEFAULT, _WHOLE_WEB)]
        human = [page for page in group if page.is_human]
        _print_line(*cells, len(human), *(_flagged(human, ruleset.name) for ruleset in (_DEFAULT, _WHOLE_WEB)))


def print_kinds_of_segments(pages: Sequence[Judged]) -> None:
    """Flags of the joined text of one kind of segments alone, of surely human pages, beside those of articles."""
    human = [page for page in pages if page.is_human]
    dropped = [page for page in human if not page.is_article]
    unseen = [page for page in human if page.label.source != LEARNED_SOURCE]
    print("\nSurely human pages, one kind of segments alone: flagged of scored\n")
    _print_line("text", "all pages", "pages that default drops", f"all but {LEARNED_SOURCE}", "counts")
    _print_line(*["---"] * 5)
    articles = [page for page in human if page.is_article]
    of_articles = [page for page in unseen if page.is_article]
    _print_line(ARTICLES, _flagged(articles, _DEFAULT.name), "", _flagged(of_articles, _DEFAULT.name), "")
    k, n = _flags(articles, _DEFAULT.name)
    for kind in (*(str(kind) for kind in SegmentKind), ALL_SEGMENTS):
        if any(kind in page.scores for page in human):
            flags, scored = _flags(human, kind)
            is_above = scored and wilson(flags, scored, Z95).low > k / n
            counts = "" if kind == ALL_SEGMENTS else ("yes" if kind in OF_SITE else "no") + ", above" * bool(is_above)
            _print_line(kind, *(_flagged(of, kind) for of in (human, dropped, unseen)), counts)


def _with(pages: Sequence[Judged], name: str) -> list[tuple[int, TextScore]]:
    return [page.scores[name] for page in pages if name in page.scores and page.scores[name][1].score is not None]


def _scored(pages: Sequence[Judged], name: str) -> int:
    return len(_with(pages, name))


def _words(pages: Sequence[Judged], name: str) -> int:
    return sum(words for words, _ in _with(pages, name))


def _flags(pages: Sequence[Judged], name: str) -> tuple[int, int]:
    scored = _with(pages, name)
    return sum(bool(score.flag) for _, score in scored), len(scored)


def _flagged(pages: Sequence[Judged], name: str) -> str:
    flagged, scored = _flags(pages, name)
    if not scored:
        return "-"
    share, low, high = wilson(flagged, scored, Z95)
    return f"{flagged} of {scored}: {share:.1%} ({low:.1%}-{high:.1%})"


def _print_line(*cells: object) -> None:
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


def print_comments(pages: Sequence[tuple[str, dict[str, Any], Features, bool]]) -> None:
    """Runs of four words of labelled comments and articles of blogs that are in the texts that may count."""
    shares = defaultdict[str, list[list[float]]](list)
    for _, gold, features, is_article in pages:
        own = scored_text(features, TextName.SEGMENTS)[0]
        texts = [features.text, own, features.text if is_article else own]
        article = _runs(gold["articleBody"] or "")
        for kind, wanted in (("article", article), ("comments", _runs(gold.get("comments") or "") - article)):
            if len(wanted) > 50:
                shares[kind].append([len(wanted & _runs(text)) / len(wanted) for text in texts])
    print("\nLabelled text of blogs in the text that counts as the site's\n")
    _print_line("text", "pages", "main text", "segments that count", "whole-web: main text of articles, else segments")
    _print_line(*["---"] * 5)
    for kind, rows in shares.items():
        _print_line(kind, len(rows), *(f"{statistics.fmean(column):.3f}" for column in zip(*rows, strict=True)))


def _runs(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+", text.lower())
    return set(zip(words, words[1:], words[2:], words[3:], strict=False))


Web = Mapping[str, tuple[str, list[list[str]]]]  # site -> its truth, and its texts as passages


def print_sites(every: int) -> None:
    """Sites of pages of one kind, made of the texts of a sample web: site verdicts under both rulesets."""
    web: dict[str, tuple[str, list[list[str]]]] = {}
    for row in json_lines(data_root() / "data" / "sampleweb" / "pages.jsonl.zst"):
        web.setdefault(row["site"], (row["label"], []))[1].append(_passages(row["text"]))
    kinds: dict[str, Callable[[Web, str], Iterator[tuple[str, str]]]] = {
        "articles": _articles,
        "listings of five passages": _listings,
        "threads of others": _threads,
        "short articles, comments of others": _commented,
    }
    print(f"\n{len(list(web)[::every])} sites of a sample web, made of pages of one kind: default, then whole-web\n")
    _print_line("pages", "classifiable", "", "wrong: human", "", "wrong: LLM", "", "pages scored", "")
    _print_line(*["---"] * 9)
    for name, pages_of in kinds.items():
        found = {ruleset.name: Counter[str]() for ruleset in (_DEFAULT, _WHOLE_WEB)}
        of_sites = Measurer(MeasureSettings())
        for site in list(web)[::every]:
            features = [of_sites.measure(url, html, site) for url, html in pages_of(web, site)]
            for ruleset in (_DEFAULT, _WHOLE_WEB):
                _count(found[ruleset.name], features, ruleset, web[site][0])
        columns = ("classifiable", "human wrong", "llm wrong", "scored")
        _print_line(name, *(counts[column] for column in columns for counts in found.values()))


def _count(counts: Counter[str], features: Sequence[Features], ruleset: Ruleset, truth: str) -> None:
    texts = [text for of_page in features if (text := _text(of_page, ruleset))]
    lines = [FlagLine(site="", flag=score.flag, score=score.score) for score in _LITE.score(texts)]
    for line in tally_scores(lines, site_method(TallySettings(), _LITE.identity), _LITE.identity):
        counts["classifiable"] += line.verdict != SiteClass.UNCLASSIFIABLE
        counts["scored"] += line.scored
        counts[f"{truth} wrong"] += line.verdict in (SiteClass.LLM, SiteClass.HUMAN) and line.verdict != truth


def _batched(items: Sequence[T], size: int) -> list[Sequence[T]]:
    return [items[place : place + size] for place in range(0, len(items), size)]


def _passages(text: str) -> list[str]:
    """About 60 words each."""
    return [" ".join(words) for words in _batched(text.split(), 60) if len(words) > 20]


def _others(web: Web, site: str) -> list[str]:
    """Passages of sites of the other truth."""
    rng = random.Random(site)
    passages = [of for truth, texts in web.values() if truth != web[site][0] for text in texts for of in text]
    return rng.sample(passages, 6 * len(web[site][1]))


def _articles(web: Web, site: str) -> Iterator[tuple[str, str]]:
    for number, text in enumerate(web[site][1]):
        yield f"http://{site}.example/texts/{number}", spliced([text], TEMPLATES["comments"])


def _listings(web: Web, site: str) -> Iterator[tuple[str, str]]:
    passages = [[of] for text in web[site][1] for of in text]
    for number, of_page in enumerate(_batched(passages, 5)):
        yield f"http://{site}.example/texts/{number}", spliced(of_page, TEMPLATES["listing"])


def _threads(web: Web, site: str) -> Iterator[tuple[str, str]]:
    others = _batched(_others(web, site), 6)
    for number, (text, answers) in enumerate(zip(web[site][1], others, strict=True)):
        posts = [text, *([answer] for answer in answers)]
        yield f"http://{site}.example/threads/{number}", spliced(posts, TEMPLATES["thread"])


def _commented(web: Web, site: str) -> Iterator[tuple[str, str]]:
    others = _batched(_others(web, site), 6)
    for number, (text, answers) in enumerate(zip(web[site][1], others, strict=True)):
        parts = [text[:3], *([answer] for answer in answers)]
        yield f"http://{site}.example/texts/{number}", spliced(parts, TEMPLATES["comments"])


def print_cost(folder: LabelledPages, every: int) -> None:
    """CPU of segments within MEASURE: of each page, the parts of its fastest round."""
    folder.labels = folder.labels[:: max(1, len(folder.labels) * every // COST_PAGES)]
    spent = dict.fromkeys(PARTS, 0.0)
    rows = []
    with ExitStack() as patches:
        for part, (module, name) in PARTS.items():
            patches.enter_context(patch.object(module, name, _timed(spent, part, getattr(module, name))))
        for label, html in folder.htmls():
            rounds = []
            for _ in range(ROUNDS):
                alone = Measurer(MeasureSettings())
                spent.update(dict.fromkeys(spent, 0.0))
                whole = cpu_s(lambda: alone.measure(label.url, html, label.site))  # noqa: B023  # called at once
                rounds.append((whole, *spent.values()))
            rows.append(min(rounds))
    whole, *parts = (statistics.fmean(column) * 1e3 for column in zip(*rows, strict=True))
    shares = sorted(sum(of_page) / of_whole for of_whole, *of_page in rows)
    middle, most = statistics.median(shares), shares[int(0.95 * len(shares))]
    print(
        f"\nCPU of segments within MEASURE, {len(rows)} pages, best of {ROUNDS}: {sum(parts):.2f} of {whole:.1f} ms",
        end=" ",
    )
    print(
        f"({sum(parts) / whole:.1%}; goal <= 4%); of a page {middle:.1%} in the median, {most:.1%} at the 95th centile"
    )
    print(", ".join(f"{name} {part:.2f} ms" for name, part in zip(PARTS, parts, strict=True)))


def _timed(spent: dict[str, float], part: str, work: Callable[..., Any]) -> Callable[..., Any]:
    def timed(*args: Any) -> Any:
        started = time.process_time()
        result = work(*args)
        spent[part] += time.process_time() - started
        return result

    return timed


if __name__ == "__main__":
    main()
