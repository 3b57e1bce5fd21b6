"""The console's pages on runs, rulesets, the frontier and a site's test, and what their forms do."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from crawler.frontier.rows import SiteRow
from farmwatch.config.config import load
from farmwatch.console.replays import Replays
from filters.rules.ruleset import load_ruleset
from replay.rows.site_table import read_sites
from stream.opening import open_log
from stream.schema.control import Control
from tests.support.front_door import PARTITIONS, SITE, Runner
from tests.support.logs.tallied_log import tallied
from tests.support.runs.cutover_world import DETECTOR, CutoverWorld, cutover_world
from tests.support.web.console_browser import Answer, Browser, browse, visited
from tests.support.web.frontier_log import frontier_log

OTHER, KEEPS = "gopher", "notes"  # the first drops pages that repeat one sentence, and so all
SETTINGS = (f"log.partitions={PARTITIONS}", f"tally.detector={DETECTOR}", "tally.sprt={p0=0.1, p1=0.6}")


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CutoverWorld]:
    """A log with a live run of 60 judged pages, and runs of them under other rulesets."""
    with cutover_world("embedded", tmp_path, monkeypatch) as made:
        live = made.begin_live()
        made.features(60)
        made.replay(live)
        made.replay(made.begin("other", OTHER))
        made.replay(made.begin("kept", KEEPS))
        yield made


def visit_console(world: CutoverWorld, folder: Path, visit: Any, replays: Replays | None = None) -> Any:
    return browse(world.config.log.url, folder, visit, config=world.config, replays=replays)


class Begun(Replays):
    """Names the runs whose processes were to begin."""

    def __init__(self) -> None:
        super().__init__()
        self.runs: list[str] = []

    def start(self, run: str) -> None:
        self.runs.append(run)

    def has(self, run: str) -> bool:
        return run in self.runs


def test_the_walk_of_a_test_ends_where_the_row_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each site the steps are numbered in the order of fetches, and the row's verdict is that of its last page."""
    with cutover_world("embedded", tmp_path, monkeypatch) as world:
        tallied(world)
        rows = {row.site: row for row in read_sites(world.log)}

        async def visit(browser: Browser) -> list[Answer]:
            return [await browser.get("/site.json", {"site": site}) for site in rows]

        for answer in visit_console(world, tmp_path, visit):
            row = rows[answer.json["site"]["site"]]
            steps = [page["walk"] for page in answer.json["pages"] if page["walk"]]
            assert [step["number"] for step in steps] == list(range(1, len(steps) + 1))
            assert len(steps) == row.scored and row.verdict in ("llm", "human")
            assert (steps[-1]["verdict"], steps[row.pages_used - 1]["llr"]) == (row.verdict, row.llr)
            assert answer.json["test"]["steps"] == steps
            lower, upper = (answer.json["test"]["bounds"][name] for name in ("human", "llm"))
            assert row.llr <= lower if row.verdict == "human" else row.llr >= upper
            assert {step["verdict"] for step in steps[: row.pages_used - 1]} <= {"undecided", "unclassifiable"}
            assert f"log-likelihood ratio {row.llr:+.2f}, at or " in answer.json["evidence"]


def test_a_comparison_is_that_of_the_command(farmwatch: Runner, world: CutoverWorld, tmp_path: Path) -> None:
    """/compare.json is `compare --json` with a sample of 100; a run that is not there is 404."""

    async def visit(browser: Browser) -> list[Answer]:
        sides = {"a": "live", "b": "other"}
        places = (("/compare.json", sides), ("/compare", sides), ("/compare", {"b": "no-such"}))
        return [await browser.get(path, query) for path, query in places]

    found, page, unknown = visit_console(world, tmp_path, visit)
    flags = [part for flag in SETTINGS for part in ("--set", flag)]
    ran = farmwatch("compare", "live", "other", "--json", "--sample", "100", "--log", world.config.log.url, *flags)
    said = ran.json
    assert {**found.json, "at": 0} == {**said, "at": 0}
    assert page.status == 200 and "kept in A" in page.text and found.json["pages"]["common"] == 60
    flips = [(int(number), place) for place, number in re.findall(r'flip"><a href="#(\w+)">(\d+)</a>', page.text)]
    assert flips == [(said["pages"]["a_only_article"], "out")] and 'id="out"' in page.text
    assert '<th scope="col" class="n">unclassifiable</th>' in page.text  # as `compare` prints it
    assert unknown.status == 404 and "no run" in unknown.text


