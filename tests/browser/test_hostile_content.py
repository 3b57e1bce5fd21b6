"""Pages of people who attack the one that reads them: nothing runs, nothing is loaded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
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
from stream.log.contract import Message, Output
from stream.opening import open_log
from stream.processing.dead_letters import dead_letter
from stream.schema.records import Page, SiteState, Verdict, encode
from stream.schema.topics import FEATURES, HITS, PAGES, SITES, VERDICTS, all_topics
from tests.browser.conftest import OpenTab
from tests.browser.served import ServedConsole, served
from tests.browser.test_every_page import walk

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]

_PAYLOAD = (
    "</title></textarea></pre></style>--><script>window.ran=1</script>"
    "<img src=//elsewhere.example/i onerror=window.ran=1><svg onload=window.ran=1>"
    "<iframe src=//elsewhere.example/f></iframe><base href=//elsewhere.example/>"
    "<meta http-equiv=refresh content='0;url=//elsewhere.example/'><a href='javascript:window.ran=1'>x</a>"
    "' autofocus onfocus=window.ran=1 x='\" autofocus onfocus=window.ran=1 {{ 7 * 7 }}"
)
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
_WATCH = """window.refused = new Promise(done => {
    document.addEventListener("securitypolicyviolation", event => done(event.effectiveDirective), {once: true});
}); 0"""


@pytest.fixture(scope="module")
def hostile(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedConsole]:
    """The console of a log in which every text that comes from a site is an attack."""
    folder: Path = tmp_path_factory.mktemp("hostile")
    config = load(flags=[f"log.url=sqlite:{folder / 'log'}", "log.partitions=1"], environment={}).config
    site, address = f"a{_PAYLOAD}.example", f"https://kept.example/{_PAYLOAD}"
    html = f"<html><head><title>{_PAYLOAD}</title></head><body><article><p>{_PAYLOAD * 20}</p></article></body></html>"
    measurer = Measurer(MeasureSettings())
    features = msgspec.structs.replace(
        measurer.measure(address, html, site, page_id=page_id(address), fetched_at=1), text=_PAYLOAD
    )
    texts = {"ruleset": _PAYLOAD, "digest": _PAYLOAD, "detector": _PAYLOAD, "method": _PAYLOAD}
    lists = {"sources": [_PAYLOAD], "queries": [_PAYLOAD], "dropped_by": {_PAYLOAD: 1}}
    failed = Page(id="2", site=site, page_id="p", url=_PAYLOAD, outcome="failed", reason=_PAYLOAD, fetched_at=2)
    dropped = Verdict(
        id="3", site=site, page_id="q", url=_PAYLOAD, verdict="dropped", first_failed=_PAYLOAD, fetched_at=3
    )
    body = zstandard.ZstdCompressor().compress(html.encode())
    page = Page(id="1", site=site, page_id=page_id(address), url=address, body=body, fetched_at=1)
    with closing(open_log(config.log.url)) as log:
        log.create(all_topics(1, measurer.epoch))
        for topic, record in (
            (SITES, SiteState(id=site, site=site, verdict="llm", **texts, **lists)),
            (PAGES, page),
            (PAGES, failed),
            (FEATURES, features),
            (VERDICTS, judge(features, load_ruleset("default"))),
            (VERDICTS, dropped),
        ):
            log.append([Output(topic, 0, site.encode(), encode(record))])
        letter = Message(HITS, 0, 0, site.encode(), _PAYLOAD.encode(), {}, 0)
        log.append([dead_letter(letter, "crawl", KeyError(_PAYLOAD), 1)])
    order_pause(config, _PAYLOAD, on=True)
    order_exclusions(config, [("no.example", _PAYLOAD)], on=True)
    with served(config, folder) as console:
        yield console


@pytest.mark.parametrize("unprotected", [False, True], ids=["with the policy", "by escaping alone"])
def test_nothing_of_a_page_runs_or_loads(hostile: ServedConsole, open_tab: OpenTab, unprotected: bool) -> None:
    """On each page that links lead to, the attacks are text; no link leads elsewhere, the tab has no fault."""
    tab = open_tab(hostile, bypass_csp=unprotected)
    shown = ""
    for path in walk(tab):
        page = tab.open(path)
        shown += page.inner_text("body")
        assert page.evaluate("window.ran") is None, path
        assert page.url == hostile.url + path
        assert page.locator("img, iframe, base, script, object, embed, body style, meta[http-equiv]").count() == 0, path
        assert page.locator("main svg").count() == page.locator("main svg.history").count(), path
    assert shown.count("<script>window.ran=1</script>") > 10 and "Main text" in shown and "{{ 7 * 7 }}" in shown


def test_the_policy_alone_stops_what_slips_in(hostile: ServedConsole, open_tab: OpenTab) -> None:
    """Markup that were not escaped could run nothing, load nothing and send nothing."""
    tab = open_tab(hostile)
    refused = []
    for work in _TRIES.values():
        page = tab.open("/health")
        page.evaluate(_WATCH)
        page.evaluate(f"{work}; 0")
        refused.append(page.evaluate("window.refused"))
        assert page.evaluate("window.ran") is None
    assert refused == list(_TRIES)
    tab.faults.clear()  # the browser reports what was refused
