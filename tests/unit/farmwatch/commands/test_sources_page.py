"""docs/reference/sources.md has a section for every source."""

from __future__ import annotations

from crawler.sources.settings import BUILT_IN, SearchSettings
from tests.support.paths import DOCS


def test_every_source_has_a_section() -> None:
    """With its table, and the variable of its key where it needs one."""
    page = (DOCS / "reference" / "sources.md").read_text(encoding="utf-8")
    assert all(f"\n## {name}\n" in page for name in (*BUILT_IN, "json_http"))
    assert f'"{SearchSettings().brave.key_env}"' in page
