"""The canary file: valid lines, errors with file and line, and pages made of text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from farmwatch.canaries.file import HUMAN_BEFORE, PAGE_CAP_BYTES, SITES_CAP, page_of_text, read_canaries
from farmwatch.config.config import load
from farmwatch.config.settings import CanarySettings
from farmwatch.doctor.checks import require_fit
from scoring.rates.canary import truth_of
from stream.schema.records import Page
from stream.schema.roles import Role
from stream.text.user_errors import ConfigError, Exit


def write(folder: Path, *lines: dict[str, Any] | str, name: str = "canaries.jsonl") -> CanarySettings:
    """A file of these lines."""
    data = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines).encode()
    path = folder / name
    path.write_bytes(zstandard.ZstdCompressor().compress(data) if name.endswith(".zst") else data)
    return CanarySettings(file=str(path), pages=3)


def line(number: int = 0, **more: Any) -> dict[str, Any]:
    """A page of a human site."""
    fields = {"title": f"Chapter {number}", "text": f"Text {number}.", "made_at": "1999-12-31"}
    return {"truth": "human", "site": "novels", **fields, **more}


def body(page: Page) -> str:
    """The HTML of a page record."""
    return zstandard.ZstdDecompressor().decompress(page.body).decode()


@pytest.mark.parametrize("name", ["canaries.jsonl", "canaries.jsonl.zst"])
def test_lines_of_a_label_and_truth_are_a_site(tmp_path: Path, name: str) -> None:
    """At most canary.pages pages of each, in the order of the file; the name contains truth, content and pages."""
    made: dict[str, Any] = {"truth": "llm", "text": "Made.", "made_at": "2026-01-02"}
    lines = [line(n) for n in range(5)] + [line(**made), line(**made, site="notes")]
    sites = read_canaries(write(tmp_path, *lines, "", name=name))
    assert [(site.label, site.truth, len(site.pages)) for site in sites] == [
        ("novels", "human", 3),
        ("notes", "llm", 1),
        ("novels", "llm", 1),
    ]
    assert truth_of(sites[0].name(7).site) == "human"
    assert len({site.digest for site in sites}) == 2  # the same page under two labels is one content
    pages = list(sites[0].records(7, 99))
    assert [page.url for page in pages] == [f"https://{sites[0].name(7).site}/{n}" for n in (1, 2, 3)]
    assert "<p>Text 1.</p>" in body(pages[1])


def test_a_byte_order_mark_is_no_part_of_the_first_page(tmp_path: Path) -> None:
    """A canary file may begin with the mark that Windows editors write."""
    (site,) = read_canaries(write(tmp_path, "\ufeff" + json.dumps(line(1)), line(2)))
    assert len(site.pages) == 2


def test_records_are_the_same_in_a_round_and_new_in_the_next(tmp_path: Path) -> None:
    """Ids depend on content, round and place; new texts under a label are another site."""
    from crawler.web.urls import page_id

    (site,) = read_canaries(write(tmp_path, line(1), line(2)))
    one, again, later = (list(site.records(number, 5)) for number in (1, 1, 2))
    assert one == again
    (changed,) = read_canaries(write(tmp_path, line(1), line(2, text="New.")))
    assert (site.label, site.digest) != (changed.label, changed.digest)
    assert not {page.id for page in one} & {page.id for page in later}
    assert all(page.page_id == page_id(page.url) for page in one)
    assert all(page.outcome == "fetched" and page.found_by == "canary" for page in one)


def test_pages_are_fetched_in_the_order_of_the_file(tmp_path: Path) -> None:
    """One millisecond apart, the last one now: TALLY judges them in the same order in every round."""
    (site,) = read_canaries(write(tmp_path, line(1), line(2), line(3)))
    for number in range(20):
        pages = sorted(site.records(number, 1000), key=lambda page: page.fetched_at)
        assert [(page.fetched_at, page.url[-2:]) for page in pages] == [(998, "/1"), (999, "/2"), (1000, "/3")]


@given(st.text(max_size=200), st.text(max_size=400))
def test_text_never_becomes_markup(title: str, text: str) -> None:
    """For any text, the page contains only its own elements."""
    tags = [part.split(">", 1)[0] for part in page_of_text(title, text).split("<")[1:]]
    allowed = {"!DOCTYPE html", "html", "head", 'meta charset="utf-8"', "title", "body", "article", "h1", "p"}
    assert {tag.removeprefix("/") for tag in tags} <= allowed


def test_paragraphs_are_kept(tmp_path: Path) -> None:
    """Empty lines separate paragraphs; markup is escaped."""
    (site,) = read_canaries(write(tmp_path, line(text="One <b>\ntwo\n \nthree & four")))
    tree = site.pages[0].decode()
    assert "<p>One &lt;b&gt;\ntwo</p>\n<p>three &amp; four</p>" in tree


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ("{", "line 2"),
        ('{"truth": "robot", "site": "a", "text": "x"}', "line 2: truth must be human or llm"),
        ({"truth": "llm", "text": "x"}, "line 2: Object missing required field `site`"),
        (line(site="No Label"), "line 2: site 'No Label' is not a label"),
        (line(text="  "), "line 2: a page needs either text or html"),
        (line(html="<p>x"), "line 2: a page needs either text or html"),
        (line(made_at="2022-11-01"), "made_at of a human page: 2022-11-01; only pages written before 2022-11-01"),
        (line(made_at=None), "line 2: made_at of a human page: none; only pages"),
        (line(truth="llm", text=" Text\n1. "), "line 2: the text is llm here and human in line 1"),
        (line(made_at="May"), "line 2: Invalid"),
        (line(text="x" * (PAGE_CAP_BYTES + 1)), "at most 200000 are allowed"),
        ('{"truth":"llm","site":"a","text":"\\ud800"}', "line 2"),
        ("[" * 100_000, "line 2"),
    ],
)
def test_bad_lines_are_refused_with_their_number(tmp_path: Path, bad: dict[str, Any] | str, said: str) -> None:
    """One bad line makes the file invalid, with the number of the line."""
    with pytest.raises(ConfigError) as caught:
        read_canaries(write(tmp_path, line(1), bad))
    assert said in str(caught.value)
    assert len(str(caught.value)) < 600 + len(str(tmp_path))


def test_unusable_files_are_refused(tmp_path: Path) -> None:
    """Missing, empty, not zstd, too many sites: each has its message. No configured file is valid."""
    assert read_canaries(CanarySettings()) == []
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        read_canaries(CanarySettings(file=str(tmp_path / "none")))
    with pytest.raises(ConfigError, match="no page in the file"):
        read_canaries(write(tmp_path, ""))
    (tmp_path / "x.zst").write_bytes(b"nothing of the kind")
    with pytest.raises(ConfigError, match="no zstd file"):
        read_canaries(CanarySettings(file=str(tmp_path / "x.zst")))
    many = [line(site=f"s{n}") for n in range(SITES_CAP + 1)]
    with pytest.raises(ConfigError, match="more than 500 canary sites"):
        read_canaries(write(tmp_path, *many))


def test_human_pages_must_be_old(tmp_path: Path) -> None:
    """The last valid day is 31 October 2022; LLM pages may have any day, or none."""
    llm = [line(truth="llm", text="a", made_at="2026-11-01"), line(truth="llm", text="b", made_at=None)]
    sites = read_canaries(write(tmp_path, line(made_at="2022-10-31"), *llm))
    assert [site.newest.isoformat() for site in sites if site.newest] == ["2022-10-31", "2026-11-01"]
    assert HUMAN_BEFORE.isoformat() == "2022-11-01"


def test_a_broken_file_is_refused_before_any_role_starts(tmp_path: Path) -> None:
    """Otherwise the supervisor would restart TALLY forever. The exit code is that of a usage error."""
    settings = write(tmp_path, "{")
    config = load(None, [f"canary.file={settings.file}"], {}).config
    with pytest.raises(ConfigError, match="line 1") as caught:
        require_fit(config, [Role.TALLY])
    assert caught.value.exit == Exit.USAGE
    require_fit(config, [Role.MEASURE])
