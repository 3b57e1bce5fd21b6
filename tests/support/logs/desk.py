"""A folder to try commands in: logs, and a file of each kind that they read."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

from farmwatch.config.config import load
from filters.rules.ruleset import load_ruleset
from filters.stages.judge import JudgeStage
from replay.live.live_run import ensure_live_run
from scoring.stages.score import score_key
from stream.log.contract import Output, partition_of
from stream.opening import open_log
from stream.schema.records import encode
from stream.schema.topics import SCORES
from tests.support.front_door import PARTITIONS, article_html
from tests.support.logs.forgettable import make_log, serve
from tests.support.logs.tallied_log import put_site, score_of, tally
from tests.support.pages.labelled_folder import add_page
from tests.support.runs.cutover_world import DETECTOR, CutoverWorld, cutover_world
from tests.support.web.loopback import Web

_PORTS = "metrics.port = 0\nconsole.port = 0\n"
_TALLY = f'tally.detector = "{DETECTOR}"\ntally.sprt = {{p0 = 0.1, p1 = 0.6}}\n'
_TEXT = "The garden was quiet that morning and the two of them walked slowly along the wall. "
_FILES: dict[str, list[object]] = {
    "bad.jsonl": ["no json", {"id": 1}],
    "features.jsonl": [
        {"url": "http://a.example/1", "site": "a.example", "page_id": "1", "measures": {"tokens": 300.0}}
    ],
    "hits.txt": ["http://a.example/1", "http://b.example/1", "ftp://c.example/"],
    "keys.txt": ["asq"],
    "bad.toml": ["[rules.min_tokns]", "threshold = 5"],
    "page_scores.jsonl": [
        {"site": "a.example", "id": str(n), "flag": n % 2 == 0, "score": n / 20, "detector": "lite-ngram"}
        for n in range(20)
    ],
    "pages.jsonl": [{"id": "1", "url": "http://a.example/1", "html": article_html(60)}],
    "queries.txt": ["how to prune a rose", "best garden shears"],
    "robots.txt": ["User-agent: *", "Crawl-delay: 10", "Disallow: /closed"],
    "scores.jsonl": [
        {"site": f"s{n % 40}.example", "label": ("human", "llm")[n % 2], "score": n % 2 + n / 1000} for n in range(640)
    ],
    "sites.jsonl": [{"site": f"s{n}.example", "verdict": ("human", "llm")[n % 5 == 0]} for n in range(20)],
    "texts.jsonl": [{"id": "1", "text": _TEXT * 20}, {"id": "2", "text": "Too short."}],
}


def make_desk(folder: Path) -> None:
    """Logs: `crawled` of a small crawl, `runs` with a run beside the live one, `tallied` of 60 judged sites.

    Each has a configuration; that of `crawled` is farmwatch.toml.
    """
    for file, lines in _FILES.items():
        texts = (line if isinstance(line, str) else json.dumps(line) for line in lines)
        (folder / file).write_text("".join(f"{text}\n" for text in texts))
    with Web() as web:
        serve(web)
        make_log(folder / "crawled", web, folder / "archive")
    next((folder / "archive").iterdir()).rename(folder / "archive.warc.gz")
    with closing(open_log(f"sqlite:{folder / 'crawled'}")) as log:
        ensure_live_run(log, load(None, [], {}).config, by="test")
    (folder / "farmwatch.toml").write_text(f'log.url = "sqlite:crawled"\n{_PORTS}')
    with pytest.MonkeyPatch.context() as patch:
        for name, fill in (("runs", _fill_runs), ("tallied", _fill_tallied)):
            (folder / name).mkdir()
            with cutover_world("embedded", folder / name, patch) as world:
                fill(world)
            (folder / f"{name}.toml").write_text(f'log.url = "sqlite:{name}/log"\n{_PORTS}{_TALLY}')
    add_page(folder / "labelled", "mine", article_html(), page_type="article", url="http://a.example/garden")
    add_page(folder / "labelled", "mine", article_html(5), page_type="product", url="http://b.example/buy")


def _fill_runs(world: CutoverWorld) -> None:
    live = world.begin_live()
    world.features(30)
    world.work("judge", JudgeStage(load_ruleset(live.ruleset)))
    for verdict in world.verdicts(live.names()):
        if verdict.verdict == "article":
            score = score_of(verdict.site, verdict.text_digest, verdict.site < "s3")
            place = partition_of(verdict.site, PARTITIONS)
            world.log.append([Output(SCORES, place, score_key(score).encode(), encode(score))])
    tally(world, live)
    world.replay(world.begin("mine", "gopher"))


def _fill_tallied(world: CutoverWorld) -> None:
    run = world.begin_live()
    for number in range(60):
        put_site(world, run, number)
    tally(world, run)
