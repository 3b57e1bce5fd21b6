"""The command `forget`: confirmation, refusals and output."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from crawler.fetch.jobs import Capture, RequestKind
from crawler.warc.erasing import names_host
from crawler.warc.exchange import exchange
from farmwatch.crawl.orders import exclusions_of
from farmwatch.upkeep.forgetting import ForgetReport
from stream.opening import open_log
from stream.schema.forgotten import Forgotten, ForgottenHost
from stream.text.user_errors import Exit
from tests.support.front_door import SITE, Runner


@pytest.fixture(autouse=True)
def _no_other_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("farmwatch.upkeep.forgetting._SETTLED_S", 0.0)


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
    """Commands show nothing of the host afterwards, and a second time removes no record."""
    count = left(finished)
    ran = farmwatch("forget", f"https://{SITE.upper()}/x", "--yes", "--json", "--log", finished)
    assert ran.code == Exit.OK and "forgotten" in ran.err
    said = ran.json
    assert said["hosts"] == 1 and said["records"] >= count and said["gone_at"] == 0
    assert left(finished) == 0
    assert SITE not in farmwatch("sites", "--log", finished).out
    again = farmwatch("forget", SITE, "--yes", "--log", finished)
    assert again.code == Exit.OK and "0 records removed" in again.err


def test_an_excluded_domain_stays_excluded(farmwatch: Runner, finished: str) -> None:
    """The order on example.com covers its other hosts: they are not visited again because one of them is forgotten."""
    farmwatch("exclude", SITE, "--log", finished)
    ran = farmwatch("forget", SITE, "--yes", "--log", finished)
    assert ran.code == Exit.OK and ran.err.count(f"the exclusion of {SITE} stays") == 1
    with closing(open_log(finished, read_only=True)) as log:
        assert exclusions_of(log).covers(f"www.{SITE}")


def test_a_host_that_only_the_archive_has_is_forgotten(farmwatch: Runner, finished: str, tmp_path: Path) -> None:
    """Redirects from www.example.com lead to example.com, of which the log has no record."""
    host, archive = "only.archived.example", tmp_path / "warc"
    archive.mkdir()
    capture = Capture(
        kind=RequestKind.PAGE, url=f"http://{host}/", started_ms=1, request_headers=[], status=200, body=b"x"
    )
    (archive / "a.warc.gz").write_bytes(b"".join(member.data for member in exchange(capture, "<urn:uuid:1>")))
    forget = ("forget", host, "--yes", "--log", finished)
    assert farmwatch(*forget).code == Exit.PROBLEM
    ran = farmwatch(*forget, "--set", f"crawl.warc_folder={archive}")
    assert ran.code == Exit.OK and "2 WARC records" in ran.err
    assert not names_host(archive / "a.warc.gz", host)


def test_an_interrupted_removal_is_reported(farmwatch: Runner, finished: str) -> None:
    """The host is in the ledger and its removal is not done: status says so until the command has completed it."""
    with closing(open_log(finished)) as log:
        log.append(Forgotten(log).outputs(SITE, ForgottenHost(at=1, by="ann@desk")))
    said = "WARN  orders: a host is being forgotten, or `farmwatch forget` was interrupted"
    assert said in farmwatch("status", "--log", finished).out.splitlines()
    assert farmwatch("forget", SITE, "--yes", "--log", finished).code == Exit.OK
    assert said not in farmwatch("status", "--log", finished).out


def test_the_words_say_what_a_broker_still_holds() -> None:
    """The console and the command say the same: until when the broker has records, and what left the archive."""
    report = ForgetReport(records=3, warc_records=1, gone_at_ms=86_400_000)
    assert "the broker removes the last by 1970-01-02" in report.text("") and "WARC" not in report.text("")
    assert report.text("arc").endswith(", 1 WARC record in arc")
