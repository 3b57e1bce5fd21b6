"""docs/reference/warc.md says what the code does."""

from __future__ import annotations

import inspect
import re

from crawler.fetch.jobs import RequestKind
from crawler.warc import pages as warc_in
from crawler.warc.exchange import RECORD_TYPES
from farmwatch.config.config import Config
from farmwatch.config.layers import settings_of
from tests.support.paths import ROOT

PAGE = (ROOT / "docs" / "reference" / "warc.md").read_text(encoding="utf-8")


def test_settings_and_records_are_named_as_they_are() -> None:
    """Every setting of archives has its row, every setting named exists, and every type of record is there."""
    settings = settings_of(Config)
    named = set(re.findall(r"`(crawl\.\w+)", PAGE))
    assert named <= set(settings)
    assert {path for path in settings if path.startswith("crawl.warc_")} <= named
    assert all(f"| `{record}` |" in PAGE for record in RECORD_TYPES)
    assert all(f"`{kind.value}`" in PAGE for kind in RequestKind)


def test_every_reason_of_the_reader_is_told() -> None:
    """Whatever `farmwatch import` may count stands in the table."""
    reasons = re.findall(r"""_NoPage\("(\w+)"|Skipped\([^)]*?, "(\w+)"\)""", inspect.getsource(warc_in))
    told = {name for found in reasons for name in found if name}
    assert {"revisit", "known", "unusable_url"} <= told
    assert all(f"`{name}`" in PAGE for name in told)
