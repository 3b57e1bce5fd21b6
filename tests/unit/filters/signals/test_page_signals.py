"""Pages with code of ad networks, shops and builders, and pages that only speak of them."""

from __future__ import annotations

from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from filters.extraction.html_tree import ParseFailed, parse
from filters.signals.hosts import HOSTS
from filters.signals.page_signals import _LITERALS, _SEARCH, MOST_IDS, MOST_SIGNALS, signals_of
from filters.structure.measures import by_tag
from stream.schema.signals import SignalKind, kind_of_signal

PUB = "1234567890123456"


def signals(html: str) -> list[str]:
    return signals_of(by_tag(list(parse(f"<html><body><p>text</p>{html}</body></html>").iter())))


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        (
            f'<script async src="https://pagead2.googlesyndication.com/pagead/js/adsbygoogle.js?client=ca-pub-{PUB}"></script>',
            ["ads:adsense", f"ads:adsense:{PUB}"],
        ),
        (f'<ins class="adsbygoogle" data-ad-client="ca-pub-{PUB}"></ins>', ["ads:adsense", f"ads:adsense:{PUB}"]),
        (f'<meta name="google-adsense-account" content="ca-pub-{PUB}">', ["ads:adsense", f"ads:adsense:{PUB}"]),
        ("<script>var googletag = googletag || {}; googletag.cmd = [];</script>", ["ads:gam"]),
        (r'<script>load("https:\/\/cdn.taboola.com\/libtrc\/a-site\/loader.js")</script>', ["ads:taboola"]),
        (
            '<script data-rocket-src="//scripts.mediavine.com/tags/my-blog.js"></script>',
            ["ads:mediavine", "ads:mediavine:my-blog"],
        ),
        (
            '<a href="https://www.amazon.com/dp/B01?th=1&amp;tag=myblog-20">buy</a>',
            ["affiliate:amazon", "affiliate:amazon:myblog-20"],
        ),
        (
            '<a href="https://www.awin1.com/cread.php?awinmid=1&awinaffid=123456">buy</a>',
            ["affiliate:awin", "affiliate:awin:123456"],
        ),
        ('<a href="https://www.anrdoezrs.net/click-7654321-1234">buy</a>', ["affiliate:cj", "affiliate:cj:7654321"]),
        ('<a href="http://shop.sjv.io/x">buy</a>', ["affiliate:impact"]),
        ('<img src="https://ads.a.example/phpads/adview.php?what=zone:3&amp;n=ab">', ["ads:revive"]),
        ("<script>OAS_url = 'http://oasc1.247realmedia.com/RealMedia/ads/';</script>", ["ads:realmedia"]),
        ("<script>ga('create', 'UA-123456-7', 'auto')</script>", ["analytics:google", "analytics:google:123456"]),
        (
            '<script src="https://www.googletagmanager.com/gtag/js?id=G-ABCDEF1234"></script>',
            ["analytics:ga4", "analytics:ga4:ABCDEF1234", "analytics:google"],
        ),
        (
            "<script>fbq('init', '123456789012345'); hjid:42424,</script>",
            ["analytics:facebook", "analytics:facebook:123456789012345", "analytics:hotjar", "analytics:hotjar:42424"],
        ),
        (
            '<meta name="google-site-verification" content="abc-DEF_123">',
            ["verification:google", "verification:google:abc-DEF_123"],
        ),
        ('<meta name="generator" content="WordPress 6.5">', ["cms:wordpress"]),
        (
            '<link href="/wp-content/themes/astra/style.css"><link href="/wp-content/plugins/elementor/a.css">',
            ["builder:elementor", "cms:wordpress", "theme:astra"],
        ),
        ('<script type="application/ld+json" class="yoast-schema-graph">{}</script>', ["seo:yoast"]),
    ],
)
def test_signals_by_loads_links_and_scripts(html: str, expected: list[str]) -> None:
    """Each names its service, and the id of its account."""
    assert signals(html) == expected


@pytest.mark.parametrize(
    "html",
    [
        f"<p>Put ca-pub-{PUB}, UA-123456-7 and pagead2.googlesyndication.com into the head; tag=myblog-20.</p>",
        f"<pre><code>&lt;script src='//pagead2.googlesyndication.com/a.js?client=ca-pub-{PUB}'&gt;</code></pre>",
        f'<!-- <script src="//pagead2.googlesyndication.com/a.js?client=ca-pub-{PUB}"></script> -->',
        f'<script type="application/ld+json">{{"text": "googletag. ca-pub-{PUB} //cdn.taboola.com/x"}}</script>',
        '<a href="https://www.taboola.com/">Taboola</a><a href="https://www.mediavine.com/apply">Mediavine</a>',
        '<a href="https://www.amazon.com/dp/B01">buy</a><a href="https://www.ebay.com/itm/1">buy</a>',
        '<a rel="sponsored" href="https://shop.example/">our affiliate programme</a>',
        '<script src="https://cdn.taboola.com/libtrc/unip/123/tfa.js"></script>',
        '<img src="https://googleads.g.doubleclick.net/pagead/viewthroughconversion/1/">',
        '<script src="https://static.criteo.net/js/ld/ld.js"></script>',
        '<script src="https://amplify.outbrain.com/cp/obtp.js"></script>',
        '<script src="https://nottaboola.com/x.js"></script><script src="https://taboola.com.evil.example/x.js"></script>',
        '<a href="https://www.shareasale.com/">ShareASale</a>',
        '<link rel="preconnect" href="https://pagead2.googlesyndication.com">',
        '<img src="https://www.ojrq.net/p/?cid=17195">',
        '<img src="http://ad.yieldmanager.com/pixel?id=529645&t=2">',
        "<script>s.src = '//pagead2.googlesyndication.com/pagead/js/google_top_exp.js';</script>",
    ],
)
def test_pages_that_earn_nothing_by_it(html: str) -> None:
    """Text, code, comments, data, plain links, an advertiser's own measuring, hosts that only look alike."""
    assert not {SignalKind.ADS, SignalKind.AFFILIATE} & set(map(kind_of_signal, signals(html)))


