"""The share of LLM sites on real pages: without what their control pages, and their operators, say, and with it.

Run by `python -m tests.bench.studies.control_pages`. The labelled pages with a URL and the sample web go through
MEASURE, JUDGE, SCORE and TALLY as if they had been fetched now. Nearly all are by people or of unknown authors, so the
share shows what these change, not how many LLM sites the web has.
"""

from __future__ import annotations

import time
from contextlib import closing

import msgspec
import xxhash
import zstandard

from crawler.web.urls import page_id_of_normal
from filters.measure.epoch import feature_epoch
from filters.settings import MeasureSettings
from replay.rows.site_table import read_rows
from scoring.lite_ngram.detector import LiteNgram
from scoring.rates.split_rates import rate_lines
from stream.memory.log import MemoryLog
from stream.schema.records import Page
from stream.schema.topics import PAGES, SITES, all_topics
from tests.support.logs.stage_work import put, work_all
from tests.support.paths import data_root
from tests.support.web.webs import labelled_pages, sample_web

_BATCH = 100


def main() -> None:
    settings, web = MeasureSettings(), labelled_pages(data_root())
    web.add(sample_web(data_root()))
    packer, now_ms = zstandard.ZstdCompressor(), int(time.time() * 1000)
    pages: list[Page] = []
    for host, answers in web.hosts.items():
        for path, answer in answers.items():
            if path not in ("/robots.txt", "/sitemap.xml"):
                url = f"http://{host}{path}"
                body = packer.compress(answer.body)
                pages.append(
                    Page(
                        id=xxhash.xxh3_128_hexdigest(url.encode()),
                        site=host,
                        page_id=page_id_of_normal(url),
                        url=url,
                        final_url=url,
                        status=200,
                        content_type="text/html",
                        encoding="utf-8",
                        body=body,
                        body_bytes=len(answer.body),
                        fetched_at=now_ms + len(pages),
                    )
                )
    with closing(MemoryLog()) as log:
        log.create(all_topics(1, feature_epoch(settings)))
        for start in range(0, len(pages), _BATCH):
            put(log, PAGES, *pages[start : start + _BATCH])
        work_all(log, settings, "default", LiteNgram.load())
        rows = read_rows(log, SITES)
    print(f"{len(pages)} pages of {len(rows)} sites, {sum(row.scored for row in rows)} scored articles")
    without = [msgspec.structs.replace(row, control_scored=0, control_flagged=0) for row in rows]
    apart = [msgspec.structs.replace(row, signals={}) for row in rows]
    for name, of in (("as measured", rows), ("without controls", without), ("without operators", apart)):
        (line,) = rate_lines(of)
        print(f"{name}: {line.share} ({line.low} to {line.high}) of {line.scored_sites} sites, {line.method}")
        print(f"  controls: {line.controls}; declared: {line.declared}")


if __name__ == "__main__":
    main()
