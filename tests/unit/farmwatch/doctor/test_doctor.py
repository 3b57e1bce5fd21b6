"""The doctor finds faults and names remedies."""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

import pytest

from crawler.frontier.rows import CLOCK_KEY, ClockRow, pack
from farmwatch.config.config import Config, load
from farmwatch.config.member_names import claimed_name, names_folder
from farmwatch.doctor import log_checks, machine_checks
from farmwatch.doctor.check_result import CheckResult, CheckState
from farmwatch.doctor.checks import examine
from farmwatch.doctor.status import StatusReader
from farmwatch.terminal.remedies import REMEDIES
from filters.measure.epoch import feature_epoch
from filters.measure.extractors import EXTRACTORS, ExtractorRow
from scoring.detectors.model_check import ModelCheck
from scoring.errors import NoDevice
from stream.log.contract import Output, StateChange, Topic
from stream.opening import open_log
from stream.schema.records import Page, encode
from stream.schema.roles import Role
from stream.schema.topics import FRONTIER_STORE, HITS, PAGES, RATES, all_topics
from stream.text.user_errors import Exit
from tests.support.front_door import Runner
from tests.support.logs.embedded_worker import damage_pages

EXTRACTED = '[rules.extracted]\nthreshold = "ok"\n'
OK, WARN, FAIL = CheckState.OK, CheckState.WARN, CheckState.FAIL
Configure = Callable[..., Config]


@pytest.fixture
def configure(tmp_path: Path) -> Configure:
    """A valid configuration on a log that does not exist yet, with further flags."""

    def configured(*flags: str) -> Config:
        fit = [f"log.url=sqlite:{tmp_path / 'log'}", "crawl.contact=https://operator.example/", "log.partitions=2"]
        return load(None, [*fit, "metrics.port=0", *flags], {"HOME": str(tmp_path)}).config

    return configured


def _found(config: Config, check: str) -> CheckResult:
    return next(result for result in examine(config) if result.check == check)


def _make(config: Config, topics: Sequence[Topic]) -> None:
    with closing(open_log(config.log.url)) as log:
        log.create(topics)


def test_a_fit_installation_has_no_fail(configure: Configure, tmp_path: Path) -> None:
    """All checks pass for this checkout; unused parts have no line, and no log is created."""
    results = list(examine(configure()))
    assert [result for result in results if result.state is FAIL] == []
    names = {result.check for result in results}
    assert {"imports", "extractor", "log", "clock", "disk", "ruleset", "crawl"} <= names
    assert not {"broker", "pair", "segments"} & names
    assert not (tmp_path / "log").exists()


def test_damaged_pages_of_the_database_are_found(configure: Configure, tmp_path: Path, farmwatch: Runner) -> None:
    """`doctor` and `audit` read all pages of log.sqlite, not only those that their queries need."""
    config = configure()
    _make(config, all_topics(2, feature_epoch(config.measure)))
    with closing(open_log(config.log.url)) as log:
        log.create([Topic("not-audited", 1)])
        log.append([Output("not-audited", 0, b"k", b"small" * 200) for _ in range(4000)])
    assert _found(config, "database").state is OK
    assert farmwatch("doctor", "audit", "--log", config.log.url).code == Exit.OK
    damage_pages(tmp_path / "log", 150)
    found = _found(config, "database")
    assert (found.state, "log.sqlite is damaged" in found.found) == (FAIL, True)
    ran = farmwatch("doctor", "audit", "--log", config.log.url)
    assert (ran.code, "log.sqlite is damaged" in ran.err) == (Exit.UNAVAILABLE, True)


NO_SCORES = "tally.detector=gone/1/x"


