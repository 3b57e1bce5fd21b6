"""`farmwatch status`: one screen of 24 lines of 80 columns, and the same as JSON."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import msgspec

from farmwatch.commands.start.status import screen
from farmwatch.config.config import load
from farmwatch.doctor.check_result import CheckResult, CheckState
from farmwatch.doctor.status import RoleState, StatusReader
from stream.log.contract import Message, Output, partition_of, wall_ms
from stream.opening import open_log
from stream.processing.dead_letters import dead_letter
from stream.schema.records import SiteState, encode
from stream.schema.topics import FEATURES, PAGES, RETRIES, SITES
from stream.text.user_errors import Exit
from tests.support.front_door import PARTITIONS, SITE, Runner, new_finished_log
from tests.support.paths import ROOT
from tests.support.worlds import settle


def test_the_screen_says_what_is_wrong(farmwatch: Runner, tmp_path: Path) -> None:
    """Absent processes, unread records and open dead letters, in lines that all print; warnings are exit code 0."""
    finished = new_finished_log(tmp_path / "new")
    with closing(open_log(finished)) as log:
        log.append([dead_letter(Message(PAGES, 0, 4, b"k", b"", {}, 0), "measure", ValueError("\x1b[2Jno"), 1)])
    ran = farmwatch("status", "--log", finished)
    assert ran.code == Exit.OK
    lines = ran.out.splitlines()
    assert len(lines) <= 24 and all(line.isprintable() and len(line) <= 80 for line in lines)
    assert re.search(r"judge 0 \(2 behind, oldest [0-9.]+ s, 0 a second\)", " ".join(lines))
    assert "WARN  roles: not running: crawl, measure, judge, score, tally (`farmwatch up`)" in lines
    assert any(line.startswith("WARN  dead letters: measure ValueError 1") for line in lines)
    assert any(line.startswith("share  ") for line in lines) and any(line.startswith("disk   log ") for line in lines)


def test_a_paused_crawl_is_wrong(farmwatch: Runner, finished: str) -> None:
    """The screen says who paused it and why, for an idle crawl looks the same."""
    farmwatch("crawl", "pause", "--why", "owner asked", "--log", finished)
    out = farmwatch("status", "--log", finished).out
    assert any(line.startswith("WARN  orders: the crawl is paused by ") for line in out.splitlines())


def test_verdicts_that_are_too_old_are_wrong(farmwatch: Runner, finished: str) -> None:
    """Where their sites were not measured again, no share is left, and the screen says where to look."""
    with closing(open_log(finished)) as log:
        for site in (SITE, "b.example"):
            row = SiteState(
                id=site, site=site, verdict="llm", scored=9, flagged=9, articles=9, term_start=1, term_end=2
            )
            log.append([Output(SITES, partition_of(site, PARTITIONS), site.encode(), encode(row))])
    ran = farmwatch("status", "--log", finished)
    assert "share  no share yet: no site has a scored article" in ran.out
    assert "WARN  verdicts: 2 of 2 verdicts are too old to count" in ran.out


def test_the_json_has_the_same(farmwatch: Runner, finished: str) -> None:
    """One object with the roles, the share's line of `rate`, and each finding with its remedy; retries are lag, too."""
    with closing(open_log(finished)) as log:
        log.append([Output(RETRIES, 0, b"k", b"v")])
    found = farmwatch("status", "--log", finished, "--json").json
    assert [(role["role"], role["lag"]) for role in found["roles"]][2] == ("judge", 3)
    rate = farmwatch("rate", "--log", finished, "--json").json
    assert found["share"].keys() == rate.keys() - {"warning"}
    assert found["share"]["text"] == rate["text"]
    assert found["share"]["sites"] == 2 and found["free_bytes"] > 0
    assert {"state", "check", "found", "mend"} == found["wrong"][0].keys()


def test_lag_and_time_left_follow_the_work(finished: str) -> None:
    """A role with a process, which reads between two looks: its rate, its time left, how long a record waits."""
    config = load(None, [f"log.url={finished}", f"log.partitions={PARTITIONS}"], environment={}).config
    with closing(open_log(finished)) as log:
        log.append([Output(FEATURES, 0, b"k", b"v") for _ in range(20)])
        member = log.join("judge", [FEATURES], member="host-1")
        settle([member], PARTITIONS)
        reader = StatusReader(log, config, lambda: wall_ms() + 7_200_000)
        (first,) = (role for role in reader.read().roles if role.role == "judge")
        assert (first.members, first.lag, first.per_s, first.eta_s) == (["host-1"], 22, 0.0, None)
        assert 7200 <= first.age_s < 2 * 7200
        member.close()
        ends = log.end(FEATURES)
        log.reset("judge", FEATURES, [max(0, end - 5) for end in ends])
        (then,) = (role for role in reader.read().roles if role.role == "judge")
        assert then.lag < 22 and then.per_s and then.eta_s == then.lag / then.per_s


def test_any_status_fits_the_screen(finished: str) -> None:
    """Of many long findings the first ones are shown, then the number of the others."""
    config = load(None, [f"log.url={finished}", f"log.partitions={PARTITIONS}"], environment={}).config
    with closing(open_log(finished)) as log:
        found = StatusReader(log, config).read()
    wrong = [CheckResult(CheckState.FAIL, "x" * 300, "y", f"check {number}") for number in range(40)]
    roles = [RoleState(role.role, ["m"] * 24, 10**9, 12_345.0, 1e6) for role in found.roles]
    lines = screen(msgspec.structs.replace(found, wrong=wrong, roles=roles))
    assert len(lines) <= 24 and max(map(len, lines)) <= 80
    assert any(line.startswith("and 3") and line.endswith(" more") for line in lines)
    assert screen(msgspec.structs.replace(found, wrong=[]))[-1] == "Nothing is wrong."


def test_doctor_repairs_the_offsets_of_a_group(farmwatch: Runner, finished: str) -> None:
    """Groups that lost their offsets are named and repaired; the next call says that nothing is to be done."""
    first = farmwatch("doctor", "--repair", "--log", finished).err
    assert "repaired the group judge: 0 offsets of features left to read" in first
    assert "no group needs a repair" in farmwatch("doctor", "--repair", "--log", finished).err


def test_a_watched_status_is_renewed_until_it_is_stopped(finished: str) -> None:
    """--watch prints the status again and again, as JSON one object a line."""
    command = [sys.executable, "-P", "-m", "farmwatch", "status", "--watch", "--json", "--set", f"log.url={finished}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT) as watched:
        assert watched.stdout is not None
        looks = [json.loads(watched.stdout.readline()) for _ in range(2)]
        watched.kill()
    assert looks[0]["run"] == looks[1]["run"] and looks[0]["at"] < looks[1]["at"]
