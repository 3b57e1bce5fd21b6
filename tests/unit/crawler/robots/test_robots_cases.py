"""Published cases of robots.txt as a table: RFC 9309's examples, Google's, rep-cpp's and protego's cases.

Each line is facts only: a text, an agent, its allowed and disallowed paths. protego decides each line too, so that
the table shows where the two parsers differ, and which one is stricter. Google's are those of google/robotstxt
(robots_test.cc) and of its documentation, rep-cpp's those of seomoz/rep-cpp (test-robots, test-agent, test-directive).
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from protego import Protego

from crawler.robots.rules import RobotsRules, explain


@dataclass(frozen=True)
class Case:
    """One text, with paths that `agent` may (`yes`) and may not (`no`) request; protego differs on `protego`.

    The source that the name begins with has the other value for `source`, and `why` says why this parser does not
    follow it.
    """

    name: str
    text: str
    agent: str
    yes: str = ""
    no: str = ""
    protego: str = ""
    source: str = ""
    why: str = ""


_FOO = "user-agent: FooBot\n"
_ALL = "user-agent: *\n"
_ONLY = _FOO + "disallow: /\nallow: "
_RFC = """user-agent: *\ndisallow: *.gif$\ndisallow: /example/\nallow: /publications/
user-agent: foobot\ndisallow: /\nallow: /example/page.html\nallow: /example/allowed.gif
user-agent: barbot\nuser-agent: bazbot\ndisallow: /example/page.html
user-agent: quxbot\n"""
_GROUPS = """allow: /foo/bar/\n\nuser-agent: FooBot\ndisallow: /\nallow: /x/\nuser-agent: BarBot\ndisallow: /
allow: /y/\n\n\nallow: /w/\nuser-agent: BazBot\n\nuser-agent: FooBot\nallow: /z/\ndisallow: /\n"""
_NEWS = """user-agent: hedwig-news\ndisallow: /\nallow: /group1\nuser-agent: *\ndisallow: /\nallow: /group2
user-agent: hedwig\ndisallow: /\nallow: /group3\n"""
_1996 = """user-agent: unhipbot\ndisallow: /\n\nuser-agent: webcrawler\nuser-agent: excite\ndisallow:\n
user-agent: *\ndisallow: /org/plans.html\nallow: /org/\nallow: /serv\nallow: /~mak\ndisallow: /\n"""
_UNKNOWN = """user-agent: abc\ndisallow: /content/2/\nuser-agent: *\nInvalid: /gb.html
user-agent: ia_archiver\ndisallow: /\n"""
_NOINDEX = """user-agent: *\ndisallow: /content/2/\nuser-agent: *\nNoindex: /gb.html\nNoindex: /content/2/
user-agent: ia_archiver\ndisallow: /\n"""
_LONG = "/x/" + "a" * 1500
_LONGER = "/x/" + "a" * (2083 * 8 - len("disallow: /x/"))

CASES = [
    # RFC 9309 sections 2.2 and 5
    Case("rfc 5.1 star", _RFC, "other", "/publications/ / /a.gifs", "/a.gif /x/b.gif /example/"),
    Case("rfc 5.1 foo", _RFC, "foobot", "/example/page.html /example/allowed.gif", "/ /example/ /publications/"),
    Case("rfc 5.1 two names", _RFC, "bazbot", "/ /a.gif", "/example/page.html"),
    Case("rfc 5.1 no rules", _RFC, "quxbot", "/ /a.gif /example/page.html"),
    Case("rfc 5.2 longest", _FOO + "allow: /example/page/\ndisallow: /example/page/disallowed.gif", "foobot",
         "/example/page/", "/example/page/disallowed.gif"),
    Case("rfc 2.2.2 query", _ONLY + "/foo/bar?baz=https://foo.bar", "foobot",
         "/foo/bar?baz=https://foo.bar /foo/bar?baz=https%3A%2F%2Ffoo.bar", "/foo/bar?baz=quz",
         protego="/foo/bar?baz=https%3A%2F%2Ffoo.bar"),
    Case("rfc 2.2.2 octets", _ONLY + "/foo/bar/\u30c4", "foobot", "/foo/bar/%E3%83%84 /foo/bar/%e3%83%84", "/foo/bar/"),
    Case("rfc 2.2.2 escaped", _ONLY + "/foo/bar/%E3%83%84", "foobot", "/foo/bar/%E3%83%84 /foo/bar/\u30c4"),
    Case("rfc 2.2.2 unreserved", _ONLY + "/foo/bar/%62%61%7A", "foobot", "/foo/bar/baz /foo/bar/%62%61%7A"),
    Case("rfc 2.2.3 special", _FOO + "disallow: /path/file-with-a-%2A.html\ndisallow: /path/foo-%24", "foobot",
         "/path/foo- /path/file-with-a-x.html", "/path/file-with-a-*.html /path/foo-$"),
    Case("rfc 2.2.4 sitemap ends no group", "user-agent: a\nsitemap: https://e.e/s\nuser-agent: b\ndisallow: /", "a",
         no="/"),
    Case("rfc 2.2.4 nor does an unknown line", _UNKNOWN, "agent", no="/foo /content/2/", protego="/foo /content/2/"),
    Case("rfc 2.2.4 nor does a delay", "user-agent: a\ncrawl-delay: 9\nuser-agent: b\ndisallow: /", "a", no="/",
         protego="/"),
    Case("rfc 2.2.2 robots.txt itself", _ALL + "disallow: /", "foobot", "/robots.txt", "/robots.txt2"),
    Case("rfc 2.2.1 case", "user-agent: fOObOT\ndisallow: /", "FooBot", no="/"),
    Case("rfc 2.2.1 no group", _FOO + "disallow: /", "barbot", "/"),
    # Google's parser and its documentation
    Case("google no colon", "user-agent FooBot\ndisallow /\n", "FooBot", no="/x/y"),
    Case("google unknown names", "foo: FooBot\nbar: /\n", "FooBot", "/x/y"),
    Case("google groups foo", _GROUPS, "FooBot", "/x/b /z/d", "/y/c /foo/bar/"),
    Case("google groups bar", _GROUPS, "BarBot", "/y/c /w/a", "/z/d /foo/bar/"),
    Case("google groups baz", _GROUPS, "BazBot", "/z/d", "/foo/bar/"),
    Case("google upper case", "USER-AGENT: FooBot\nALLOW: /x/\nDISALLOW: /\n", "FooBot", "/x/y", "/a/b"),
    Case("google mixed case", "uSeR-aGeNt: FooBot\nAlLoW: /x/\ndIsAlLoW: /\n", "FooBot", "/x/y", "/a/b"),
    Case("google name and more", "User-Agent: FOO BAR\nAllow: /x/\nDisallow: /\n", "foo", "/x/y", "/a/b",
         protego="/a/b"),
    Case("google name up to the space", _ALL + "disallow: /\nuser-agent: Foo Bar\nallow: /x/\ndisallow: /\n", "Foo",
         "/x/y", "/y", protego="/x/y"),
    Case("google star is second", _ALL + "allow: /\n" + _FOO + "disallow: /\n", "FooBot", no="/x/y"),
    Case("google star for others", _ALL + "allow: /\n" + _FOO + "disallow: /\n", "BarBot", "/x/y"),
    Case("google paths have case", _FOO + "disallow: /X/\n", "FooBot", "/x/y", "/X/y"),
    Case("google longest 1", _FOO + "disallow: /x/page.html\nallow: /x/\n", "FooBot", "/x/", "/x/page.html"),
    Case("google longest 2", _FOO + "allow: /x/page.html\ndisallow: /x/\n", "FooBot", "/x/page.html", "/x/"),
    Case("google empty rules", _FOO + "disallow: \nallow: \n", "FooBot", "/x/page.html"),
    Case("google equal rules", _FOO + "disallow: /\nallow: /\n", "FooBot", "/x/page.html"),
    Case("google equal rules 2", _FOO + "disallow: /x/page.html\nallow: /x/page.html\n", "FooBot", "/x/page.html"),
    Case("google slash", _FOO + "disallow: /x\nallow: /x/\n", "FooBot", "/x/", "/x"),
    Case("google wildcard is longer", _FOO + "allow: /page\ndisallow: /*.html\n", "FooBot", "/page", "/page.html"),
    Case("google wildcard is shorter", _FOO + "allow: /x/page.\ndisallow: /*.html\n", "FooBot", "/x/page.html",
         "/x/y.html"),
    Case("google own group only", _ALL + "disallow: /x/\n" + _FOO + "disallow: /y/\n", "FooBot", "/x/page", "/y/page"),
    Case("google reserved in a query", _ONLY + "/foo/bar?qux=taz&baz=http://foo.bar?tar&par", "FooBot",
         "/foo/bar?qux=taz&baz=http://foo.bar?tar&par", "/foo/bar?qux"),
    Case("google star between", _FOO + "disallow: /foo/bar/quz\nallow: /foo/*/qux\n", "FooBot",
         "/foo/quz /foo//quz /foo/bax/quz", "/foo/bar/quz"),
    Case("google dollar", _FOO + "disallow: /foo/bar$\nallow: /foo/bar/qux\n", "FooBot",
         "/foo/bar/qux /foo/bar/ /foo/bar/baz", "/foo/bar"),
    Case("google comment", _FOO + "# disallow: /\ndisallow: /foo/quz#qux\nallow: /\n", "FooBot", "/foo/bar",
         "/foo/quz"),
    Case("google index.html", _ALL + "allow: /s/index.html\ndisallow: /\n", "FooBot", "/s/index.html",
         "/s/index.htm /other /s/", protego="/s/", source="/s/", why="RFC 9309 knows no index.html"),
    Case("google long line", _FOO + f"disallow: {_LONG}/qux\n", "FooBot", "/fux " + _LONG, _LONG + "/qux/x"),
    Case("google fish", _ONLY + "/fish", "FooBot",
         "/fish /fish.html /fish/salmon.html /fishheads /fishheads/yummy.html /fish.html?id=anything",
         "/bar /Fish.asp /catfish /?id=fish"),
    Case("google fish star", _ONLY + "/fish*", "FooBot",
         "/fish /fish.html /fish/salmon.html /fishheads /fishheads/yummy.html /fish.html?id=anything",
         "/bar /Fish.bar /catfish /?id=fish"),
    Case("google fish slash", _ONLY + "/fish/", "FooBot",
         "/fish/ /fish/salmon /fish/?salmon /fish/salmon.html /fish/?id=anything",
         "/bar /fish /fish.html /Fish/Salmon.html"),
    Case("google php", _ONLY + "/*.php", "FooBot",
         "/filename.php /folder/filename.php /folder/filename.php?parameters //folder/any.php.file.html"
         " /filename.php/ /index?f=filename.php/", "/bar /php/ /index?php /windows.PHP"),
    Case("google php end", _ONLY + "/*.php$", "FooBot", "/filename.php /folder/filename.php",
         "/bar /filename.php?parameters /filename.php/ /filename.php5 /php/ /filename?php /aaaphpaaa //windows.PHP"),
    Case("google fish php", _ONLY + "/fish*.php", "FooBot", "/fish.php /fishheads/catfish.php?parameters",
         "/bar /Fish.PHP"),
    Case("google precedence 1", _FOO + "allow: /p\ndisallow: /\n", "FooBot", "/page", "/"),
    Case("google precedence 2", _FOO + "allow: /folder\ndisallow: /folder\n", "FooBot", "/folder/page"),
    Case("google precedence 3", _FOO + "allow: /page\ndisallow: /*.htm\n", "FooBot", "/page", "/page.htm"),
    Case("google precedence 4", _FOO + "allow: /$\ndisallow: /\n", "FooBot", "/", "/page.html"),
    Case("google bom", "\ufeffuser-agent: foo\nallow: /AnyValue\ndisallow: /", "foo", "/AnyValue", "/", protego="/"),
    Case("google dos lines", "User-Agent: foo\r\nAllow: /some\r\nUser-Agent: bar\r\n\r\n\r\nDisallow: /\r\n", "bar",
         no="/some"),
    Case("google mac lines", "User-Agent: foo\rAllow: /some\rUser-Agent: bar\r\r\rDisallow: /\r", "foo", "/some /x"),
    Case("google mixed lines", "User-Agent: foo\nAllow: /some\r\nUser-Agent: bar\n\r\n\nDisallow: /", "bar",
         no="/some"),
    # Google's documentation on which group counts
    Case("google news", _NEWS, "hedwig-news", "/group1", "/group2 /group3"),
    Case("google news star", _NEWS, "a", "/group2", "/group1 /group3"),
    Case("google news short name", _NEWS, "hedwi", "/group2", "/group1 /group3"),
    # Only a group with exactly our name counts: protego also takes a name that is a prefix of ours
    Case("google longer name", _NEWS, "hedwig-images", "/group2", "/group1 /group3", protego="/group2 /group3"),
    # More of robots_test.cc
    Case("google empty file", "", "FooBot", "/ /x/y"),
    Case("google no agent", _FOO + "disallow: /\n", "", "/"),
    Case("google no path", _FOO + "disallow: /\n", "FooBot", no="/ /x/y"),
    Case("google lower case", "user-agent: foo bar\nallow: /x/\ndisallow: /\n", "Foo", "/x/y", "/a/b",
         protego="/a/b"),
    Case("google agent with a space", _ALL + "disallow: /\nuser-agent: Foo Bar\nallow: /x/\ndisallow: /\n", "Foo Bar",
         no="/x/y", protego="/x/y"),
    Case("google only others", _FOO + "allow: /\nuser-agent: BarBot\ndisallow: /\nuser-agent: BazBot\ndisallow: /\n",
         "QuxBot", "/x/y"),
    Case("google paths in lower case", _FOO + "disallow: /x/\n", "FooBot", no="/x/y"),
    Case("google bare octets", _ONLY + "/foo/bar/\u30c4", "FooBot", "/foo/bar/%E3%83%84 /foo/bar/\u30c4",
         source="/foo/bar/\u30c4", why="its caller has to encode URLs; here the rules do"),
    Case("google escaped octets", _ONLY + "/foo/bar/%E3%83%84", "FooBot", "/foo/bar/%E3%83%84 /foo/bar/\u30c4",
         source="/foo/bar/\u30c4", why="its caller has to encode URLs; here the rules do"),
    Case("google escaped letters", _ONLY + "/foo/bar/%62%61%7A", "FooBot", "/foo/bar/%62%61%7A /foo/bar/baz",
         source="/foo/bar/baz", why="RFC 9309 section 2.2.2 has them equal"),
    Case("google very long disallow", _FOO + f"disallow: {_LONGER}/qux\n", "FooBot", "/fux " + _LONGER + "/fux",
         source=_LONGER + "/fux", why="it cuts lines at 16,664 bytes; RFC 9309 cuts the file only"),
    Case("google very long allow", _FOO + f"disallow: /\nallow: {_LONGER}/qux\n", "FooBot", _LONGER + "/qux",
         "/ " + _LONGER + "/fux", source=_LONGER + "/fux",
         why="it cuts lines at 16,664 bytes; RFC 9309 cuts the file only"),
    # rep-cpp
    Case("rep-cpp no user agent", "Disallow: /path\nAllow: /path/exception\nCrawl-delay: 5.2\n", "agent",
         "/path/exception /path", source="/path", why="RFC 9309 section 2.1: rules outside of groups are none"),
    Case("rep-cpp default agent", _ALL + "Disallow: /tmp\n\nUser-agent: other-agent\nAllow: /tmp\n", "agent", "/path",
         "/tmp"),
    Case("rep-cpp own agent", _ALL + "Disallow: /tmp\n\nUser-agent: agent\nAllow: /tmp\n", "agent", "/tmp /path"),
    Case("rep-cpp grouping", "User-agent: one\nUser-agent: two\nDisallow: /tmp\n", "two", no="/tmp"),
    Case("rep-cpp unknown keys", _NOINDEX, "agent", no="/foo", protego="/foo", source="/foo",
         why="RFC 9309 section 2.2.4: an unknown line ends no group"),
    Case("rep-cpp unknown keys, last agent", _NOINDEX, "ia_archiver", no="/bar"),
    Case("rep-cpp case", "User-agent: Agent\nDisallow: /path\n", "aGeNt", no="/path"),
    Case("rep-cpp empty", "", "agent", "/"),
    Case("rep-cpp comment", "User-Agent: *  # the default agent\nDisallow: /\n", "agent", no="/path"),
    Case("rep-cpp parameters", "User-Agent: agent\nDisallow: /path;params?query\n", "agent",
         no="/path;params?query#fragment"),
    Case("rep-cpp no colon", "User-Agent: agent\nDisallow /no/colon\n", "agent", no="/no/colon", source="/no/colon",
         why="Google reads it, and it is clear what the owner means"),
    Case("rep-cpp double slash", "User-agent: agent\nDisallow: //path\n", "agent", "/path /anotherpath",
         source="/path", why="RFC 9309 compares octets: the pattern is another path"),
    Case("rep-cpp 1996 unhip", _1996, "unhipbot", "/robots.txt",
         "/ /index.html /server.html /services/fast.html /services/slow.html /orgo.gif /org/about.html /org/plans.html"
         " /%7Ejim/jim.html /%7Emak/mak.html"),
    Case("rep-cpp 1996 webcrawler", _1996, "webcrawler",
         "/ /index.html /robots.txt /server.html /services/fast.html /services/slow.html /orgo.gif /org/about.html"
         " /org/plans.html /%7Ejim/jim.html /%7Emak/mak.html"),
    Case("rep-cpp 1996 excite", _1996, "excite",
         "/ /index.html /robots.txt /server.html /services/fast.html /services/slow.html /orgo.gif /org/about.html"
         " /org/plans.html /%7Ejim/jim.html /%7Emak/mak.html"),
    Case("rep-cpp 1996 others", _1996, "anything",
         "/robots.txt /server.html /services/fast.html /services/slow.html /org/about.html /%7Emak/mak.html",
         "/ /index.html /orgo.gif /org/plans.html /%7Ejim/jim.html"),
    Case("rep-cpp bom", "\ufeffuser-agent: *\ndisallow: /disallowed\n", "bot", "/", "/disallowed",
         protego="/disallowed"),
    Case("rep-cpp allow only", _ALL + "allow: /path", "x", "/path /elsewhere"),
    Case("rep-cpp longest", _ALL + "disallow: /path\nallow: /path/exception", "x", "/path/exception", "/path"),
    Case("rep-cpp robots.txt", _ALL + "disallow: /robots.txt", "x", "/robots.txt"),
    Case("rep-cpp disallow none", _ALL + "disallow:", "x", "/anything"),
    Case("rep-cpp escaped", _ALL + "disallow: /a%3cd.html", "x", no="/a<d.html /a%3cd.html"),
    Case("rep-cpp bare", _ALL + "disallow: /a<d.html", "x", no="/a<d.html /a%3cd.html"),
    Case("rep-cpp escaped and star", _ALL + "disallow: /a%3c*", "x", no="/a<d.html /a%3cd.html"),
    Case("rep-cpp bare and star", _ALL + "disallow: /a<*", "x", no="/a<d.html /a%3cd.html"),
    Case("rep-cpp query", _ALL + "disallow: /?", "x", "/", "/?query"),
    Case("rep-cpp semicolon", _ALL + "disallow: /;", "x", "/", "/;params"),
    Case("rep-cpp start", _ONLY + "/tmp", "FooBot", "/tmp /tmp.html /tmp/a.html"),
    Case("rep-cpp folder", _ONLY + "/tmp/", "FooBot", "/tmp/ /tmp/a.html", "/tmp"),
    Case("rep-cpp star", _ONLY + "/hello/*/are/you", "FooBot",
         "/hello/how/are/you /hello/how/are/you/today /hello/how/are/yo/are/you", "/hello/ /hi/how/are/you"),
    Case("rep-cpp stars", _ONLY + "/this-*-is-a-*-test", "FooBot",
         "/this-test-is-a-simple-test /this-test-is-another-test-is-a-tricky-test", "/this-test-is-a-mislead"),
    Case("rep-cpp all", _ONLY + "/*", "FooBot",
         "/ /fish /fish.html /fish/salmon.html /fishheads /fishheads/yummy.html /fish.php?id=anything"),
    Case("rep-cpp fish", _ONLY + "/fish", "FooBot", "/fish.php?id=anything", "/Fish.asp /catfish /?id=fish"),
    Case("rep-cpp fish star", _ONLY + "/fish*", "FooBot", "/fish.php?id=anything", "/Fish.asp /catfish /?id=fish"),
    Case("rep-cpp fish slash", _ONLY + "/fish/", "FooBot", "/fish/ /fish/?id=anything /fish/salmon.htm",
         "/fish /fish.html /Fish/Salmon.asp"),
    Case("rep-cpp php", _ONLY + "/*.php", "FooBot",
         "/filename.php /folder/filename.php /folder/filename.php?parameters /folder/any.php.file.html /filename.php/",
         "/ /windows.PHP"),
    Case("rep-cpp php end", _ONLY + "/*.php$", "FooBot", "/filename.php /folder/filename.php",
         "/filename.php?parameters /filename.php/ /filename.php5 /windows.PHP"),
    Case("rep-cpp fish php", _ONLY + "/fish*.php", "FooBot", "/fish.php /fishheads/catfish.php?parameters",
         "/Fish.PHP"),
    # protego's own cases
    Case("protego spellings",
         _ALL + "dissallow: /two\ndissalow: /three\ndisalow: /four\ndiasllow: /five\ndisallaw: /six",
         "x", "/one", "/two /three /four /five /six"),
    Case("protego escapes", _ONLY + "/a%3cd.html", "FooBot", "/a<d.html /a%3cd.html /a%3Cd.html", "/a"),
    Case("protego bare", _ONLY + "/a<*", "FooBot", "/a<d.html /a%3cd.html", "/a"),
    Case("protego parameters", _ALL + "disallow: /path;params?query", "x", "/path /path;params", "/path;params?query"),
    Case("protego question mark", _ALL + "disallow: /?", "x", "/", "/?query /?"),
    Case("protego slash escaped", _FOO + "allow: /a%2fb.html\ndisallow: /", "FooBot", "/a%2fb.html /a%2Fb.html",
         "/a/b.html"),
    Case("protego slash bare", _FOO + "allow: /a/b.html\ndisallow: /", "FooBot", "/a/b.html", "/a%2fb.html"),
    Case("protego tilde", _FOO + "allow: /%7ejoe/\ndisallow: /", "FooBot", "/~joe/index.html /%7Ejoe/", "/joe/"),
    Case("protego stars", _FOO + "disallow: /disallowed/*/end$\ndisallow: /work*er", "FooBot",
         "/disallowed /disallowed/xyz/endinglater /worke /ork_er", "/disallowed/xyz/end /worker /work_er /work/ers"),
    Case("protego star first", _FOO + "allow: /*allowed\ndisallow: /", "FooBot", "/allowed /is_still_allowed", "/x"),
    Case("protego foo star bar", _FOO + "disallow: /foo*/bar.html", "FooBot", "/fo.html /food/xyz.html",
         "/foo/bar.html /food/bar.html /foo/a/b/c/x/bar.html"),
    Case("protego any m", _FOO + "disallow: *m", "FooBot", "/foo /foo/bar.txt", "/foo.htm /foom /moo"),
    Case("protego only star", _FOO + "allow: /foo/bar.html\ndisallow: *", "FooBot", "/foo/bar.html",
         "/foo /foo/bar.txt"),
    Case("protego two stars", _FOO + "disallow: /foo*/*bar.html", "FooBot", "/food/rebarf.html", "/food/rebar.html"),
    Case("protego whole", _FOO + "allow: /foo$\ndisallow: /foo", "FooBot", "/foo", "/foo/ /foo/bar.html /fooey"),
    Case("protego many stars", _FOO + "allow: *****************/****.js", "FooBot", "/foo.js /inlife/daily-20160727/"),
    Case("protego octets", _ALL + "disallow: /wiki/K%C3%A4ytt:\ndisallow: /wiki/Keskustelu_k\u00e4:", "x",
         "/wiki/", "/wiki/K%C3%A4ytt: /wiki/K\u00e4ytt: /wiki/Keskustelu_k%C3%A4: /wiki/Keskustelu_k\u00e4:"),
    Case("protego nobody's rules", "Disallow: /none\nUser-Agent: testbot\nDisallow: /with", "testbot", "/none",
         "/with"),
    Case("protego names together", "User-Agent: one\nUser-Agent: two\nDisallow: /a\n" + _ALL + "Disallow: /b", "one",
         "/b", "/a"),
    Case("protego comments", "# 1\nUser-Agent: one # 2\n# 3\nUser-Agent: two\nDisallow: /o\n# Disallow: /c", "two",
         "/c", "/o"),
    Case("protego malformed line", "User-Agent: one\nDisallow: /a\nHarry Potter\nUser-Agent: two\nDisallow: /b",
         "one", "/b", "/a"),
    Case("protego empty group", "User-Agent: harrybot\nDisallow: /\nUser-Agent: testbot\n", "testbot", "/path1"),
    Case("protego 1994", _ALL + "Disallow: /map/ # endless\nDisallow: /tmp/ # these\nDisallow: /foo.html", "x",
         "/ /foo.htm /foo.shtml", "/foo.html /foo.htmlx /map/x /tmp/foo.html"),
    Case("protego 1996 star", _1996, "OtherBot", "/server.html /org/about.html /%7Emak/mak.html",
         "/ /index.html /orgo.gif /org/plans.html /%7Ejim/jim.html"),
    Case("protego 1996 all", _1996, "excite", "/ /org/plans.html /%7Ejim/jim.html"),
    Case("protego 1996 none", _1996, "unhipbot", no="/ /org/about.html /services/fast.html"),
    Case("protego star in a name", "user-agent: foo*bot\ndisallow: /my", "foo", no="/my", protego="/my"),
    Case("protego dollar inside",
         _FOO + "disallow: /x$/abc\ndisallow: /y/abc$\ndisallow: /x*x$/abc\ndisallow: /y*y/abc$",
         "FooBot", "/y/abcdef /yabcy/abcdef",
         "/x$/abcdef /x%24/abcdef /y/abc /xabcx$/abcdef /xabcx%24/abcdef /yabcy/abc"),
    Case("protego escaped specials", _FOO + "disallow: /x/abc%24\ndisallow: /x%2Ax/abc", "FooBot", "/x/abc /xabcx/abc",
         "/x/abc$abc /x/abc$ /x*x/abc /x*x/abcdef"),
    # protego also treats the dollar as a literal character; in the RFC it only ends the pattern
    Case("protego dollar as both", _FOO + "disallow: /x/abc$\ndisallow: /x*x/abc", "FooBot", "/x/abc$",
         "/x*x/abc /x/abc",
         protego="/x/abc$"),
    Case("protego absolute", _ALL + "disallow: http://a.example/", "FooBot", "/ /http://a.example/",
         protego="/http://a.example/"),
    Case("protego no path", _ALL + "disallow: /", "FooBot", no="/"),
    Case("protego double slash", _ALL + "Disallow: //folder/*", "FooBot", "/ /folder /folder/page //folder",
         "//folder/page"),
    Case("protego query", _ALL + "disallow: /*s=", "x", "/ /s/", "/?s=asd"),
    Case("protego leading star", _ALL + "allow: /page\ndisallow: */*.htm", "x", "/page", "/page.htm"),
    # Cases that matter to a site owner
    Case("our version", _ALL + "allow: /\nuser-agent: farmwatch/1.0\ndisallow: /", "farmwatch", no="/", protego="/"),
    Case("our user agent", "user-agent: farmwatch/1.0 (+https://a.example)\ndisallow: /", "farmwatch", no="/",
         protego="/"),
    Case("a name we begin with", _ALL + "disallow: /\nuser-agent: farm\nallow: /", "farmwatch", no="/x", protego="/x"),
    Case("a name that holds ours", _ALL + "disallow: /\nuser-agent: farmwatch-news\nallow: /", "farmwatch", no="/x"),
    Case("reserved escapes", _ALL + "disallow: /a\nallow: /a%3Fb", "farmwatch", "/a%3fb", "/a?b", protego="/a?b"),
    Case("broken octets", _ALL + "disallow: /\nallow: /%E4", "farmwatch", "/%e4", "/%f6", protego="/%f6"),
    Case("counted by octets", _ALL + "disallow: /*ab\nallow: /?a", "farmwatch", "/?a", "/?ab", protego="/?ab"),
    Case("other line breaks", _ALL + "disallow: /\nallow: /y\x85allow: /x\u2028allow: /x", "farmwatch", no="/x /y",
         protego="/x /y"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_published_cases(case: Case) -> None:
    """The parser allows and disallows the stated paths, and the stated line decides."""
    text = case.text.encode()
    rules = RobotsRules(text, case.agent)
    for paths, allowed in ((case.yes, True), (case.no, False)):
        for path in paths.split():
            url = f"https://foo.bar{path}"
            assert rules.allows(url) is allowed, path
            found = explain(text, case.agent, url)
            assert found.allowed is allowed
            assert found.rule is None or found.rule.allow is allowed


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_where_protego_reads_otherwise(case: Case) -> None:
    """protego decides otherwise on exactly the paths that the table names."""
    peer = Protego.parse(case.text)
    paths = [(path, True) for path in case.yes.split()] + [(path, False) for path in case.no.split()]
    other = {path for path, allowed in paths if peer.can_fetch(f"https://foo.bar{path}", case.agent) is not allowed}
    assert other == set(case.protego.split())


@pytest.mark.parametrize(("source", "alike", "others"), [("google", 151, 6), ("rep-cpp", 127, 4)])
def test_how_far_the_sources_agree(source: str, alike: int, others: int) -> None:
    """On all published paths but a few, each with its reason; `test_published_cases` asserts the decisions."""
    cases = [case for case in CASES if case.name.startswith(source)]
    paths = sum(len((case.yes + " " + case.no).split()) for case in cases)
    differing = [(case, path) for case in cases for path in case.source.split()]
    print(f"{source}: {paths - len(differing)} of {paths} paths are decided alike")
    for case, path in differing:
        print(f"  {case.name}, {path[:30]}: {case.why}")
        assert path in (case.yes + " " + case.no).split() and case.why
    assert (paths - len(differing), len(differing)) == (alike, others)