@pytest.mark.parametrize(
    ("flags", "check", "state", "said", "mend"),
    [
        (["crawl.contact=  "], "crawl", FAIL, "write an http(s) URL or a mail address", ""),
        (["crawl.nameservers=['foo']"], "crawl", FAIL, "crawl.nameservers", ""),
        (["crawl.warc_folder=/dev/null/warc"], "crawl", FAIL, "crawl.warc_folder", ""),
        (["metrics.host=203.0.113.9"], "ports", FAIL, "metrics.host: cannot serve on 203.0.113.9:0", ""),
        (["canary.file={folder}/bad.jsonl"], "canaries", FAIL, "line 1", ""),
        (["canary.file={folder}/good.jsonl"], "canaries", OK, "0 human sites and 1 llm site a round", ""),
        ([], "canaries", OK, "not set", ""),
        (["score.detectors=nothing"], "detector", FAIL, "nothing", ""),
        ([], "sites", OK, "judged by sprt from scores of lite-ngram/", ""),
        (["tally.sprt={p0=0.8, p1=0.98}"], "sites", WARN, "34 pages at least to say llm", "tally.enough_articles"),
        ([NO_SCORES], "sites", WARN, "its own was not measured", "[tally.sprt]"),
        ([NO_SCORES, "tally.sprt={p0=0.1, p1=0.6}"], "sites", OK, "", ""),
        ([NO_SCORES, "tally.method=deciles"], "sites", FAIL, "gone/1/x", ""),
    ],
)
def test_a_setting_is_told_by_its_check(
    configure: Configure, tmp_path: Path, flags: list[str], check: str, state: CheckState, said: str, mend: str
) -> None:
    """What `up` would refuse is a FAIL; a site test that can never decide, or was not measured, is a warning."""
    for name, truth in (("bad", "bot"), ("good", "llm")):
        (tmp_path / f"{name}.jsonl").write_text(f'{{"truth": "{truth}", "site": "shop", "text": "A page."}}')
    flags = [flag.replace("{folder}", str(tmp_path)) for flag in flags]
    found = _found(configure(*flags), check)
    assert (found.state, said in found.found, mend in found.mend) == (state, True, True)


def test_a_disk_that_is_full_or_read_only_is_told(configure: Configure, monkeypatch: pytest.MonkeyPatch) -> None:
    """Less than a gibibyte free is a FAIL. On a read-only disk a log can be read: a warning that `up` cannot run."""
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"free": 10_000_000})())
    assert _found(configure(), "disk").state is FAIL
    monkeypatch.setattr("os.access", lambda path, mode: False)
    found = _found(configure(), "disk")
    assert (found.state, "this user can read the log" in found.found) == (WARN, True)


def _port_before_free_ones() -> socket.socket:
    """A listener whose next ports, which the other roles would take, nobody has: tests beside this one listen, too."""
    while True:
        holder = socket.create_server(("127.0.0.1", 0))
        first = holder.getsockname()[1]
        with ExitStack() as free, suppress(OSError, OverflowError):
            for port in range(first + 1, first + 1 + len(Role)):
                free.enter_context(socket.create_server(("127.0.0.1", port)))
            return holder
        holder.close()


def test_ports_are_tried(configure: Configure) -> None:
    """A port in use is a warning, unless a running role of this log holds it."""
    with _port_before_free_ones() as holder:
        config = configure(f"metrics.port={holder.getsockname()[1]}")
        found = _found(config, "ports")
        assert (found.state, "(crawl)" in found.found, "metrics.port" in found.mend) == (WARN, True, True)
        names_folder(config).mkdir()
        with claimed_name(names_folder(config), [Role.CRAWL]):
            found = _found(config, "ports")
    assert (found.state, found.found) == (OK, "served by the running crawl")


def test_a_stranger_among_the_packages_is_a_fail(configure: Configure, monkeypatch: pytest.MonkeyPatch) -> None:
    """If `stream` comes from elsewhere, the line names the place."""
    folder = machine_checks.folder_of

    def elsewhere(package: str) -> Path | None:
        return Path("/somewhere/else") if package == "stream" else folder(package)

    monkeypatch.setattr(machine_checks, "folder_of", elsewhere)
    found = _found(configure(), "imports")
    assert (found.state, "/somewhere/else" in found.found) == (FAIL, True)


