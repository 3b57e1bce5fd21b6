"""Pages of people who attack the one that reads them: nothing runs, nothing is loaded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import msgspec
import playwright.sync_api
import pytest
import zstandard
from playwright.sync_api import Browser

from crawler.web.urls import page_id
from farmwatch.config.config import load
from farmwatch.crawl.orders import order_exclusions, order_pause
from filters.rules.judgement import judge
from filters.rules.ruleset import load_ruleset
from filters.settings import MeasureSettings
from filters.site_memory.measurer import Measurer
from replay.live.live_run import ensure_live_run
from stream.log.contract import Output
from stream.opening import open_log
from stream.schema.records import Page, SiteState, encode
from stream.schema.topics import FEATURES, PAGES, SITES, VERDICTS, all_topics
from tests.browser.conftest import OpenTab
from tests.browser.served import ServedConsole, put_letter, replay, served
from tests.browser.test_every_page import walk
from tests.support.front_door import article_html

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]

_PAYLOAD = (
    "</title></textarea></pre></style>--><script>window.ran=1</script>"
    "<img src=//elsewhere.example/i onerror=window.ran=1><svg onload=window.ran=1>"
    "<iframe src=//elsewhere.example/f></iframe><base href=//elsewhere.example/>"
    "<meta http-equiv=refresh content='0;url=//elsewhere.example/'><a href='javascript:window.ran=1'>x</a>"
    "' autofocus onfocus=window.ran=1 x='\" autofocus onfocus=window.ran=1 {{ 7 * 7 }}"
)
_FOREIGN = "img, iframe, base, script:not([src^='/static/']), object, embed, body style, meta[http-equiv]"
_TRIES = {
    "script-src-elem": "const script = document.createElement('script'); script.textContent = 'window.ran = 1';"
    "document.body.append(script)",
    "script-src-attr": "document.body.insertAdjacentHTML('beforeend', '<svg onload=window.ran=1>')",
    "img-src": "document.body.insertAdjacentHTML('beforeend', '<img src=//elsewhere.example/i>')",
    "frame-src": "document.body.insertAdjacentHTML('beforeend', '<iframe src=//elsewhere.example/f></iframe>')",
    "connect-src": "fetch('//elsewhere.example/').catch(() => 0)",
    "base-uri": "document.head.insertAdjacentHTML('beforeend', '<base href=//elsewhere.example/>')",
    "style-src-elem": "document.head.insertAdjacentHTML('beforeend', '<style>* { color: red }</style>')",
    "form-action": "document.body.insertAdjacentHTML('beforeend', '<form action=//elsewhere.example/>');"
    "document.forms[document.forms.length - 1].submit()",
}
_WATCH = """window.refused = [];
document.addEventListener("securitypolicyviolation", event => window.refused.push(event.effectiveDirective)); 0"""


@pytest.fixture(scope="module")
def hostile(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedConsole]:
    """The console of a log in which every text that comes from a site is an attack, and with a replay."""
    folder: Path = tmp_path_factory.mktemp("hostile")
    flags = [f"log.url=sqlite:{folder / 'log'}", "log.partitions=1"]
    config = load(flags=flags, environment={}).config
    site, odd_site = "kept.example", f"z{_PAYLOAD}.example"
    first, again = f"https://kept.example/{_PAYLOAD}", f"https://kept.example/2{_PAYLOAD}"
    comments = "".join(f"<li class=comment>{escape(_PAYLOAD)} of visitor {n}</li>" for n in range(3))
    page_html = article_html().replace("</article>", f"<p>{escape(_PAYLOAD)}</p></article>{comments}") + _PAYLOAD
    measurer = Measurer(MeasureSettings())
    pages = [
        measurer.measure(url, page_html, site, page_id=page_id(url), fetched_at=at)
        for at, url in enumerate((again, first), start=1)
    ]
    attacks: dict[str, Any] = dict.fromkeys(("ruleset", "digest", "detector", "method"), _PAYLOAD)
    attacks |= {"sources": [_PAYLOAD], "queries": [_PAYLOAD], "dropped_by": {_PAYLOAD: 1}}
    body = zstandard.ZstdCompressor().compress(page_html.encode())
    verdicts = [judge(page, load_ruleset("default")) for page in pages]
    odd: dict[str, Any] = {"id": "p", "page_id": "p", "url": _PAYLOAD, "fetched_at": 2}
    with closing(open_log(config.log.url)) as log:
        log.create(all_topics(1, measurer.epoch))
        ensure_live_run(log, config)
        for topic, record in (
            (SITES, SiteState(id=site, site=site, verdict="llm", **attacks)),
            (SITES, SiteState(id=odd_site, site=odd_site, verdict="llm", **attacks)),
            *(
                (PAGES, Page(id=page.id, site=site, page_id=page.page_id, url=page.url, body=body, fetched_at=1))
                for page in pages
            ),
            (PAGES, Page(site=site, outcome="failed", reason=_PAYLOAD, **odd)),
            *((FEATURES, page) for page in pages),
            *((VERDICTS, verdict) for verdict in verdicts),
            (VERDICTS, msgspec.structs.replace(verdicts[1], first_failed=_PAYLOAD, **odd)),
        ):
            log.append([Output(topic, 0, record.site.encode(), encode(record))])
    put_letter(config.log.url, KeyError(_PAYLOAD))
    order_pause(config, _PAYLOAD, on=True)
    order_exclusions(config, [("no.example", _PAYLOAD)], on=True)
    replay(config, "--ruleset", "c4", "--why", _PAYLOAD)
    with served(config, folder) as console:
        yield console


def test_nothing_of_a_page_runs_or_loads(hostile: ServedConsole, open_tab: OpenTab) -> None:
    """By escaping alone, attacks are text on each linked page; no link leads elsewhere, the tab has no fault."""
    tab = open_tab(hostile, bypass_csp=True)

    def look(page: playwright.sync_api.Page) -> str:
        assert page.evaluate("window.ran") is None, page.url
        assert page.locator(_FOREIGN).count() == 0, page.url
        for href in page.eval_on_selector_all("a[rel]", "links => links.map(a => a.getAttribute('href'))"):
            assert urlsplit(href).scheme in ("http", "https"), href
        own = page.locator("main figure > svg.picture, main svg.picture svg, main svg:is(.key, .meter)")
        assert page.locator("main svg").count() == own.count(), page.url
        return f"{page.url}\n{page.inner_text('body')}"

    shown = walk(tab, look)
    odd = f"/site?site={quote(f'z{_PAYLOAD}.example', safe='')}"
    shown[odd] = look(tab.open(odd))
    assert hostile.pages == {urlsplit(path).path for path in shown}
    assert [path for path, text in shown.items() if not text.startswith(f"{hostile.url}{path}\n")] == []
    text = "".join(shown.values())
    assert text.count("<script>window.ran=1</script>") > 10 and "{{ 7 * 7 }}" in text
    assert "Page 1 of 1" in text and "comment: 3 records" in text


def test_the_policy_alone_stops_what_slips_in(hostile: ServedConsole, open_tab: OpenTab) -> None:
    """Markup that were not escaped could run nothing, load nothing and send nothing."""
    tab = open_tab(hostile)
    page = tab.open("/health")
    page.evaluate(_WATCH)
    for directive, work in _TRIES.items():
        page.evaluate(f"{work}; 0")
        page.wait_for_function("directive => window.refused.includes(directive)", arg=directive)
    assert page.evaluate("window.ran") is None
    assert page.evaluate("new Set(window.refused).size") == len(_TRIES)
    tab.faults.clear()  # the browser reports what was refused
