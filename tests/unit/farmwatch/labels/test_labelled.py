"""Labelled pages: the layout is read, pages are measured as live, and damage is reported and skipped."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from farmwatch.labels.labelled_pages import LabelledPages
from filters.settings import MeasureSettings
from stream.text.user_errors import Exit, FarmwatchError, UsageError
from tests.support.front_door import article_html
from tests.support.pages.extraction_here import extract_here

pytestmark = pytest.mark.slow

ONE_WORKER = MeasureSettings(workers=1, time_limit_s=60)


class Folder:
    def __init__(self, root: Path) -> None:
        self.root = root

    def page(self, source: str, html: str, **fields: Any) -> str:
        """Add a page and its line, with keys of others, which are ignored; return the page's id."""
        data = html.encode()
        ident = hashlib.sha256(data).hexdigest()
        (self.root / source / "html").mkdir(parents=True, exist_ok=True)
        self.file(source, ident).write_bytes(zstandard.compress(data))
        with (self.root / source / "gold.jsonl").open("a") as gold:
            gold.write(json.dumps({"id": ident, "source": "news of 2024", "colour": [1], **fields}) + "\n")
        return ident

    def file(self, source: str, ident: str) -> Path:
        return self.root / source / "html" / f"{ident}.html.zst"


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages are measured in this process. With a worker process: `test_every_page_is_measured_in_order`."""
    extract_here(monkeypatch)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "pages")


@pytest.fixture
def told() -> list[str]:
    return []


def test_every_page_is_measured_in_order(folder: Folder, told: list[str]) -> None:
    """Sources by name, pages in the order of the file, with labels beside the features."""
    long = folder.page(
        "b", article_html(), url="http://One.example/a", page_type="article", articleBody="gold", name="n"
    )
    short = folder.page("b", "<p>Too short.</p>", url="http://one.example/b", page_type="forum", articleBody=None)
    other = folder.page("a", article_html(300))
    advanced: list[int] = []
    pages = LabelledPages(folder.root, on_bad=told.append)
    found = list(pages.measured(ONE_WORKER, advanced.append))
    assert [page.label.id for page in found] == [other, long, short]
    assert (told, pages.skipped, pages.exit) == ([], 0, Exit.OK)
    assert sum(advanced) == len(pages.labels) == 3
    label, features = found[1].label, found[1].features
    assert (label.source, label.page_type, label.gold, label.name) == ("b", "article", "gold", "n")
    assert (features.id, features.site, features.url) == (long, "one.example", "http://one.example/a")
    assert features.measures["tokens"] == pytest.approx(400, abs=5) and "garden" in features.text
    assert features.measures["url_path"] == "/a"
    assert (found[0].label.page_type, found[0].label.gold, found[0].label.url) == ("", None, "")


@pytest.mark.usefixtures("here")
def test_repeats_are_those_of_the_site_within_its_source(folder: Folder, told: list[str]) -> None:
    """The second page of a site repeats the first; pages of another site or source, or of no site, do not."""
    text = article_html()
    urls: dict[str, list[str | None]] = {
        "a": ["http://s.example/1", "http://s.example/2", "http://t.example/1", None, None],
        "b": ["http://s.example/3"],
    }
    for source, addresses in urls.items():
        for number, url in enumerate(addresses):
            folder.page(source, f"{text}<!-- {source} {number} -->", url=url)
    shares = [p.features.measures["duplicate_share"] for p in LabelledPages(folder.root).measured(ONE_WORKER)]
    assert shares == [0, 1, 0, 0, 0, 0]


@pytest.mark.usefixtures("here")
def test_a_page_without_a_usable_url_has_an_unknown_path(folder: Folder, told: list[str]) -> None:
    """An unusable URL is not damage, because collections name pages in their own ways; rules on URLs are n/a."""
    for number, url in enumerate((None, "", "hard::some-page.html", "http://", "ftp://a.example/b")):
        folder.page("a", f"{article_html()}<!-- {number} -->", url=url)
    pages = list(LabelledPages(folder.root, on_bad=told.append).measured(ONE_WORKER))
    assert not told and len(pages) == 5
    assert {(page.features.measures["url_path"], page.label.url) for page in pages} == {(None, "")}


def _line(line: bytes, reason: str) -> Callable[[Folder], str]:
    """A damaged line of the source."""

    def damage(folder: Folder) -> str:
        with (folder.root / "a" / "gold.jsonl").open("ab") as gold:
            gold.write(line + b"\n")
        return reason

    return damage


def _changed(words: int, change: Callable[[str, str], str], reason: str) -> Callable[[Folder], str]:
    """A changed line of a page, made from the line and the page's id; `{1}` in the reason is the id in capitals."""

    def damage(folder: Folder) -> str:
        ident = folder.page("a", article_html(words))
        gold = folder.root / "a" / "gold.jsonl"
        *lines, last = gold.read_text().splitlines()
        gold.write_text("\n".join([*lines, change(last, ident)]) + "\n")
        return reason.format(ident, ident.upper())

    return damage


