"""The measures of segments: of each kind of a page, and again of what earlier pages leave of it."""

from __future__ import annotations

import numpy as np
import pytest

from filters.measure.segment_measures import measured_segments, own_measured
from filters.segments.segments import Marks
from stream.schema.records import Segments
from tests.support.pages.prose import PROSE

GERMAN = (
    "Am Morgen ging der alte Fischer hinunter zum Hafen, weil der Wind gedreht hatte und die Netze trocken waren. "
    "Seine Frau wartete oben am Fenster, bis sein Boot hinter der langen Mole verschwand, und kochte dann Kaffee für "
    "alle Kinder. Niemand im Dorf wusste genau, wann er wieder kommen würde, denn das Meer gibt keine Auskunft."
)
TEXT = f"{PROSE}\n{GERMAN}"
WHOLE = Segments("article", words=len(TEXT.split()), language="en", language_probability=0.9, repetition=0.0)
FIRST: Marks = np.array([True])
NO_MARKS: Marks = np.zeros(0, np.bool_)


def own(found: Segments, main: Marks, records: Marks) -> Segments:
    measured = measured_segments(TEXT, [found], WHOLE, "whitespace")
    assert measured[0].language == "en"
    assert own_measured(TEXT, measured, NO_MARKS, NO_MARKS, "whitespace") == measured
    return own_measured(TEXT, measured, main, records, "whitespace")[0]


@pytest.mark.parametrize(
    ("found", "main", "records"),
    [
        (Segments("article"), FIRST, NO_MARKS),
        (Segments("teaser", "li", [PROSE, PROSE, GERMAN]), NO_MARKS, np.array([True, True, False])),
    ],
)
def test_measures_are_of_what_earlier_pages_leave(found: Segments, main: Marks, records: Marks) -> None:
    """Where English lines are known already, the German rest is German, and its repetition its own."""
    left = own(found, main, records)
    assert (left.words, left.language, left.repetition) == (len(GERMAN.split()), "de", 0.0)


def test_a_short_rest_has_no_language() -> None:
    """Below 50 words neither language nor repetition is known."""
    short = Segments("teaser", "li", [PROSE, "A short story of nine words is not enough."])
    left = own(short, NO_MARKS, np.array([True, False]))
    assert (left.words, left.language, left.language_probability, left.repetition) == (9, None, None, None)
