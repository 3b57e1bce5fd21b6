"""`farmwatch log upgrade --check` on a stored log: measures stored pages again and writes nothing."""

from __future__ import annotations

import tarfile
from pathlib import Path

import msgspec
import pytest

from farmwatch.upkeep.upgrade_check import differing, measured_again
from filters.measure.page_measures import measure
from filters.settings import MeasureSettings
from filters.site_memory.measurer import Measurer
from stream.schema.records import Segments
from stream.text.user_errors import Exit
from tests.support.front_door import Runner, article_html
from tests.support.pages.prose import PROSE

ARCHIVE = Path(__file__).parents[3] / "golden" / "log-2026-11.tar.xz"
SETTINGS = MeasureSettings()


def test_only_what_differs_is_named() -> None:
    """The same page measured again has no difference, and keeps its likeness; another text names what it changes."""
    html = article_html(300)
    old = Measurer(SETTINGS).measure("http://a.example/p", html, "a.example", page_id="p")
    same = measured_again(old, measure(old.url, html, "", SETTINGS), SETTINGS.tokenizer)
    assert same == old
    other = measured_again(old, measure(old.url, article_html(200), "", SETTINGS), SETTINGS.tokenizer)
    assert {"blocks", "tokens", "quality of main", "structure"} <= set(differing(old, other))
    assert other.measures["duplicate_share"] == old.measures["duplicate_share"]
    assert list(differing(old, msgspec.structs.replace(old, text="another"))) == []  # its digest tells
    assert list(differing(msgspec.structs.replace(old, structure=[]), same)) == ["structure"]  # an earlier version


def test_other_segments_are_named() -> None:
    """Of the same text, segments without the lines of earlier pages stay; where records were not found, they differ."""
    card = "<li class=card><h3><a href='/{0}'>Story {0}</a></h3><p>Story {0} tells what happened to {0} men.</p></li>"
    html = f"<html><body><h1>News</h1><p>{PROSE}</p><ul>{''.join(map(card.format, range(4)))}</ul></body></html>"
    measurer, tokenizer = Measurer(SETTINGS), SETTINGS.tokenizer
    found, known = (measurer.measure(f"http://a.example/{n}", html, "a.example", page_id=str(n)) for n in range(2))
    assert found.segments and not known.segments
    for old in (found, known):
        assert measured_again(old, measure(old.url, html, "", SETTINGS), tokenizer) == old
    kinds = [of_kind.kind for of_kind in found.segments]
    assert kinds == ["article", "teaser"]
    old = msgspec.structs.replace(found, segments=[Segments("article", words=90)])  # as of a version without records
    new = measured_again(old, measure(old.url, html, "", SETTINGS), tokenizer)
    assert new.segments == found.segments and list(differing(old, new)) == ["segments"]


def test_check_compares_stored_pages_and_writes_nothing(
    farmwatch: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stored pages measured again are as stored; with other settings a difference ends with exit code 1."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extraction_filter = tarfile.data_filter
        archive.extractall(tmp_path)
    monkeypatch.chdir(tmp_path)  # its configuration is in force
    before = {path: path.read_bytes() for path in (tmp_path / "log").rglob("*") if path.is_file()}
    log = f"--log=sqlite:{tmp_path / 'log'}"
    command = ("log", "upgrade", "--check", "--json", "--pages", "6", log, "--set", "measure.workers=1")
    unchanged = farmwatch(*command)
    same = unchanged.json
    assert unchanged.code == Exit.OK
    assert 0 < same["pages"] <= 8
    assert (same["texts"], same["features"], same["verdicts"]) == (0, {}, {})
    ran = farmwatch(*command, "--set", "measure.max_html_bytes=10")
    changed = ran.json
    assert ran.code == Exit.PROBLEM
    assert changed["texts"] > 0
    assert changed["verdicts"]
    assert changed["installed_epoch"] != same["installed_epoch"]
    assert {path: path.read_bytes() for path in (tmp_path / "log").rglob("*") if path.is_file()} == before
