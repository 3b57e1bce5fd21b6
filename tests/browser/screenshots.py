"""The pictures of the console in the docs, of the demo's log: `python -m tests.browser.screenshots docs/images`."""

from __future__ import annotations

import shutil
import sys
from contextlib import ExitStack
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Literal, NamedTuple

from PIL import Image
from playwright.sync_api import expect

from tests.browser.chromium import launched, program, tab
from tests.browser.served import prepared, served
from tests.support.processes.demo_run import run_demo

_COLOURS = 24  # of a picture
_SITE = "happytailguide.example"
_COPY = f"http%3A//{_SITE}/syndicated/copy"
PAGES = {  # name of a page -> its address in the pictures
    "answer": "/answer",
    "flow": "/flow",
    "sites": "/sites",
    "site": f"/site?site={_SITE}",
    "pages": "/pages?kind=dropped",
    "page": f"/page?url={_COPY}&ruleset=c4",
    "segments": f"/page?url=http%3A//{_SITE}/&ruleset=whole-web#text",
    "networks": "/networks",
    "crawl": "/crawl",
    "frontier": "/frontier",
    "runs": "/runs",
    "compare": "/compare?a=live&b=stricter",
    "label": "/label?a=live&b=stricter",
    "rulesets": "/rulesets?b=c4",
    "letters": "/letters",
    "letter": "/letter?id=0/0",
    "health": "/health",
}


class Screen(NamedTuple):
    """A screen, and what the names of its pictures end in."""

    ending: str
    width: int
    scheme: Literal["light", "dark"]


SCREENS = (Screen("", 1280, "light"), Screen("-dark", 1280, "dark"), Screen("-390", 390, "light"))


def save(screenshot: bytes, file: Path) -> None:
    """Write a screenshot with few colours."""
    picture = Image.open(BytesIO(screenshot)).convert("RGB")
    picture.quantize(_COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(file, optimize=True)


def main(target: Path) -> None:
    """Run the demo and write the pictures."""
    target.mkdir(exist_ok=True)
    kept = Path(gettempdir()) / "farmwatch-demo"  # the pictures have this name
    with TemporaryDirectory() as folder, ExitStack() as end:
        kept.mkdir()
        end.callback(shutil.rmtree, kept)
        run_demo(kept)
        config = prepared(kept)
        browser, console = end.enter_context(launched(program())), end.enter_context(served(config, Path(folder)))
        for screen in SCREENS:
            size = {"width": screen.width, "height": 800 if screen.width > 1000 else 844}
            with tab(browser, console.url, viewport=size, color_scheme=screen.scheme) as shown:
                for name, path in PAGES.items():
                    page = shown.open(path)
                    expect(page.locator("#live")).to_have_text("live")
                    save(page.screenshot(), target / f"console-{name}{screen.ending}.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
