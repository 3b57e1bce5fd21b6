"""Attacks on the way to a page: traps, sitemaps, robots.txt, names and addresses."""

from __future__ import annotations

import asyncio
import gzip

from tests.hostile.answers import (
    DISALLOW,
    DRIP_S,
    FAR,
    FETCHED,
    LAUGHS,
    PRIVATE,
    TEXT,
    Attack,
    calendar_page,
    endless,
    gzip_bomb,
    hopping_robots,
    made,
    many_links,
    only_sitemap,
    packed,
    page_of_links,
    paths,
    raw,
    reset,
    robots_of,
    session_page,
    silent,
    sitemap_index,
    to,
    turns,
)
from tests.hostile.internet import INTRANET
from tests.support.loopback_dns import NXDOMAIN, SERVFAIL, Zone
from tests.support.raw_web import Visit, head, reply

TRAPS = [
    Attack(
        "calendar",
        "10,000 links to days on every day",
        FETCHED,
        {"*": made(calendar_page)},
        asks=paths("/x", *(f"/day/{n}" for n in range(1, 6))),  # the budget, and not one more
    ),
    Attack(
        "sessions",
        "a new session id in every link",
        FETCHED,
        {"*": made(session_page)},
        asks=paths("/x", *(f"/sid1{n}/x" for n in range(5))),
    ),
    Attack(
        "session-parameters",
        "links with session ids where they usually stand",
        FETCHED,
        {"*": made(lambda v: page_of_links(v, iter([f"/y?PHPSESSID={v.number}", f"/y;jsessionid={v.number}", "/y"])))},
        asks=paths("/x", "/y"),
    ),
    Attack(
        "subdirectories",
        "a relative link that gets deeper",
        FETCHED,
        {"*": made(lambda v: page_of_links(v, iter(["deeper/", "x/../x/"])))},
        asks=paths("/x", "/deeper/", "/x/", "/deeper/deeper/", "/deeper/x/", "/x/deeper/"),
    ),
    Attack(
        "sitemap-self",
        "an index that lists itself",
        FETCHED,
        only_sitemap(made(lambda v: sitemap_index(v, v.path, "/sitemap.xml"))),
    ),
    Attack(
        "sitemap-nested",
        "indexes of indexes without an end",
        FETCHED,
        only_sitemap(made(lambda v: sitemap_index(v, *(f"{v.path}{n}.xml" for n in range(100))))),
    ),
    Attack("sitemap-bomb", "a sitemap of 1 GiB", FETCHED, only_sitemap(packed(gzip_bomb, "gzip", "application/xml"))),
    Attack(
        "sitemap-gz-bomb",
        "a file of gzip that holds a gibibyte",
        FETCHED,
        only_sitemap(
            reply(
                gzip_bomb(text=b"<url><loc>http://sitemap-gz-bomb.hostile.test/a</loc></url>"),
                content_type="application/gzip",
            )
        ),
    ),
    Attack(
        "sitemap-both-bomb",
        "a bomb in a file of gzip in gzip",
        FETCHED,
        only_sitemap(packed(lambda: gzip.compress(gzip_bomb()), "gzip", "application/gzip")),
    ),
    Attack(
        "sitemap-huge",
        "8 MiB of URLs of others",
        FETCHED,
        only_sitemap(reply("<urlset>" + f"<url><loc>http://{INTRANET}/a</loc></url>" * 200_000)),
    ),
    Attack(
        "sitemap-endless",
        "a sitemap without an end",
        FETCHED,
        only_sitemap(endless(head(content_type="application/xml"), b"<urlset><loc>http://a.test/</loc>")),
    ),
    Attack(
        "sitemap-slow",
        "a sitemap of a byte now and then",
        FETCHED,
        only_sitemap(endless(head(content_type="application/xml"), b"<", DRIP_S)),
    ),
    Attack(
        "sitemap-laughs", "entities in entities", FETCHED, only_sitemap(reply(LAUGHS, content_type="application/xml"))
    ),
    Attack("sitemap-open", "a million tags that are not closed", FETCHED, only_sitemap(reply("<loc>" * 400_000))),
    Attack(
        "sitemap-away",
        "robots.txt names a sitemap on the intranet",
        FETCHED,
        robots_of(f"Sitemap: http://{INTRANET}/secret\nSitemap: \x1b[2J\n"),
    ),
    Attack(
        "sitemap-twin",
        "a sitemap that stands at its twin, and lists what the twin's robots.txt forbids",
        FETCHED,
        {"/sitemap.xml": to("http://www.sitemap-twin.hostile.test:{port}/sitemap.xml"), "*": reply(TEXT)},
        twin={
            "/robots.txt": reply("User-agent: *\nDisallow: /secret\n", content_type="text/plain"),
            "/sitemap.xml": made(
                lambda v: (
                    f"<urlset><url><loc>http://{v.host}:{v.port}/secret</loc></url>"
                    f"<url><loc>http://{v.host.removeprefix('www.')}:{v.port}/open</loc></url></urlset>"
                ),
                content_type="application/xml",
            ),
            "*": reply(TEXT),
        },
        asks=paths("/x", "/open"),
    ),
    Attack(
        "tdmrep-deep",
        "a tdmrep.json of brackets",
        FETCHED,
        {"/.well-known/tdmrep.json": reply("[" * 500_000, content_type="application/json"), "*": reply(TEXT)},
    ),
    Attack(
        "tdmrep-endless",
        "a tdmrep.json without an end",
        FETCHED,
        {"/.well-known/tdmrep.json": endless(head(content_type="application/json"), b"[" * 4096), "*": reply(TEXT)},
    ),
    Attack(
        "tdmrep-silent",
        "a tdmrep.json that does not come",
        FETCHED,
        {"/.well-known/tdmrep.json": silent(), "*": reply(TEXT)},
    ),
]

