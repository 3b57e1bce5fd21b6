"""Other texts are scored: a small web under `default`, replayed by segments and without unlikely sentences."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Sequence

import msgspec
import pytest
import xxhash

from farmwatch.__main__ import run
from farmwatch.audit.audit import audit
from farmwatch.demo.human_pages import human_pages
from farmwatch.demo.server import LoopbackWeb, Response
from farmwatch.demo.site_pages import llm_articles
from farmwatch.share.current_rate import current_rate
from filters.perplexity.fluent import fluent_text
from filters.perplexity.model import shipped_model
from filters.rules.ruleset import load_ruleset
from replay.compare.comparer import ComparisonRequest, compare
from replay.rows.scores import requests_wait
from stream.processing.metrics import Metrics
from stream.processing.topic_reader import records_of
from stream.schema.control import Control
from stream.schema.records import Features, ScoreRequest, SiteState
from stream.schema.roles import Role
from stream.schema.topics import FEATURES, REPLAY_REQUESTS, SCORE_REQUESTS
from tests.support.kafka_broker import broker
from tests.support.pages.extraction_here import extract_here
from tests.support.processes.farm import PARTITIONS, Farm
from tests.support.processes.roles_here import roles_at_work
from tests.support.runs.replay_world import rows_of, verdicts_of
from tests.support.waiting import wait_until
from tests.support.web.article_head import ARTICLE_HEAD

pytestmark = pytest.mark.slow

PAGES = 14
PATIENCE_S = 180.0
ARTICLES, FORUM, MAGAZINE = "articles.test", "forum.test", "magazine.test"
SETTINGS = {"crawl.use_links": "false", "crawl.use_sitemaps": "false", "crawl.page_budget": str(PAGES)}
VISITORS = """\
scores = "segments"
kinds = ["comment"]
[rules.extracted]
threshold = "ok"
[rules.segment_words]
threshold = 150
on_unknown = "drop"
"""

LIMIT = 200  # perplexity


def paragraphs(texts: Sequence[str]) -> str:
    return "".join(f"<p>{text}</p>" for text in texts)


def post(name: str, texts: Sequence[str]) -> str:
    return f'<div class="post"><b class="author">{name}</b><div class="body">{paragraphs(texts)}</div></div>'


def card(place: int, texts: Sequence[str]) -> str:
    title = f'<h3><a href="/story/{place}">The whole story number {place}</a></h3>'
    return f'<li class="card">{title}{paragraphs(texts)}</li>'


def web() -> dict[str, dict[str, Response]]:
    """Articles by people; threads whose first post is by a person, and comments by a model; teasers by a model."""
    human = [page.paragraphs for page in human_pages()]
    llm = (article.text.split("\n\n") for articles in llm_articles().values() for article in articles)
    hosts: dict[str, dict[str, Response]] = {ARTICLES: {}, FORUM: {}, MAGAZINE: {}}
    for number in range(PAGES):
        posts = post("Ann", human[PAGES + number]) + "".join(post("Bob", next(llm)) for _ in range(3))
        cards = "".join(card(10 * number + place, [text]) for place, text in enumerate([*next(llm), *next(llm)]))
        bodies = {
            ARTICLES: f"{ARTICLE_HEAD}<body><article>{paragraphs(human[number])}</article>",
            FORUM: f"<body><div class='thread'>{posts}</div>",
            MAGAZINE: f"<body><ul class='cards'>{cards}</ul>",
        }
        for host, path in ((ARTICLES, f"/{number}"), (FORUM, f"/t/{number}"), (MAGAZINE, f"/category/{number}")):
            hosts[host][path] = Response(body=f"<html>{bodies[host]}</body></html>".encode())
    return hosts


@pytest.fixture(scope="module", params=["embedded", pytest.param("kafka", marks=pytest.mark.kafka)])
def farm(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Farm]:
    """The web, crawled under `default`, with replays of `whole-web` (`whole`, `again`), of its comments, and fluent."""
    folder, hosts = tmp_path_factory.mktemp("whole"), web()
    hits, visitors = folder / "hits.jsonl", folder / "visitors.toml"
    urls = [f"http://{host}{path}" for host, pages in hosts.items() for path in pages]
    hits.write_text("".join(json.dumps({"url": url, "query_id": f"q{url}"}) + "\n" for url in urls))
    visitors.write_text(VISITORS)
    fluent = folder / "fluent.toml"
    fluent.write_text(f'scores = "fluent"\n{load_ruleset("default").source}\n[fluent]\nlimit = {LIMIT}\n')
    url, settings = f"sqlite:{folder / 'log'}", SETTINGS
    if request.param == "kafka":
        url, settings = f"kafka:{broker()}", {**settings, "log.prefix": f"whole-{uuid.uuid4().hex[:12]}."}
    with LoopbackWeb(hosts) as served, Farm(folder, url, served, settings) as made:
        with pytest.MonkeyPatch.context() as patch:
            extract_here(patch)
            made.work_here(hits, PATIENCE_S)
            with roles_at_work(made.config, {Role.SCORE: Metrics()}):
                replay(made, "whole", "whole-web")
                replay(made, "visitors", str(visitors))
                replay(made, "fluent", str(fluent))
            elements = made.config.measure.max_elements - 1  # another epoch, under which these pages measure the same
            replay(made, "again", "whole-web", f"measure.max_elements={elements}")
        yield made


def replay(farm: Farm, name: str, ruleset: str, *settings: str) -> None:
    """Replay the log, and once more when the texts that it requested have scores."""
    flags = [word for setting in (*farm.flags, *settings) for word in ("--set", setting)]
    assert run(["replay", "--ruleset", ruleset, "--name", name, "--full-speed", *flags]) == 0
    with farm.log() as log:
        wait_until(lambda: not requests_wait(log), "the scores of the replay", PATIENCE_S)
    assert run(["replay", "--name", name, "--full-speed", *flags]) == 0


def verdicts(farm: Farm, name: str) -> list[tuple[str, str, str]]:
    with farm.log() as log:
        return sorted((verdict.id, verdict.verdict, verdict.text_digest) for verdict in verdicts_of(log, name))


def rows(farm: Farm, name: str) -> dict[str, SiteState]:
    with farm.log() as log:
        return {site: msgspec.structs.replace(row, epoch="") for site, row in rows_of(log, name).items()}


def test_a_replay_from_features_and_one_from_pages_say_the_same(farm: Farm) -> None:
    """The same verdicts, digests of texts and rows; the audit of each run is clean, and that of live stays so."""
    with farm.log() as log:
        sources = {name: made.source for name, made in Control(log).runs.items() if name != "live"}
        reports = {name: audit(log, name) for name in ("", "whole", "again", "visitors", "fluent")}
    assert sources == {"whole": "features", "again": "pages", "visitors": "features", "fluent": "features"}
    assert verdicts(farm, "whole") == verdicts(farm, "again")
    assert rows(farm, "whole") == rows(farm, "again")
    for name, report in reports.items():
        assert report.ok and report.settled == bool(name), (name, report.broken)  # live reads no more scores here
        assert report.steps["articles -> scores"].records == PAGES * {"": 1, "visitors": 1, "fluent": 1}.get(name, 3)


def test_articles_stay_and_dropped_pages_count_by_their_segments(farm: Farm) -> None:
    """Compared with live, every article stays as it was; no page is thrown out, and all let in are kept by segments."""
    live, whole = ({name: rest for name, *rest in verdicts(farm, of)} for of in ("live", "whole"))
    assert {name: said for name, said in live.items() if said[0] == "article"}.items() <= whole.items()
    with farm.log() as log:
        compared = compare(log, "live", "whole", ComparisonRequest(sample=5, seed=1), farm.config.rate, 0)
    pages = compared.pages
    assert (pages.both_articles, pages.a_only_article, pages.b_only_article) == (PAGES, 0, 2 * PAGES)
    assert (compared.a.through_segments, compared.b.through_segments, compared.b.articles) == (0, 2 * PAGES, 3 * PAGES)
    assert {(flip.verdict_a, flip.verdict_b) for flip in compared.sample} == {("dropped", "segments")}
    assert all(flip.text_digest == whole[flip.fetch_id][1] for flip in compared.sample)  # people read what was scored


def test_a_replay_scores_texts_without_their_unlikely_sentences(farm: Farm, capsys: pytest.CaptureFixture[str]) -> None:
    """The articles are those of live; the text of each lacks the sentences above the limit, and `rate` says so."""
    with farm.log() as log:
        measured = [record for n in range(PARTITIONS) for _, record in records_of(Features, log.read(FEATURES, n))]
    texts = {record.id: fluent_text(record.text, shipped_model(), LIMIT) for record in measured}
    articles = [[said for said in verdicts(farm, name) if said[1] == "article"] for name in ("live", "fluent")]
    assert [said[0] for said in articles[0]] == [said[0] for said in articles[1]]
    digests = {digest for *_, digest in articles[1]}
    assert digests == {xxhash.xxh3_128_hexdigest(texts[name].encode()) for name, *_ in articles[1]}
    assert not digests & {digest for *_, digest in articles[0]}
    flags = [word for setting in farm.flags for word in ("--set", setting)]
    for name in ("live", "fluent"):
        assert run(["rate", "--run", name, *flags]) == 0
        assert ("measure your detector on human pages" in capsys.readouterr().err) == (name == "fluent")


def test_the_rate_names_the_sites_that_count_through_segments_alone(farm: Farm) -> None:
    """Live judges one of three sites; the replay judges all, two of them through segments. Each has an interval."""
    with farm.log() as log:
        live, whole = (current_rate(log, farm.config, 0, by="", run=name).lines[0] for name in ("", "whole"))
    assert (live.scored_sites, live.not_judged, live.through_segments) == (1, {"no article": 2}, 0)
    assert (whole.scored_sites, whole.not_judged, whole.through_segments) == (3, {}, 2)
    assert (whole.human, whole.llm) == (2, 1)
    for line in (live, whole):
        assert line.low is not None and line.high is not None


def test_the_text_of_visitors_never_counts_as_the_sites(farm: Farm) -> None:
    """A forum of people with comments by a model is human; a run of the comments alone says llm of them."""
    with farm.log() as log:
        topics = [log.read(topic, n) for topic in (SCORE_REQUESTS, REPLAY_REQUESTS) for n in range(PARTITIONS)]
        requests = [request for messages in topics for _, request in records_of(ScoreRequest, messages)]
    first_comment = next(iter(llm_articles().values()))[0].text.split("\n\n")[0]
    assert {request.run for request in requests if first_comment in request.text} == {"visitors"}
    forum = (rows(farm, name)[FORUM] for name in ("live", "whole", "visitors"))
    said = [(row.verdict, row.articles, row.through_segments) for row in forum]
    assert said == [("unclassifiable", 0, 0), ("human", PAGES, PAGES), ("llm", PAGES, PAGES)]
