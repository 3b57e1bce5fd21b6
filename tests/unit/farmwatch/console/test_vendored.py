"""The script that is not ours: unchanged, with its licence, and served by the console itself."""

from __future__ import annotations

import hashlib
from importlib.resources import files
from pathlib import Path

from tests.support.web.console_browser import Answer, Browser, browse


def test_uplot_is_the_release_with_its_licence() -> None:
    """Each file has the digest that was noted when it was taken, and the licence allows its use here."""
    folder = files("farmwatch.console").joinpath("static", "uplot")
    digests = dict(line.split()[::-1] for line in folder.joinpath("SHA256SUMS").read_text().splitlines())
    there = {entry.name for entry in folder.iterdir()} - {"SHA256SUMS"}
    assert there == set(digests)
    assert {name: hashlib.sha256(folder.joinpath(name).read_bytes()).hexdigest() for name in digests} == digests
    assert "MIT License" in folder.joinpath("LICENSE").read_text()


def test_static_files_need_no_token_and_others_are_not_served(finished: str, tmp_path: Path) -> None:
    """Every file that a template names is there; a path that leads elsewhere is not."""

    async def visit(browser: Browser) -> list[Answer]:
        page = (await browser.get("/answer")).text
        named = [part.partition('"')[0] for part in page.split('"/static/')[1:]]
        found = [await browser.get(f"/static/{name}") for name in named]
        return [*found, *[await browser.get(f"/static/{name}") for name in ("../app.py", "%2e%2e/app.py", "uplot/")]]

    *found, up, encoded, folder = browse(finished, tmp_path, visit)
    assert len(found) == 6 and {answer.status for answer in found} == {200}
    assert {answer.status for answer in (up, encoded, folder)} == {404}