def test_of_two_people_who_label_a_page_one_is_told(world: CutoverWorld, tmp_path: Path) -> None:
    """A label goes to the labels file; a form of a page that showed another label, or none, changes nothing."""

    async def visit(browser: Browser) -> list[Any]:
        sides = {"a": "live", "b": "other"}
        first = (await browser.get("/label.json", sides)).json
        form = await browser.form("/crawl", **sides, fetch_id=first["page"]["fetch_id"], said="", answer="h")
        posted = [await browser.post("/label", form), await browser.post("/label", {**form, "answer": "n"})]
        second = (await browser.get("/label.json", sides)).json
        shown, page = [await browser.get(path, {**sides, "at": str(first["at"])}) for path in ("/label.json", "/label")]
        other = await browser.post("/label", {**form, "said": "another label", "answer": "n"})
        back = await browser.post("/label", {**form, "said": shown.json["said"], "answer": "undo"})
        third = (await browser.get("/label.json", sides)).json
        wrong = await browser.post("/label", {**form, "fetch_id": "no"})
        return [first, [*posted, other, back], second, page, third, wrong]

    first, posted, second, shown, third, wrong = visit_console(world, tmp_path, visit)
    assert "verdict" not in shown.text.replace("Their verdicts are not shown", "")
    assert [answer.headers["Location"].endswith("already=1") for answer in posted] == [False, True, True, False]
    assert (first["labelled"], second["labelled"], third["labelled"]) == (0, 1, 0)
    assert second["at"] != first["at"] and "labelled article, written by a human" in shown.text
    lines = [json.loads(line) for line in Path(first["file"]).read_text().splitlines()]
    assert Path(first["file"]).stat().st_mode & 0o777 == 0o600  # it holds texts
    fetch_id = first["page"]["fetch_id"]
    assert [(line["fetch_id"], line["label"]) for line in lines] == [(fetch_id, "human"), (fetch_id, "")]
    assert wrong.status == 404


def test_of_two_cutovers_from_one_page_one_is_told(world: CutoverWorld, tmp_path: Path) -> None:
    """The first moves live, with its reason; the second, from a page of before, changes nothing; back goes back."""

    async def visit(browser: Browser) -> list[Any]:
        before = (await browser.get("/runs.json")).json
        form = await browser.form("/runs", number=str(before["number"]), run="kept", order="live", why="stricter")
        moved, late = [await browser.post("/runs/cutover", form) for _ in range(2)]
        after = (await browser.get("/runs.json")).json
        back = await browser.post("/runs/cutover", {**form, "number": str(after["number"]), "order": "back"})
        return [moved, late, after, back, (await browser.get("/runs.json")).json]

    moved, late, after, back, last = visit_console(world, tmp_path, visit)
    assert (moved.status, late.status, back.status) == (303, 409, 303) and "another run became live" in late.text
    assert [run["run"] for run in after["runs"] if run["state"] == "live"] == ["kept"]
    assert [run["run"] for run in last["runs"] if run["state"] == "live"] == ["first"]
    assert [(move["to_run"], move["why"]) for move in last["cutovers"]] == [("first", "stricter"), ("kept", "stricter")]
    assert Control(world.log).cutovers[0].why == "stricter"


def test_a_replay_begins_with_a_text_of_rules(world: CutoverWorld, tmp_path: Path) -> None:
    """The run has the digest of the text; a second press begins none; a text with mistakes is refused."""
    text = load_ruleset(KEEPS).source.replace("threshold = 200", "threshold = 321")
    assert text != load_ruleset(KEEPS).source
    begun = Begun()

    async def visit(browser: Browser) -> list[Answer]:
        form = await browser.form("/rulesets", why="longer pages")
        texts = [text.replace("\n", "\r\n"), text, "[rules.no_such]\nthreshold = 1"]
        forms = [*({"text": text} for text in texts), {"ruleset": "/etc/passwd"}, {"ruleset": "c4"}]
        return [await browser.post("/runs/replay", {**form, **more}) for more in forms]

    answers = visit_console(world, tmp_path, visit, begun)
    assert [answer.status for answer in answers] == [303, 303, 400, 400, 303]
    assert [answer.headers["Location"] for answer in answers[:2]] == ["/runs", "/runs?already=1"]
    assert "no_such" in answers[2].text
    runs = Control(world.log).runs
    file = tmp_path / "mine.toml"
    file.write_text(text)
    assert [runs[name].digest for name in begun.runs] == [load_ruleset(str(file)).digest, load_ruleset("c4").digest]
    assert {runs[name].why for name in begun.runs} == {"longer pages"}


