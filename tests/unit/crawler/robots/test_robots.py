"""robots.txt: meaning of answers and rules, hostile texts, and the cache of parsed files."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from protego import Protego

from crawler.robots.lines import ROBOTS_CAP_BYTES, SITEMAPS_CAP, RobotsRule, group_of, lines_of
from crawler.robots.path_patterns import PathPattern, target_of
from crawler.robots.rules import DecisionReason, RobotsAnswer, RobotsRules, RobotsShelf, explain, meaning_of
from crawler.robots.wildcards import FILED_CAP, WORK_CAP
from crawler.web.urls import URL_CAP
from tests.support.web.robots_texts import COSTLY_TARGET, costly_robots

_ALL = b"User-agent: *\n"


@pytest.mark.parametrize(
    ("statuses", "meaning"),
    [
        ((200, 204), RobotsAnswer.RULES),
        ((302, 401, 404), RobotsAnswer.UNAVAILABLE),
        ((429, 500, 503, 0), RobotsAnswer.UNREACHABLE),
    ],
)
def test_what_an_answer_to_robots_txt_means(statuses: tuple[int, ...], meaning: RobotsAnswer) -> None:
    """The table of RFC 9309: 4xx allows, 429, 5xx and silence do not."""
    for status in statuses:
        assert meaning_of(status) is meaning
        assert meaning_of(status, complete=False) is not RobotsAnswer.RULES


def _parsed(shelf: RobotsShelf, asked: str, rules: Callable[[str], int] = lambda _: 0) -> str:
    """Look up sites by letter (upper case: a new version of its text); return those whose text was parsed."""
    parsed: list[str] = []

    def text(letter: str) -> bytes:
        parsed.append(letter)
        return _ALL + b"".join(b"Disallow: /%d\n" % number for number in range(rules(letter)))

    for letter in asked:
        shelf.rules(letter.lower(), int(letter.isupper()), lambda letter=letter: text(letter))  # type: ignore[misc]
    return "".join(parsed)


def test_the_shelf_is_capped_by_bytes() -> None:
    """The cache is bounded by bytes: a replaced text counts once, and the newest text is always kept."""
    one = RobotsRules(_ALL + b"".join(b"Disallow: /%d\n" % number for number in range(60)), "farmwatch").size_bytes
    shelf = RobotsShelf("farmwatch", cap_bytes=2 * one)
    assert _parsed(shelf, "aAbAbcbabd" + "d" + "b", lambda letter: {"c": 50, "d": 500}.get(letter, 60)) == "aAbcadb"
    assert one > 10 * RobotsRules(_ALL + b"Disallow: /1\n", "farmwatch").size_bytes > 0


def test_no_more_than_500_kib_of_robots_txt_are_parsed() -> None:
    """Rules beyond the 500 KiB of RFC 9309 do not count, nor does a line that the cap may have cut.

    `Allow: /private-but-this` cut to `Allow: /private` would allow a disallowed path.
    """
    rules = RobotsRules(_ALL + b"Disallow: /a\n" + b"#" * ROBOTS_CAP_BYTES + b"\nDisallow: /b\n", "farmwatch")
    assert not rules.allows("https://a.example/a") and rules.allows("https://a.example/b")
    start = _ALL + b"Disallow: /private\n"
    fill = ROBOTS_CAP_BYTES - len(start) - len(b"\nAllow: /private")
    text = start + b"#" * fill + b"\nAllow: /private-but-this\n"
    assert text[:ROBOTS_CAP_BYTES].endswith(b"Allow: /private")
    for sent in (text, text[:ROBOTS_CAP_BYTES]):
        assert not RobotsRules(sent, "farmwatch").allows("https://a.example/private/x")


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf", b"\xef\xbb", b"\xef"])
@pytest.mark.parametrize("eol", [b"\n", b"\r", b"\r\n"])
def test_marks_and_line_ends(mark: bytes, eol: bytes) -> None:
    """A byte order mark, whole or broken, is skipped; each of the three line ends counts as one line."""
    text = mark + eol.join([b"User-agent: *", b"", b"Disallow: /x", b"Crawl-delay: 3", b"Sitemap: https://a.example/s"])
    rules = RobotsRules(text, "farmwatch")
    assert not rules.allows("https://a.example/x") and rules.allows("https://a.example/y")
    assert rules.crawl_delay_s == 3 and rules.sitemaps == ["https://a.example/s"]
    found = explain(text, "farmwatch", "https://a.example/x")
    assert found.rule is not None
    assert found.crawl_delay_line is not None
    assert (found.agents[0].number, found.rule.number, found.crawl_delay_line.number) == (1, 3, 4)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_a_robots_txt_in_the_wrong_encoding_is_obeyed(encoding: str) -> None:
    """A robots.txt in UTF-16 or with NULs is understood, although the RFC requires UTF-8."""
    assert not RobotsRules("User-agent: *\nDisallow: /x\n".encode(encoding), "farmwatch").allows("https://a.example/x")


@pytest.mark.parametrize(
    ("lines", "delay_s"),
    [
        *((f"User-agent: *\nCrawl-delay: {said}", 0) for said in ("-3", "soon", "nan", "info", "٥")),
        *((f"User-agent: *\nCrawl-delay: {said}", 1e9) for said in ("inf", "Infinity", "1e309", "9" * 5000)),
        *((f"User-agent: *\nCrawl-delay: {said}", 0.5) for said in ("0.5", ".5", "5e-1", "+.5s", "500ms", "500 MSec")),
        *((f"User-agent: *\nCrawl-delay: {said}", 120) for said in ("2m", "2 minutes", "120 seconds", "120 mph")),
        ("User-agent: *\nCrawl-delay: 1 hour", 3600),
        ("User-agent: *\ncrawl delay 4", 4),
        ("Crawl-delay: 7\nUser-agent: *\nDisallow:", 0),
        ("User-agent: other\nCrawl-delay: 7\nUser-agent: *\nDisallow: /x", 0),
        ("User-agent: *\nCrawl-delay: 7\nUser-agent: other\nDisallow: /x", 7),
        ("User-agent: other\nUser-agent: farmwatch\nDisallow: /x\nCrawl-delay: 7", 7),
        ("User-agent: *\nCrawl-delay: 7\nUser-agent: farmwatch\nDisallow: /x", 0),  # before the group that names us
        ("User-agent: *\nDisallow: /y\nCrawl-delay: 7\n\nUser-agent: farmwatch\nDisallow: /x", 0),
        ("User-agent: *\nCrawl-delay: 9\nDisallow: /\nUser-agent: *\nCrawl-delay: 4", 9),
    ],
)
def test_which_crawl_delay_is_asked_of_us(lines: str, delay_s: float) -> None:
    """A Crawl-delay applies to the agents named above it; the longest of our group counts, an invalid one does not."""
    assert RobotsRules(lines.encode(), "farmwatch").crawl_delay_s == delay_s


_words = st.sampled_from(
    ["a", "b", "ab", "/", "*", "$", "?", "%61", "%2f", "%2F", "=", "&", ".", "-", "ä", "%C3%A4", ":"]
)
_paths = st.lists(_words, max_size=6).map("".join)
_rules = st.tuples(st.sampled_from(["Allow: ", "Disallow: ", "disallow /", "Crawl-delay: 3 ", "X: "]), _paths).map(
    "".join
)
_agents = st.sampled_from(["User-agent: *", "User-agent: farmwatch", "user-agent: FarmWatch/2", "User-agent: farm", ""])
_texts = st.lists(_rules | _agents | _rules.map("/".join), max_size=14).map("\n".join)


def _searched(text: bytes, url: str) -> RobotsRule | None:
    """The deciding rule by a search of all of them, as RFC 9309 section 2.2.2 puts it."""
    best: tuple[int, bool, RobotsRule] | None = None
    for rule in group_of(lines_of(text), "farmwatch")[0].rules:
        pattern = PathPattern(rule.pattern)
        if pattern.matches(target_of(url)) and (best is None or (pattern.octets, rule.allow) > best[:2]):
            best = (pattern.octets, rule.allow, rule)
    return best and best[2]


@given(_texts.map(str.encode) | st.binary(max_size=400).map(b"User-agent: *\nDisallow: /".__add__), _paths | st.text())
def test_the_rule_that_is_looked_up_is_the_longest_match(text: bytes, path: str) -> None:
    """The rule table gives the same rule and line as a full search, for any bytes."""
    url = f"https://a.example/{path}"
    rules, found = RobotsRules(text, "farmwatch"), explain(text, "farmwatch", url)
    if found.why is not DecisionReason.ROBOTS_TXT:
        assert found.rule == _searched(text, url)
    assert found.allowed is rules.allows(url) is (found.rule is None or found.rule.allow)
    assert rules.crawl_delay_s >= 0


_plain = st.lists(st.sampled_from(["a", "b", "ab", "/", "*", "."]), max_size=6).map(lambda words: "/" + "".join(words))
_plain_rules = st.tuples(st.booleans(), _plain, st.sampled_from(["", "", "$"]))


@given(st.lists(_plain_rules, max_size=10), _plain)
def test_on_plain_patterns_protego_agrees(rules: list[tuple[bool, str, str]], path: str) -> None:
    """Without escapes, an independent implementation makes the same decisions."""
    text = "User-agent: *\n" + "".join(f"{'Allow' if a else 'Disallow'}: {p}{end}\n" for a, p, end in rules)
    path = path.replace("*", "x")
    if path.startswith("//"):
        path = "/x" + path  # which protego takes for a host
    assert RobotsRules(text.encode(), "farmwatch").allows(f"https://a.example{path}") is Protego.parse(text).can_fetch(
        f"https://a.example{path}", "farmwatch"
    )


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        (b"\n" * 5_000_000, True),
        (b"#" * 5_000_000, True),
        (_ALL + b"Disallow: /*a*b\n" * 1_000_000, True),
        (_ALL + b"Disallow: /" + b"*a" * 2_500_000, True),
        (_ALL + b"Disallow: /" + b"*a" * 250_000 + b"\n", True),  # more than the URL has
        (_ALL + b"Disallow: /" + b"*a" * 1000 + b"\n", False),
        (_ALL + b"".join(b"Disallow: /*a*%d\n" % n for n in range(25_000)), True),
        (_ALL + b"".join(b"Disallow: /%d\n" % n for n in range(35_000)), True),
        (_ALL + b"".join(b"Disallow: /%d\n" % n for n in range(8_000)), True),
        (_ALL + b"".join(b"Disallow: /" + b"a" * n + b"b\n" for n in range(1000)), True),
        (b"User-agent: farmwatch\n" * 25_000 + b"Disallow: /\n", True),
        (_ALL + b"Disallow: /" + b"%41" * 160_000 + b"\n", True),
        (b"a b c d " * 60_000, True),
        (_ALL + b"Sitemap: https://a.example/\n" * 17_000, True),
        (costly_robots(), True),
    ],
    ids=lambda value: "" if isinstance(value, bool) else value[14:34].decode(),
)
def test_no_robots_txt_stops_the_crawler(text: bytes, allowed: bool) -> None:
    """Five megabytes of any text are read in linear time and little memory, and decide in bounded time.

    (A matcher that backtracks, or a table that is searched from the start for each line, would take minutes.)
    """
    tracemalloc.start()
    rules = RobotsRules(text, "farmwatch")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 64 * 1024 * 1024
    assert len(rules.sitemaps) <= SITEMAPS_CAP
    for _ in range(2):
        assert rules.allows("https://a.example/" + "a" * 2000) is allowed


def test_the_work_of_a_match_is_bounded() -> None:
    """Where a file makes many patterns look like matches, few are tried, and the URL is disallowed; others are not."""
    tried: list[PathPattern] = []
    with pytest.MonkeyPatch.context() as patch:
        matches = PathPattern.matches

        def counted(pattern: PathPattern, target: str) -> bool:
            tried.append(pattern)
            return matches(pattern, target)

        patch.setattr(PathPattern, "matches", counted)
        for count in (FILED_CAP // 2, 4 * FILED_CAP):
            text, url = costly_robots(count), f"https://a.example{COSTLY_TARGET}"
            assert len(url) < URL_CAP and not RobotsRules(text, "farmwatch").allows(url)
            assert explain(text, "farmwatch", url).why is DecisionReason.TOO_COSTLY
            assert RobotsRules(text, "farmwatch").allows("https://a.example/robots.txt")
            assert RobotsRules(text, "farmwatch").allows("https://a.example/a-page")
    assert 0 < len(tried) < WORK_CAP // 1000


_pieces = st.sampled_from(["/", "a", "ab", "shop", "/filter", "-red", "?sort=", "=x", "%C3%A4"])
_starred = st.lists(_pieces, min_size=1, max_size=4).map("*".join).map("/".__add__)


@settings(max_examples=30)
@given(st.lists(st.tuples(st.booleans(), _starred, st.sampled_from(["", "$"]))), st.lists(_pieces, max_size=9))
def test_a_rule_among_many_others_is_found(rules: list[tuple[bool, str, str]], path: list[str]) -> None:
    """With dozens of other wildcards in the file, the same rules decide as by a search of all, and protego agrees."""
    others = "".join(f"Disallow: /*other-{number}*end\n" for number in range(60))
    text = "User-agent: *\n" + others + "".join(f"{'Allow' if a else 'Disallow'}: {p}{e}\n" for a, p, e in rules)
    url = "https://a.example/x" + "".join(path)
    assert explain(text.encode(), "farmwatch", url).rule == _searched(text.encode(), url)
    assert RobotsRules(text.encode(), "farmwatch").allows(url) is Protego.parse(text).can_fetch(url, "farmwatch")


def test_a_small_file_of_an_honest_site_is_obeyed_for_long_urls() -> None:
    """A score of patterns with long words forbids no long URL that has none of them, and one that has."""
    text = _ALL + b"".join(b"Disallow: */customer/%02d/ReviewsOfProducts.aspx\n" % number for number in range(21))
    rules, long = RobotsRules(text, "farmwatch"), "https://a.example/" + "customer/word/" * 140
    assert len(long) < URL_CAP and rules.allows(long)
    assert not rules.allows(f"{long}customer/07/ReviewsOfProducts.aspx")


@pytest.mark.parametrize("count", [400, 10_000])
def test_large_files_of_honest_sites_are_obeyed(count: int) -> None:
    """Ten thousand rules with wildcards, as of large shops, allow what no rule matches and disallow what one does."""
    text = _ALL + b"".join(b"Disallow: /*/filter-%d/*sort=\n" % number for number in range(count))
    text += b"".join(b"Disallow: /old/%d/\n" % number for number in range(count // 2))
    rules = RobotsRules(text, "farmwatch")
    for path in ("", "a-plain-page", "shop/filter-77/all", "old/7", "a/" * 900):
        assert rules.allows(f"https://a.example/{path}")
    for path in (f"shop/filter-{count - 1}/all?sort=price", f"old/{count // 2 - 1}/x"):
        assert not rules.allows(f"https://a.example/{path}")


def test_the_shelf_parses_once_and_forgets_the_oldest() -> None:
    """A text is parsed once per version while it is in the cache."""
    assert _parsed(RobotsShelf("farmwatch", size=2), "aabacabA") == "abcbA"
