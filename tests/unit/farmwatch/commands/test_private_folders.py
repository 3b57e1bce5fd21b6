"""The folder of the log, and that of local state, are open to their owner alone from the first moment."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from farmwatch.config.config import Config, load
from farmwatch.config.member_names import claimed_name, names_folder
from farmwatch.crawl.archive_import import imports_lock
from farmwatch.doctor.checks import prepare
from stream.kafka.state import LocalState
from stream.opening import open_log
from stream.schema.roles import Role


@pytest.fixture(autouse=True)
def _usual_umask() -> Iterator[None]:
    """As most systems have it: what is made is open to all who look."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def _mode(folder: Path) -> int:
    return stat.S_IMODE(folder.stat().st_mode)


def _claim(config: Config) -> None:
    with claimed_name(names_folder(config), [Role.CRAWL]):
        pass


MAKERS: dict[str, Callable[[Config], object]] = {
    "opening": lambda config: open_log(config.log.url).close(),
    "preflight": lambda config: prepare(config, [Role.MEASURE]),
    "a member's name": _claim,
    "an import": imports_lock,
}


@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
def test_whoever_makes_the_folder_of_the_log_makes_it_private(
    tmp_path: Path, maker: Callable[[Config], object]
) -> None:
    """Each of those that may come first, alone: mode 0700, for the folders above it that were missing too."""
    folder = tmp_path / "above" / "log"
    maker(load(None, [f"log.url=sqlite:{folder}", "log.partitions=2"], {}).config)
    assert {_mode(path) for path in (folder.parent, folder, *folder.iterdir()) if path.is_dir()} == {0o700}


def test_local_state_is_private(tmp_path: Path) -> None:
    """The copy of the state that a member on Kafka keeps is no more open than the log."""
    folder = tmp_path / "state"
    LocalState(folder / "g" / "s" / "0.sqlite", "id", now_ms=0, max_age_ms=1).close()
    assert {_mode(path) for path in (folder, *folder.rglob("*")) if path.is_dir()} == {0o700}


def test_a_folder_that_is_there_keeps_its_rights(tmp_path: Path) -> None:
    """Its owner may have let others in."""
    tmp_path.chmod(0o750)
    open_log(f"sqlite:{tmp_path}").close()
    assert _mode(tmp_path) == 0o750
