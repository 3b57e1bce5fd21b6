"""Content farms where people look: `site`, the console's pages, and the gauge of their share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from farmwatch.share.current_rate import read_sitemaps
from farmwatch.share.live_share import LiveShare
from farmwatch.share.site_farm import SiteFarm
from farmwatch.share.topic_records import NewestRecords
from scoring.rates.farm_signs import ListedUrls
from stream.log.contract import At, Log, Message, Output, partition_of
from stream.memory.log import MemoryLog
from stream.opening import open_log
from stream.processing.metrics import Metrics
from stream.schema.records import Sitemaps, encode
from stream.schema.topics import SITEMAPS, all_topics
from stream.text.user_errors import Exit
from tests.support.front_door import Runner
from tests.support.runs.live_rows import CONFIG, LIVE, METHOD, new_log, row
from tests.support.web.console_browser import visited

COUNTS: dict[str, Any] = {"scored": 10, "pages": 10, "articles": 10, "epoch": "e"}
SITES = [f"s{n}.example" for n in range(60)]  # half of them by a model, and of these half with ads
LISTED = SITES[:20]


class WatchedLog(MemoryLog):
    """Notes what is read of the sitemaps."""

    def __init__(self) -> None:
        super().__init__()
        self.create(all_topics(2, "e"))
        self.read_of: list[dict[int, tuple[int, int]]] = []

    def read_all(self, ranges: Mapping[At, tuple[int, int]]) -> Iterator[Message]:
        if spans := {at.partition: span for at, span in ranges.items() if at.topic == SITEMAPS}:
            self.read_of.append(spans)
        return super().read_all(ranges)


def fill(log: Log, partitions: int) -> None:
    """60 sites: half by a language model, every second with ads, 20 with a sitemap."""
    rows = [
        row(site, "llm", flagged=9 if n < 30 else 0, signals={"ads:gam" if n % 2 else "cms:wix": 5}, **COUNTS)
        for n, site in enumerate(SITES)
    ]
    log.append(rows)
    for site in LISTED:
        maps = Sitemaps(id=site, site=site, urls=200, files_read=1, files_listed=1, months={})
        log.append([Output(SITEMAPS, partition_of(site, partitions), site.encode(), encode(maps))])


@pytest.mark.parametrize(
    ("signs", "words"),
    [
        ((True, True, 1200), "yes, if a language model writes it; in mass: yes (1,200 article URLs), monetised: yes"),
        (
            (True, None, 200),
            "unknown, if a language model writes it; in mass: yes (200 article URLs), monetised: unknown",
        ),
        ((None, False, None), "no; in mass: unknown, monetised: no"),
        ((True, True, 200, True), "no (people write it); in mass: yes (200 article URLs), monetised: yes"),
    ],
)
def test_the_words_of_a_site(signs: tuple[Any, ...], words: str) -> None:
    """One no is a no, else one unknown is unknown."""
    assert SiteFarm(*signs).words == words


def test_site_and_the_console_say_whether_it_is_a_farm(farmwatch: Runner, tmp_path: Path) -> None:
    """In words and as JSON, the same; the console's page of the answer has the share from yes to yes and unknown."""
    url = f"sqlite:{tmp_path / 'log'}"
    with closing(open_log(url)) as log:
        log.create(all_topics(2, "e"))
        fill(log, 2)
    expected = {"s1.example": (True, True), "s2.example": (True, False), "s41.example": (None, True)}
    for site, (mass, monetised) in expected.items():
        said = farmwatch("site", site, "--log", url)
        assert said.code == Exit.OK, said.err
        found = farmwatch("site", site, "--json", "--log", url).json["content_farm"]
        page, twin = visited(url, tmp_path, "/site", "/site.json", site=site)
        words = twin.json["content_farm"].pop("words")
        assert found == twin.json["content_farm"] and (found["mass"], found["monetised"]) == (mass, monetised)
        assert words in page.text and f"content farm: {words}" in " ".join(said.out.split())
    answer, twin = visited(url, tmp_path, "/answer", "/answer.json", of="farm")
    (line,) = twin.json["lines"]
    assert line["share"] < line["at_most"] and [of["article_urls"] for of in line["farms"]] == [100, 50, 500]
    assert f"{line['share']:.1%} to {line['at_most']:.1%}</strong> of 60 sites" in answer.text
    assert "10 publish in mass and are monetised" in answer.text


def test_a_log_without_signs_has_no_share_of_farms(finished: str, tmp_path: Path) -> None:
    """The page says so, with the reason."""
    (answer,) = visited(finished, tmp_path, "/answer", of="farm")
    assert answer.status == 200 and "No share of content farms" in answer.text


def test_the_share_of_farms_is_a_gauge() -> None:
    """With its interval, and with the sites of which a sign is unknown; without signs there is none."""
    log, metrics = new_log(), Metrics()
    share = LiveShare(log, CONFIG.rate, metrics, LIVE, METHOD)

    def gauges() -> dict[str, float]:
        share.update_farm_gauges()
        return {
            sample.labels["bound"]: sample.value
            for family in metrics.registry.collect()
            for sample in family.samples
            if sample.name == "farmwatch_content_farm_share"
        }

    assert gauges() == {}
    fill(log, log.topics()[SITEMAPS])
    found = gauges()
    assert found["low"] < found["point"] < found["at_most"] < found["high"]
    assert found["point"] == pytest.approx(10 / 60, abs=0.03) and found["at_most"] == pytest.approx(15 / 60, abs=0.03)


def test_sitemaps_are_read_once() -> None:
    """Of one site its partition is read; a process that looks again reads what is new, and loses what is deleted."""
    log = WatchedLog()
    fill(log, 2)
    newest = NewestRecords(log, ListedUrls, SITEMAPS)
    assert newest.refresh() == read_sitemaps(log) and len(newest.refresh()) == len(LISTED)
    site, place, ends = LISTED[3], partition_of(LISTED[3], 2), log.end(SITEMAPS)
    log.read_of.clear()
    assert list(read_sitemaps(log, site)) == [site] and log.read_of == [{place: (0, ends[place])}]
    log.read_of.clear()
    maps = Sitemaps(id=site, site=site, urls=7, files_read=1, files_listed=1, months={})
    log.append([Output(SITEMAPS, place, site.encode(), encode(maps))])
    assert newest.refresh()[site].urls == 7
    log.append([Output(SITEMAPS, place, site.encode(), None)])
    assert site not in newest.refresh()
    assert log.read_of == [{place: (end, end + 1)} for end in (ends[place], ends[place] + 1)]
