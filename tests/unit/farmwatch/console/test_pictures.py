"""The pictures of the console: drawn where the numbers are, well-formed whatever a name is, and said in words."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from farmwatch.console.drawings import DRAWINGS, saved
from farmwatch.console.history_marks import marks_of
from farmwatch.console.pictures import (
    Dated,
    Mark,
    Point,
    Portion,
    Step,
    Strip,
    bars,
    path,
    shares,
    timeline,
    trend,
    whole,
)
from scoring.rates.direct_share import ShareState
from stream.schema.records import RatePoint
from stream.schema.runs import Cutover
from tests.support.web.console_browser import visited

SVG = "{http://www.w3.org/2000/svg}"
HOUR_MS = 3_600_000


def parsed(picture: Markup) -> ElementTree.Element:
    return ElementTree.fromstring(picture)


def placed(element: ElementTree.Element, name: str) -> float:
    """A place or a length, as a part of the width."""
    return float(element.attrib[name].removesuffix("%")) / 100


def of_look(picture: Markup, look: str) -> list[ElementTree.Element]:
    return [element for element in parsed(picture).iter() if element.get("class") == look]


def words_of(picture: Markup) -> str:
    desc = parsed(picture).find("desc")
    assert desc is not None and desc.text is not None
    return desc.text


def test_a_share_stands_where_it_is_on_the_strip() -> None:
    """The dot at the share, the band from low to high, and all three in the text alternative."""
    picture = shares("Share", [Strip("all sites", 0.48, 0.241, 0.721, "of 16 sites")], is_headline=True)
    (dot,), (band,) = of_look(picture, "point"), of_look(picture, "band")
    assert (placed(dot, "cx"), placed(band, "x")) == pytest.approx((0.48, 0.241))
    assert placed(band, "x") + placed(band, "width") == pytest.approx(0.721)
    assert words_of(picture) == "all sites: 48.0%, 24.1% to 72.1% of 16 sites"


def test_a_group_without_a_share_has_no_dot() -> None:
    """It stays in the chart, which says so."""
    picture = shares("Share", [Strip("a", 0.5, 0.4, 0.6, ""), Strip("b", None, None, None, "of 0 sites")])
    assert len(of_look(picture, "point")) == len(of_look(picture, "band")) == 1
    assert words_of(picture).endswith("b: no share of 0 sites")


def test_the_parts_of_a_whole_fill_the_bar() -> None:
    """Each is as long as its part, one after the other."""
    picture = whole(
        "Verdicts", [Portion("llm", 4, "of-llm"), Portion("human", 12, "of-human"), Portion("open", 0, "of-open")]
    )
    llm, human, empty = (of_look(picture, look)[0] for look in ("of-llm", "of-human", "of-open"))
    assert [(placed(part, "x"), placed(part, "width")) for part in (llm, human, empty)] == [
        (0, 0.25),
        (0.25, 0.75),
        (1, 0),
    ]
    assert words_of(picture) == "llm: 4 (25%); human: 12 (75%); open: 0 (0%)"


def test_a_history_stands_where_its_times_and_shares_are() -> None:
    """Points are evenly apart in time, higher shares stand higher, and points of other versions are not joined."""
    points = [
        Point(n * HOUR_MS, share, share - 0.1, share + 0.1, "ab"[n > 1]) for n, share in enumerate((0.2, 0.4, 0.3, 0.3))
    ]
    picture = trend("History", points, [Mark(HOUR_MS, "cutover", "stricter")])
    dots, curves, (mark,) = of_look(picture, "point"), of_look(picture, "curve"), of_look(picture, "mark cutover")
    assert [placed(dot, "cx") for dot in dots] == pytest.approx([0, 1 / 3, 2 / 3, 1], abs=1e-4)
    first, second, third, fourth = (float(dot.attrib["cy"]) for dot in dots)
    assert second < third == fourth < first and third - second == pytest.approx((first - second) / 2, abs=0.11)
    assert [len(curve.attrib["points"].split()) for curve in curves] == [2, 2]
    assert placed(mark, "x1") == pytest.approx(
        1 / 3, abs=1e-4
    ) and "cutover at 1970-01-01 01:00 UTC: stricter" in words_of(picture)


@pytest.mark.parametrize("share", [0.0, 0.0004, 0.5, 1.0])
def test_one_point_is_a_history(share: float) -> None:
    """In the first hour of a crawl the picture shows the share and its interval."""
    picture = trend("History", [Point(HOUR_MS, share, 0.0, 1.0, "a")])
    (dot,), (whisker,) = of_look(picture, "point"), of_look(picture, "whisker")
    height = float(parsed(picture).attrib["height"])
    assert 0 <= float(whisker.attrib["y2"]) <= float(dot.attrib["cy"]) <= float(whisker.attrib["y1"]) <= height
    assert trend("History", [Point(1, None, None, None, "")]) == ""


def test_the_path_of_a_test_meets_its_bound_where_it_decides() -> None:
    """A flagged page stands above the threshold, and the sum that is at a bound stands on its line."""
    steps = [
        Step(0.99, 0.7, "flagged", "of-llm"),
        Step(0.5, 0.0, "not", "of-human"),
        Step(0.97, 6.9, "flagged", "of-llm"),
    ]
    picture = path("Test", steps, {"human": -3.9, "llm": 6.9}, 0.95)
    lower, upper, threshold = (float(line.attrib["y1"]) for line in of_look(picture, "mark"))
    above = [
        float(dot.attrib["cy"]) < threshold for dot in (*of_look(picture, "of-llm"), *of_look(picture, "of-human"))
    ]
    assert above == [True, True, False]
    (curve,) = of_look(picture, "curve")
    (inner,) = [element for element in parsed(picture) if element.tag == "svg"]
    places = [pair.split(",") for pair in curve.attrib["points"].split()]
    assert [float(x) for x, _ in places] == [0, 500, 1000]
    assert float(places[-1][1]) + float(inner.attrib["y"]) == pytest.approx(upper) and lower > upper
    assert "human at -3.90; llm at +6.90; flagged above 95%" in words_of(picture)


def test_a_timeline_has_each_article_at_its_day() -> None:
    """From the first year on, the mark at its day; articles without a probability stand below the line."""
    articles = [
        Dated(date(2020, 1, 1), 0.0, "a", "of-human"),
        Dated(date(2022, 11, 30), 1.0, "b", "of-llm"),
        Dated(date(2024, 1, 1), None, "c", "of-open"),
    ]
    picture = timeline("Articles", articles, date(2022, 11, 30), "release")
    first, second, third = (of_look(picture, look)[0] for look in ("of-human", "of-llm", "of-open"))
    (mark,) = of_look(picture, "mark")
    assert [first.attrib["cx"], third.attrib["cx"]] == ["0.00%", "100.00%"]
    assert mark.attrib["x1"] == second.attrib["cx"]
    assert float(second.attrib["cy"]) < float(first.attrib["cy"]) < float(third.attrib["cy"])
    assert "release: 2022-11-30; a; b; c" in words_of(picture)
    assert not timeline("Articles", [], date(2022, 11, 30), "release")


@pytest.mark.parametrize("turned", [True, False])
def test_the_timeline_of_a_site_that_turned_says_so(turned: bool) -> None:
    """At the day of ChatGPT's release."""
    article = {"published": "2021-05-01", "p_llm": 0.2, "flag": False}
    drawn = DRAWINGS["dates"].draw({"site": {"site": "a.example", "turned": turned}, "dated": [article]})
    assert ("the site turned" in drawn) == turned