def test_a_replay_is_cancelled(world: CutoverWorld, tmp_path: Path) -> None:
    """As `farmwatch runs cancel`: a run that waits for its process is cancelled; the live run cannot be."""

    async def visit(browser: Browser) -> list[Answer]:
        form = await browser.form("/runs", ruleset="c4")
        await browser.post("/runs/replay", form)
        name = next(run["run"] for run in (await browser.get("/runs.json")).json["runs"] if run["ruleset"] == "c4")
        return [
            await browser.post("/runs/cancel", {**form, "run": name}),
            await browser.post("/runs/cancel", {**form, "run": "live"}),
            await browser.get("/runs.json"),
        ]

    cancelled, live, after = visit_console(world, tmp_path, visit, Begun())
    assert (cancelled.status, live.status) == (303, 409) and "is live" in live.text
    assert {run["ruleset"]: run["state"] for run in after.json["runs"]}["c4"] == "cancelled"


def test_rulesets_differ_as_the_command_says(farmwatch: Runner, world: CutoverWorld, tmp_path: Path) -> None:
    """The differences are those of `rulesets diff`, the text that of `rulesets show`; for the rules of a run too."""

    async def visit(browser: Browser) -> list[Answer]:
        twins = ({"a": "default", "b": OTHER}, {"a": "run first", "b": "run other"}, {"b": "../default"})
        return [await browser.get("/rulesets.json", query) for query in twins]

    shipped, of_runs, unknown = visit_console(world, tmp_path, visit)
    said = farmwatch("rulesets", "diff", "default", OTHER, "--json").json
    places = [(row["rule"] or "(ruleset)", row["field"]) for row in said["differences"]]
    assert [(row["rule"], row["field"]) for row in shipped.json["differences"]] == places
    assert of_runs.json["differences"] == shipped.json["differences"]
    assert of_runs.json["b"]["text"] == load_ruleset(OTHER).source
    assert unknown.status == 404


def test_the_frontier_shows_which_hosts_wait(tmp_path: Path) -> None:
    """/frontier.json has sums, lists and the meaning of each reason, and the page shows them."""
    parked = SiteRow(site="a.example", parked_until=2**42, parked_why="robots.txt:http_503", queued=1)
    url = frontier_log(tmp_path, parked, SiteRow(site="b.example", stopped_at=5, stopped="excluded"))
    found, page = visited(url, tmp_path, "/frontier.json", "/frontier")
    assert (found.json["sites"]["parked"], [one["site"] for one in found.json["stopped_sites"]]) == (1, ["b.example"])
    assert "a.example" in page.text and found.json["meanings"]["robots.txt:http_503"]["text"] in page.text


def test_a_host_is_forgotten_after_its_name_was_typed_twice(finished: str, tmp_path: Path) -> None:
    """A slip removes nothing; otherwise the page says when it is done, and the host is on no page."""

    async def visit(browser: Browser) -> list[Answer]:
        form = await browser.form("/crawl", host=SITE)
        slip = await browser.post("/crawl/forget", {**form, "again": "other.example"})
        there = await browser.get("/site", {"site": SITE})
        begun = await browser.post("/crawl/forget", {**form, "again": SITE})
        while not (page := await browser.get("/crawl.json")).json["forgetting"][0]["done"]:
            pass
        return [slip, there, begun, page]

    slip, there, begun, page = browse(finished, tmp_path, visit)
    assert (slip.status, there.status, begun.status) == (400, 200, 303)
    assert page.json["forgetting"][0]["said"].startswith("forgotten:")
    with closing(open_log(finished, read_only=True)) as log:
        assert [row.site for row in read_sites(log)] == ["b.example"]


def test_a_skipped_page_stays_skipped(world: CutoverWorld, tmp_path: Path) -> None:
    """After a label comes the next page without one; the last leads back to those before."""

    async def visit(browser: Browser) -> list[Any]:
        sides = {"a": "live", "b": "other"}
        second = (await browser.get("/label.json", {**sides, "at": "1"})).json
        fetch_id = second["page"]["fetch_id"]
        form = await browser.form("/crawl", **sides, fetch_id=fetch_id, said="", answer="a", after="1")
        third = (await browser.get("/label.json", {**sides, "after": "1"})).json
        led = (await browser.post("/label", form)).headers["Location"]
        last = (await browser.get("/label.json", {**sides, "after": str(second["of"] - 1)})).json
        return [led, third, last]

    led, third, last = visit_console(world, tmp_path, visit)
    assert led.endswith("after=1") and (third["at"], last["at"]) == (2, 0)


