"""Similar pages, and the pages that a page is compared with."""

from __future__ import annotations

from typing import Any

import pytest

from filters.settings import MeasureSettings
from lab.templates import crosses
from lab.templates.crosses import Cross, Snapshot, crosses_of, jaccard, positional_tokens, tag_paths
from lab.templates.words import page_tree


def tree(body: str) -> Any:
    return page_tree(f"<html><head></head><body>{body}</body></html>".encode(), "utf-8", MeasureSettings())


def thesis_tokens(root: Any) -> set[str]:
    """The tokens as the thesis writes them."""
    layers: dict[int, list[list[Any]]] = {0: [[root]]}

    def visit(element: Any, level: int) -> None:
        layers.setdefault(level + 1, []).insert(0, list(reversed(element)))
        for child in element:
            visit(child, level + 1)

    visit(root, 0)
    found = set()
    for level, groups in layers.items():
        for group_nr, group in enumerate(groups):
            for node_nr, node in enumerate(group):
                names = [node.tag, *(above.tag for above in node.iterancestors()), "[document]"]
                found.add("/".join(f"{node_nr}_{group_nr}_{level}_{name}" for name in names))
    return found


TREES = [
    tree(body)
    for body in (
        "<div><p>a</p><p>b</p></div><ul><li>c</li></ul>",
        "<div><p>a</p><p>b</p><p>c</p></div><ul><li>c</li></ul>",
        "<div><p>a</p></div><div><p>b<i>x</i></p></div>",
        "<p>a</p>",
        "",
    )
]


@pytest.mark.parametrize("one", TREES)
@pytest.mark.parametrize("other", TREES)
def test_positional_tokens_are_those_of_the_thesis(one: Any, other: Any) -> None:
    """As many tokens, and as many shared by two pages, as with the thesis's strings."""
    ours, theirs = [positional_tokens(page) for page in (one, other)], [thesis_tokens(page) for page in (one, other)]
    assert [len(tokens) for tokens in ours] == [len(tokens) for tokens in theirs]
    assert len(ours[0] & ours[1]) == len(theirs[0] & theirs[1])


def test_tag_paths_ignore_position() -> None:
    """One more sibling adds no path; another element adds one."""
    assert tag_paths(TREES[0]) == tag_paths(TREES[1])
    assert jaccard(tag_paths(TREES[0]), tag_paths(TREES[3])) == 3 / 8
    assert jaccard(frozenset(), frozenset()) == 0


def page(url: str, at_ms: int, *tokens: int) -> Snapshot:
    return Snapshot(url, at_ms, frozenset(tokens), hash(url))


SITE = [
    page("a", 100, 1, 2, 3),
    page("b", 90, 1, 2, 3),
    page("b", 101, 1, 2, 3),
    page("c", 500, 1, 2, 4),
    page("d", 100, 7, 8, 9),
    page("a", 300, 1, 2, 3, 5),
    page("a", 50, 1, 2),
]


def test_a_cross_has_two_similar_urls_and_the_snapshots_beside() -> None:
    """Up and down have two other URLs, the nearest of equals; prev and next are the snapshots before and after."""
    assert crosses_of(SITE)[0] == Cross(0, up=2, down=3, prev=6, next=5, similarity=1.0)


def test_missing_pages_are_none() -> None:
    """The only URL of a site has no up; a site of two URLs has no down; the first snapshot has no prev."""
    alone, _ = crosses_of([page("a", 1, 1), page("a", 2, 1)])
    assert alone == Cross(0, None, None, None, 1, 0.0)
    assert crosses_of(SITE[:2])[0] == Cross(0, 1, None, None, None, 1.0)
    assert crosses_of([]) == []


def test_large_sites_find_similar_pages_by_bands(monkeypatch: pytest.MonkeyPatch) -> None:
    """Above EXACT_PAGES, pages with equal tokens still find each other, and pages with nothing shared do not."""
    monkeypatch.setattr(crosses, "EXACT_PAGES", 10)
    kinds = [frozenset(range(kind * 100, kind * 100 + 40)) for kind in range(4)]
    pages = [Snapshot(f"u{number}", number, kinds[number % 4], number) for number in range(400)]
    for cross in crosses_of(pages):
        assert cross.up is not None and cross.up % 4 == cross.cur % 4
        assert cross.similarity == 1.0
    (_, single), *_ = [crosses_of([*pages, page("other", 999, 5000, 5001)])[-2:]]
    assert single.up is None


@pytest.mark.parametrize("tokens", [[], [1]])
def test_pages_without_elements_have_a_cross(tokens: list[int]) -> None:
    """Empty token sets are compared, too, by bands and without."""
    pages = [page("a", 1, *tokens), page("b", 2, *tokens)]
    assert crosses_of(pages)[0].up == 1
    assert len(crosses_of(pages, 0.6)) == 2


@pytest.mark.parametrize(("threshold", "up"), [(0.6, 1), (0.62, 1), (0.63, None)])
def test_a_threshold_is_exact(threshold: float, up: int | None) -> None:
    """Of 20 sites of two pages with a similarity of .62, each page has the other up to this threshold."""
    for site in range(20):
        first = 1_000 * site
        pages = [page(name, 1, *range(first + start, first + start + 81)) for name, start in (("a", 0), ("b", 19))]
        cross = crosses_of(pages, threshold)[0]
        assert cross.up == up and cross.similarity == (0.62 if up else 0)


def test_a_threshold_is_exact_on_large_sites(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages found by bands are compared, too: none below the threshold is up, and equal ones are."""
    monkeypatch.setattr(crosses, "EXACT_PAGES", 10)
    pages = [page(f"u{n}", n, *range(100 * (n // 2), 100 * (n // 2) + 81)) for n in range(40)]
    pages += [page(f"v{n}", 50 + n, *range(100 * n + 19, 100 * n + 100)) for n in range(20)]
    found = crosses_of(pages, 0.63)
    assert [cross.up for cross in found] == [*(n ^ 1 for n in range(40)), *[None] * 20]
    assert {cross.down for cross in found} == {None}
