"""Errors and redirects with endless bodies, during a crawl in a separate process that writes an archive.

Without an archive such bodies are not read. With one they are read for a limited time, which must change nothing else.
"""

from __future__ import annotations

from pathlib import Path

import zstandard

from crawler.warc.pages import ArchivedPage, Skipped, pages_of
from crawler.web.hits_file import make_hit
from tests.hostile.answers import TEXT, endless, silent
from tests.support.web.crawl_driver import patient_settings
from tests.support.web.crawl_process import Crawl
from tests.support.web.raw_web import RawWeb, Visit, head, reply
from tests.support.web.warc_check import assert_clean, finished, read_all

DECENT = [f"decent{n}.test" for n in range(3)]
PAGES = [f"/{n}" for n in range(8)]
HALF = b"half of it"
HANGING = {
    "gone.test": silent(head("404 None", content_type="text/html", content_length="1000") + HALF),
    "moved.test": silent(head("302 Found", location="/end", content_length="1000") + HALF),
    "away.test": silent(head("302 Found", location="http://decent0.test/1", content_length="1000") + HALF),
    "drips.test": endless(head("404 None", content_length="1000000") + HALF, b".", 0.05),
}
ENDS = {
    "gone.test": ("failed", "http_404", "http://gone.test/x"),
    "moved.test": ("fetched", "", "http://moved.test/end"),
    "away.test": ("refused", "redirect_offsite", "http://decent0.test/1"),
    "drips.test": ("failed", "http_404", "http://drips.test/x"),
}


async def answer(visit: Visit) -> None:
    """Good hosts have pages, the others a URL that hangs; there is no robots.txt."""
    if visit.path == "/x":
        await HANGING[visit.host](visit)
    elif visit.path == "/end" or (visit.host in DECENT and visit.path in PAGES):
        await reply(f"{TEXT}<p>{visit.host}{visit.path}")(visit)
    else:
        await reply("", "404 None")(visit)


def test_bodies_that_hang_change_nothing_but_their_own_records(tmp_path: Path) -> None:
    """Hanging URLs end as without an archive, which has their partial bodies, and all pages of the other hosts."""
    folder = tmp_path / "warc"
    urls = [f"http://{host}/x" for host in HANGING] + [f"http://{host}{path}" for host in DECENT for path in PAGES]
    with RawWeb(answer) as web:
        settings = patient_settings(
            f"127.0.0.1:{web.port}", delay_s=0.2, use_sitemaps=False, use_links=False, warc_folder=str(folder)
        )
        with Crawl(tmp_path / "crawl", f"sqlite:{tmp_path / 'log'}", settings) as crawl:
            crawl.hits([make_hit({"url": url}) for url in urls])
            crawl.start()
            crawl.finish(60)
            crawl.stop()
            pages, output = {page.url: page for page in crawl.pages()}, crawl.output()
    assert sorted(pages) == sorted(urls) and "Traceback" not in output
    for host, ends in ENDS.items():
        page = pages[f"http://{host}/x"]
        assert (page.outcome, page.reason, page.final_url) == ends
    assert {(page.outcome, page.site in DECENT) for url, page in pages.items() if not url.endswith("/x")} == {
        ("fetched", True)
    }

    hung = [seen for seen in web.seen if seen.path == "/x"]
    assert len(hung) == len(HANGING)  # none was requested again
    answered = [seen for seen in web.seen if seen.host in DECENT and seen.status == "200"]
    for one in hung:
        assert any(one.began < seen.began and seen.ended < one.ended for seen in answered), one.host

    files = finished(folder)
    assert_clean(files)
    responses = {r.headers["WARC-Target-URI"]: r for r in read_all(files) if r.kind == "response"}
    for host in HANGING:
        archived = responses[f"http://{host}/x"]
        assert archived.headers["WARC-Truncated"] == "time" and archived.body.rstrip(b".") == HALF
        assert archived.status == ("404" if ENDS[host][1] == "http_404" else "302")
    for page in pages.values():
        if page.outcome == "fetched":
            whole = responses[page.final_url]
            assert "WARC-Truncated" not in whole.headers
            assert whole.body == zstandard.decompress(page.body)

    found: list[ArchivedPage | Skipped] = []
    for file in files:
        with file.open("rb") as stream:
            found += pages_of(stream, settings, now_ms=2 * 10**12)
    imported = {one.page.url for one in found if isinstance(one, ArchivedPage)}
    assert imported == {page.url for page in pages.values() if page.outcome == "fetched"}
    assert not any(isinstance(one, Skipped) and one.is_fault for one in found)