def test_a_mistake_in_a_text_of_rules_is_said_without_a_path(world: CutoverWorld, tmp_path: Path) -> None:
    """On the page of the form, which keeps the text: the name that was given, and the place of the mistake."""

    async def visit(browser: Browser) -> list[Answer]:
        form = await browser.form("/rulesets", called="mine", text="[rules.min_tokens")
        headers = {"Origin": f"http://{browser.host}", "Referer": f"http://{browser.host}/rulesets?b=c4"}
        nameless = {**form, "called": "../x", "text": load_ruleset("c4").source}
        return [
            await browser.post("/runs/replay", form, headers),
            await browser.post("/runs/replay", nameless),
            await browser.post("/runs/replay", {**form, "text": " "}),
        ]

    mistake, nameless, empty = visit_console(world, tmp_path, visit, Begun())
    assert (mistake.status, nameless.status, empty.status) == (400, 400, 400)
    said = mistake.text.partition("<main")[2]
    assert "mine.toml: not TOML" in said and str(tmp_path.parent.parent) not in said
    assert "[rules.min_tokens</textarea>" in said and 'value="mine"' in said and "live.js" not in mistake.text
    assert 'href="/rulesets.json?b=c4"' in mistake.text and "/tmp" not in said
    assert "24 letters" in nameless.text and "choose a ruleset" in empty.text


def test_a_review_is_labelled_by_key_and_undone(finished: str, tmp_path: Path) -> None:
    """Labels go to the file that `rate.review` names; undo takes the last one back, and shows its page again.

    Another person labels the same pages anew.
    """
    labels, sample = tmp_path / "said.jsonl", Path(finished.partition(":")[2]) / "review.jsonl"
    drawn = {"drawn": 60, "drawn_at": 5}
    lines = [{"fetch_id": f"f{n}", "url": "https://x/", "site": f"s{n}", "text": f"t{n}", **drawn} for n in range(3)]
    sample.write_text("".join(json.dumps(line) + "\n" for line in lines))
    flags = [f"log.url={finished}", f"log.partitions={PARTITIONS}", f"rate.review={labels}"]
    labels.touch()
    config = load(flags=flags, environment={}).config

    async def visit(browser: Browser) -> list[Any]:
        of = {"of": "review"}
        form = await browser.form("/label?of=review", **of, said="")
        for name, answer in (("f0", "l"), ("f1", "h")):
            await browser.post("/label", {**form, "fetch_id": name, "answer": answer})
        third = (await browser.get("/label.json", of)).json
        undo = {**form, "fetch_id": third["last"]["fetch_id"], "said": third["last"]["said"], "at": "1"}
        back = await browser.post("/label", {**undo, "answer": "undo"})
        page = await browser.get(back.headers["Location"])
        second = (await browser.get("/label.json", of)).json
        led = await browser.post("/label", {**form, "by": "bob", "fetch_id": "f0", "answer": "h"})
        of_bob = (await browser.get("/label.json", {**of, "by": "bob"})).json
        return [third, page, second, led, of_bob]

    third, page, second, led, of_bob = browse(finished, tmp_path, visit, config=config)
    assert (third["at"], third["labelled"], third["last"]["at"]) == (2, 2, 1)
    assert ">t1<" in page.text and (second["at"], second["labelled"], second["last"]["at"]) == (1, 1, 0)
    said = [json.loads(line) for line in labels.read_text().splitlines()]
    assert [(one["fetch_id"], one["label"], one["drawn"]) for one in said] == [
        ("f0", "llm", 60),
        ("f1", "human", 60),
        ("f1", "", 0),
        ("f0", "human", 60),
    ]
    assert said[3]["by"] == "bob" != said[0]["by"] and "by=bob" in led.headers["Location"]
    assert (of_bob["by"], of_bob["labelled"], of_bob["at"], of_bob["counts"]) == (
        *("bob", 1, 1),
        {"article, written by a human": 1},
    )
    assert third["drawn"] == str(sample) and f"review draw --out {sample}" in page.text
