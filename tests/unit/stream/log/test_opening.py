"""Opening a log by its URL."""

from __future__ import annotations

from pathlib import Path

import pytest

from stream.log.contract import At, CleanupPolicy, Commit, StateChange, Topic
from stream.log.errors import StreamError
from stream.opening import open_log
from tests.support.worlds import drain, record, values


def test_a_folder_opens(tmp_path: Path) -> None:
    """sqlite:DIR opens the log in that folder, and creates it."""
    for expected in ([], ["v"]):
        log = open_log(f"sqlite:{tmp_path / 'deep' / 'log'}")
        log.create([Topic("a", 1)])
        assert values(log.read("a", 0)) == expected
        log.append([record("a", 0, "k")])
        log.close()


def test_prefixes_keep_logs_apart(tmp_path: Path) -> None:
    """Two prefixes in one folder share no topic, group or store; removing one leaves the other."""
    one, two = (open_log(f"sqlite:{tmp_path}", prefix=prefix) for prefix in ("", "b."))
    one.create([Topic("t", 1)])
    assert (dict(one.topics()), dict(two.topics())) == ({"t": 1}, {})
    two.create([Topic("t", 1), Topic("state.s", 1, CleanupPolicy.COMPACT)])
    one.append([record("t", 0, "k", "mine")])
    assert (values(one.read("t", 0)), values(two.read("t", 0))) == (["mine"], [])
    two.append([record("t", 0, "k", "theirs")])
    for log, value in ((one, b"mine"), (two, b"theirs")):
        member = log.join("g", ["t"], member="m", store="s")
        (found,) = drain(member, 1)
        assert found.value == value
        member.commit(Commit(offsets={At("t", 0): 1}, state={0: [StateChange(b"k", value)]}))
        member.close()
    one.remove(["t"], ["g"], ["s"])
    assert two.topics() == {"t": 1, "state.s": 1}
    assert (values(two.read("t", 0)), two.committed("g", "t")) == (["theirs"], [1])
    assert list(two.scan_state("s", 0)) == [(b"k", b"theirs")]
    one.close()
    two.close()


@pytest.mark.parametrize("url", ["", "memory:", "sqlite:", "kafka:", "kafka:host", "redis:host:1", "/a/path"])
def test_other_urls_are_refused_with_the_forms(url: str) -> None:
    """An unknown URL raises StreamError with the valid forms."""
    with pytest.raises(StreamError, match=r"sqlite:DIR"):
        open_log(url)
