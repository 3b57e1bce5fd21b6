"""`farmwatch crawl` and `farmwatch crawl frontier` as their users run them, over real HTTP on loopback."""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from farmwatch.__main__ import run
from farmwatch.demo.server import LoopbackWeb, Response
from stream.opening import open_log
from stream.schema.records import Page, decode
from stream.schema.topics import PAGES
from tests.support.runs.replay_process import Command
from tests.support.waiting import wait_until

ROBOTS = Response(headers={"Content-Type": "text/plain"}, body=b"User-agent: *\nDisallow: /private\n")
FARM = [f"{name}.farm.test" for name in ("x", "y", "z")]
BUSY, GONE = "busy.test", "gone.test"
HITS = [f"http://{host}/{path}" for path in ("1", "private/1") for host in FARM]


def html(text: str) -> Response:
    return Response(
        headers={"Content-Type": "text/html; charset=utf-8", "ETag": f'"{text}"'},
        body=f"<html><body><p>{text}</p></body></html>".encode(),
    )


@pytest.fixture
def web() -> Iterator[LoopbackWeb]:
    """Three hosts of one registrable domain, one that sends Retry-After, one with a broken robots.txt."""
    hosts: dict[str, dict[str, Response]] = {
        host: {"/robots.txt": ROBOTS, "/1": html("one"), "/private/1": html("never")} for host in FARM
    }
    hosts[BUSY] = {"/1": Response(status=429, headers={"Retry-After": "1500"})}
    hosts[GONE] = {"/robots.txt": Response(status=404)}
    with LoopbackWeb(hosts) as served:
        yield served


