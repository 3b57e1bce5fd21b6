"""`farmwatch log dead`: letters listed by reason, shown without control characters, retried and dropped."""

from __future__ import annotations

import json
from contextlib import closing

import msgspec
import pytest

from stream.log.contract import Message, Output
from stream.opening import open_log
from stream.processing.dead_letters import dead_letter
from stream.schema.records import Features, Hit, encode
from stream.schema.runs import LIVE, Run
from stream.schema.topics import CONTROL, FEATURES, HITS, RETRIES
from stream.text.user_errors import Exit
from tests.support.front_door import SITE, Runner

_HOSTILE = "garden\x1b]0;owned\x07\x1b[2J\u202e"


@pytest.fixture
def url(finished: str) -> str:
    """URL of a log with three letters of CRAWL, one of them of an unreadable record, and one of JUDGE."""
    hit = encode(Hit(id="h", site=SITE, url=f"https://{SITE}/x", title=_HOSTILE + "x" * 2000))
    features = encode(Features(id="f", site=SITE, page_id="p", url=f"https://{SITE}/x", epoch="e"))
    with closing(open_log(finished)) as log:
        for offset, value in enumerate((hit, hit, b"\x00\xff")):
            message = Message(HITS, 0, offset, SITE.encode(), value, {}, 0)
            log.append([dead_letter(message, "crawl", KeyError(_HOSTILE), 1)])
        log.append([dead_letter(Message(FEATURES, 0, 7, b"k", features, {}, 0), "judge", ValueError("no"), 2, "live")])
    return finished


def test_letters_are_listed_with_their_errors(farmwatch: Runner, url: str) -> None:
    """One row each, counted by state, stage and reason; conditions choose."""
    ran = farmwatch("log", "dead", "list", "--log", url)
    heads, *rows = (line.split("\t") for line in ran.out.splitlines())
    assert heads[:4] == ["letter", "state", "stage", "reason"]
    assert [row[:4] for row in rows[2:]] == [
        ["0/2", "open", "crawl", "KeyError"],
        ["0/3", "open", "judge", "ValueError"],
    ]
    assert "4 dead letters; state 4 open; stage 3 crawl, 1 judge; reason 3 KeyError, 1 ValueError" in ran.err
    chosen = farmwatch("log", "dead", "list", "--where", "stage=judge", "--log", url, "--json").lines
    assert [(one["letter"], one["run"], one["offset"]) for one in chosen] == [("0/3", "first", 7)]


def test_a_letter_is_shown_with_its_record(farmwatch: Runner, url: str) -> None:
    """Cause, origin and fields; control characters of crawled text do not reach the terminal, long fields are cut."""
    ran = farmwatch("log", "dead", "show", "0/1", "--log", url)
    assert ran.code == Exit.OK
    assert "topic: hits\npartition: 0\noffset: 1\n" in ran.out
    assert f"  url: https://{SITE}/x\n" in ran.out
    assert all(line.isprintable() and len(line) < 500 for line in ran.out.splitlines())
    assert "record: \ufffd\ufffd" in farmwatch("log", "dead", "show", "0/2", "--log", url).out  # no raw bytes
    shown = farmwatch("log", "dead", "show", "0/3", "--log", url, "--json").out
    assert shown.strip().isprintable() and json.loads(shown)["record"]["epoch"] == "e"


def test_chosen_letters_are_retried_and_dropped(farmwatch: Runner, url: str) -> None:
    """By column or name; a dry run changes nothing; a settled letter is refused with exit code 1."""
    dry = farmwatch("log", "dead", "retry", "--where", "stage=judge", "--dry-run", "--log", url)
    assert (dry.code, dry.out) == (Exit.OK, "would retry 1 letter of judge: ValueError\n")
    ran = farmwatch("log", "dead", "retry", "0/0", "--log", url)
    assert (ran.code, ran.out) == (Exit.OK, "retried 1 letter of crawl: KeyError\n")
    ran = farmwatch("log", "dead", "drop", "--where", "reason=KeyError", "--log", url)
    assert (ran.code, ran.out) == (Exit.OK, "dropped 2 letters of crawl: KeyError\n")
    again = farmwatch("log", "dead", "retry", "0/0", "0/2", "--log", url)
    assert again.code == Exit.PROBLEM
    assert again.err == "refused 1 letter: already waiting\nrefused 1 letter: already dropped\n"
    listed = farmwatch("log", "dead", "list", "--log", url, "--json").lines
    assert [letter["state"] for letter in listed] == ["waiting", "dropped", "dropped", "open"]
    with closing(open_log(url)) as log:
        assert sum(log.end(RETRIES)) == 3


def test_a_letter_of_another_feature_epoch_is_refused(farmwatch: Runner, url: str) -> None:
    """After an upgrade its page has newer features: the old ones would replace them in the row of the site."""
    run = Run(name=LIVE, ruleset="default", digest="d", detector="x/1", epoch="new")
    old = Message(FEATURES, 0, 8, SITE.encode(), b"\xc1", {"feature_epoch": "old"}, 0)
    with closing(open_log(url)) as log:
        log.append([Output(CONTROL, 0, f"run/{LIVE}".encode(), msgspec.msgpack.encode(run))])
        log.append([dead_letter(old, "judge", TypeError("no"), 2, LIVE)])
    ran = farmwatch("log", "dead", "retry", "--where", "reason=TypeError", "--log", url)
    assert ran.code == Exit.PROBLEM
    assert "refused 1 letter: of feature epoch old, while the run has new: its page was measured again" in ran.err
    assert farmwatch("log", "dead", "drop", "--where", "reason=TypeError", "--log", url).code == Exit.OK


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("retry",), Exit.USAGE, "name letters, or give --where or --all"),
        (("drop", "0/1", "--all"), Exit.USAGE, "name letters, or give --where or --all"),
        (("show", "one"), Exit.USAGE, "'one' is no dead letter: give PARTITION/OFFSET"),
        (("show", "9/9"), Exit.PROBLEM, "there is no dead letter 9/9: `farmwatch log dead list` lists them"),
        (("retry", "0/0", "9/9"), Exit.PROBLEM, "there is no dead letter 9/9"),
        (("drop", "9/9"), Exit.PROBLEM, "there is no dead letter 9/9"),
        (("list", "--where", "stage=crwal"), Exit.USAGE, "stage takes crawl, measure"),
        (("retry", "--where", "stage=tally"), Exit.PROBLEM, "no open dead letter was chosen"),
    ],
)
def test_a_wrong_choice_is_refused(
    farmwatch: Runner, url: str, arguments: tuple[str, ...], code: Exit, said: str
) -> None:
    """The message says how to choose; nothing is written."""
    ran = farmwatch("log", "dead", *arguments, "--log", url)
    assert (ran.code, ran.out) == (code, "")
    assert said in ran.err
    with closing(open_log(url)) as log:
        assert sum(log.end(RETRIES)) == 0
