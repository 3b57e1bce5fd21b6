"""The HTML report of a comparison: its numbers, its plots, and that text of crawled pages is inert; and its words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from resiliparse.parse.html import HTMLTree, traverse_dom

from farmwatch.runs.comparison_words import as_json, change_text, notes_of, remark_text
from farmwatch.runs.report import POLICY, TEXT_CAP_CHARACTERS, printable, render, scale
from replay.compare.comparison import ChangeKind, ChangeRemark, Comparison, ShareChange, SiteFlip
from scoring.estimate.error_counts import ErrorCounts
from scoring.estimate.remarks import Remark, RemarkKind
from scoring.rates.canary_counts import Correction
from scoring.rates.direct_share import DirectShare, ShareState
from tests.support.runs.comparisons import change, empty, flip, made

Element = ElementTree.Element
Colour = tuple[float, float, float]
LOADS = {"src", "srcset", "data", "poster", "background", "action", "formaction", "ping", "manifest"}
HOSTILE = [
    "</pre><script>alert(1)</script>",
    "</details></main><img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "' onmouseover='alert(1)",
    "<!-- --><style>@import url(//evil.example)</style>",
    "&lt;script&gt; &#x3c;script>",
    "]]><![CDATA[<b>",
    "\u202egnirts desrever\u2066 \u200e",
    "null\0 and \x1b[2J and \ud800",
]

SITE = SiteFlip(
    site="a.example", verdict_a="llm", verdict_b="human", articles_a=9, articles_b=7, unscored_a=0, unscored_b=2
)


def parsed(page: str) -> Element:
    """The page, parsed as well-formed XML; browsers read the same elements and attributes."""
    doctype, _, document = page.partition("\n")
    assert doctype == "<!doctype html>"
    root = ElementTree.fromstring(document)
    seen: list[tuple[str, set[str]]] = []
    tree: Any = HTMLTree.parse(page)

    def see(at: Any) -> None:
        seen.append((at.node.tag, set(at.node.attrs or ())))

    traverse_dom(tree.document.query_selector("html"), see, elements_only=True)
    assert seen == [(one.tag, set(one.attrib)) for one in root.iter()]
    return root


def texts(of: Element, name: str, kind: str = "") -> list[str]:
    """Texts of the elements with this name and class."""
    found = (one for one in of.iter(name) if kind in one.get("class", "").split() or not kind)
    return [" ".join(" ".join(one.itertext()).split()) for one in found]


def rows(root: Element) -> Iterator[list[str]]:
    """Every row of every table, as the texts of its cells."""
    for row in root.iter("tr"):
        yield [" ".join("".join(cell.itertext()).split()) for cell in row]


def with_hostile(text: str) -> Comparison:
    """A comparison with this text in every field of a page, a run or a ruleset."""
    found, remark = made(), Remark.of(RemarkKind.NOT_CORRECTED, reason=text)
    flips = [
        flip(1, "in", text, text, url=text, site=text, fetch_id=text),
        flip(2, "out", "min_tokens", text, url=f"https://a.example/{text}"),
    ]
    return msgspec.structs.replace(
        found,
        sample=flips,
        corrections=[Correction(remark=remark)],
        changed_sites=[msgspec.structs.replace(SITE, site=text)],
        only_in_a=[text],
        a=msgspec.structs.replace(found.a, ruleset=text, detector=text, progress=text),
        rules=[msgspec.structs.replace(rule, rule=text, threshold_b=text) for rule in found.rules],
        groups=[msgspec.structs.replace(group, group=text) for group in found.groups],
        changes=[
            msgspec.structs.replace(
                one, title=text, remarks=[ChangeRemark(ChangeKind.NO_SHARE, ("A",), share=(remark,))]
            )
            for one in found.changes
        ],
    )


def assert_inert(page: str) -> None:
    """Check that nothing runs, nothing is loaded, and links lead only to the web."""
    root = parsed(page)
    for one in root.iter():
        assert one.tag in KNOWN, one.tag
        for name, value in one.attrib.items():
            assert not name.startswith("on"), (one.tag, name)
            assert name not in LOADS, (one.tag, name)
            if name == "href":
                assert (one.tag == "link" and value == "data:,") or re.match("https?://", value), value
            if name == "style":
                assert re.fullmatch(r"--s:\d\.\d{3}", value), value
    assert page.count("<style>") == 1
    assert next(root.iter("style")) in list(next(root.iter("head")))


KNOWN = {"html", "head", "meta", "link", "title", "style", "body", "main", "footer", "h1", "h2", "h3", "p", "div", "b"}
KNOWN |= {"span", "code", "ul", "li", "dl", "dt", "dd", "table", "caption", "thead", "tbody", "tr", "th", "td", "svg"}
KNOWN |= {"line", "circle", "rect", "text", "details", "summary", "pre", "a", "bdi"}


def test_every_figure_has_its_denominator_and_interval() -> None:
    """The rates with their texts, each change with interval and denominator, and the tables with their sums."""
    root = parsed(render(made()))
    cards = texts(root, "div", "card")
    assert cards[0].startswith("live: share of LLM sites 33.1% 33.1% (95% interval 30.1% to 36.2%")
    assert "-2.6 points" in cards[1] and "(-4.1 to -1.2)" in cards[1] and "61 of 1,247 sites moved" in cards[1]
    assert all(texts(root, "th")), "screen readers read headers aloud"
    found = list(rows(root))
    assert [
        "Share of LLM sites 61 of 1,247 sites moved",
        "",
        "-2.6 -4.1 to -1.2",
        "live 33.0% 412 of 1,247",
        "strict 30.5% 371 of 1,218",
    ] in found
    assert ["article", "19,344 40.1%", "2,033 4.2%", "21,377"] in found
    assert ["all", "20,069", "28,133", "48,202"] in found
    assert ["llm", "360 29.8%", "24 2.0%", "384"] in found
    assert ["unclassifiable", "0", "5 0.2%", "5 0.2%", "883 41.3%", "0", "893"] in found
    assert ["classifiable", "1,247", "1,218", "-29"] in found
    assert ["without a score so far", "86", "367", "+281"] in found
    assert ["min_tokens >= 50 → >= 120", "", "out 1,940 1,940 first, 1,422 only", "in 0"] in found
    assert ["thrown out", "min_tokens", "1 of 1,940"] in found


def test_the_footer_has_versions_windows_and_seeds() -> None:
    """Ruleset, digest, detector, epoch, site method and window of both runs, the seed and the number of resamples."""
    found = made()
    found = msgspec.structs.replace(found, a=msgspec.structs.replace(found.a, from_at=1_780_000_000_000))
    foot = next(parsed(render(found)).iter("footer"))
    cells = list(rows(foot))
    assert ["ruleset", "default, digest 6f0c2a9e11d4b7a3", "strict, digest b81d5f0072c4e9aa"] in cells
    assert ["detector", found.a.detector, found.b.detector] in cells
    assert ["window", "2026-05-28 20:26 UTC to no end", "the beginning to no end"] in cells
    assert ["site method", "sprt 1f2e3d4c", "sprt 1f2e3d4c"] in cells and ["feature epoch", "e4b1", "e4b1"] in cells
    said = "".join(foot.itertext())
    assert "2026-09-21 14:13 UTC" in said and "2,000 resamples" in said and "seed 7" in said and "95% intervals" in said


def test_the_policy_forbids_all_but_its_own_style() -> None:
    """A policy without scripts, connections, frames, forms and a base comes first after the character set."""
    head = list(next(parsed(render(made())).iter("head")))
    assert head[0].get("charset") == "utf-8"
    assert (head[1].get("http-equiv"), head[1].get("content")) == ("Content-Security-Policy", POLICY)
    assert POLICY.startswith("default-src 'none'; style-src 'unsafe-inline'; img-src data:;")
    style = next(parsed(render(made())).iter("style")).text or ""
    assert "url(" not in style and "@import" not in style and "</" not in style
    assert "prefers-color-scheme: dark" in style and "@media print" in style


def test_two_empty_runs_have_no_plot() -> None:
    """The report has texts instead of plots, and divides nothing."""
    page = render(empty())
    assert_inert(page)
    root = parsed(page)
    assert all(texts(root, "th"))
    words = " ".join("".join(root.itertext()).split())
    assert "The two runs are identical" in words and "No page flipped" in words and "no share yet" in words
    assert not [one for one in root.iter() if one.tag == "svg"]
    assert "nan" not in re.sub("<[^>]*>", "", page).lower().split()


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_are_inert(text: str) -> None:
    """A page's text or URL is only text: it makes no element, attribute or text direction."""
    page = render(with_hostile(text))
    assert_inert(page)
    assert " ".join(printable(text).split()) in " ".join(texts(parsed(page), "pre"))
    assert not any(turning in page for turning in "\u202a\u202b\u202d\u202e\u2066\u2067\u2068\u200e\u200f\0\x1b")
    page.encode()