class Commands:
    """farmwatch in a separate folder, its crawler directed to a web."""

    def __init__(self, folder: Path, url: str, web: LoopbackWeb, capture: pytest.CaptureFixture[str]) -> None:
        settings = {
            "log.url": url,
            "log.state_folder": str(folder / "state"),
            "log.partitions": "4",
            "metrics.port": "0",
            "crawl.allow_private": "true",
            "crawl.contact": "https://operator.example/crawler",
            "crawl.delay_s": "0.05",
            "crawl.delay_per_second": "0",
            "crawl.domain_delay_s": "0.3",
            "crawl.address_delay_s": "0",
            "crawl.ask_tdmrep": "false",
            "crawl.use_sitemaps": "false",
            "crawl.refetch_fetched_s": "60",
            "crawl.resolve_to": f'{{"*" = "{web.address}"}}',
        }
        self.folder = folder
        self.flags = [part for item in settings.items() for part in ("--set", "=".join(item))]
        self.capture = capture
        self.said = ""

    def crawl(self, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "farmwatch", "crawl", *arguments, *self.flags]
        return subprocess.Popen(command, cwd=self.folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def crawl_to_the_end(self, *arguments: str, code: int = 0) -> None:
        process = Command(self.folder / "said", "crawl", "--until-done", *arguments, *self.flags)
        assert process.code() == code, process.said()

    def run(self, *arguments: str, code: int = 0) -> str:
        """Run a read-only command in this process; returns its output."""
        self.capture.readouterr()
        assert run([*arguments, *self.flags]) == code
        out, self.said = self.capture.readouterr()
        return out

    def json(self, *arguments: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.run(*arguments, "--json").splitlines()]


@pytest.fixture
def commands(
    tmp_path: Path, web: LoopbackWeb, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Commands:
    """Commands over the web, with a file of hits in their folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hits.txt").write_text("\n".join(HITS) + "\n", encoding="utf-8")
    return Commands(tmp_path, f"sqlite:{tmp_path / 'log'}", web, capfd)


def starts(web: LoopbackWeb, after: int = 0) -> list[tuple[str, str]]:
    """(host, path) of the requests since the first `after`, in order of their starts."""
    return [(each.host, each.path) for each in sorted(web.requests[after:], key=lambda each: each.started)]


def first_of_each(requests: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The first request of each host, in order."""
    return list({host: (host, path) for host, path in reversed(requests)}.values())[::-1]


def planned(plans: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """(host, path) of the first planned requests."""
    return [(plan["site"], plan["url"].partition(plan["site"])[2]) for plan in plans if plan["request"]]


def test_a_crawl_does_what_the_dry_run_said(commands: Commands, web: LoopbackWeb) -> None:
    """A crawl's first requests are those of the dry run, which requests nothing: for new hits and for the rest."""
    plans = commands.json("crawl", "--dry-run", "--hits", "hits.txt")
    assert not web.requests and not (commands.folder / "log").exists()
    assert [path for _, path in planned(plans)] == ["/robots.txt"] * 3
    starts_at = [plan["start_at"] for plan in plans]
    gaps = [later - earlier for earlier, later in itertools.pairwise(starts_at)]
    assert gaps == [300, 300]  # one place after the other for hosts of a domain

    commands.crawl_to_the_end("--hits", "hits.txt")
    made = starts(web)
    assert first_of_each(made) == planned(plans)
    for host in FARM:
        robots, probe, page = (path for asked, path in made if asked == host)
        assert (robots, len(probe), page) == ("/robots.txt", 33, "/1")

    (commands.folder / "more.txt").write_text(
        "\n".join(f"http://{host}/{path}" for host in FARM[:2] for path in ("private/2", "2")), encoding="utf-8"
    )
    again = commands.json("crawl", "--dry-run", "--hits", "more.txt")
    assert [path for host, path in planned(again) if host in FARM[:2]] == ["/2", "/2"]
    assert [plan["refused"] for plan in again if plan["site"] in FARM[:2]] == [{"robots": 1}] * 2
    before = len(web.requests)
    assert before == len(made)  # the dry run made no request
    commands.crawl_to_the_end("--hits", "more.txt")
    assert first_of_each(starts(web, before)) == [each for each in planned(again) if each[0] in FARM[:2]]


def test_preferences_are_counted_and_obeyed_on_request(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`rate` counts the sites that state one, in robots.txt or a header, also with a word that nobody has defined.

    Nothing changes by that. With crawl.obey_preferences a no in robots.txt keeps a page from being asked for, and one
    in a header its text from being kept.
    """
    text = {"Content-Type": "text/plain"}
    said = {
        "file.test": "User-agent: *\nContent-Usage: train-ai=n\n",
        "odd.test": "User-agent: *\nContent-Signal: use=reference\n",
    }
    hosts = {
        host: {f"/{n}": html(f"{host} {n}") for n in (1, 2)}
        | {"/robots.txt": Response(headers=text, body=said.get(host, "").encode())}
        for host in ("file.test", "odd.test", "header.test", "silent.test")
    }
    for n in (1, 2):
        known = hosts["header.test"][f"/{n}"]
        hosts["header.test"][f"/{n}"] = replace(known, headers={**known.headers, "Content-Usage": "train-ai=n"})
    monkeypatch.chdir(tmp_path)
    with LoopbackWeb(hosts) as web:
        commands = Commands(tmp_path, f"sqlite:{tmp_path / 'log'}", web, capfd)
        for n in (1, 2):
            (tmp_path / f"{n}.txt").write_text("".join(f"http://{host}/{n}\n" for host in hosts))
        commands.crawl_to_the_end("--hits", "1.txt")
        assert {host for host, path in starts(web) if path == "/1"} == set(hosts)
        assert [line["preferring"] for line in commands.json("rate")] == [3]
        found = {site["site"]: site["preferences"] for site in commands.json("crawl", "frontier")}
        assert found["odd.test"] == ["robots.txt:content-signal:use=reference"] and found["silent.test"] == []
        commands.crawl_to_the_end("--hits", "2.txt", "--set", "crawl.obey_preferences=true")
        assert {host for host, path in starts(web) if path == "/2"} == {"odd.test", "header.test", "silent.test"}
    with closing(open_log(f"sqlite:{tmp_path / 'log'}")) as log:
        read = (decode(Page, each.value or b"") for p in range(4) for each in log.read(PAGES, p))
        pages = {page.url: page for page in read}
    for host in ("file.test", "header.test"):
        page = pages[f"http://{host}/2"]
        assert (page.outcome, page.reason, page.body) == ("refused", "opt_out", b"")
        assert page.opt_out[0].endswith("content-usage:train-ai=n")
    assert pages["http://odd.test/2"].outcome == "fetched" and pages["http://header.test/1"].body


def test_json_and_words_say_the_same(commands: Commands, web: LoopbackWeb) -> None:
    """Each site of the JSON is in the table with its request, and each reason is there in words."""
    hits = [*HITS, f"http://{FARM[0]}:81/other", f"http://{BUSY}/1", f"http://{GONE}/1"]
    (commands.folder / "hits.txt").write_text("\n".join(hits), encoding="utf-8")
    process = commands.crawl("--hits", "hits.txt")
    done = {"parked": 1, "resting": 4}

    def states() -> Counter[str]:
        return Counter(site["state"] for site in commands.json("crawl", "frontier"))

    wait_until(lambda: {(host, "/1") for host in (*FARM, BUSY, GONE)} <= set(starts(web)), "a request to each host")
    wait_until(lambda: states() == done, "the end of the crawl", every_s=0.5)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    assert out == "" and "pages fetched" in err and "1 parked" in err and "draining" in err

    plans = commands.json("crawl", "--dry-run")
    rows = [line.split("\t") for line in commands.run("crawl", "--dry-run").splitlines()[1:]]
    assert [plan["site"] for plan in plans] == [row[0] for row in rows]
    for plan, row in zip(plans, rows, strict=True):
        assert row[3] == plan["url"]
    words = {row[0]: row[-1] for row in rows}
    assert "parked for 24 min" in words[BUSY] and "http_429: too many requests" in words[BUSY]
    assert "rests until its next visit" in words[FARM[1]]

    parked = ("crawl", "frontier", "--where", "state=parked")
    assert sum(site["urls"]["refused"] for site in commands.json("crawl", "frontier")) == 4
    assert [site["site"] for site in commands.json(*parked)] == [BUSY] and BUSY in commands.run(*parked)
    urls = commands.json("crawl", "frontier", "--site", FARM[0])
    text = commands.run("crawl", "frontier", "--site", FARM[0])
    assert urls and all(url["url"] in text for url in urls)
    assert "other_port: the hit names another port" in text
    commands.run("crawl", "frontier", "--site", "none.test", code=1)
    assert "'none.test': no such host" in commands.said
