"""Segments of pages that are made to be slow or large, and of pages without records."""

from __future__ import annotations

import sys
from collections.abc import Callable
from random import Random
from types import FrameType
from typing import Any

import msgspec
import pytest

from filters.extraction.html_tree import MAX_DEPTH, parse
from filters.extraction.interface import ExtractError
from filters.measure.page_measures import measure
from filters.rules.judgement import judge, scored_text
from filters.rules.ruleset import load_ruleset
from filters.segments import segments as module
from filters.segments.records import RecordTexts, records_of
from filters.segments.segments import MOST_CHARS, MOST_RECORDS, segments_of
from filters.settings import MeasureSettings
from filters.site_memory.measurer import Measurer
from filters.structure.page_lines import characters_of, marked_text
from tests.support.pages.prose import PROSE

URL = "https://site.example/here"
SETTINGS = MeasureSettings()
LINE = "A line of text that is long enough to be a record of its own: {}."


def english(number: int, words: int) -> str:
    """So many words of English prose in an order of their own."""
    return " ".join(Random(number).choices(PROSE.split(), k=words))


def found(tree: Any) -> list[RecordTexts]:
    return records_of(list(tree.iter()), characters_of(marked_text(tree)), URL)


def comment(inside: object, name: str = "comment") -> str:
    return f"<li class='{name}'><p>{LINE.format(inside)}</p></li>"


def thread(inside: str) -> str:
    return f"<html><body><ol class=comments>{inside}</ol></body></html>"


def nested(levels: int) -> str:
    return "".join(f"<div class=comment><p>{LINE.format(level)}</p>" for level in range(levels)) + "</div>" * levels


def steps(html: str) -> int:
    """The lines of code of `filters.segments` that run for a page: what it costs, whatever the clock says."""
    tree = parse(html)
    elements, marked = list(tree.iter()), marked_text(tree)
    count = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal count
        if "filters/segments" not in frame.f_code.co_filename:
            return None
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        segments_of(
            "\n".join(LINE.format(number) for number in range(50)), records_of(elements, characters_of(marked), URL)
        )
    finally:
        sys.settrace(before)
    return count


HOSTILE: dict[str, Callable[[int], str]] = {
    "records": lambda size: thread("".join(map(comment, range(size)))),
    "one record": lambda size: thread(comment("<b>x</b>" * size) + comment(1)),
    "answers": lambda size: thread(
        "".join(comment(f"{number}<ul>{''.join(map(comment, range(200)))}</ul>") for number in range(size // 100))
    ),
    "links": lambda size: thread(
        "".join(f"<li><a href='/{number}'>{number} of the links</a>" for number in range(size))
    ),
    "links of one record": lambda size: thread(
        (f"<li><div>{'<a href=/here>one of the links here</a>' * size}</div></li>" + f"<li>{LINE}</li>") * 2
    ),
    "names": lambda size: thread("".join(comment(number, "x" * size + str(number)) for number in range(5))),
    "groups": lambda size: "".join(f"<div><p>{number}</p><section></section></div>" for number in range(size)),
    "tails": lambda size: thread("<li></li>tail of it, and of no record" * size),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_work_grows_no_faster_than_the_page(name: str) -> None:
    """A page of twice as much of anything takes at most twice the steps."""
    once, twice = (steps(HOSTILE[name](size)) for size in (2_000, 4_000))
    assert twice <= 2.1 * once


@pytest.mark.parametrize(
    "html",
    [
        thread("".join(map(comment, range(100_000)))),
        thread("".join(comment(f"{number}<ul>{''.join(map(comment, range(200)))}</ul>") for number in range(200))),
        thread("".join(f"<li class=comment>{LINE.format(number) * 3_000}</li>" for number in range(9))),
        thread("".join(comment(number, f"comment{'x' * 500_000}") for number in range(4))),
    ],
    ids=["100,000 records", "200 times 200 answers", "long records", "long names"],
)
def test_segments_of_a_page_are_bounded(html: str) -> None:
    """Records, their characters and their path are bounded, and so are the bytes that they add to a record."""
    segments = segments_of("", found(parse(html)))
    texts = [text for of_kind in segments for text in of_kind.texts]
    assert segments and 0 < len(texts) <= MOST_RECORDS
    assert sum(map(len, texts)) <= MOST_CHARS
    assert max(len(of_kind.path) for of_kind in segments) < 200
    assert sum(len(msgspec.msgpack.encode(of_kind)) for of_kind in segments) < MOST_CHARS + 10 * MOST_RECORDS
    lines = [line for text in texts for line in text.split("\n")]
    assert len(set(lines)) == len(lines)


def test_deep_pages() -> None:
    """Answers within answers, as deep as a page may be, are records; a deeper page is not parsed."""
    (records,) = found(parse(f"<html><body><div>{nested(300)}{nested(99)}</div></body></html>"))
    assert records.lines == [[LINE.format(number)] for number in (*range(300), *range(99))]
    assert measure(URL, nested(20_000), "", SETTINGS).error == ExtractError.TOO_DEEP
    assert MAX_DEPTH < 20_000


def test_a_page_of_comments_does_not_count_by_them() -> None:
    """Of a page that is nearly all comments, none counts as the site's; without other text it is dropped."""
    comments = "".join(comment(english(number, 80)) for number in range(40))
    whole_web = load_ruleset("whole-web")
    for own, verdict in ((english(99, 30), "dropped"), (english(99, 180), "segments")):
        html = f"<html><body><main><p>{own}</p></main><ol class=comments>{comments}</ol></body></html>"
        features = Measurer(SETTINGS).measure("https://site.example/tag/here", html, "site.example")
        judged = judge(features, whole_web)
        assert judged.verdict == verdict
        assert whole_web.otherwise is not None
        assert scored_text(features, whole_web.otherwise.scores, whole_web.otherwise.kinds)[0] in ("", own)


def test_comments_and_instructions_of_html_are_no_elements() -> None:
    """A tree with comments and processing instructions has the records of one without."""
    clean = thread("".join(map(comment, range(3))))
    noisy = clean.replace("<p>", "<!-- c --><?pi x?><p><!-- d -->")
    assert found(parse(noisy)) == found(parse(clean)) != []


@pytest.mark.parametrize("body", ["", "<p>x", "text", "<br>" * 50, "<div></div>tail" * 500])
def test_pages_without_records(body: str) -> None:
    """Pages without a group of records, one of tails only among them, have their main text as the only segment."""
    records = found(parse(f"<html><body>{body}</body></html>"))
    assert records == []
    assert [of_kind.kind for of_kind in segments_of("text", records)] == ["article"]
    assert segments_of("", records) == []


def test_lines_are_looked_for_in_a_bounded_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of a record's lines are looked for while that is cheap; a line that is not looked for is no article's."""
    text = "\n".join(LINE.format(number) for number in range(3)) + f"\n{LINE.format(3)[:50]}\nof the article"
    records = found(parse(thread("".join(map(comment, range(5))))))
    assert segments_of(text, records)[0].without == b"\x0f"
    monkeypatch.setattr(module, "_MOST_SEARCHED", 400)
    assert [of_kind.kind for of_kind in segments_of(text, records)] == ["comment"]