@given(st.text(), st.text())
def test_a_picture_is_xml_whatever_its_names_are(name: str, other: str) -> None:
    """Also as a file; no name becomes a tag or an attribute."""
    odd = f"{name}\"'><script>{other}</script>\x00\ud800\uffff]]>&"
    pictures = [
        shares(odd, [Strip(odd, 0.1, 0.0, 0.2, odd), Strip(odd, None, None, None, odd)]),
        whole(odd, [Portion(odd, 3, odd)]),
        bars(odd, [Portion(odd, 3, odd)]),
        path(odd, [Step(None, 0.1, odd, odd)], {odd: 1.0}, None),
        timeline(odd, [Dated(date(2020, 1, 1), None, odd, odd)], date(2022, 11, 30), odd),
        trend(odd, [Point(1, 0.1, 0.0, 0.2, odd), Point(2, 0.1, None, None, odd)], [Mark(1, odd, odd)]),
    ]
    for picture in pictures:
        file = ElementTree.fromstring(saved(picture))
        assert {element.tag.removeprefix(SVG) for element in file.iter()} <= {
            *("svg", "style", "title", "desc", "rect", "circle", "text", "line", "polygon", "polyline")
        }
        assert not any(name.startswith(("on", "href", "style")) for element in file.iter() for name in element.attrib)


def marks(points: Sequence[RatePoint], *cutovers: Cutover) -> list[tuple[int, str, str]]:
    return [(mark["at"], mark["kind"], mark["text"]) for mark in marks_of(points, cutovers)]


def test_other_versions_cutovers_and_reviews_are_marked_once() -> None:
    """A change by a cutover is the cutover's; two versions side by side are marked when the second comes."""
    points = [
        RatePoint(id=f"{at}{digest}", site="", at=at, digest=digest, detector="d", share_method=method)
        for at, digest, method in (
            (1, "a", ""),
            (2, "a", ""),
            (2, "b", ""),
            (3, "a", ""),
            (3, "b", ShareState.REVIEWED),
            (5, "c", ""),
        )
    ]
    move = Cutover(number=1, at=4, by="me", from_run="first", to_run="other", why="shorter")
    assert marks(points, move) == [
        (2, "version", "another ruleset"),
        (3, "review", "in force"),
        (4, "cutover", "other: shorter"),
        (5, "review", "ended"),
    ]


def test_each_picture_of_the_share_is_that_of_the_twin(finished: str, tmp_path: Path) -> None:
    """What a page shows is drawn from what its JSON twin has; the file has colours, and is saved, not shown."""
    names = [name for name, drawing in DRAWINGS.items() if drawing.view == "answer"]
    twin, page, *files = visited(finished, tmp_path, "/answer.json", "/answer", *(f"/{name}.svg" for name in names))
    for name, file in zip(names, files, strict=True):
        drawn = str(DRAWINGS[name].draw(twin.json))
        assert drawn in page.text and file.status == (200 if drawn else 404)
        if drawn:
            assert file.headers["Content-Disposition"].startswith("attachment") and "<style>" in file.text
            assert ElementTree.fromstring(file.text).tag == f"{SVG}svg"
