"""Orders to the crawl: pause, exclusions, and the removal of a host."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from crawler.fetch.jobs import Capture, RequestKind
from crawler.stages.orders import exclusions_of
from crawler.warc.erasing import names_host
from crawler.warc.exchange import exchange
from farmwatch.upkeep.forgetting import ForgetReport
from stream.opening import open_log
from stream.schema.forgotten import Forgotten, ForgottenHost
from stream.schema.orders import Orders
from stream.schema.topics import all_topics
from stream.text.user_errors import Exit
from tests.support.front_door import PARTITIONS, SITE, Runner


@pytest.fixture
def url(tmp_path: Path) -> str:
    """URL of a log that is not made yet."""
    return f"sqlite:{tmp_path / 'log'}"


def orders(url: str) -> Orders:
    with closing(open_log(url, read_only=True)) as log:
        return Orders(log)


def test_a_pause_is_kept_with_who_when_and_why(farmwatch: Runner, url: str) -> None:
    """pause and resume leave both changes in the log; a second one changes nothing and says so."""
    ran = farmwatch("crawl", "pause", "--why", "owner asked", "--log", url)
    assert ran.code == Exit.OK and f"{url} is a new log" in ran.err
    assert "already" in farmwatch("crawl", "pause", "--log", url).err
    (change,) = orders(url).pause.changes
    assert (change.on, change.why) == (True, "owner asked") and "@" in change.by and change.at > 1_700_000_000_000
    for command in (["crawl", "frontier"], ["crawl", "--dry-run"], ["doctor"]):
        ran = farmwatch(*command, "--log", url)
        assert "owner asked" in ran.out + ran.err, command
    assert "owner asked" in farmwatch("crawl", "resume", "--log", url).err
    assert "not paused" in farmwatch("crawl", "resume", "--log", url).err
    assert [each.on for each in orders(url).pause.changes] == [True, False]
    assert "owner asked" not in farmwatch("crawl", "frontier", "--log", url).err


def test_exclusions_are_listed_and_removed(farmwatch: Runner, url: str, tmp_path: Path) -> None:
    """Names of the command line and of a file, each with its newest reason; --remove ends one and keeps its history."""
    names = tmp_path / "names.txt"
    names.write_text("b.example  # mail of May\n\n# only a remark\n*.c.example\n")
    ran = farmwatch("crawl", "exclude", "www.a.example", "--file", str(names), "--why", "asked", "--log", url)
    assert ran.code == Exit.OK and "b.example (the domain with all its hosts)" in ran.err
    assert ran.err.count("what was measured before stays, and counts; `farmwatch crawl forget` removes it") == 1
    assert farmwatch("crawl", "exclude", "B.example", "--log", url).err.strip() == "excluded already: b.example"
    assert "excluded: b.example" in farmwatch("crawl", "exclude", "b.example", "--why", "by law", "--log", url).err
    assert farmwatch("crawl", "exclude", "--remove", "b.example", "--log", url).code == Exit.OK
    listed = farmwatch("crawl", "exclude", "--where", "excluded=true", "--log", url)
    assert [line.split("\t")[0] for line in listed.out.splitlines()[1:]] == ["*.c.example", "www.a.example"]
    found = farmwatch("crawl", "exclude", "--json", "--log", url).lines
    assert [(each["name"], [change["why"] for change in each["changes"]]) for each in found] == [
        ("*.c.example", ["asked"]),
        ("b.example", ["mail of May", "by law", ""]),
        ("www.a.example", ["asked"]),
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["*"], "--yes"),
        (["good.example", "*.com"], "--yes"),
        (["a b"], "no host"),
        (["localhots"], "the name of a host has a dot"),
        (["--why", "asked"], "name a host"),
        (["a.example", "--json"], "the options of lists"),
    ],
)
def test_what_is_refused_changes_nothing(farmwatch: Runner, url: str, arguments: list[str], said: str) -> None:
    """A pattern beyond one domain, a name that is none, options that do not fit: exit code 2, and no order."""
    ran = farmwatch("crawl", "exclude", *arguments, "--log", url)
    assert ran.code == Exit.USAGE and said in ran.err
    assert not Path(url.removeprefix("sqlite:")).exists()


def test_a_boundless_pattern_needs_a_yes(farmwatch: Runner, url: str) -> None:
    """With --yes the operator means it."""
    assert farmwatch("crawl", "exclude", "*.com", "--yes", "--log", url).code == Exit.OK
    assert orders(url).exclusions["*.com"].on


def test_a_file_that_is_no_list_is_named(farmwatch: Runner, url: str, tmp_path: Path) -> None:
    """A bad line is named with its number, a file that is not there by its path; what is not excluded cannot end."""
    names = tmp_path / "names.txt"
    names.write_text("a.example\nno host\n")
    assert f"{names}:2" in farmwatch("crawl", "exclude", "--file", str(names), "--log", url).err
    assert farmwatch("crawl", "exclude", "--file", str(tmp_path / "none"), "--log", url).code == Exit.UNAVAILABLE
    assert farmwatch("crawl", "exclude", "a.example", "--log", url).code == Exit.OK
    assert farmwatch("crawl", "exclude", "--remove", "b.example", "--log", url).code == Exit.PROBLEM


def test_the_plan_leaves_an_excluded_host_out(farmwatch: Runner, url: str, tmp_path: Path) -> None:
    """crawl --dry-run shows no request to an excluded host."""
    hits = tmp_path / "hits.csv"
    hits.write_text("url\nhttps://a.example/x\nhttps://b.example/x\n")
    farmwatch("crawl", "exclude", "a.example", "--log", url)
    ran = farmwatch("crawl", "--dry-run", "--hits", str(hits), "--json", "--log", url)
    plans = {plan["site"]: plan for plan in ran.lines}
    assert not plans["a.example"]["request"] and plans["b.example"]["request"]


@pytest.mark.parametrize("arguments", [["crawl", "resume"], ["crawl", "exclude", "--remove", "a.example"]])
def test_no_log_is_made_to_take_an_order_back(farmwatch: Runner, url: str, arguments: list[str]) -> None:
    """Where there is no log there is no order: the folder is the wrong one."""
    assert farmwatch(*arguments, "--log", url).code == Exit.UNAVAILABLE
    assert not Path(url.removeprefix("sqlite:")).exists()


def test_orders_leave_an_existing_log_as_it_is(farmwatch: Runner, finished: str) -> None:
    """With another configuration than the daemon's, an order changes no retention limit and needs no partitions."""
    with closing(open_log(finished)) as log:
        log.create(all_topics(PARTITIONS, "e"))
        before = log.definitions()
    other = ["--set", "retention.days={pages=0.5}", "--set", "log.partitions=7", "--log", finished]
    for command in (["crawl", "exclude", "a.example"], ["crawl", "pause"], ["crawl", "resume"]):
        assert farmwatch(*command, *other).code == Exit.OK
    with closing(open_log(finished)) as log:
        assert log.definitions() == before


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
    ran = farmwatch("crawl", "forget", SITE, "--log", finished)
    assert ran.code == Exit.USAGE and "--yes" in ran.err and left(finished) == before > 0


