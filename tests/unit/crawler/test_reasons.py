"""Every reason in the code has a meaning, and docs/reference/reasons.md lists them all."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from crawler.frontier.rows import Stop
from crawler.frontier.statuses import Status
from crawler.reasons import PAGES, REASONS, STOPS, meaning_of_reason, reason_text, what_ends_stop
from farmwatch.config.config import Config
from farmwatch.config.layers import settings_of
from tests.support.paths import ROOT

DOCS = ROOT / "docs" / "reference" / "reasons.md"
_WORD = re.compile(r"[a-z][a-z0-9_]*")
_ENDS = {"FetchEnded", "UnresolvedHost", "_refuse", "refuse", "_failed"}  # functions with a reason as an argument
_TELL = {"_failure", "tls_reason", "_TLS_REASONS"}  # functions and tables that return a reason
_NO_REASONS = {"none", "strict", "replace", "ascii", "signals"}


def reasons_of(path: Path) -> Iterator[str]:
    """The reasons with which a module of the crawler ends a URL."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            given = [*node.args, *(each.value for each in node.keywords)] if name in _ENDS else []
            given += [each.value for each in node.keywords if each.arg == "reason"]
        elif isinstance(node, ast.FunctionDef) and node.name in _TELL:
            given = [each.value for each in ast.walk(node) if isinstance(each, ast.Return) and each.value is not None]
        elif isinstance(node, ast.Assign) and any(
            isinstance(each, ast.Name) and each.id in {"reason", *_TELL} for each in node.targets
        ):
            given = [node.value]
        else:
            continue
        for each in given:
            yield from words_in(each)


def words_in(value: ast.expr) -> Iterator[str]:
    """Strings that may be the value of an expression."""
    if isinstance(value, ast.Constant) and isinstance(value.value, str) and _WORD.fullmatch(value.value):
        yield value.value
    elif isinstance(value, ast.IfExp):
        yield from words_in(value.body)
        yield from words_in(value.orelse)
    elif isinstance(value, ast.BoolOp | ast.Tuple | ast.Dict):
        for each in value.elts if isinstance(value, ast.Tuple) else value.values:
            yield from words_in(each)


def used() -> set[str]:
    """All reasons of the code."""
    files = sorted((ROOT / "crawler").rglob("*.py"))
    import_only = {"pages.py", "reader.py", "exchange.py"}  # docs/reference/warc.md has those
    return {
        word
        for file in files
        if file.parent.name != "warc" or file.name not in import_only
        for word in reasons_of(file)
    } - _NO_REASONS


def test_every_reason_of_the_code_has_a_meaning() -> None:
    """Every reason that ends a URL, a site or a host is explained."""
    assert {stop.value for stop in Stop} == set(STOPS)
    assert {word for word in used() if meaning_of_reason(word).text.startswith("a reason of another")} == set()


def test_no_meaning_is_left_of_a_reason_that_is_gone() -> None:
    """Each explained reason still occurs in the code."""
    of_statuses = {word for word in PAGES if word.startswith("http_")}
    assert set(PAGES) - of_statuses - used() == set()


def test_a_status_without_a_line_means_what_its_class_does() -> None:
    """http_404 has the meaning of its class, http_429 its own; an unknown reason is named as unknown."""
    assert meaning_of_reason("http_404") == PAGES["http_4xx"]
    assert meaning_of_reason("http_503") == PAGES["http_5xx"]
    assert meaning_of_reason("http_429") == PAGES["http_429"] != PAGES["http_4xx"]
    assert "another version" in reason_text("http_999x") and "another version" in meaning_of_reason("http_999").text
    assert reason_text("robots") == "robots: robots.txt forbids the URL"


def test_what_failed_stands_before_what_it_means() -> None:
    """A reason with a file names the file first, in the reason and in words."""
    assert reason_text("robots.txt:http_503") == "robots.txt:http_503: robots.txt was not available: the server failed"
    assert meaning_of_reason("sitemap:http_429").passes == PAGES["http_429"].passes


def test_meanings_name_settings_that_exist() -> None:
    """Every crawl.… in a meaning, and on the page, is a setting."""
    known = set(settings_of(Config))
    texts = [text for meaning in REASONS.values() for text in meaning]
    for text in [*texts, DOCS.read_text(encoding="utf-8")]:
        assert set(re.findall(r"\bcrawl\.[a-z_]+", text)) <= known


@pytest.mark.parametrize("word", sorted(REASONS))
def test_the_page_explains_every_reason(word: str) -> None:
    """docs/reference/reasons.md has a row for each reason with the text that the commands show."""
    meaning = REASONS[word]
    row = f"| `{word}` | {meaning.text} | {meaning.passes or 'nothing'} |"
    assert row in DOCS.read_text(encoding="utf-8")


@pytest.mark.parametrize("status", list(Status))
def test_the_page_has_the_life_of_a_url(status: Status) -> None:
    """Each status has a row in the page's table of statuses."""
    assert f"| `{status.label}` |" in DOCS.read_text(encoding="utf-8")


def test_a_stop_of_a_site_ends_otherwise_than_a_failure_of_a_page() -> None:
    """A URL that fails is retried; a site that is stopped for the same reason waits for a new hit."""
    for reason in ("dns_no_name", "connection", "tls_expired", "challenge", "unreachable"):
        assert what_ends_stop(reason).startswith("a new hit"), reason
    assert what_ends_stop("excluded") == STOPS["excluded"].passes and what_ends_stop("budget") == ""