@settings(max_examples=40)
@given(st.text(st.characters(codec=None), max_size=80))
def test_any_text_is_inert(text: str) -> None:
    """The same holds for any characters."""
    page = render(with_hostile(text))
    assert_inert(page)
    page.encode()


@pytest.mark.parametrize(
    ("url", "links"),
    [
        ("https://a.example/x?a=1&b=2", True),
        ("HTTP://a.example/", True),
        ("javascript:alert(1)", False),
        ("data:text/html,<script>alert(1)</script>", False),
        ("file:///etc/passwd", False),
        (" javascript:alert(1)//https://a.example", False),
        ("https://a.example/\u202efdp.exe", False),
        ("https://a.example/\nx", False),
        ("//a.example/", False),
        ("https://[::1", False),
        ("https://", False),
    ],
)
def test_only_urls_of_the_web_are_links(url: str, links: bool) -> None:
    """http and https URLs without hidden characters become links without a referrer; all others are text."""
    found = msgspec.structs.replace(made(), sample=[flip(1, "in", "r", "text", url=url)])
    anchors = list(parsed(render(found)).iter("a"))
    assert [one.get("href") for one in anchors] == ([url] if links else [])
    assert all((one.get("rel") or "").split() == ["noreferrer", "nofollow", "noopener"] for one in anchors)


