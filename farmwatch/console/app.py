"""The console's web application: addresses, templates and their JSON twins."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import NamedTuple

import structlog
from aiohttp import web
from aiohttp.typedefs import Middleware
from jinja2 import Environment
from yarl import URL

from crawler.errors import UnusableUrl
from farmwatch.console.access import Access, Handler, secured
from farmwatch.console.actions import ACTIONS, Action
from farmwatch.console.drawings import DRAWINGS, Drawing, saved, static_text
from farmwatch.console.jobs import Working
from farmwatch.console.live import PATH as EVENTS
from farmwatch.console.live import events
from farmwatch.console.page_environment import environment_of
from farmwatch.console.site_lists import ALL, Data, Query, csv_of
from farmwatch.console.views import Console
from farmwatch.terminal.remedies import in_full
from stream.text.user_errors import Exit, FarmwatchError, NotFound

_log = structlog.get_logger()
_REQUEST_S = 60.0
_STATIC = {  # file -> its type
    "console.css": "text/css",
    "icon.svg": "image/svg+xml",
    "live.js": "text/javascript",
    "pictures.css": "text/css",
}


Load = Callable[[Query], Data]


class Address(NamedTuple):
    """A page: how its data is found, the fields that its address may have, and how the data of its file is found."""

    load: Load
    fields: tuple[str, ...] = ()
    whole: Load | None = None


def application(console: Console, access: Access, request_s: float = _REQUEST_S) -> web.Application:
    """The application; every answer passes `access`. A request, and the sending of its answer, may take `request_s`."""
    templates = environment_of(access, console)
    app = web.Application(middlewares=[_guard(access, templates, request_s)], client_max_size=64 * 1024)
    of_sites = ("search", "verdict", "source", "least", "label", "sort", "reverse", "after")
    views = {  # the name is that of the address, with .json of its twin, and of the template
        "answer": Address(console.answer, ("of", "by"), console.answer),
        "flow": Address(console.state.flow),
        "sites": Address(console.lists.sites, of_sites, partial(console.lists.sites, limit=ALL)),
        "site": Address(console.lists.site, ("site", "after")),
        "pages": Address(console.lists.pages, ("kind", "why", "after"), partial(console.lists.pages, limit=ALL)),
        "page": Address(console.page, ("url", "ruleset")),
        "networks": Address(console.networks.networks, ("operator", "id")),
        "crawl": Address(console.crawl, ("already",)),
        "frontier": Address(console.frontier),
        "runs": Address(console.runs.runs, ("already",)),
        "compare": Address(console.runs.compare, ("a", "b")),
        "label": Address(console.runs.labels.label, ("of", "a", "b", "by", "after", "at", "already")),
        "rulesets": Address(console.runs.rulesets, ("a", "b")),
        "letters": Address(console.state.letters, ("settled", "refused")),
        "letter": Address(console.state.letter, ("id",)),
        "health": Address(console.state.health, ("doctor",)),
    }
    get, post, other = (
        partial(add, expect_handler=_ignore)
        for add in (app.router.add_get, app.router.add_post, partial(app.router.add_route, "*"))
    )
    get("/", _to_answer)

    def serve(path: str, view: Address, kind: str, load: Load) -> None:
        get(path, partial(_served, view._replace(load=load), kind, templates, console.version))

    for name, view in views.items():
        serve(f"/{name}", view, "text/html", view.load)
        serve(f"/{name}.json", view, "application/json", view.load)
        if view.whole is not None:
            serve(f"/{name}.csv", view, "text/csv", partial(_csv, name, view.whole))
    for name, drawing in DRAWINGS.items():
        view = views[drawing.view]
        serve(f"/{name}.svg", view, "image/svg+xml", partial(_picture, drawing, view.load))
    for name, kind in _STATIC.items():
        get(f"/static/{name}", partial(_static, name, kind))
    get(EVENTS, events(console.version, console.stopped))
    post("/token", partial(_take_token, access, templates))
    for path, action in ACTIONS.items():
        post(path, partial(_act, action, console, access, templates, views))
    other("/{other:.*}", _no_page)
    return app


def _guard(access: Access, templates: Environment, request_s: float) -> Middleware:
    """Answers each request, and sends the answer, within `request_s` each; events last as long as their tab."""

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            async with asyncio.timeout(None if request.path == EVENTS else request_s):
                answer = await _guarded(access, templates, request, handler)
        except TimeoutError:
            came = request.content.is_eof()
            said = "no answer in time: what was ordered may still be done" if came else "the request did not come whole"
            answer = web.Response(status=503 if came else 408, text=f"{said}\n")
        try:
            async with asyncio.timeout(request_s):
                await secured(answer).prepare(request)
                await answer.write_eof()
        except (ConnectionError, TimeoutError):  # the browser left, or reads nothing
            if request.transport is not None:
                request.transport.abort()
        return answer

    return guard


async def _guarded(
    access: Access, templates: Environment, request: web.Request, handler: Handler
) -> web.StreamResponse:
    try:
        if why := access.refusal(request):
            return web.Response(status=403, text=f"refused: {why}\n")
        _require_text(request.raw_path, *request.query, *request.query.values())
        token, is_known = request.query.get("token"), access.is_known(request)
        if request.method == "GET" and token is not None and (is_known or access.opens(token)):
            return access.let_in(str(request.rel_url.without_query_params("token")))
        is_open = request.path == "/token" or request.path.startswith("/static/")
        if not is_open and not is_known:
            return _ask_for_token(templates, request)
        return await handler(request)
    except web.HTTPException as answer:
        if "Location" in answer.headers:
            return web.Response(status=answer.status, headers={"Location": answer.headers["Location"]})
        return _refused(templates, request, answer.status, f"{answer.reason}: {request.path[:80]}")
    except FarmwatchError as error:
        return web.Response(status=503, text=f"{in_full(error)}\n")
    except Exception:  # noqa: BLE001 - one page that fails must not end the others
        _log.exception("console_failed", path=request.path)
        return web.Response(status=500, text="the console failed: its log says why\n")


def _require_text(*values: str) -> None:
    """Raises HTTPBadRequest for what is no text to a page, a file name or the index."""
    for value in values:
        if "\0" in value or value.encode(errors="replace").decode() != value:
            raise web.HTTPBadRequest


def _ask_for_token(templates: Environment, request: web.Request, where: str = "", wrong: bool = False) -> web.Response:
    """`where` the browser goes with the right token, by default to the address that it asked for."""
    if request.path.endswith(".json"):
        error = "no token: send it as `Authorization: Bearer TOKEN`, or open the address that `farmwatch up` prints"
        return web.json_response({"error": error}, status=401)
    where = where or (request.raw_path if request.method == "GET" else "/")
    return _page("token.html", templates, {"wrong": wrong, "where": where}, request, status=401)


async def _take_token(access: Access, templates: Environment, request: web.Request) -> web.Response:
    form = await _form(request)
    where = form.get("where", "")
    if not (where.startswith("/") and not where.startswith(("//", "/\\")) and where.isascii() and where.isprintable()):
        where = "/"
    right = access.opens(form.get("token", "").strip())
    return access.let_in(where) if right else _ask_for_token(templates, request, where, wrong=True)


async def _act(
    action: Action,
    console: Console,
    access: Access,
    templates: Environment,
    views: dict[str, Address],
    request: web.Request,
) -> web.Response:
    form = await _form(request)
    if not access.is_own_form(form.get("form_token", "")):
        return web.Response(status=403, text="refused: a form of another page\n")
    try:
        where = await asyncio.to_thread(action, console, form)
    except (FarmwatchError, UnusableUrl, Working) as error:
        return await _shown_again(views, templates, request, form, error)
    raise web.HTTPSeeOther(where)


async def _shown_again(
    views: Mapping[str, Address],
    templates: Environment,
    request: web.Request,
    form: Mapping[str, str],
    error: Exception,
) -> web.Response:
    """The page of a form that changed nothing, with the reason and what was written in the form."""
    before = _before(request)
    name = before.path.strip("/")
    if name in views:
        with suppress(FarmwatchError, UnusableUrl, Working, sqlite3.Error):
            data = await asyncio.to_thread(views[name].load, before.query)
            shown = {**data, "problem": in_full(error), "sent": form}
            return _page(f"{name}.html", templates, shown, request, _status_of(error), before)
    return _refused(templates, request, _status_of(error), in_full(error))


def _refused(templates: Environment, request: web.Request, status: int, why: str) -> web.Response:
    """A form that changed nothing, or an address that is none, with the way back to the page before."""
    if request.path.endswith(".json"):
        return web.json_response({"error": why}, status=status)
    data = {"error": why, "back": _before(request).raw_path_qs}
    return _page("refused.html", templates, data, request, status)


def _before(request: web.Request) -> URL:
    """The page that the browser comes from, without its host."""
    try:
        return URL(request.headers.get("Referer", "")).relative()
    except ValueError:
        return URL("/")


async def _form(request: web.Request) -> dict[str, str]:
    """Its fields. Raises HTTPBadRequest for what no browser sends, and for a browser that left."""
    try:
        form = {name: value for name, value in (await request.post()).items() if isinstance(value, str)}
    except (ValueError, LookupError, ConnectionError, web.RequestPayloadError):
        raise web.HTTPBadRequest from None
    _require_text(*form, *form.values())
    return form


async def _ignore(_: web.Request) -> None:
    """Expect: RFC 9110 section 10.1.1 lets a server go without; the library fails on some of its values."""


async def _no_page(_: web.Request) -> web.Response:
    raise web.HTTPNotFound


async def _to_answer(_: web.Request) -> web.Response:
    raise web.HTTPSeeOther("/answer")


async def _served(
    view: Address, kind: str, templates: Environment, version: Callable[[], int], request: web.Request
) -> web.Response:
    """A page, or its twin, or a file of this `kind` with what its data has in `file`; or why it cannot be shown."""
    shown = version()  # before what it shows
    status, data = await _load(view, request)
    if kind == "application/json":
        return web.json_response(data, status=status, dumps=partial(json.dumps, ensure_ascii=False))
    if kind != "text/html" and status == 200:
        headers = {"Content-Disposition": f'attachment; filename="farmwatch-{request.path.strip("/")}"'}
        return web.Response(text=data["file"], content_type=kind, headers=headers)
    name = {200: f"{request.path.strip('/')}.html", 202: "working.html"}.get(status, "refused.html")
    came_from = _before(request).raw_path_qs
    return _page(name, templates, {**data, "version": shown, "came_from": came_from}, request, status)


def _csv(name: str, load: Load, query: Query) -> Data:
    return {"file": csv_of(name, load(query))}


def _picture(drawing: Drawing, load: Load, query: Query) -> Data:
    if picture := drawing.save(load(query)):
        return {"file": saved(picture)}
    raise NotFound("there is nothing to draw yet")


async def _load(view: Address, request: web.Request) -> tuple[int, Data]:
    if unknown := [name for name in request.query if name not in view.fields]:
        known = f"it has {', '.join(view.fields)}" if view.fields else "it has none"
        return 400, {"error": f"{request.path} has no field {unknown[0][:40]!r}: {known}"}
    try:
        return 200, await asyncio.to_thread(view.load, request.query)
    except Working as work:
        return 202, {"working": str(work)}
    except (FarmwatchError, UnusableUrl) as error:
        if (status := _status_of(error)) == 503:
            _log.warning("console_cannot_read", path=request.path, error=str(error))
        return status, {"error": in_full(error)}
    except sqlite3.Error as error:
        _log.warning("console_cannot_read_index", path=request.path, error=str(error))
        return 503, {"error": f"the index of the console: {error}: if that does not pass, restart the console"}


def _status_of(error: Exception) -> int:
    """By whose fault it is: of the address or the form, of what the log has or another browser did, of the log."""
    if isinstance(error, NotFound):
        return 404
    if isinstance(error, Working):
        return 409
    by_exit = {Exit.USAGE: 400, Exit.PROBLEM: 409}
    return by_exit.get(error.exit, 503) if isinstance(error, FarmwatchError) else 400


def _page(
    name: str, templates: Environment, data: Data, request: web.Request, status: int, at: URL | None = None
) -> web.Response:
    """`at`: the address of the page, if it is not that of the request."""
    address = at or request.rel_url
    query = f"?{text}" if (text := address.raw_query_string) else ""
    of_page = {"data": data, "path": address.path, "query": query, "twin": f"{address.path}.json{query}"}
    html = templates.get_template(name).render(**{"problem": "", "sent": {}, **data, **of_page})
    return web.Response(status=status, text=html, content_type="text/html")


async def _static(name: str, kind: str, _: web.Request) -> web.Response:
    return web.Response(text=static_text(name), content_type=kind)