@pytest.mark.parametrize(
    ("topics", "said"), [([Topic(HITS, 3)], "hits has 3"), ([Topic(RATES, 2)], "rates has 2"), (None, "")]
)
def test_another_number_of_partitions_is_a_fail(configure: Configure, topics: list[Topic] | None, said: str) -> None:
    """The number of partitions is compared per topic, which is 1 for some; a log that `up` creates is OK."""
    config = configure()
    _make(config, topics or all_topics(2, feature_epoch(config.measure)))
    found = _found(config, "log")
    assert (found.state, found.found.endswith(said)) == (FAIL if said else OK, True)


class _Broker:
    """A stand-in for a Kafka log, with these topics and findings."""

    def __init__(self, topics: dict[str, int], findings: list[tuple[str, bool, str]]) -> None:
        self._topics = topics
        self._findings = findings
        self.asked: list[str] = []
        self.closed = False

    def topics(self) -> dict[str, int]:
        return self._topics

    def check(self, topics: Sequence[Topic]) -> list[tuple[str, bool, str]]:
        self.asked = [topic.name for topic in topics]
        return self._findings

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize("topics", [{}, {"other": 2}])
def test_what_is_wrong_with_a_broker_is_told(
    configure: Configure, monkeypatch: pytest.MonkeyPatch, topics: dict[str, int]
) -> None:
    """Each finding is a line, OK or FAIL, with a remedy; before the first `up`, topics are not checked."""
    wrong = "topic hits", False, "24 partitions, configured are 2"
    broker = _Broker(topics, [("kafka version", True, "3.9"), wrong])
    monkeypatch.setattr(log_checks, "open_configured", lambda config, read_only: broker)
    monkeypatch.setattr(log_checks, "require_broker", lambda config: None)
    config = configure("log.url=kafka:broker.example:9092")
    version, topic = [result for result in examine(config) if result.check == "broker"]
    assert (version.state, version.found) == (OK, "kafka version: 3.9")
    assert (topic.state, topic.found) == (FAIL, f"{wrong[0]}: {wrong[2]}")
    assert broker.asked == [topic.name for topic in all_topics(2, feature_epoch(config.measure)) if topics]
    assert broker.closed


@pytest.mark.parametrize(
    ("url", "said"),
    [
        (
            "kafka:127.0.0.1:{port}",
            "no broker answers (127.0.0.1:{port}: Connection refused); start it, or set log.url",
        ),
        ("kafka:localhost", "log.url: 'localhost' is no HOST:PORT; a Kafka log is kafka:HOST:PORT[,HOST:PORT]"),
        ("x:y", "log.url is 'x:y': give sqlite:FOLDER or kafka:HOST:PORT"),
        ("sqlite:{folder}/damaged", "is damaged (file is not a database): check the disk and restore the folder"),
        ("sqlite:{folder}/other", "there is no log in {folder}/other"),
    ],
)
def test_one_fault_of_the_log_is_one_line_with_one_remedy(
    configure: Configure, tmp_path: Path, url: str, said: str
) -> None:
    """One fault of the log is one line with the only remedy; no other check fails because of it."""
    for name, file in (("damaged", "log.sqlite"), ("other", "file")):
        (tmp_path / name).mkdir()
        (tmp_path / name / file).write_bytes(b"no database at all" * 100)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # bound and not listening: connections are refused
        facts = {"port": unused.getsockname()[1], "folder": tmp_path}
        results = {result.check: result for result in examine(configure(f"log.url={url.format(**facts)}"))}
    assert [name for name, result in results.items() if result.state is FAIL] == ["log"]
    assert said.format(**facts) in results["log"].found
    assert results["log"].mend == (REMEDIES["NoLog"] if url.endswith("other") else "")
    assert "Error" not in results["log"].found
    assert {"clock", "search"} <= results.keys()