def test_a_shop_earns_nothing_by_its_own_links() -> None:
    """Its tags are those of its own pages, also under its subdomains; those of another shop count."""
    html = '<a href="https://www.ebay.com/itm/1?campid=5338000000">x</a><a href="https://amazon.de/?tag=my-21">y</a>'
    found = signals_of(by_tag(list(parse(f"<html>{html}</html>").iter())), "https://shop.ebay.com/x")
    assert found == ["affiliate:amazon", "affiliate:amazon:my-21"]


def test_a_page_gives_a_bounded_number_of_signals() -> None:
    """10,000 accounts, tags, themes and verifications: the first few of each, and at most MOST_SIGNALS names."""
    scripts = "".join(f"'ca-pub-{10**15 + i}' 'UA-{10**6 + i}-1' 'G-{10**9 + i}'," for i in range(10_000))
    links = "".join(f'<a href="https://www.amazon.com/?tag=t{i}-20">x</a>' for i in range(10_000))
    themes = "".join(f'<link href="/wp-content/themes/t{i}/">' for i in range(10_000))
    found = signals(f"<script>{scripts}</script>{links}{themes}")
    assert [signal for signal in found if signal.startswith("ads:adsense:")] == [
        f"ads:adsense:{10**15 + i}" for i in range(MOST_IDS)
    ]
    assert sum(signal.startswith("affiliate:amazon:") for signal in found) == MOST_IDS
    assert len({":".join(signal.split(":")[:2]) for signal in found}) == MOST_SIGNALS


def test_the_account_of_a_platform_is_apart() -> None:
    """`ca-host-pub-` is the platform's account, not that of the page's owner."""
    found = signals(f"<script>google_ad_host = 'ca-host-pub-{PUB}'; google_ad_client = 'ca-pub-9876543210';</script>")
    assert found == ["ads:adsense", "ads:adsense-host", f"ads:adsense-host:{PUB}", "ads:adsense:9876543210"]


@pytest.mark.parametrize(
    "content",
    [
        "ca-pub-",
        "ca-pub-123",
        f"ca-pub-{PUB}7",
        f"ca-pub-{PUB}:x\n9",
        "ca-pub-\N{ARABIC-INDIC DIGIT ONE}234567890123456",
        "ca-pub-" + "1" * 1_000_000,
        "ca-pub-ads:adsense-host:" + PUB,
        "ca-pub-&lt;script&gt;alert(1)&lt;/script&gt;",
        f"ca-host-pub-{PUB}",
    ],
)
def test_a_meta_element_without_an_account(content: str) -> None:
    """Only `ca-pub-` and 10 to 16 ASCII digits is one: no other text of a page becomes a signal."""
    assert signals(f'<meta name="google-adsense-account" content="{content}">') == []


def test_hosts_are_names_in_lower_case() -> None:
    """An entry with a capital, or without a domain, could never be found."""
    assert all(host == host.lower() and "." in host for host in HOSTS)
    assert all(path == path.lower() for entries in HOSTS.values() for path, _ in entries)


@given(st.text(alphabet="<>/=\"' abs:.crf-hipt", max_size=300))
def test_any_page_has_sorted_signals(html: str) -> None:
    """Each once, without white space, whatever the markup; the tree stays."""
    try:
        tree = parse(f"<html>{html}</html>")
    except ParseFailed:
        return
    before = etree.tostring(tree)
    found = signals_of(by_tag(list(tree.iter())))
    assert found == sorted(set(found))
    assert all(signal.split() == [signal] for signal in found)
    assert etree.tostring(tree) == before


@given(st.lists(st.tuples(st.sampled_from(_LITERALS), st.text("abx/-.'", max_size=4)), max_size=80))
def test_one_search_finds_each_mark(pieces: list[tuple[str, str]]) -> None:
    """Whatever marks a page has, however often and in whatever order, the search finds those that are in its text."""
    text = "".join(chain.from_iterable(pieces))
    found = {_LITERALS[place] for place in _SEARCH.Match(text) or ()}
    assert found == {literal for literal in _LITERALS if literal in text}
