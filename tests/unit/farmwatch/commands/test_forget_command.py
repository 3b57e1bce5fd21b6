"""The command `forget`: confirmation, refusals and output."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

from stream.opening import open_log
from stream.schema.orders import Orders
from stream.text.user_errors import Exit
from tests.support.front_door import SITE, Runner


def left(url: str) -> int:
    """The records of the site."""
    with closing(open_log(url, read_only=True)) as log:
        return sum(
            message.key.startswith(SITE.encode())
            for topic, partitions in log.topics().items()
            for partition in range(partitions)
            for message in log.read(topic, partition)
        )


def test_it_asks_before_it_removes(farmwatch: Runner, finished: str) -> None:
    """Without --yes nothing is written, not even an entry of the ledger."""
    before = left(finished)
    ran = farmwatch("forget", SITE, "--log", finished)
    assert ran.code == Exit.USAGE and "--yes" in ran.err and left(finished) == before > 0


@pytest.mark.parametrize(("hosts", "code"), [((), 2), (("a b",), 2), (("unknown.example",), 1)])
def test_what_is_refused(farmwatch: Runner, finished: str, hosts: tuple[str, ...], code: int) -> None:
    """No host, a name that is none, and a host that the log does not know; a known one beside it stays."""
    before = left(finished)
    assert farmwatch("forget", *hosts, *((SITE,) if code == 1 else ()), "--yes", "--log", finished).code == code
    assert left(finished) == before


def test_a_log_that_is_not_there_is_not_made(farmwatch: Runner, tmp_path: Path) -> None:
    """A wrong folder is an error, and no folder is made."""
    assert farmwatch("forget", SITE, "--yes", "--log", f"sqlite:{tmp_path / 'no'}").code == Exit.UNAVAILABLE
    assert not (tmp_path / "no").exists()


def test_it_says_what_it_removed(farmwatch: Runner, finished: str) -> None:
    """Commands show nothing of the host afterwards, no exclusion names it, and a second time removes no record."""
    farmwatch("exclude", SITE, "--log", finished)
    count = left(finished)
    ran = farmwatch("forget", f"https://{SITE.upper()}/x", "--yes", "--json", "--log", finished)
    assert ran.code == Exit.OK and "forgotten" in ran.err
    said = json.loads(ran.out)
    assert said["hosts"] == 1 and said["records"] >= count and said["gone_at"] == 0
    assert left(finished) == 0
    assert SITE not in farmwatch("sites", "--log", finished).out
    with closing(open_log(finished, read_only=True)) as log:
        assert SITE not in Orders(log).exclusions
    again = farmwatch("forget", SITE, "--yes", "--log", finished)
    assert again.code == Exit.OK and "0 records removed" in again.err
