"""Text in an element of its own between the paragraphs of an article is kept, in its place."""

from __future__ import annotations

import re

import msgspec
import pytest

from filters.measure.extractors import extract
from filters.settings import MeasureSettings

BOATS = "Sentence {} tells how the people of the village moved their boats to higher ground before the rain came back."
LONE = [
    *("<div>{}</div>", "<div class='text'><span>{}</span></div>", "<div><p>{}</p></div>", "<div>{}<br></div>"),
    *("<x-text>{}</x-text>", "<amp-body><b>{}</b></amp-body>", "<fieldset><p>{}</p></fieldset>", "<center>{}</center>"),
    *("<figure><p>{}</p></figure>", "<figure>{}</figure>", "<label>{}</label>", "<label><em>{}</em></label>"),
    *("<time>{}</time>", "<li>{}</li>", "<li><p>{}</p></li>", "<section>{}</section>", "<dd>{}</dd>"),
    *("<font size=2>{}</font>", "<span>{}</span>", "<div><a href='/x'>The village</a> {}</div>"),
]


def text_of(lone: str, extractor: str, sentences: int = 8) -> str:
    before, after = ("".join(f"<p>{BOATS.format(n)}</p>" for n in part) for part in (range(4), range(4, sentences)))
    html = f"<html><body><article>{before}{lone}{after}</article></body></html>"
    return extract(html, "", msgspec.structs.replace(MeasureSettings(), extractor=extractor)).text


@pytest.mark.parametrize("extractor", ["trafilatura", "blocks", "auto"])
@pytest.mark.parametrize("sentences", [8, 40])
@pytest.mark.parametrize("lone", LONE)
def test_text_between_paragraphs_is_kept_once_and_in_its_place(lone: str, sentences: int, extractor: str) -> None:
    """Whatever the element, also two in a row, as any extractor finds it."""
    unique = [BOATS.format(name) for name in ("Q98", "Q99")]
    text = text_of("".join(lone.format(sentence) for sentence in unique), extractor, sentences)
    assert re.findall("Sentence ([Q0-9]+)", text) == [*map(str, range(4)), "Q98", "Q99", *map(str, range(4, sentences))]


@pytest.mark.parametrize(
    "other",
    [
        *("<div>Advertisement</div>", "<div><a href='/x'>{}</a></div>", "<div><ul><li>{}</ul></div>"),
        *(
            "<figure><img src='x.jpg'><p>{}</p></figure>",
            "<aside>{}</aside>",
            "<div hidden><table><td>{}</table></div>",
        ),
        "<nav>{}</nav>",
    ],
)
def test_other_elements_are_as_before(other: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A word, a link, a list, a caption between paragraphs makes no paragraph."""
    with_it = text_of(other.format(BOATS.format("Q99")), "trafilatura")
    monkeypatch.setattr("filters.extraction.trafilatura_text.make_paragraphs", lambda _: None)
    assert with_it == text_of(other.format(BOATS.format("Q99")), "trafilatura")