def test_flips_are_folded_and_long_texts_cut() -> None:
    """Each flip is closed at first, with verdicts and reasons; a cut text shows how many characters are missing."""
    flips = [flip(1, "out", "min_tokens", "x" * (TEXT_CAP_CHARACTERS + 1234)), flip(2, "in", "r", None)]
    root = parsed(render(msgspec.structs.replace(made(), sample=flips)))
    folded = list(root.iter("details"))
    assert len(folded) == 2 and all(one.get("open") is None for one in folded)
    first = "".join(folded[0].itertext())
    assert "1,234 characters more" in first and "min_tokens is 30.5, not >= 50" in first
    assert "no longer in the log" in "".join(folded[1].itertext())
    assert [one.get("dir") for one in root.iter("pre")] == ["auto"]


def dots(*changes: ShareChange) -> list[list[tuple[str, float]]]:
    """Class and position of the whiskers and of the dot, for each change in one plot."""
    root = parsed(render(msgspec.structs.replace(empty(), changes=list(changes))))
    plots = [svg for svg in root.iter("svg") if not (svg.get("aria-label") or "").startswith("scale from")]
    return [
        [
            (shape.get("class", ""), float((shape.get("cx") or shape.get("x1") or "").rstrip("%")))
            for shape in svg
            if shape.get("class") != "zero"
        ]
        for svg in plots
    ]


def test_a_forest_plot_is_to_scale() -> None:
    """Difference and interval have their positions on the scale; the dot is filled if the interval excludes 0.

    Equal shares have a scale of one point to each side; without shares there is no scale.
    """
    clear = change("x", "x", (50, 100), (40, 100), -0.2, -0.05)
    doubtful = change("x", "x", (50, 100), (52, 100), -0.02, 0.06)
    on = scale([clear, doubtful])
    assert on is not None and (on.low, on.high) == pytest.approx((-0.2, 0.1)) and 0.0 in on.ticks
    drawn = dots(clear, doubtful)
    (_, low), _, _, (kind, middle) = drawn[0]
    assert kind == "clear" and (low, middle) == pytest.approx((on.at(-0.2), on.at(-0.1)), abs=1e-3)
    assert drawn[1][-1][0] == "open"
    assert on.at(on.low) == pytest.approx(4) and on.at(on.high) == pytest.approx(96)
    same = scale([change("x", "x", (1, 2), (1, 2), 0.0, 0.0)])
    assert same is not None and same.at(0.0) == pytest.approx(50)
    assert scale([change("x", "x", (0, 0), (0, 0), 0, 0)]) is None


@settings(max_examples=200)
@given(st.lists(st.tuples(*[st.floats(-1, 1)] * 3), min_size=1, max_size=5))
def test_every_interval_lies_on_its_scale(ends: list[tuple[float, float, float]]) -> None:
    """All differences and 0 lie within the plot, and there are few ticks."""
    changes = []
    for three in ends:
        low, middle, high = sorted(three)
        one = change("x", "x", (1, 2), (1, 2), low, high)
        changes.append(msgspec.structs.replace(one, difference=middle))
    on = scale(changes)
    assert on is not None and 2 <= len(on.ticks) <= 12
    for one in changes:
        assert all(3.9 <= on.at(value or 0.0) <= 96.1 for value in (0.0, one.low, one.difference, one.high))


