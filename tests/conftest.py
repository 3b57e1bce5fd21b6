"""Shared fixtures: the path of the labelled test data (skipped with a reason if absent), and its features."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest
import structlog

from farmwatch.labels.labelled_pages import LabelledPage, LabelledPages
from filters.settings import MeasureSettings
from tests.support.pages.extraction_here import remember_extraction
from tests.support.paths import DATA_ENV, data_root
from tests.support.sizes import LONG

# No test depends on the speed of the machine
hypothesis.settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("any machine")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The labelled test data; if it is absent, skips, or fails with FARMWATCH_REQUIRE_DATA (as in CI)."""
    root = data_root()
    if not (root / "data").is_dir():
        if os.environ.get("FARMWATCH_REQUIRE_DATA"):
            pytest.fail(f"test data is required here and missing: {root} (set {DATA_ENV})")
        pytest.skip(f"test data is not here: {root} (set {DATA_ENV})")
    return root


@pytest.fixture(scope="session")
def labelled(shared: Path) -> list[LabelledPage]:
    """The labelled pages of every 24th site (FARMWATCH_LONG: of all), measured once. For tests marked `data`."""
    from tests.tools.ruleset_tables import is_sampled

    damage: list[str] = []
    pages = LabelledPages(shared / "data" / "pages", on_bad=damage.append)
    if not LONG:
        pages.narrow(lambda label: is_sampled(label.site))
    with pytest.MonkeyPatch.context() as patch:
        remember_extraction(patch)
        measured = list(pages.measured(MeasureSettings(workers=2, time_limit_s=60)))
    assert not damage
    return measured


@pytest.fixture(autouse=True, scope="session")
def _priority_is_kept() -> Iterator[None]:
    """A command that lowers the priority of its process would slow all later tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "nice", lambda _: 0)
        yield


@pytest.fixture(autouse=True)
def _logging_is_reset() -> Iterator[None]:
    """Undo a command's logging setup, which would write to the captured stderr of an ended test."""
    yield
    structlog.reset_defaults()


@pytest.hookimpl(tryfirst=True)  # xdist reads the groups in the same hook
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests with a broker run in one process, so that one is started; those of a named group; those of a file.

    Those that kill a broker come first: with few topics it is soon back.
    """
    items.sort(key=lambda item: not (item.get_closest_marker("kill") and item.get_closest_marker("kafka")))
    for item in items:
        if item.get_closest_marker("kafka"):
            item.add_marker(pytest.mark.xdist_group("kafka"))
        elif item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(str(item.path)))


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name long values by their argument: texts of megabytes cost time, and a gzip file differs between processes."""
    return argname if isinstance(val, bytes | str) and len(val) > (40 if isinstance(val, bytes) else 200) else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """The cost of a run side by side, and the speed of this machine: a slow suite is not a slow machine."""
    if not config.getoption("numprocesses", None):
        return
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.thread_time()
    for _ in range(5_000_000):
        pass
    loop_s = time.thread_time() - started
    terminalreporter.write_line(
        f"{used.ru_utime + used.ru_stime:,.0f} CPU seconds; this machine takes {loop_s:.2f} s for 5 million empty loops"
    )