ROBOTS = [
    Attack(
        "robots-5mb",
        "robots.txt of 5 MB that forbids all behind its first 500 KiB",
        FETCHED,
        robots_of("# words\n" * 650_000 + DISALLOW),
    ),
    Attack(
        "robots-5mb-first",
        "robots.txt of 5 MB that forbids all at its start",
        ("refused", "robots"),
        robots_of(f"{DISALLOW}\n" + "Disallow: /y\n" * 400_000),
    ),
    Attack(
        "robots-bomb",
        "robots.txt of 1 GiB in gzip",
        FETCHED,
        {"/robots.txt": packed(lambda: gzip_bomb(text=b"# words\n"), "gzip", "text/plain"), "*": reply(TEXT)},
    ),
    Attack(
        "robots-endless",
        "robots.txt without an end",
        FETCHED,
        {"/robots.txt": endless(head(content_type="text/plain"), b"# words\n" * 500), "*": reply(TEXT)},
    ),
    Attack("robots-one-line", "robots.txt of one line", FETCHED, robots_of("Disallow: /" + "y" * 400_000)),
    Attack(
        "robots-groups",
        "robots.txt of 20,000 groups",
        FETCHED,
        robots_of("".join(f"User-agent: a{n}\nDisallow: /\n" for n in range(20_000))),
    ),
    Attack(
        "robots-wildcards",
        "a rule that takes a naive matcher for ever",
        FETCHED,
        robots_of("User-agent: *\nDisallow: /" + "*a" * 500 + "b$\n"),
        hit="http://{host}:{port}/" + "a" * 1500,
    ),
    Attack(
        "robots-costly",
        "wildcards up to the cap, and a page of 10,000 links, each matched against all of them",
        FETCHED,
        robots_of("User-agent: *\n" + "".join(f"Disallow: /*a{n:04}\n" for n in range(850)), made(many_links)),
        hit="http://{host}:{port}/x" + "ab" * 900,
    ),
    Attack(
        "robots-too-costly",
        "thousands of wildcards, and a page of 10,000 links: too many, so that all is forbidden",
        ("refused", "robots"),
        robots_of("User-agent: *\n" + "".join(f"Disallow: /*a*b*a{n:04}*$\n" for n in range(4_500)), made(many_links)),
        asks=paths(),
    ),
    Attack("robots-binary", "robots.txt of all bytes there are", FETCHED, robots_of(bytes(range(256)) * 500)),
    Attack("robots-html", "robots.txt that is a page", FETCHED, robots_of(TEXT)),
    Attack("robots-1-hop", "robots.txt behind a redirect", ("refused", "robots"), hopping_robots(1, reply(DISALLOW))),
    Attack(
        "robots-5-hops", "robots.txt behind five redirects", ("refused", "robots"), hopping_robots(5, reply(DISALLOW))
    ),
    Attack("robots-6-hops", "robots.txt behind six redirects", FETCHED, hopping_robots(6, reply(DISALLOW))),
    Attack(
        "robots-away",
        "robots.txt on another host, which forbids all",
        ("refused", "robots"),
        {"/robots.txt": to("http://robots-host.hostile.test:{port}/robots.txt"), "*": reply(TEXT)},
    ),
    Attack("robots-host", "the host that another one's robots.txt is on", ("refused", "robots"), robots_of(DISALLOW)),
    Attack(
        "robots-inside",
        "robots.txt on the intranet",
        PRIVATE,
        {"/robots.txt": to(FAR), "*": reply(TEXT)},
    ),
    Attack(
        "robots-silent",
        "robots.txt that does not come",
        ("refused", "timeout"),
        {"/robots.txt": silent(), "*": reply(TEXT)},
    ),
    Attack(
        "robots-reset",
        "a reset in robots.txt",
        ("refused", "robots_unavailable"),
        {"/robots.txt": reset(head(content_length="9999") + b"#"), "*": reply(TEXT)},
    ),
    Attack(
        "robots-heals",
        "500 for robots.txt, and then it is there",
        ("refused", "robots"),
        {"/robots.txt": turns(reply("", "500 Broken"), reply(DISALLOW)), "*": reply(TEXT)},
    ),
    Attack(
        "robots-heals-open",
        "503 for robots.txt, and then 404",
        FETCHED,
        {"/robots.txt": turns(reply("", "503 Busy", retry_after="0"), reply("", "404 None")), "*": reply(TEXT)},
    ),
    Attack(
        "robots-500",
        "500 for robots.txt for ever",
        ("refused", "robots_unavailable"),
        {"/robots.txt": reply("", "500 Broken"), "*": reply(TEXT)},
    ),
    Attack(
        "robots-429",
        "429 for robots.txt for ever",
        ("refused", "robots_unavailable"),
        {"/robots.txt": reply("", "429 Slower"), "*": reply(TEXT)},
    ),
    Attack("robots-401", "401 for robots.txt", FETCHED, {"/robots.txt": reply("", "401 Who"), "*": reply(TEXT)}),
    Attack("robots-403", "403 for robots.txt", FETCHED, {"/robots.txt": reply("", "403 No"), "*": reply(TEXT)}),
    Attack("robots-forbids", "a robots.txt that forbids all", ("refused", "robots"), robots_of(DISALLOW)),
    Attack(
        "crawl-delay",
        "Crawl-delay: 1000000000",
        ("refused", "crawl_delay"),
        robots_of("User-agent: *\nCrawl-delay: 1000000000"),
    ),
    Attack(
        "crawl-delay-inf",
        "Crawl-delay: inf",
        ("refused", "crawl_delay"),
        robots_of("User-agent: *\nCrawl-delay: inf"),
    ),
    Attack(
        "crawl-delay-nan",
        "Crawl-delay: nan",
        FETCHED,
        robots_of("User-agent: *\nCrawl-delay: nan"),
    ),
    Attack("crawl-delay-minus", "Crawl-delay: -5", FETCHED, robots_of("User-agent: *\nCrawl-delay: -5")),
]

