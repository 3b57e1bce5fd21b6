"""Only browsers with the token see the console, and only its own forms change anything; its files are open."""

from __future__ import annotations

from pathlib import Path

import pytest
from aiohttp.test_utils import make_mocked_request

from farmwatch.console.access import Access, browsed_host, kept_token
from farmwatch.console.actions import ACTIONS
from stream.text.user_errors import ConfigError
from tests.support.web.console_browser import TOKEN, Answer, Browser, browse


def test_a_stranger_gets_nothing(finished: str, tmp_path: Path) -> None:
    """Without the cookie each page is a form for the token, each JSON twin an error, and no form does anything.

    A wrong token opens nothing.
    """

    async def visit(browser: Browser) -> list[Answer]:
        wrong = [await browser.open("guess"), await browser.post("/token", {"token": "guess"})]
        gets = [path for path in browser.paths if not path.startswith(("/static/", "/token"))]
        assert {"/", "/events", "/compare", "/label.json", *ACTIONS} <= set(gets)
        posts = [await browser.post(path, {"order": "pause"}) for path in ACTIONS]
        return [*wrong, *posts, *[await browser.get(path) for path in gets]]

    answers = browse(finished, tmp_path, visit, known=False)
    assert {answer.status for answer in answers} == {401}
    assert not any("kept.example" in answer.text for answer in answers)


def test_the_token_becomes_a_cookie_and_leaves_the_address(finished: str, tmp_path: Path) -> None:
    """The address with the token leads to the same page without it; scripts and other sites never see the cookie.

    So does one with an outdated token, for a browser that has the cookie.
    """

    async def visit(browser: Browser) -> tuple[Answer, Answer, Answer]:
        query = {"token": TOKEN, "verdict": "llm"}
        let_in, page = await browser.get("/sites", query), await browser.get("/sites")
        return let_in, page, await browser.get("/sites", query | {"token": "of last week"})

    let_in, page, outdated = browse(finished, tmp_path, visit, known=False)
    for answer in (let_in, outdated):
        assert (answer.status, answer.headers["Location"]) == (303, "/sites?verdict=llm")
    cookie = let_in.headers["Set-Cookie"]
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie and "token" not in cookie.split(";")[0].split("=")[1]
    assert page.status == 200


@pytest.mark.parametrize(
    ("headers", "status"), [({"Host": "evil.example"}, 403), ({"Host": "console.example"}, 200), ({}, 200)]
)
def test_unknown_hosts_are_refused(finished: str, tmp_path: Path, headers: dict[str, str], status: int) -> None:
    """A name that leads to the console's address (DNS rebinding) gets no page, even with the cookie."""

    async def visit(browser: Browser) -> Answer:
        return await browser.get("/sites", headers=headers)

    assert browse(finished, tmp_path, visit, hosts=["console.example"]).status == status


@pytest.mark.parametrize("host", ["10.0.0.5:9480", "localhost:9480", "[::1]:9480"])
def test_a_forwarded_port_is_reached_by_the_names_of_this_machine(host: str) -> None:
    """The names of loopback are always the console's: no stranger's page has them."""
    access = Access(TOKEN, "10.0.0.5", 9480, ())
    assert access.refusal(make_mocked_request("GET", "/", headers={"Host": host})) == ""


@pytest.mark.parametrize("origin", [None, "http://evil.example", "null"])
def test_a_page_of_another_origin_can_do_nothing(finished: str, tmp_path: Path, origin: str | None) -> None:
    """A form without the console's Origin is refused, and so is one with it that lacks the console's field."""

    async def visit(browser: Browser) -> list[Answer]:
        headers = {} if origin is None else {"Origin": origin}
        form = {"order": "pause"}
        return [await browser.post("/crawl/pause", form, headers), await browser.post("/crawl/pause", form)]

    assert [answer.status for answer in browse(finished, tmp_path, visit)] == [403, 403]


def test_every_answer_lets_nothing_run_or_load(finished: str, tmp_path: Path) -> None:
    """The policy allows the console's own scripts, style and forms, nothing inline, no frame, no other address."""

    async def visit(browser: Browser) -> list[Answer]:
        stranger = await browser.get("/sites")
        return [stranger, await browser.open(), await browser.get("/sites"), await browser.get("/no")]

    for answer in browse(finished, tmp_path, visit, known=False):
        policy = answer.headers["Content-Security-Policy"]
        sources = {source for rule in policy.split("; ") for source in rule.split()[1:]}
        assert policy.startswith("default-src 'none'; script-src 'self'") and sources == {"'none'", "'self'"}
        assert "frame-ancestors 'none'" in policy and answer.headers["X-Content-Type-Options"] == "nosniff"


def test_a_token_is_made_once_for_its_owner(tmp_path: Path) -> None:
    """The file is readable by its owner alone, and the next start reads it."""
    token = kept_token(tmp_path)
    assert kept_token(tmp_path) == token and len(token) > 40
    assert (tmp_path / "console.token").stat().st_mode & 0o777 == 0o600


