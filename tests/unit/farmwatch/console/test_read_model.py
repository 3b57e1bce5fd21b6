"""The console's index: its counts and finds are those of the log, however the records came."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from farmwatch.console.read_model import JUDGED, ReadModel
from farmwatch.console.site_filter import SORTS, Likely, SiteFilter
from farmwatch.share.page_lines import ListedPage
from stream.log.contract import Output
from stream.memory.log import MemoryLog
from stream.schema.forgotten import Forgotten, ForgottenHost
from stream.schema.records import Page, Record, SiteState, Verdict, encode
from stream.schema.topics import PAGES, SCORES, SITES, VERDICTS, all_topics
from tests.support.pages.page_records import text_score

NAMES = [f"s{n:04}.d{n % 7}.example" for n in range(2_100)]  # more than are sorted when a name is searched


def output(topic: str, record: Record) -> Output:
    return Output(topic, 0, record.site.encode(), encode(record))


@pytest.fixture
def log() -> Iterator[MemoryLog]:
    with closing(MemoryLog()) as made:
        made.create(all_topics(1, "e"))
        yield made


@pytest.fixture
def model(tmp_path: Path) -> ReadModel:
    return ReadModel(tmp_path / "index")


@pytest.fixture(scope="module")
def of_names(tmp_path_factory: pytest.TempPathFactory) -> ReadModel:
    """A model of the sites NAMES."""
    model = ReadModel(tmp_path_factory.mktemp("names") / "index")
    with closing(MemoryLog()) as log:
        log.create(all_topics(1, "e"))
        rows = (
            SiteState(id=name, site=name, verdict="llm" if n % 2 else "human", articles=n % 5, sources=sources_of(n))
            for n, name in enumerate(NAMES)
        )
        log.append([output(SITES, row) for row in rows])
        model.follow(log, Forgotten(log))
    return model


@settings(max_examples=60, deadline=None)
@given(search=st.one_of(st.text("sd.01e", min_size=1, max_size=5), st.sampled_from(NAMES), st.text(max_size=4)))
@example(search="example")
@example(search='s"*')
@example(search="no such site")
def test_a_search_finds_every_name_that_contains_it(of_names: ReadModel, search: str) -> None:
    """With the index of names and without, many or few: the first in the chosen order."""
    wanted = [name for name in NAMES if search.lower() in name]
    assert [row.site for row in of_names.sites(SiteFilter(search=search))] == wanted[:50]
    by_articles = sorted(wanted, key=lambda name: (int(name[1:5]) % 5, name), reverse=True)
    assert [row.site for row in of_names.sites(SiteFilter(search=search), sort="articles")] == by_articles[:50]


def sources_of(number: int) -> list[str]:
    return ["searx", *(["file"] if number % 3 else []), *(["rare"] if number % 500 == 7 else [])]


@pytest.mark.parametrize("source", ["searx", "rare", "none"])
@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize("search", ["", "d3.ex"])
def test_sites_of_a_source_come_in_screens(of_names: ReadModel, source: str, sort: str, search: str) -> None:
    """A source of all sites, of a few, of none: each of its sites is on one screen, in the order, by verdict too."""
    numbers = [n for n in range(len(NAMES)) if source in sources_of(n) and n % 2 and search in NAMES[n]]
    order = sorted(numbers, key=lambda n: (n % 5 if sort == "articles" else 0, NAMES[n]), reverse=sort != "site")
    found: list[str] = []
    of = SiteFilter(source=source, search=search, verdict="llm")
    while screen := of_names.sites(of, sort=sort, after=found[-1] if found else "", limit=40):
        found += [row.site for row in screen]
    assert found == [NAMES[n] for n in order]
    assert list(of_names.sources()) == ["file", "rare", "searx"]
    reversed_ = of_names.sites(of, sort=sort, is_reversed=True, limit=10_000)
    assert [row.site for row in reversed_] == found[::-1]
    assert sum(sums.sites for sums in of_names.site_sums(of)) == len(found)
    assert sum(sums.articles for sums in of_names.site_sums(of)) == sum(n % 5 for n in numbers)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("of", [SiteFilter(), SiteFilter(verdict="human", least=2), SiteFilter(search="s00")])
def test_sites_are_sorted_by_their_probability(of_names: ReadModel, of: SiteFilter, reverse: bool) -> None:
    """The most probable first, in screens, those without one last; the other way round if reversed; few or many."""
    likely = {name: n % 7 / 7 for n, name in enumerate(NAMES) if n % 3}
    matching = [row.site for row in of_names.sites(of, limit=10_000)]
    order = sorted(matching, key=lambda name: (likely.get(name, -1.0), name), reverse=not reverse)
    found: list[str] = []
    while screen := of_names.sites(
        of, sort="p_llm", is_reversed=reverse, likely=Likely(likely), after=found[-1] if found else "", limit=90
    ):
        found += [row.site for row in screen]
    assert (found, len(found) > 90) == (order, True)


def test_the_sources_are_those_of_the_newest_rows(log: MemoryLog, model: ReadModel) -> None:
    """Without those of canaries, of rows that changed or went, and of forgotten hosts."""

    def of(name: str, *sources: str) -> Output:
        return output(SITES, SiteState(id=name, site=name, sources=list(sources)))

    log.append([of("a.example", "x", "y", "y"), of("b.example", 'é"', "z"), of("c.example", "w")])
    log.append([of("h.canary.invalid", "canary")])
    model.follow(log, Forgotten(log))
    assert model.sources() == {"w": 1, "x": 1, "y": 1, "z": 1, 'é"': 1}
    log.append([of("a.example", "y", "z"), Output(SITES, 0, b"b.example", None)])
    model.follow(log, Forgotten(log))
    assert model.sources() == {"w": 1, "y": 1, "z": 1}
    assert [row.site for row in model.sites(SiteFilter(source="z"))] == ["a.example"] and not model.sites(
        SiteFilter(source="x")
    )
    forgotten = Forgotten(log)
    log.append(forgotten.outputs("c.example", ForgottenHost(at=1)))
    forgotten.refresh()
    model.follow(log, forgotten)
    assert model.sources() == {"y": 1, "z": 1}


def test_the_outcomes_of_pages_are_counted_once(log: MemoryLog, model: ReadModel) -> None:
    """A page that is fetched, judged and judged again counts by its newest verdict."""
    pages = [
        Page(id=p, site=p, page_id=p, url=f"https://{p}/", outcome=o) for p, o in (("a", "fetched"), ("b", "failed"))
    ]
    log.append([output(PAGES, page) for page in pages])
    model.follow(log, Forgotten(log))
    assert model.outcomes() == [("failed", "", 1), ("fetched", "", 1)]
    for verdict, why in (("dropped", "words"), ("article", "")):
        log.append(
            [output(VERDICTS, Verdict(id="a", site="a", page_id="a", url="", verdict=verdict, first_failed=why))]
        )
        model.follow(log, Forgotten(log))
        assert model.outcomes() == sorted([("failed", "", 1), (verdict, why, 1)])


def test_a_rebuild_says_what_is_left(log: MemoryLog, model: ReadModel) -> None:
    """The number falls with each batch, and is 0 at the end."""
    log.append([output(SITES, SiteState(id=name, site=name)) for name in [*NAMES, *NAMES]])
    left: list[int] = []

    def goes_on() -> bool:
        left.append(model.left)
        return True

    model.follow(log, Forgotten(log), goes_on)
    assert left == sorted(left, reverse=True) and 0 < left[0] < 2 * len(NAMES) and left[-1] == model.left == 0


def test_an_index_that_is_deleted_is_made_anew(log: MemoryLog, model: ReadModel, tmp_path: Path) -> None:
    """Also while the console runs: the next look at the log reads it from its start."""
    log.append([output(SITES, SiteState(id="a.example", site="a.example"))])
    for _ in range(2):
        model.follow(log, Forgotten(log))
        assert [row.site for row in model.sites()] == ["a.example"]
        for path in tmp_path.glob("index*"):
            path.unlink()


def test_pages_of_a_kind_come_in_screens(log: MemoryLog, model: ReadModel) -> None:
    """Each page of the kind, and of the reason, once, by site; a reason may be empty."""
    verdicts = [("article", ""), ("dropped", "words"), ("dropped", "language")]
    said = [(f"s{n % 4}", f"{n:02}", *verdicts[n % 3]) for n in range(24)]
    log.append(
        [
            output(VERDICTS, Verdict(id=page, site=site, page_id=page, url=page, verdict=verdict, first_failed=why))
            for site, page, verdict, why in said
        ]
    )
    log.append([output(PAGES, Page(id="x", site="s0", page_id="x", url="x", outcome="failed", reason="http_404"))])
    model.follow(log, Forgotten(log))
    every = sorted([*said, ("s0", "x", "failed", "http_404")])
    for kind, why, wanted in (
        ("", None, every),
        (JUDGED, None, sorted(said)),
        ("dropped", None, [one for one in every if one[2] == "dropped"]),
        ("dropped", "words", [one for one in every if one[3] == "words"]),
        ("article", "", [one for one in every if one[2] == "article"]),
        ("failed", "http_404", [one for one in every if one[2] == "failed"]),
    ):
        found: list[ListedPage] = []
        while screen := model.pages_of_kind(
            kind, why, "", after=(found[-1].site, found[-1].page_id) if found else ("", ""), limit=3
        ):
            found += screen
        assert [(page.site, page.page_id) for page in found] == [one[:2] for one in wanted]


def test_a_page_has_the_share_of_flagged_windows(log: MemoryLog, model: ReadModel) -> None:
    """Of the given detector; none of a detector without windows, and of a score older than they are."""
    log.append([output(VERDICTS, Verdict(id="1", site="s", page_id="p", url="u", verdict="article", text_digest="t"))])
    log.append([output(SCORES, text_score("s", "t", "encoder/a", flag=True, windows=4, windows_flagged=1))])
    log.append([output(SCORES, text_score("s", "t", "lite-ngram/b", flag=True))])
    model.follow(log, Forgotten(log))
    for detector, share in (("encoder/a", 0.25), ("lite-ngram/b", None)):
        assert [(page.flag, page.flagged_windows) for page in model.pages("s", detector)] == [(True, share)]