@pytest.mark.parametrize(("hosts", "code"), [((), 2), (("a b",), 2), (("unknown.example",), 1)])
def test_what_is_refused(farmwatch: Runner, finished: str, hosts: tuple[str, ...], code: int) -> None:
    """No host, a name that is none, and a host that the log does not know; a known one beside it stays."""
    before = left(finished)
    assert (
        farmwatch("crawl", "forget", *hosts, *((SITE,) if code == 1 else ()), "--yes", "--log", finished).code == code
    )
    assert left(finished) == before


def test_a_log_that_is_not_there_is_not_made(farmwatch: Runner, tmp_path: Path) -> None:
    """A wrong folder is an error, and no folder is made."""
    assert farmwatch("crawl", "forget", SITE, "--yes", "--log", f"sqlite:{tmp_path / 'no'}").code == Exit.UNAVAILABLE
    assert not (tmp_path / "no").exists()


def test_it_says_what_it_removed(farmwatch: Runner, finished: str) -> None:
    """Commands show nothing of the host afterwards, and a second time removes no record."""
    count = left(finished)
    ran = farmwatch("crawl", "forget", f"https://{SITE.upper()}/x", "--yes", "--json", "--log", finished)
    assert ran.code == Exit.OK and "forgotten" in ran.err
    said = ran.json
    assert said["hosts"] == 1 and said["records"] >= count and said["gone_at"] == 0
    assert left(finished) == 0
    assert SITE not in farmwatch("sites", "--log", finished).out
    again = farmwatch("crawl", "forget", SITE, "--yes", "--log", finished)
    assert again.code == Exit.OK and "0 records removed" in again.err


def test_an_excluded_domain_stays_excluded(farmwatch: Runner, finished: str) -> None:
    """The order on example.com covers its other hosts: they are not visited again because one of them is forgotten."""
    farmwatch("crawl", "exclude", SITE, "--log", finished)
    ran = farmwatch("crawl", "forget", SITE, "--yes", "--log", finished)
    assert ran.code == Exit.OK and ran.err.count(f"the exclusion of {SITE} stays") == 1
    with closing(open_log(finished, read_only=True)) as log:
        assert exclusions_of(Orders(log)).covers(f"www.{SITE}")


def test_a_host_that_only_the_archive_has_is_forgotten(farmwatch: Runner, finished: str, tmp_path: Path) -> None:
    """Redirects from www.example.com lead to example.com, of which the log has no record."""
    host, archive = "only.archived.example", tmp_path / "warc"
    archive.mkdir()
    capture = Capture(
        kind=RequestKind.PAGE, url=f"http://{host}/", started_ms=1, request_headers=[], status=200, body=b"x"
    )
    (archive / "a.warc.gz").write_bytes(b"".join(member.data for member in exchange(capture, "<urn:uuid:1>")))
    forget = ("crawl", "forget", host, "--yes", "--log", finished)
    assert farmwatch(*forget).code == Exit.PROBLEM
    ran = farmwatch(*forget, "--set", f"crawl.warc_folder={archive}")
    assert ran.code == Exit.OK and "2 WARC records" in ran.err
    assert not names_host(archive / "a.warc.gz", host)


def test_an_interrupted_removal_is_reported(farmwatch: Runner, finished: str) -> None:
    """The host is in the ledger and its removal is not done: status says so until the command has completed it."""
    with closing(open_log(finished)) as log:
        log.append(Forgotten(log).outputs(SITE, ForgottenHost(at=1, by="ann@desk")))
    said = "WARN  orders: a host is being forgotten, or its removal was interrupted"
    assert said in farmwatch("status", "--log", finished).out.splitlines()
    assert farmwatch("crawl", "forget", SITE, "--yes", "--log", finished).code == Exit.OK
    assert said not in farmwatch("status", "--log", finished).out


def test_the_words_say_what_a_broker_still_holds() -> None:
    """The console and the command say the same: until when the broker has records, and what left the archive."""
    report = ForgetReport(records=3, warc_records=1, gone_at_ms=86_400_000)
    assert "the broker removes the last by 1970-01-02" in report.text("") and "WARC" not in report.text("")
    assert report.text("arc").endswith(", 1 WARC record in arc")