HUBBED = frozenset(f"hub{n}.hubbed{n}.test" for n in range(100))
HUB_S = 0.1


async def hubbed(visit: Visit) -> None:
    """One of many sites whose robots.txt is that of one slow host."""
    found = {"/robots.txt": to("http://hub.hostile.test:{port}/robots.txt"), "/x": reply(TEXT)}
    await found.get(visit.path, reply("", "404 None"))(visit)


async def _slow_robots(visit: Visit) -> None:
    await asyncio.sleep(HUB_S)
    await reply("User-agent: *\nDisallow: /no\n", content_type="text/plain")(visit)


HUBS = [
    Attack(
        "hub",
        "the slow host that the robots.txt of a hundred others leads to",
        FETCHED,
        {"/robots.txt": _slow_robots, "/x": reply(TEXT)},
        at_most=110,
    )
]

NAMES = [
    Attack("dns-private", "a name on the intranet", PRIVATE, dns=(Zone((INTRANET,)),)),
    Attack("dns-mapped", "a name on the intranet, mapped", PRIVATE, dns=(Zone((f"::ffff:{INTRANET}",)),)),
    Attack("dns-nat64", "a name on the intranet, by NAT64", PRIVATE, dns=(Zone(("64:ff9b::7f01:1",)),)),
    Attack("dns-6to4", "a name on the intranet, by 6to4", PRIVATE, dns=(Zone(("2002:7f01:1::",)),)),
    Attack("dns-link", "a name with a link-local address", PRIVATE, dns=(Zone(("169.254.169.254", "fe80::1")),)),
    Attack("dns-zero", "a name with the address 0.0.0.0", PRIVATE, dns=(Zone(("0.0.0.0",)),)),
    Attack(
        "dns-mixed",
        "a name with a public address and a private one",
        PRIVATE,
        {"/x": reply(TEXT)},
        dns=(Zone(("127.1.0.4", "127.0.0.1")),),  # one that no other row has: what failed once comes last
    ),
    Attack(
        "rebinding",
        "a name that moves to the intranet between two requests",
        PRIVATE,
        dict.fromkeys(("*", "/robots.txt", "/.well-known/tdmrep.json"), raw(head(content_type="text/html") + b"#")),
        dns=(Zone(("127.0.0.1",), ttl=0), Zone((INTRANET,), ttl=0)),
    ),
    Attack("dns-none", "a name that does not exist", ("refused", "dns_no_name"), dns=(Zone(rcode=NXDOMAIN),)),
    Attack("dns-fails", "a name whose server fails", ("refused", "dns"), dns=(Zone(rcode=SERVFAIL),)),
    Attack("dns-silent", "a name whose server says nothing", ("refused", "dns"), dns=(Zone(silent=True),)),
    Attack("dns-empty", "a name without an address", ("refused", "dns_no_address"), dns=(Zone(),)),
    Attack("dns-crowd", "a name with 500 addresses of the intranet", PRIVATE, dns=(Zone((INTRANET,) * 25),)),
    Attack("literal", "an address of the intranet in the URL", PRIVATE, hit=FAR),
    Attack("literal-mapped", "the same, mapped", PRIVATE, hit=f"http://[::ffff:{INTRANET}]:{{port}}/secret"),
    Attack("literal-nat64", "the same, by NAT64", PRIVATE, hit="http://[64:ff9b::7f01:1]:{port}/secret"),
    Attack("literal-number", "the same as one number", PRIVATE, hit="http://2130771970:{port}/secret"),
    Attack("literal-octal", "the same in octal", PRIVATE, hit="http://0177.1.0.3:{port}/secret"),
    Attack("literal-loopback", "loopback of IPv6", PRIVATE, hit="http://[::1]:{port}/secret"),
    Attack("literal-zero", "the address 0.0.0.0", PRIVATE, hit="http://0.0.0.0:{port}/secret"),
    Attack("literal-metadata", "a cloud's metadata", PRIVATE, hit="http://169.254.169.254/latest/meta-data/"),
    Attack("literal-multicast", "a multicast address", PRIVATE, hit="http://224.0.0.1/"),
]