@pytest.mark.parametrize(
    ("topic", "dated_s", "fetched_s", "state", "said"),
    [
        (HITS, [3600], [0], FAIL, "the newest hits are from the future"),
        (PAGES, [3600], [0], FAIL, "the newest pages are from the future"),
        (PAGES, [0], [3600], FAIL, "the newest pages are from the future"),
        (PAGES, [3600, 0], [3600, 0], WARN, "some pages are from the future"),
        (PAGES, [0, 30], [0, 30], None, ""),
    ],
)
def test_records_from_the_future_are_told(
    configure: Configure, topic: str, dated_s: list[int], fetched_s: list[int], state: CheckState | None, said: str
) -> None:
    """By the time of the record or of its fetch: the newest one is a FAIL, an older one a warning."""
    config, now_ms = configure(), time.time_ns() // 1_000_000
    _make(config, all_topics(2, "e"))
    with closing(open_log(config.log.url)) as log:
        for dated, fetched in zip(dated_s, fetched_s, strict=True):
            page = Page(id="p", site="s", page_id="i", url="x", fetched_at=now_ms + 1000 * fetched)
            log.append([Output(topic, 0, b"s", encode(page), timestamp_ms=now_ms + 1000 * dated)])
    found = [result for result in examine(config) if result.check == "clock" and "future" in result.found]
    assert [(result.state, said in result.found) for result in found] == ([(state, True)] if state else [])


@pytest.mark.parametrize(("ahead_s", "is_told"), [(3600, True), (0, False)])
def test_a_crawl_with_times_of_a_clock_ahead_is_told(configure: Configure, ahead_s: int, is_told: bool) -> None:
    """While the rows of the frontier were written later than now; `status` says it, too."""
    config = configure()
    _make(config, all_topics(2, "e"))
    newest = time.time_ns() // 1_000_000 + 1000 * ahead_s
    with closing(open_log(config.log.url)) as log:
        log.load_state(FRONTIER_STORE, 1, [StateChange(CLOCK_KEY, pack(ClockRow(newest)))])
        troubles = [trouble.found for trouble in StatusReader(log, config).read().wrong if trouble.check == "clock"]
    said = [result.found for result in examine(config) if result.check == "clock" and result.state is WARN]
    assert [text.startswith("the crawl has noted times up to ") for text in troubles] == [True] * is_told
    assert set(troubles) <= set(said)


