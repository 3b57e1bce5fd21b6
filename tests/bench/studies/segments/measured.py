"""Measures the segments of labelled pages: `python -m tests.bench.studies.segments.measured`.

Prints how much of the labelled comments and article texts of blogs would count as the site's, and by kind of page how
many dropped pages have text enough for lite-ngram, as main text and as segments, and how many of these it flags.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import zstandard

from farmwatch.api import judge, measure
from farmwatch.pipes.lines import features_of
from filters.extraction.html_tree import parse, readable
from filters.quality.names import TextName
from filters.rules.judgement import scored_text
from scoring.detectors.registry import load_detectors
from scoring.detectors.settings import ScoreSettings
from tests.support.paths import data_root

_ELSEWHERE = "http://site.example/page"


def labelled_pages(source: str) -> Iterator[tuple[dict[str, Any], str]]:
    """The labels and the HTML of the pages of a source."""
    folder = data_root() / "data" / "pages" / source
    for line in (folder / "gold.jsonl").read_bytes().splitlines():
        label = json.loads(line)
        packed = (folder / "html" / f"{label['id']}.html.zst").read_bytes()
        yield label, zstandard.ZstdDecompressor().decompress(packed, 1 << 26).decode(errors="replace")


def texts_of(html: str, url: str) -> tuple[str, str, bool]:
    """Main text, text of the segments that count for the site, and whether the page is an article today."""
    named = str(parse(readable(html)).xpath("string(//link[@rel='canonical']/@href)"))
    url = url if urlsplit(url).scheme else named if named.startswith("http") else _ELSEWHERE
    features = measure(html, url)
    return features.text, scored_text(features_of(features), TextName.SEGMENTS)[0], judge(features).verdict == "article"


def _runs(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+", text.lower())
    return set(zip(words, words[1:], words[2:], words[3:], strict=False))


def comments_of_blogs() -> None:
    """Runs of four words of labelled comments and articles that are in the main text, and in the site's segments."""
    shares = defaultdict[str, list[tuple[float, float]]](list)
    for label, html in labelled_pages("dragnet"):
        main, own, _ = texts_of(html, label.get("url") or "")
        article = _runs(label["articleBody"] or "")
        for kind, wanted in (("article", article), ("comments", _runs(label.get("comments") or "") - article)):
            if len(wanted) > 50:
                shares[kind].append((len(wanted & _runs(main)) / len(wanted), len(wanted & _runs(own)) / len(wanted)))
    for kind, pairs in shares.items():
        now, then = (sum(column) / len(pairs) for column in zip(*pairs, strict=True))
        print(f"{kind}: {len(pairs)} pages; {now:.3f} in the main text, {then:.3f} in segments that count")


def dropped_pages(source: str) -> None:
    """By kind: dropped pages, those with text enough as main text and as segments, and those flagged."""
    detector = load_detectors(ScoreSettings())[0]
    counts = defaultdict[str, Counter[str]](Counter)
    for label, html in labelled_pages(source):
        main, own, is_article = texts_of(html, label.get("url") or "")
        if not is_article:
            kind = counts[label.get("page_type") or source]
            kind["dropped"] += 1
            for name, score in zip(("main", "segments"), detector.score([main, own]), strict=True):
                kind[f"{name} scored"] += score.score is not None
                kind[f"{name} flagged"] += bool(score.flag)
    for name, kind in counts.items():
        print(f"{name}: {', '.join(f'{what} {number}' for what, number in kind.items())}")


if __name__ == "__main__":
    comments_of_blogs()
    for of_source in ("wcxb", "cleaneval"):
        dropped_pages(of_source)
