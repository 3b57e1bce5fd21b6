"""A web of many articles that outlasts any test and can be set to refuse."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from farmwatch.demo.server import NOT_FOUND, Response
from tests.support.web.article_head import ARTICLE_HEAD

_SITES, _PAGES = 8, 300
_WORDS = (
    "harbour garden market river winter summer letter window teacher village morning story bridge station kitchen"
    " mountain journey painter library evening island road"
)


@dataclass
class EndlessWeb:
    """`hosts` for `LoopbackWeb`; from `refuses` on, every host answers 403."""

    refuses: bool = False
    hosts: dict[str, _Site] = field(init=False)

    def __post_init__(self) -> None:
        self.hosts = {f"s{number}.example": _Site(self, f"s{number}.example") for number in range(_SITES)}

    def hits(self) -> list[dict[str, object]]:
        """Every page, the sites in turn."""
        return [
            {"query": f"q{page}", "rank": rank, "url": f"http://{host}/{page}"}
            for page in range(_PAGES)
            for rank, host in enumerate(self.hosts, 1)
        ]


class _Site(dict[str, Response]):
    def __init__(self, web: EndlessWeb, host: str) -> None:
        super().__init__()
        self._web = web
        self._host = host

    def __missing__(self, path: str) -> Response:
        if self._web.refuses:
            return Response(403)
        if not path[1:].isdecimal():
            return NOT_FOUND
        number = int(path[1:])
        body = f"<html>{ARTICLE_HEAD}<body><article><h1>Page {number}</h1>{self._text(number)}</article></body></html>"
        return Response(body=body.encode())

    def _text(self, number: int) -> str:
        chance = random.Random(f"{self._host}/{number}")
        sentences = []
        for _ in range(28):
            one, two, three, four = chance.sample(_WORDS.split(), 4)
            sentences.append(f"When the {one} was near the {two}, they walked to the {three} and talked of the {four}.")
        return "".join(f"<p>{' '.join(sentences[start : start + 7])}</p>" for start in range(0, 28, 7))
