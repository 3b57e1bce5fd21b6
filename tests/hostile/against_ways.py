"""Attacks on the way to a page: traps, sitemaps, robots.txt, names and addresses."""

from __future__ import annotations

import asyncio
import gzip

from tests.hostile.answers import (
    DISALLOW,
    DRIP_S,
    FAR,
    FETCHED,
    FORBIDDEN,
    LAUGHS,
    PRIVATE,
    TEXT,
    UNAVAILABLE,
    Attack,
    calendar_page,
    endless,
    gzip_bomb,
    hopping_robots,
    made,
    many_links,
    on_robots,
    on_sitemap,
    on_tdmrep,
    packed,
    page_of_links,
    paths,
    raw,
    reset,
    robots_of,
    robots_txt,
    session_page,
    silent,
    sitemap_index,
    to,
    turns,
)
from tests.hostile.internet import INTRANET
from tests.support.web.loopback_dns import NXDOMAIN, SERVFAIL, Zone
from tests.support.web.raw_web import Visit, head, reply
from tests.support.web.robots_texts import COSTLY_TARGET, costly_robots

TRAPS = [
    Attack(
        "calendar",
        FETCHED,
        {"*": made(calendar_page)},
        asks=paths("/x", *(f"/day/{n}" for n in range(1, 6))),  # the budget, and not one more
    ),
    Attack("sessions", FETCHED, {"*": made(session_page)}, asks=paths("/x", *(f"/sid1{n}/x" for n in range(5)))),
    # links with session ids in the usual places
    Attack(
        "session-parameters",
        FETCHED,
        {"*": made(lambda v: page_of_links(v, iter([f"/y?PHPSESSID={v.number}", f"/y;jsessionid={v.number}", "/y"])))},
        asks=paths("/x", "/y"),
    ),
    Attack(
        "subdirectories",
        FETCHED,
        {"*": made(lambda v: page_of_links(v, iter(["deeper/", "x/../x/"])))},
        asks=paths("/x", "/deeper/", "/x/", "/deeper/deeper/", "/deeper/x/", "/x/deeper/"),
    ),
    on_sitemap("sitemap-self", made(lambda v: sitemap_index(v, v.path, "/sitemap.xml"))),
    on_sitemap("sitemap-nested", made(lambda v: sitemap_index(v, *(f"{v.path}{n}.xml" for n in range(100))))),
    on_sitemap("sitemap-bomb", packed(gzip_bomb, "gzip", "application/xml")),
    # a gzip file that inflates to a gibibyte
    on_sitemap(
        "sitemap-gz-bomb",
        reply(
            gzip_bomb(text=b"<url><loc>http://sitemap-gz-bomb.hostile.test/a</loc></url>"),
            content_type="application/gzip",
        ),
    ),
    on_sitemap("sitemap-both-bomb", packed(lambda: gzip.compress(gzip_bomb()), "gzip", "application/gzip")),
    # 8 MiB of URLs of other hosts
    on_sitemap("sitemap-huge", reply("<urlset>" + f"<url><loc>http://{INTRANET}/a</loc></url>" * 200_000)),
    on_sitemap("sitemap-endless", endless(head(content_type="application/xml"), b"<urlset><loc>http://a.test/</loc>")),
    on_sitemap("sitemap-slow", endless(head(content_type="application/xml"), b"<", DRIP_S)),
    on_sitemap("sitemap-laughs", reply(LAUGHS, content_type="application/xml")),
    on_sitemap("sitemap-open", reply("<loc>" * 400_000)),
    on_robots("sitemap-away", FETCHED, robots_txt(f"Sitemap: http://{INTRANET}/secret\nSitemap: \x1b[2J\n")),
    Attack(
        "sitemap-twin",
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
    on_tdmrep("tdmrep-deep", reply("[" * 500_000, content_type="application/json")),
    on_tdmrep("tdmrep-endless", endless(head(content_type="application/json"), b"[" * 4096)),
    on_tdmrep("tdmrep-silent", silent()),
]

ROBOTS = [
    # robots.txt of 5 MB that disallows all after its first 500 KiB
    on_robots("robots-5mb", FETCHED, robots_txt("# words\n" * 650_000 + DISALLOW)),
    # robots.txt of 5 MB that disallows all at its start
    on_robots("robots-5mb-first", FORBIDDEN, robots_txt(f"{DISALLOW}\n" + "Disallow: /y\n" * 400_000)),
    on_robots("robots-bomb", FETCHED, packed(lambda: gzip_bomb(text=b"# words\n"), "gzip", "text/plain")),
    on_robots("robots-endless", FETCHED, endless(head(content_type="text/plain"), b"# words\n" * 500)),
    on_robots("robots-one-line", FETCHED, robots_txt("Disallow: /" + "y" * 400_000)),
    on_robots("robots-groups", FETCHED, robots_txt("".join(f"User-agent: a{n}\nDisallow: /\n" for n in range(20_000)))),
    # a rule on which a naive matcher never ends
    on_robots(
        "robots-wildcards",
        FETCHED,
        robots_txt("User-agent: *\nDisallow: /" + "*a" * 500 + "b$\n"),
        hit="http://{host}:{port}/" + "a" * 1500,
    ),
    # thousands of wildcards, and a page of 10,000 links, each matched against all of them
    Attack(
        "robots-many-wildcards",
        FETCHED,
        robots_of("User-agent: *\n" + "".join(f"Disallow: /*a*b*a{n:04}*$\n" for n in range(4_500)), made(many_links)),
        hit="http://{host}:{port}/x" + "ab" * 900,
    ),
    # thousands that all look as if they match the URL
    Attack(
        "robots-costly",
        FORBIDDEN,
        robots_of(costly_robots().decode(), made(many_links)),
        hit="http://{host}:{port}" + COSTLY_TARGET,
        asks=paths(),
    ),
    on_robots("robots-binary", FETCHED, robots_txt(bytes(range(256)) * 500)),
    on_robots("robots-html", FETCHED, robots_txt(TEXT)),
    Attack("robots-1-hop", FORBIDDEN, hopping_robots(1, reply(DISALLOW))),
    Attack("robots-5-hops", FORBIDDEN, hopping_robots(5, reply(DISALLOW))),
    Attack("robots-6-hops", FETCHED, hopping_robots(6, reply(DISALLOW))),
    on_robots("robots-away", FORBIDDEN, to("http://robots-host.hostile.test:{port}/robots.txt")),
    # the host of another host's robots.txt
    on_robots("robots-host", FORBIDDEN, robots_txt(DISALLOW)),
    on_robots("robots-inside", PRIVATE, to(FAR)),
    on_robots("robots-silent", ("refused", "timeout"), silent()),
    on_robots("robots-reset", UNAVAILABLE, reset(head(content_length="9999") + b"#")),
    on_robots("robots-heals", FORBIDDEN, turns(reply("", "500 Broken"), reply(DISALLOW))),
    on_robots("robots-heals-open", FETCHED, turns(reply("", "503 Busy", retry_after="0"), reply("", "404 None"))),
    on_robots("robots-500", UNAVAILABLE, reply("", "500 Broken")),
    on_robots("robots-429", UNAVAILABLE, reply("", "429 Slower")),
    on_robots("robots-401", FETCHED, reply("", "401 Who")),
    on_robots("robots-403", FETCHED, reply("", "403 No")),
    on_robots("robots-forbids", FORBIDDEN, robots_txt(DISALLOW)),
    on_robots("crawl-delay", ("refused", "crawl_delay"), robots_txt("User-agent: *\nCrawl-delay: 1000000000")),
    on_robots("crawl-delay-inf", ("refused", "crawl_delay"), robots_txt("User-agent: *\nCrawl-delay: inf")),
    on_robots("crawl-delay-nan", FETCHED, robots_txt("User-agent: *\nCrawl-delay: nan")),
    on_robots("crawl-delay-minus", FETCHED, robots_txt("User-agent: *\nCrawl-delay: -5")),
]

HUBBED = frozenset(f"hub{n}.hubbed{n}.test" for n in range(100))
HUB_S = 0.1


async def hubbed(visit: Visit) -> None:
    """One of many sites that share the robots.txt of one slow host."""
    found = {"/robots.txt": to("http://hub.hostile.test:{port}/robots.txt"), "/x": reply(TEXT)}
    await found.get(visit.path, reply("", "404 None"))(visit)


async def _slow_robots(visit: Visit) -> None:
    await asyncio.sleep(HUB_S)
    await reply("User-agent: *\nDisallow: /no\n", content_type="text/plain")(visit)


HUBS = [Attack("hub", FETCHED, {"/robots.txt": _slow_robots, "/x": reply(TEXT)}, at_most=110)]

NAMES = [
    Attack("dns-private", PRIVATE, dns=(Zone((INTRANET,)),)),
    Attack("dns-mapped", PRIVATE, dns=(Zone((f"::ffff:{INTRANET}",)),)),
    Attack("dns-nat64", PRIVATE, dns=(Zone(("64:ff9b::7f01:1",)),)),
    Attack("dns-6to4", PRIVATE, dns=(Zone(("2002:7f01:1::",)),)),
    Attack("dns-link", PRIVATE, dns=(Zone(("169.254.169.254", "fe80::1")),)),
    Attack("dns-zero", PRIVATE, dns=(Zone(("0.0.0.0",)),)),
    Attack(
        "dns-mixed",
        PRIVATE,
        {"/x": reply(TEXT)},
        dns=(Zone(("127.1.0.4", "127.0.0.1")),),  # used by no other row: a failed resolver comes last
    ),
    # a name that changes to an intranet address between two requests
    Attack(
        "rebinding",
        PRIVATE,
        dict.fromkeys(("*", "/robots.txt", "/.well-known/tdmrep.json"), raw(head(content_type="text/html") + b"#")),
        dns=(Zone(("127.0.0.1",), ttl=0), Zone((INTRANET,), ttl=0)),
    ),
    Attack("dns-none", ("refused", "dns_no_name"), dns=(Zone(rcode=NXDOMAIN),)),
    Attack("dns-fails", ("refused", "dns"), dns=(Zone(rcode=SERVFAIL),)),
    Attack("dns-silent", ("refused", "dns"), dns=(Zone(silent=True),)),
    Attack("dns-empty", ("refused", "dns_no_address"), dns=(Zone(),)),
    Attack("dns-crowd", PRIVATE, dns=(Zone((INTRANET,) * 25),)),
    Attack("literal", PRIVATE, hit=FAR),
    Attack("literal-mapped", PRIVATE, hit=f"http://[::ffff:{INTRANET}]:{{port}}/secret"),
    Attack("literal-nat64", PRIVATE, hit="http://[64:ff9b::7f01:1]:{port}/secret"),
    Attack("literal-number", PRIVATE, hit="http://2130771970:{port}/secret"),
    Attack("literal-octal", PRIVATE, hit="http://0177.1.0.3:{port}/secret"),
    Attack("literal-loopback", PRIVATE, hit="http://[::1]:{port}/secret"),
    Attack("literal-zero", PRIVATE, hit="http://0.0.0.0:{port}/secret"),
    Attack("literal-metadata", PRIVATE, hit="http://169.254.169.254/latest/meta-data/"),
    Attack("literal-multicast", PRIVATE, hit="http://224.0.0.1/"),
]
