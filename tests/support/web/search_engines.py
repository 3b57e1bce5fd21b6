"""Search engines on loopback: answers in the APIs' documented formats, and a log of requests."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.support.web.server_thread import ServerThread


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as the engine saw it."""

    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer of the engine."""

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


Answering = Callable[[Asked], Reply]


def says(value: Any, status: int = 200, **headers: str) -> Reply:
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return Reply(json.dumps(value).encode(), status, {"Content-Type": "application/json", **named})


SEARXNG = {
    "query": "garden",
    "number_of_results": 0,
    "results": [
        {
            "url": "https://a.example/garden",
            "title": "A garden",
            "content": "About one.",
            "engine": "mojeek",
            "engines": ["mojeek", "brave"],
            "positions": [1, 3],
            "score": 2.6,
            "category": "general",
        },
        {"url": "https://b.example/", "title": "B", "content": "", "engine": "brave", "engines": ["brave"]},
    ],
    "answers": [],
    "suggestions": [],
    "unresponsive_engines": [["duckduckgo", "timeout"], ["qwant", "access denied"]],
}
BRAVE = {
    "type": "search",
    "query": {"original": "garden", "more_results_available": True},
    "web": {
        "type": "search",
        "results": [
            {"title": "A garden", "url": "https://a.example/garden", "description": "About one.", "language": "en"},
            {"title": "B", "url": "https://b.example/", "description": "More."},
        ],
    },
}
BRAVE_LIMITS = {
    "X_RateLimit_Limit": "1, 2000",
    "X_RateLimit_Policy": "1;w=1, 2000;w=2592000",
    "X_RateLimit_Remaining": "0, 1234",
    "X_RateLimit_Reset": "1, 86400",
}
MOJEEK = {
    "response": {
        "status": "OK",
        "head": {"query": "garden", "start": 0, "return": 2, "results": 40},
        "results": [
            {"url": "https://a.example/garden", "title": "A garden", "desc": "About one.", "size": "1kb"},
            {"url": "https://b.example/", "title": "B", "desc": "More."},
        ],
    }
}
MARGINALIA = {
    "license": "CC-BY-NC-SA 4.0",
    "query": "garden",
    "page": 1,
    "pages": 3,
    "results": [
        {"url": "https://a.example/garden", "title": "A garden", "description": "About one.", "quality": 3.2},
        {"url": "https://b.example/", "title": "B", "description": "More."},
    ],
}


class Engine(ServerThread):
    """An HTTP server in a thread; `answering` decides each answer. Use as a context manager."""

    def __init__(self, answering: Answering) -> None:
        super().__init__()
        self.answering = answering
        self.seen: list[Asked] = []
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        asked = Asked(request.path, dict(request.query), dict(request.headers))
        self.seen.append(asked)
        reply = self.answering(asked)
        return web.Response(body=reply.body, status=reply.status, headers=dict(reply.headers))

    async def serve(self) -> None:
        self._runner = runner = web.ServerRunner(web.Server(self._handle, access_log=None), shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.port = runner.addresses[0][1]

    async def close(self) -> None:
        """Close the port: later requests are refused."""
        await self._runner.cleanup()