def _spoilt(html: str, change: Callable[[bytes], bytes | None], reason: str) -> Callable[[Folder], str]:
    """A page whose file is changed; None removes it."""

    def damage(folder: Folder) -> str:
        ident = folder.page("a", html)
        file = folder.file("a", ident)
        content = change(file.read_bytes())
        file.unlink() if content is None else file.write_bytes(content)
        return f"{ident}.html.zst: {reason}"

    return damage


def _id_twice(folder: Folder) -> str:
    ident = folder.page("a", article_html(350))
    folder.page("a", article_html(350))
    return f"page {ident} has a line already"


_OTHER = "the SHA-256 of its content is not its id"
DAMAGE = (
    _line(b'{"id": ', "line 2: no JSON: Input data was truncated"),
    _changed(360, lambda line, _: line.replace('"source"', "source"), "object keys must be strings (byte "),
    _changed(370, lambda line, _: line[:-1] + ', "url": 7}', "Expected `str | null`, got `int` - at `$.url`"),
    _changed(380, lambda line, ident: line.replace(ident, ident.upper()), "id '{1}' is no SHA-256 in lower-case hex"),
    _line(b'["id"]', "Expected `object`, got `array`"),
    _line(b'{"x": ' + b"[" * 100_000, "maximum recursion depth exceeded"),
    _line(b'{"id": "\xff"}', "'utf-8' codec can't decode byte 0xff"),
    _line(b'{"url": "http://s.example/"}', "missing required field `id`"),
    _line(b'{"id": "../../secret\\u001b[2J"}', r"'../../secret\x1b[2J' is no SHA-256"),
    _id_twice,
    _spoilt("<p>missing</p>", lambda _: None, "cannot be read: No such file"),
    _spoilt("<p>plain</p>", lambda _: b"<p>plain</p>", "no zstd file, or a damaged one"),
    _spoilt(article_html(3000), lambda content: content[:-9], _OTHER),
    _spoilt("<p>x</p>", lambda _: zstandard.compress(b"<p>y</p>"), _OTHER),
)


@pytest.mark.usefixtures("here")
def test_every_kind_of_damage_is_told_once_and_skipped(folder: Folder, told: list[str]) -> None:
    """Damage is reported once with file, line and reason; other pages are measured, and the exit code is 1."""
    whole = [folder.page("a", article_html())]
    reasons = []
    for number, damage in enumerate(DAMAGE):
        reasons.append(damage(folder))
        whole.append(folder.page("a", article_html(200 + number)))
    pages = LabelledPages(folder.root, on_bad=told.append)
    found = [page.label.id for page in pages.measured(ONE_WORKER)]
    assert [ident for ident in found if ident in whole] == whole
    assert len(found) == len(whole) + 1  # the first line of the repeated page
    assert len(told) == pages.skipped == len(DAMAGE) and pages.exit == Exit.PROBLEM
    for damage, reason in zip(DAMAGE, reasons, strict=True):
        matching = [line for line in told if reason in line and str(folder.root / "a") in line]
        assert len(matching) == 1, (damage, told)
    assert all(line.isprintable() for line in told)


@pytest.mark.usefixtures("here")
def test_a_page_that_cannot_be_extracted_is_no_damage(folder: Folder, told: list[str]) -> None:
    """A page that cannot be extracted has features with the error, as live: rulesets drop it, and it counts."""
    folder.page("a", "", url="http://s.example/empty", page_type="listing")
    (page,) = LabelledPages(folder.root, on_bad=told.append).measured(ONE_WORKER)
    assert page.features.extract_error and not told


def test_sources_may_be_chosen(folder: Folder) -> None:
    """Only the chosen sources are read; an unknown one is a usage error that lists the others."""
    folder.page("a", article_html())
    folder.page("b", article_html())
    assert [label.source for label in LabelledPages(folder.root, ["b"]).labels] == ["b"]
    with pytest.raises(UsageError, match="no source 'c'; there are a, b"):
        LabelledPages(folder.root, ["c"])


def test_a_folder_without_pages_is_an_error(tmp_path: Path) -> None:
    """A folder without pages is an error, so that a wrong path does not look like an empty evaluation."""
    with pytest.raises(FarmwatchError, match="no labelled pages"):
        LabelledPages(tmp_path / "nowhere")


@pytest.mark.data
def test_the_real_folder_is_read_without_damage(shared: Path) -> None:
    """Every page of every source has a line and a file, and the seven kinds of page are those of wcxb."""
    told: list[str] = []
    pages = LabelledPages(shared / "data" / "pages", on_bad=told.append)
    assert not told and len(pages.labels) > 3_000
    kinds = {label.page_type for label in pages.labels if label.source == "wcxb"}
    assert kinds == {"article", "forum", "product", "listing", "collection", "documentation", "service"}
    assert {label.page_type for label in pages.labels if label.source != "wcxb"} == {""}
