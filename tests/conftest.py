"""Shared fixtures: where the labelled test data lies (skipped with a reason where it is absent), and it measured.

And how the files of tests are dealt out where several processes run them (pytest-xdist).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from farmwatch.labels.labelled_pages import LabelledPage, LabelledPages
from filters.settings import MeasureSettings
from tests.extraction_here import remember_extraction

DATA_ENV = "FARMWATCH_TEST_DATA"
KILLS = (  # one after the other: brokers and processes that come up again want the machine for themselves
    "tests/faults/test_crawl_kills.py",
    "tests/faults/test_kills.py",
    "tests/faults/test_replay_kills.py",
    "tests/stream/test_kafka_faults.py",
)
USES_LABELLED = (  # they run in one process, so that `labelled` is measured once
    "tests/unit/farmwatch/test_replay_equals_live.py",
    "tests/unit/farmwatch/test_rules_page.py",
    "tests/unit/filters/test_datatrove.py",
    "tests/unit/filters/test_dolma.py",
    "tests/unit/filters/test_evaluation.py",
    "tests/unit/filters/test_language.py",
)


def data_root() -> Path:
    """The folder with `data/` and `golden/`: FARMWATCH_TEST_DATA, or else `shared` beside the checkout."""
    return Path(os.environ.get(DATA_ENV, Path(__file__).resolve().parents[2] / "shared"))


@pytest.fixture(scope="session")
def shared() -> Path:
    """The labelled test data; skips where it is absent, fails where FARMWATCH_REQUIRE_DATA is set (as in CI)."""
    root = data_root()
    if not (root / "data").is_dir():
        if os.environ.get("FARMWATCH_REQUIRE_DATA"):
            pytest.fail(f"test data is required here and missing: {root} (set {DATA_ENV})")
        pytest.skip(f"test data is not here: {root} (set {DATA_ENV})")
    return root


@pytest.fixture(scope="session")
def labelled(shared: Path) -> list[LabelledPage]:
    """Every labelled page with its features, measured once: about a minute on two cores. For tests marked `data`."""
    damage: list[str] = []
    pages = LabelledPages(shared / "data" / "pages", bad=damage.append)
    with pytest.MonkeyPatch.context() as patch:
        remember_extraction(patch)
        measured = list(pages.measured(MeasureSettings(workers=2, time_limit_s=60)))
    assert not damage
    return measured


@pytest.fixture(autouse=True)
def _logging_is_reset() -> Iterator[None]:
    """Undo what a command says of logging: it would write to the captured stderr of a test that is over."""
    yield
    structlog.reset_defaults()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Deal out whole files, which may share fixtures, in the order of collection: the long ones come first."""
    from xdist.scheduler import LoadFileScheduling

    class ByFixture(LoadFileScheduling):  # type: ignore[misc]  # no stubs are published
        def _split_scope(self, nodeid: str) -> str:
            file = str(super()._split_scope(nodeid))
            return "labelled" if file in USES_LABELLED else "kills" if file in KILLS else file

    config.option.loadscopereorder = False
    return ByFixture(config, log)
