"""Time to parse robots.txt of up to 500 KiB with thousands of wildcards, and to decide on a URL under each.

Run: python -m tests.bench.bench_robots [FOLDER], with a folder of real files, such as protego's tests/test_data.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from protego import Protego

from crawler.robots.lines import ROBOTS_CAP_BYTES
from crawler.robots.rules import DecisionReason, RobotsRules, explain
from crawler.web.urls import URL_CAP
from tests.bench.timing import cpu_s
from tests.support.web.robots_texts import ALL, COSTLY_TARGET, costly_robots

ROUNDS = 20
RULES = 10_000

_rng = random.Random(1)
WORDS = ["".join(_rng.choices("abcdefghijklmnopqrstuvwxyz", k=_rng.randint(3, 9))) for _ in range(3000)]


def _words(count: int) -> Iterator[str]:
    return iter(_rng.choices(WORDS, k=count))


def _filled(rule: Callable[[int], str], most: int = 100_000) -> bytes:
    """A file of at most `most` rules and less than 500 KiB."""
    text = bytearray(ALL)
    for number in range(most):
        line = b"Disallow: %s\n" % rule(number).encode()
        if len(text) + len(line) >= ROBOTS_CAP_BYTES:
            break
        text += line
    return bytes(text)


def _permuted(_: int) -> str:
    return "/*" + "*".join(_rng.sample("abcdefghijklmnopqrstuvwxyz", 20))


FILES: dict[str, bytes] = {
    "10,000 filters of a shop": _filled(lambda n: f"/*/filter-{n}/*sort=", RULES),
    "10,000 paths with arguments": _filled(lambda n: "/*/{}/*{}={}*&{}".format(*_words(2), n, *_words(1)), RULES),
    "two words, full": _filled(lambda _: "/*{}*{}".format(*_words(2))),
    "a letter and a number, full": _filled(lambda n: f"/*a*{n}"),
    "plain prefixes, full": _filled(lambda n: f"/{n}"),
    "hostile: orders of the letters": _filled(_permuted),
    "hostile: growing prefixes": _filled(lambda n: "/" + "a" * n + "b"),
    "hostile: growing chains": _filled(lambda n: "/" + "*a" * n + "*b"),
    "hostile: all but the end matches": costly_robots(),
}
ROOM = URL_CAP - len("https://a.example/")
URLS = {
    "usual": "/".join(_words(9)) + "?page=3&sort=x",
    "words": "/".join(_words(400))[:ROOM],
    "digits": "".join(_rng.choices("0123456789/", k=ROOM)),
    "one letter": "b" + "a" * (ROOM - 1),
    "letters": ("zyxwvutsrqponmlkjihgfedcba" * 90)[:ROOM],
    "costly": COSTLY_TARGET[1:],
}


def _cell(text: bytes, rules: RobotsRules, url: str) -> str:
    took_us = 1e6 * min(cpu_s(lambda: rules.allows(url)) for _ in range(ROUNDS))
    return f"{took_us:.0f}{'!' if explain(text, 'farmwatch', url).why is DecisionReason.TOO_COSTLY else ' '}"


def real(folder: Path) -> None:
    """Decisions on a plain, a usual and a long URL by each file of a folder: the slowest, and what costs too much."""
    files = [file for file in sorted(folder.iterdir()) if file.is_file()]
    took_s, costly, other = [(0.0, "")], [], []
    for file in files:
        text = file.read_bytes()
        rules, peer = RobotsRules(text, "farmwatch"), Protego.parse(text.decode("utf-8", "replace"))
        for path in ("a-plain-page", URLS["usual"], URLS["words"]):
            url = f"https://a.example/{path}"
            took_s.append((min(cpu_s(partial(rules.allows, url)) for _ in range(3)), file.name))
            costly += [file.name] if explain(text, "farmwatch", url).why is DecisionReason.TOO_COSTLY else []
            other += [file.name] if peer.can_fetch(url, "farmwatch") is not rules.allows(url) else []
    slowest_s, name = max(took_s)
    print(f"{len(files):,} files, {len(took_s) - 1:,} decisions, at most {1e6 * slowest_s:.0f} µs ({name})")
    print(f"too costly: {costly or 'none'}; decided otherwise by protego: {other or 'none'}")


def main() -> None:
    """Microseconds of CPU of the fastest of the rounds; ! marks a URL that is forbidden because it costs too much."""
    print(f"{'file':34} {'rules':>6} {'KiB':>4} {'parse ms':>8} " + " ".join(f"{name:>10}" for name in URLS))
    for name, text in FILES.items():
        parse_ms = 1000 * cpu_s(partial(RobotsRules, text, "farmwatch"))
        rules = RobotsRules(text, "farmwatch")
        cells = " ".join(f"{_cell(text, rules, f'https://a.example/{path}'):>10}" for path in URLS.values())
        print(f"{name:34} {text.count(10) - 1:6} {len(text) // 1024:4} {parse_ms:8.0f} {cells}")


if __name__ == "__main__":
    real(Path(sys.argv[1])) if sys.argv[1:] else main()
