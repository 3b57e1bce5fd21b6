"""The main text as the rules see it: blocks of lines, and repeated passages in their places."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from farmwatch.explain.blocks import text_lines
from filters.duplicates.repeats import Repeats
from filters.settings import MeasureSettings
from filters.site_memory.measurer import Measurer
from stream.schema.records import Features

WORDS = st.lists(st.sampled_from(["garden", "Straße", "日本", "\U0001f331", "wall.", "\n", "and"]), max_size=300)
HTML = """<html><body><article><h1>A garden</h1><p>The garden was quiet that morning, and nobody walked there.</p>
<ul><li>A first thing to see in it is the <a href="/wall">long wall of stones</a></li>
<li>Another one is the pond.</li></ul>
<p>In the evening everybody came back, and the garden was not quiet any more.</p></article></body></html>"""


@given(earlier=WORDS, more=WORDS)
def test_no_character_is_lost_and_passages_stand_in_their_places(earlier: list[str], more: list[str]) -> None:
    """The lines are those of the text that are not empty; the marked parts are the repeated passages."""
    text = " ".join([*more, *earlier, *more])
    repeats = Repeats(text)
    repeats.compare("http://a.example/earlier", " ".join(earlier))
    lines = text_lines(Features(id="f", site="a.example", page_id="p", url="", epoch="e", text=text), repeats)
    joined = ["".join(part.text for part in line.parts) for line in lines]
    assert joined == [line for line in text.split("\n") if line.strip()]
    passages = repeats.passages()
    for place, passage in enumerate(passages):
        marked = "".join(part.text for line in lines for part in line.parts if part.passage == place)
        assert "".join(passage.text.split()) in "".join(marked.split())  # edges that cut a character mark all of it


def test_lines_have_the_kinds_of_their_blocks() -> None:
    """A heading, paragraphs and list items, with the share of characters in links, and marks of template lines."""
    features = Measurer(MeasureSettings()).measure("http://a.example/1", HTML, "a.example")
    lines = text_lines(features, None)
    assert [line.kind for line in lines] == ["heading", "paragraph", "item", "item", "paragraph"]
    assert [line.link_share > 0 for line in lines] == [False, False, True, False, False]
    assert all(part.passage is None for line in lines for part in line.parts)
    marked = text_lines(msgspec.structs.replace(features, template_lines=b"\x12"), None)
    assert [line.is_template for line in marked] == [False, True, False, False, True]


def test_a_record_without_blocks_has_lines_without_kinds() -> None:
    """Records of an older farmwatch have no table of blocks."""
    lines = text_lines(
        Features(id="f", site="a.example", page_id="p", url="", epoch="e", text="One line.\n\nAnother one."), None
    )
    assert [(line.kind, line.parts[0].text) for line in lines] == [("", "One line."), ("", "Another one.")]