def test_a_mistake_of_farmwatch_is_named(configure: Configure, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unexpected error is shown with its class, and the other checks still run."""

    def broken(_: object) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr("shutil.disk_usage", broken)
    results = {result.check: result for result in examine(configure())}
    assert (results["disk"].state, results["disk"].found) == (FAIL, "ZeroDivisionError: oh")
    assert "search" in results


def test_the_configured_extractor_is_tried(configure: Configure, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing package has its install command; a missing model, and a page without a text, fail in words."""
    monkeypatch.setitem(sys.modules, "resiliparse", None)
    found = _found(configure("measure.extractor=resiliparse"), "extractor")
    assert (found.state, "pip install '.[resiliparse]'" in found.mend) == (FAIL, True)
    found = _found(configure("measure.perplexity_model=0123456789abcdef.ngrams"), "extractor")
    assert (found.state, "the model cannot be read: No such file" in found.found) == (FAIL, True)

    def broken(*_: Any) -> Any:
        raise ImportError("undefined symbol")

    monkeypatch.setitem(EXTRACTORS, "trafilatura", ExtractorRow(lambda _: broken, ()))
    found = _found(configure(), "extractor")
    assert (found.state, "reinstall trafilatura" in found.mend) == (FAIL, True)


def test_mistakes_in_a_ruleset_are_told_with_what_to_do(configure: Configure, tmp_path: Path) -> None:
    """One line has the file and each mistake, with a remedy and without the name of a class."""
    file = tmp_path / "mine.toml"
    file.write_text('[rules.extracted]\nthreshold = "ok"\n[rules.a]\n[rules.b]\n', encoding="utf-8")
    found = _found(configure(f"judge.ruleset={file}"), "ruleset")
    assert found.state is FAIL and found.found.startswith(f"{file}: unknown rule 'a'") and "'b'" in found.found
    assert found.mend == REMEDIES["BadRuleset"]


def test_a_ruleset_fits_detectors_and_measures(configure: Configure, tmp_path: Path) -> None:
    """A rule on a measure that is not taken is a warning; a pair that would read fluent texts fails, as `up` does."""
    file = tmp_path / "mine.toml"
    file.write_text(f"{EXTRACTED}[rules.max_unlikely_share]\nthreshold = 0.1\n", encoding="utf-8")
    assert _found(configure(f"judge.ruleset={file}"), "ruleset").state is WARN
    assert _found(configure(f"judge.ruleset={file}", "measure.perplexity_model=english"), "ruleset").state is OK
    file.write_text(f'scores = "fluent"\n{EXTRACTED}', encoding="utf-8")
    assert _found(configure(f"judge.ruleset={file}"), "ruleset").state is OK
    found = _found(configure(f"judge.ruleset={file}", 'score.detectors=["lite-ngram", "binoculars"]'), "ruleset")
    assert found.state is FAIL and "binoculars divides by perplexity" in found.found


def test_the_exit_code_says_whether_anything_failed(farmwatch: Runner) -> None:
    """Exit 1 with a FAIL (no contact); JSON has the same findings as the lines."""
    ran = farmwatch("doctor")
    assert ran.code == Exit.PROBLEM
    assert any(line.startswith("FAIL") and "crawl.contact" in line for line in ran.out.splitlines())
    findings = farmwatch("doctor", "--json").json
    assert len(findings) == len(ran.out.splitlines())
    assert list(findings[0]) == ["check", "state", "found", "mend"]


def test_a_pair_that_cannot_run_is_told_without_loading_it(
    configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault of the pair, or missing models or thresholds, is one line with its remedy, without loading models."""

    def absent(_settings: object) -> None:
        raise NoDevice("torch sees 0 CUDA cards")

    monkeypatch.setattr("farmwatch.doctor.model_checks.refuse_unfit", absent)
    config = configure("score.detectors=lite-ngram,binoculars", "score.pair.observer=/nowhere/observer")
    assert _found(config, "models") == CheckResult(FAIL, "torch sees 0 CUDA cards", "", "models")
    own, other = [result for result in examine(config) if result.check == "detector"]
    assert (own.state, other.state, "/nowhere/observer" in other.found) == (OK, FAIL, True)


def test_a_proxy_is_connected_to(configure: Configure) -> None:
    """Its host and port are named and its password is not, whether it accepts connections or not."""
    assert not any(result.check == "proxy" for result in examine(configure()))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        config = configure(f"crawl.proxy=http://ann:hush@127.0.0.1:{port}")
        up = _found(config, "proxy")
    down = _found(config, "proxy")
    assert (up.state, down.state) == (OK, FAIL)
    assert all(f"127.0.0.1:{port}" in found.found and "hush" not in str(found) for found in (up, down))


def test_thresholds_of_a_detector_that_does_not_run_are_a_warning(configure: Configure) -> None:
    """SCORE reads only the threshold sets of its detectors, so a missing file of another one is no failure."""
    config = configure("score.thresholds={binoculars='/nowhere.json'}")
    own, other = [result for result in examine(config) if result.check == "detector"]
    assert (own.state, other.state) == (OK, WARN)
    assert "score.thresholds has a set for binoculars" in other.found


def test_a_card_too_full_for_the_models_is_a_warning(configure: Configure, monkeypatch: pytest.MonkeyPatch) -> None:
    """Too little GPU memory is a warning, not a FAIL, because SCORE itself may use it."""
    for free, state in ((10, WARN), (1000, OK)):
        found = ModelCheck("torch 2", "some card", free_bytes=free * 2**30, weight_bytes=28 * 2**30)
        monkeypatch.setattr("farmwatch.doctor.model_checks.refuse_unfit", lambda _, found=found: found)
        result = _found(configure("score.detectors=binoculars"), "models")
        assert (result.state, "weights 28.0 GiB" in result.found) == (state, True)