def test_a_file_without_a_token_lets_nobody_in(tmp_path: Path) -> None:
    """A disk that was full at the first start leaves an empty file: the console does not start, and says why."""
    (tmp_path / "console.token").touch()
    with pytest.raises(ConfigError, match="remove it"):
        kept_token(tmp_path)


def test_two_consoles_of_a_machine_keep_their_cookies(finished: str, tmp_path: Path) -> None:
    """Browsers send a host's cookies to all of its ports: the one of another console changes nothing."""

    async def visit(browser: Browser) -> Answer:
        other = Access("another token", "127.0.0.1", 1, ()).let_in().cookies
        ((name, morsel),) = other.items()
        browser.keep(name, morsel.value)
        return await browser.get("/sites")

    assert browse(finished, tmp_path, visit).status == 200


def test_what_no_browser_sends_is_refused(finished: str, tmp_path: Path) -> None:
    """Forms and fields of other shapes are 400 or without effect, not an error of the console."""

    async def visit(browser: Browser) -> list[Answer]:
        sent = {"Origin": f"http://{browser.host}", "Content-Type": "application/x-www-form-urlencoded"}
        no_part = {**sent, "Content-Type": "multipart/form-data"}
        forms = [
            (sent, b"\xff"),
            ({**sent, "Content-Type": f"{sent['Content-Type']}; charset=x"}, b"a"),
            (no_part, b"a"),
        ]
        posted = [await browser.post(path, form, headers) for path in ("/token", "/label") for headers, form in forms]
        fields = ({"settled": "9" * 5000}, {"settled": "1"}, {"refused": "1"})
        return [*posted, *[await browser.get("/letters", query) for query in fields]]

    assert [answer.status for answer in browse(finished, tmp_path, visit)] == [400] * 7 + [200] * 2


def test_bytes_that_are_no_text_are_wrong() -> None:
    """What a stranger sends as cookie, token or field is refused without an error, whatever its bytes."""
    access = Access(TOKEN, "127.0.0.1", 9480, ())
    assert not access.opens("\udcff") and not access.is_own_form("\udcff")


def test_the_token_leads_on_to_what_was_asked_for(finished: str, tmp_path: Path) -> None:
    """The page that was asked for comes next, but none of another host. A form without a token is refused."""

    async def visit(browser: Browser) -> list[Answer]:
        asked = await browser.get("/sites", {"verdict": "llm"})
        told = await browser.post("/crawl/pause", {"order": "pause"})
        places = ("/sites?verdict=llm", "//evil.example/", "https://evil.example/", "/\\evil.example", "/a\r\nX: y")
        sent = [await browser.post("/token", {"token": TOKEN, "where": where}) for where in places]
        wrong = await browser.post("/token", {"token": "no", "where": places[0]})
        return [asked, told, wrong, *sent]

    asked, told, wrong, right, *elsewhere = browse(finished, tmp_path, visit, known=False)
    kept = 'name="where" value="/sites?verdict=llm"'
    assert kept in asked.text and kept in wrong.text and right.headers["Location"] == "/sites?verdict=llm"
    assert told.status == 401 and "was not sent" in told.text
    assert {answer.headers["Location"] for answer in elsewhere} == {"/"}


def test_static_files_need_no_token_and_others_are_not_served(finished: str, tmp_path: Path) -> None:
    """Every file that a template names is there; a path that leads elsewhere is not."""

    async def visit(browser: Browser) -> list[Answer]:
        page = (await browser.get("/answer")).text
        named = [part.partition('"')[0] for part in page.split('"/static/')[1:]]
        found = [await browser.get(f"/static/{name}") for name in named]
        return [*found, *[await browser.get(f"/static/{name}") for name in ("../app.py", "%2e%2e/app.py", "")]]

    *found, up, encoded, folder = browse(finished, tmp_path, visit)
    assert len(found) == 4 and {answer.status for answer in found} == {200}
    assert {answer.status for answer in (up, encoded, folder)} == {404}


def test_a_program_sends_the_token_in_a_header(finished: str, tmp_path: Path) -> None:
    """The twins answer to `Authorization: Bearer`; a wrong token, or another kind, is refused with words."""

    async def visit(browser: Browser) -> list[Answer]:
        sent = (f"Bearer {TOKEN}", f"bearer  {TOKEN}", "Bearer no", f"Basic {TOKEN}", "Bearer ", "")
        return [await browser.get("/sites.json", headers={"Authorization": header}) for header in sent]

    answers = browse(finished, tmp_path, visit, known=False)
    assert [answer.status for answer in answers] == [200, 200, 401, 401, 401, 401]
    assert answers[0].json["sites"] and "Bearer" in answers[-1].json["error"]


@pytest.mark.parametrize(
    ("host", "shown"), [("", "127.0.0.1"), ("0.0.0.0", "127.0.0.1"), ("::", "[::1]"), ("::1", "[::1]"), ("a.b", "a.b")]
)
def test_the_address_for_a_browser_has_one_host(host: str, shown: str) -> None:
    """Of all addresses of a machine a browser gets that of the machine itself; IPv6 stands in brackets."""
    assert browsed_host(host) == shown
