"""Names of members: stable over restarts, unique per process, in private folders."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from farmwatch.config.config import Config, load
from farmwatch.config.member_names import claimed_name, names_folder
from farmwatch.crawl.archive_import import imports_lock
from farmwatch.doctor.checks import prepare
from stream.kafka.state import LocalState
from stream.opening import open_log
from stream.schema.roles import Role
from stream.text.user_errors import Exit, FarmwatchError
from tests.support.paths import ROOT

_HOLDER = """
import pathlib, sys, time
from farmwatch.config.member_names import claimed_name
from stream.schema.roles import Role
with claimed_name(pathlib.Path(sys.argv[1]), [Role.SCORE], host="box") as name:
    print(name, flush=True)
    time.sleep(600)
"""


def _config(*flags: str) -> Config:
    return load(None, list(flags), {}).config


def test_two_holders_get_two_names(tmp_path: Path) -> None:
    """The second `up` on a machine gets the next name; when the first ends, its name is free."""
    with ExitStack() as first:
        assert first.enter_context(claimed_name(tmp_path, list(Role), host="box")) == "box-1"
        with claimed_name(tmp_path, list(Role), host="box") as second:
            assert second == "box-2"
            first.close()
            with claimed_name(tmp_path, list(Role), host="box") as third:
                assert third == "box-1"


def test_who_wants_to_be_alone_is_told_of_the_other(tmp_path: Path) -> None:
    """If a role is already running, the refusal names folder, role, process and name; other roles may start."""
    with claimed_name(tmp_path, [Role.SCORE], host="box"):
        told = rf"{tmp_path}: the role score .* process {os.getpid()} \(box-1\).*--role.*--member"
        with pytest.raises(FarmwatchError, match=told), claimed_name(tmp_path, list(Role), host="box", alone=True):
            pass
        with claimed_name(tmp_path, [Role.CRAWL], host="box", alone=True) as other:
            assert other == "box-1"
    with claimed_name(tmp_path, list(Role), host="box", alone=True) as after:
        assert after == "box-1"


def test_the_name_of_a_killed_holder_is_free_again(tmp_path: Path) -> None:
    """kill -9 leaves no lock: the restarted process has the same name."""
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "box-1\n"
        with claimed_name(tmp_path, [Role.SCORE], host="box") as beside:
            assert beside == "box-2"
    finally:
        os.kill(holder.pid, signal.SIGKILL)
        holder.communicate()
    with claimed_name(tmp_path, [Role.SCORE], host="box") as after:
        assert after == "box-1"


def test_roles_in_units_of_their_own_keep_their_names_in_any_order(tmp_path: Path) -> None:
    """With one `up` per role, names are unique per role only, so that the order of restarts does not change them."""
    with (
        claimed_name(tmp_path, [Role.CRAWL], host="box") as crawl,
        claimed_name(tmp_path, [Role.JUDGE, Role.SCORE], host="box") as others,
        claimed_name(tmp_path, [Role.SCORE], host="box") as second_score,
        claimed_name(tmp_path, [Role.CRAWL, Role.SCORE], host="box") as shares_both,
    ):
        assert (crawl, others, second_score, shares_both) == ("box-1", "box-1", "box-2", "box-3")


def test_containers_on_one_folder_do_not_shift_each_other(tmp_path: Path) -> None:
    """Each host counts separately, and a host's name cannot leave the folder."""
    with (
        claimed_name(tmp_path, [Role.CRAWL], host="one") as one,
        claimed_name(tmp_path, [Role.CRAWL], host="../two") as two,
    ):
        assert (one, two) == ("one-1", ".._two-1")
    assert [path.name for path in tmp_path.iterdir()] == ["members"]
    assert len(list((tmp_path / "members").iterdir())) == 2


def test_names_lie_with_the_log_or_with_the_local_state(tmp_path: Path) -> None:
    """Names are in the folder of an embedded log, and on Kafka next to the local state that they identify."""
    assert names_folder(_config(f"log.url=sqlite:{tmp_path}")) == tmp_path
    assert names_folder(_config("log.url=sqlite:~/x")) == Path("~/x").expanduser()
    assert names_folder(_config("log.url=kafka:h:1", "log.state_folder=/s")) == Path("/s")


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    """A folder that cannot be created is one line with a remedy."""
    (tmp_path / "file").write_text("")
    with pytest.raises(FarmwatchError, match="--member") as raised, claimed_name(tmp_path / "file", [Role.CRAWL]):
        pass
    assert raised.value.exit == Exit.UNAVAILABLE


@pytest.fixture(autouse=True)
def _usual_umask() -> Iterator[None]:
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
    """Each process that may create the log's folder gives it mode 0700, with its missing parents."""
    folder = tmp_path / "above" / "log"
    maker(_config(f"log.url=sqlite:{folder}", "log.partitions=2"))
    assert {_mode(path) for path in (folder.parent, folder, *folder.iterdir()) if path.is_dir()} == {0o700}


def test_local_state_is_private(tmp_path: Path) -> None:
    """On Kafka, the local copy of the state is as private as the log."""
    folder = tmp_path / "state"
    LocalState(folder / "g" / "s" / "0.sqlite", "id", now_ms=0, max_age_ms=1).close()
    assert {_mode(path) for path in (folder, *folder.rglob("*")) if path.is_dir()} == {0o700}


def test_a_folder_that_is_there_keeps_its_rights(tmp_path: Path) -> None:
    """An existing folder keeps its permissions."""
    tmp_path.chmod(0o750)
    open_log(f"sqlite:{tmp_path}").close()
    assert _mode(tmp_path) == 0o750
