"""The way of the signals to the verdict."""

from __future__ import annotations

from filters.rules.judgement import judge
from filters.rules.ruleset import load_ruleset
from filters.settings import MeasureSettings
from filters.site_memory.measurer import Measurer

HEAD = '<script src="https://cdn.taboola.com/libtrc/a-site/loader.js"></script>'


def test_verdicts_have_the_signals_of_their_pages() -> None:
    """Also of a page without a main text; a page that was not parsed has none, which its features tell from unknown."""
    measurer = Measurer(MeasureSettings())
    for text in ("<p>" + "A long enough sentence about gardens. " * 40 + "</p>", ""):
        features = measurer.measure("https://a.example/1", f"<html><head>{HEAD}</head><body>{text}</body></html>", "a")
        assert features.signals == ["ads:taboola"]
        assert judge(features, load_ruleset("default")).signals == ["ads:taboola"]
    unparsed = measurer.measure("https://a.example/2", "no markup", "a")
    assert (unparsed.signals, judge(unparsed, load_ruleset("default")).signals) == (None, [])