def test_bars_are_as_long_as_their_counts() -> None:
    """The rule with most pages fills its side, the others in proportion; first failures lie within all."""
    root = parsed(render(made()))
    found: dict[str, dict[str, float]] = {}
    for row in root.iter("tr"):
        shapes = [one for one in row.iter() if one.tag == "rect"]
        if shapes:
            name = texts(row, "code")[0]
            found[name] = {one.attrib["class"]: float(one.attrib["width"].rstrip("%")) for one in shapes}
    assert list(found) == ["min_tokens", "duplicate_share", "link_density", "stop_words"]
    assert found["min_tokens"] == {"out any": 46.0, "out first": 46.0, "in any": 0.0, "in first": 0.0}
    assert found["duplicate_share"]["in any"] == pytest.approx(46 * 702 / 1940, abs=1e-3)
    assert found["link_density"]["out first"] == pytest.approx(46 * 93 / 1940, abs=1e-3)


def luminance(colour: Colour) -> float:
    """Relative luminance, WCAG 2.2."""
    linear = [c / 3294.6 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in colour]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def palettes() -> list[dict[str, Colour]]:
    """The colours of the light and of the dark style, and those of the darkest cells."""
    style = next(parsed(render(made())).iter("style")).text or ""
    strongest = [sum(map(float, found)) for found in re.findall(r"/ calc\((\S+) \+ (\S+) \* var\(--s\)\)", style)]
    assert len(strongest) == 2
    found = []
    for block in re.findall(r":root \{([^}]*--ink[^}]*)\}", style):
        colours: dict[str, Colour] = {}
        for name, value in re.findall(r"--([a-z-]+): ([^;]+);", block):
            digits = value.removeprefix("#")
            digits = "".join(2 * digit for digit in digits) if len(digits) == 3 else digits
            red, green, blue = map(float, value.split() if " " in value else bytes.fromhex(digits))
            colours[name] = red, green, blue
        for name, share in zip(("shade", "shade-differs"), strongest, strict=True):
            red, green, blue = (
                share * one + (1 - share) * under for one, under in zip(colours[name], colours["card"], strict=True)
            )
            colours[name] = red, green, blue
        found.append(colours)
    return found


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize(
    ("text", "background"),
    [
        *((text, background) for text in ("ink", "soft") for background in ("page", "card")),
        *(("ink", background) for background in ("warn", "shade", "shade-differs")),
        *((text, "page") for text in ("accent", "in", "out")),
    ],
)
def test_every_text_has_enough_contrast(theme: int, text: str, background: str) -> None:
    """Each text colour has a contrast of at least 4.5 on each of its backgrounds (WCAG 2.2, 1.4.3)."""
    colours = palettes()[theme]
    light, dark = sorted((luminance(colours[text]), luminance(colours[background])), reverse=True)
    assert (light + 0.05) / (dark + 0.05) >= 4.5


def test_an_unknown_rate_is_a_dash_with_a_reason() -> None:
    """With too few sites for a share, dependent figures are a dash, with the reason."""
    found = made()
    few = msgspec.structs.replace(
        found.b, estimate=DirectShare(low=0.1, high=0.9, method=ShareState.TOO_FEW, scored_sites=3)
    )
    change = msgspec.structs.replace(found.changes[0], b=None, difference=None, low=None, high=None)
    root = parsed(render(msgspec.structs.replace(found, b=few, changes=[change])))
    assert texts(root, "div", "figure") == ["33.1%", "–", "–"]
    nothing = DirectShare()
    found = msgspec.structs.replace(found, b=msgspec.structs.replace(found.b, estimate=nothing), changes=[])
    cards = texts(parsed(render(found)), "div", "card")
    assert cards[2].startswith("strict: share of LLM sites – no share yet: no site has a scored article")
    assert cards[1].startswith("change of the share – nothing to compare")


UNSCORED = ChangeRemark(ChangeKind.UNSCORED, counts=(1, 4, 0, 4))


def test_remarks_are_outside_the_cells_of_numbers() -> None:
    """A share without a difference has a dash; the reason is in its row, or once below the rows that share it."""
    shares = [
        change(name, name, (4, 9), (0, 0), 0, 0, remarks=[ChangeRemark(ChangeKind.NO_DENOMINATOR, ("B",)), UNSCORED])
        for name in ("one", "two")
    ]
    few = ChangeRemark(ChangeKind.FEW_SITES, counts=(9,))
    shares.append(change("three", "three", (4, 9), (5, 9), 0, 0, remarks=[few]))
    root = parsed(render(msgspec.structs.replace(made(), changes=shares, groups=[])))
    found = [row for row in rows(root) if row and row[0].startswith(("One", "Two", "Three"))]
    assert [row[2] for row in found] == ["–", "–", "+11.1 0.0 to 0.0"]
    assert [row[0].partition("moved")[2] for row in found] == ["", "", f"; {remark_text(few)}"]
    said = texts(root, "p", "small")
    assert {f"One, Two: {remark_text(remark)}." for remark in shares[0].remarks} <= set(said)


def test_differences_of_different_windows_are_marked() -> None:
    """If one run judged pages that the other did not, each difference and the headline say so."""
    root = parsed(render(msgspec.structs.replace(made(), other_windows=True)))
    plots = [row[0] for row in rows(root) if row and "sites moved" in row[0]]
    assert plots and all("; of different windows" in row for row in plots)
    assert "; of different windows;" in texts(root, "div", "card")[1]
    assert "different windows" not in render(made())


def test_changed_sites_are_named() -> None:
    """Each with both verdicts and its articles, folded, below the total number."""
    found = made()
    page = render(msgspec.structs.replace(found, changed_sites=[SITE]))
    assert ["a.example", "llm", "human", "9", "7 (2 unscored)"] in list(rows(parsed(page)))
    assert f"1 of {found.sites.changed:,} sites with another verdict" in page
    assert "another verdict" not in render(empty())


def test_unknown_ranks_have_no_plot() -> None:
    """If no hit has a rank, a sentence replaces the plot of the one group `unknown`."""
    found = made()
    groups = [
        group if group.by == "source" else msgspec.structs.replace(group, group="unknown") for group in found.groups
    ]
    root = parsed(render(msgspec.structs.replace(found, groups=groups)))
    assert not [title for title in texts(root, "h3") if title.endswith("by rank")]
    assert [title for title in texts(root, "h3") if title.endswith("by source")]
    assert "No site has a rank." in texts(root, "p", "small")


def test_notes_say_what_to_know_before_the_numbers() -> None:
    """Unfinished and unscored runs, fetches of one run, other instruments, what is left out, and corrections."""
    a, b = made().a, made().b
    a = msgspec.structs.replace(a, progress="judged 2 of 6", articles=4, unscored=2, other_sites=1, other_verdicts=3)
    b = msgspec.structs.replace(
        b,
        progress="",
        detector="d/1",
        site_method="sprt 0",
        epoch="e",
        unscored=0,
        other_sites=2,
        to_at=1_700_000_000_000,
    )
    errors = ErrorCounts(40, 1, 40, 1)
    remark = Remark.of(RemarkKind.NOT_CORRECTED, reason="few")
    compared = msgspec.structs.replace(
        made(), a=a, b=b, other_windows=True, corrections=[Correction(errors, remark), Correction()]
    )
    notes = list(notes_of(compared))
    assert [note.split(" ")[0:3] for note in notes] == [
        ["A,", "the", "run"],
        ["A", "has", "2"],
        [f"{compared.pages.only_in_a:,}", "fetches", "were"],
        ["two", "detectors,", a.detector],
        ["two", "site", "methods,"],
        ["two", "feature", "epochs,"],
        ["left", "out", "of"],
        ["left", "out", "of"],
        ["A:", "not", "corrected"],
    ]
    assert "2 of 4 articles without a score so far (50.0%)" in notes[1]
    assert "3 verdicts, 1 site" in notes[6]
    replayed = f"`farmwatch replay --detector {a.detector} --from {b.run} --name NEW`, `farmwatch compare NEW {b.run}`"
    assert "earliest .. 2023-11-14" in notes[2]
    assert replayed in notes[2]


def test_a_change_is_told_with_its_remarks() -> None:
    """In the text, and in JSON as one field."""
    remarks = [ChangeRemark(ChangeKind.NO_DENOMINATOR, ("B",)), ChangeRemark(ChangeKind.UNSCORED, counts=(0, 4, 2, 4))]
    unknown = change("share", "share", (4, 9), (0, 0), 0, 0, remarks=remarks)
    told = (
        "difference not known: B has no denominator; without the articles that have no score so far: A 0 of 4, B 2 of 4"
    )
    assert change_text(unknown) == f"share: {told}"
    (described,) = as_json(msgspec.structs.replace(made(), changes=[unknown]))["changes"]
    assert (described["remark"], described["text"]) == (told, f"share: {told}")
    known = change("share", "share", (4, 10), (5, 10), 0.05, 0.15)
    assert change_text(known) == "share: 40.0% to 50.0%, +10.0 points (interval +5.0 to +15.0)"
