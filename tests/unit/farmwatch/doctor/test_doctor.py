"""The doctor finds what is wrong and says how to mend it."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from farmwatch.config.config import Config, load
from farmwatch.doctor import checks as doctor
from farmwatch.doctor.check_result import CheckResult, CheckState
from farmwatch.doctor.checks import examine
from filters.extraction.extractor import EXTRACTORS
from filters.measure.epoch import feature_epoch
from filters.settings import JudgeSettings
from scoring.errors import NoDevice
from scoring.pair.check import PairCheck
from scoring.pair.settings import PairSettings
from scoring.sites.sprt import SprtParams
from stream.log.contract import Output, Topic
from stream.log.errors import LogUnavailable
from stream.opening import open_log
from stream.schema.topics import HITS, RATES, all_topics
from stream.text.user_errors import Exit
from tests.support.front_door import Runner


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """A configuration that is fit to run, on a log that was not made yet."""
    flags = [f"log.url=sqlite:{tmp_path / 'log'}", "crawl.contact=https://operator.example/", "log.partitions=2"]
    return load(None, flags, {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}).config


def _found(config: Config, check: str) -> CheckResult:
    return next(finding for finding in examine(config) if finding.check == check)


def test_a_fit_installation_has_no_fail(config: Config) -> None:
    """Python, imports, Trafilatura, log, clock, disk, ruleset and contact of this checkout are fit."""
    states = {finding.check: finding.state for finding in examine(config)}
    for check in ("python", "imports", "trafilatura", "log", "ruleset", "contact"):
        assert states[check] is CheckState.OK, check


def test_looking_makes_no_log(config: Config, tmp_path: Path) -> None:
    """The doctor leaves nothing behind."""
    list(examine(config))
    assert not (tmp_path / "log").exists()


def test_a_crawl_that_up_would_refuse_is_a_fail(config: Config, tmp_path: Path) -> None:
    """A bad nameserver and an archive where no file can be made, each with the setting; where all is well, one OK."""
    (tmp_path / "file").touch()
    for fields in ({"nameservers": ["foo"]}, {"warc_folder": str(tmp_path / "file" / "warc")}):
        (setting,) = fields
        crawl = msgspec.structs.replace(config.crawl, **fields)
        finding = _found(msgspec.structs.replace(config, crawl=crawl), "crawl")
        assert finding.state is CheckState.FAIL and f"crawl.{setting}" in finding.found
    assert _found(config, "crawl").state is CheckState.OK


def test_a_taken_port_is_told_with_its_remedy(config: Config) -> None:
    """It may be farmwatch itself that runs there, so this is no FAIL; port 0 is never taken."""
    with socket.create_server(("127.0.0.1", 0)) as holder:
        metrics = msgspec.structs.replace(config.metrics, host="127.0.0.1", port=holder.getsockname()[1])
        finding = _found(msgspec.structs.replace(config, metrics=metrics), "ports")
    assert finding.state is CheckState.WARN and "crawl" in finding.found and "metrics.port" in finding.mend
    metrics = msgspec.structs.replace(config.metrics, port=0)
    assert _found(msgspec.structs.replace(config, metrics=metrics), "ports").state is CheckState.OK


def test_no_contact_is_a_fail_with_the_setting_to_mend(config: Config) -> None:
    """The crawler would not start; the line says which setting is missing."""
    without = msgspec.structs.replace(config, crawl=msgspec.structs.replace(config.crawl, contact=""))
    finding = _found(without, "contact")
    assert (finding.state, finding.mend != "") == (CheckState.FAIL, True)


def test_a_stranger_among_the_packages_is_a_fail(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    """When `stream` comes from elsewhere, the line names the place."""
    folder = doctor._folder

    def elsewhere(package: str) -> Path | None:
        return Path("/somewhere/else") if package == "stream" else folder(package)

    monkeypatch.setattr(doctor, "_folder", elsewhere)
    finding = _found(config, "imports")
    assert finding.state is CheckState.FAIL
    assert "/somewhere/else" in finding.found


def test_another_number_of_partitions_is_a_fail(config: Config) -> None:
    """The topics were made with 3 partitions, the setting says 2."""
    log = open_log(config.log.url)
    log.create([Topic(HITS, 3)])
    log.close()
    assert _found(config, "log").state is CheckState.FAIL


def test_the_log_that_up_makes_is_ok(config: Config) -> None:
    """Topics of one partition by design, control and rates, are no fault; one of another number than theirs is."""
    log = open_log(config.log.url)
    log.create(all_topics(config.log.partitions, feature_epoch(config.measure)))
    log.close()
    assert _found(config, "log").state is CheckState.OK


def test_topics_of_one_partition_must_have_one(config: Config) -> None:
    """The number that counts is the topic's own."""
    log = open_log(config.log.url)
    log.create([Topic(RATES, 2)])
    log.close()
    assert _found(config, "log").found == "log.partitions is 2, but rates has 2"


def test_a_site_test_that_can_never_say_llm_is_a_warning(config: Config) -> None:
    """With the numbers, and what to do: the test takes more pages than are read of a site."""
    tally = msgspec.structs.replace(config.tally, sprt=SprtParams(p0=0.8, p1=0.98))
    found = _found(msgspec.structs.replace(config, tally=tally), "sites")
    assert found.state is CheckState.WARN and "34 pages at least to say llm" in found.found
    assert "tally.enough_articles" in found.mend


def test_whose_scores_judge_sites_is_a_line(config: Config) -> None:
    """With the method, and a FAIL where there are no numbers for it, since `up` would refuse."""
    found = _found(config, "sites")
    assert found.state is CheckState.OK
    assert found.found.startswith("judged by sprt from scores of lite-ngram/")
    tally = msgspec.structs.replace(config.tally, detector="gone/1/x", method="gaussian")
    found = _found(msgspec.structs.replace(config, tally=tally), "sites")
    assert found.state is CheckState.FAIL
    assert "gone/1/x" in found.found


def test_the_canary_file_is_looked_at(config: Config, tmp_path: Path) -> None:
    """None is fine, a good one is counted, a broken one is a FAIL with its line."""

    def found(content: str | None) -> CheckResult:
        file = tmp_path / "canaries.jsonl"
        if content is not None:
            file.write_text(content)
        canary = msgspec.structs.replace(config.canary, file="" if content is None else str(file))
        return _found(msgspec.structs.replace(config, canary=canary), "canaries")

    page = {"truth": "llm", "site": "shop", "text": "A page."}
    assert (found(None).state, "not set" in found(None).found) == (CheckState.OK, True)
    assert found(json.dumps(page)).found.endswith("0 human sites and 1 llm site a round")
    broken = found(json.dumps({**page, "truth": "bot"}))
    assert (broken.state, "line 1" in broken.found) == (CheckState.FAIL, True)


def test_a_log_that_cannot_be_opened_is_a_fail(config: Config) -> None:
    """A URL of no known form is told, and the other checks still run."""
    broken = msgspec.structs.replace(config, log=msgspec.structs.replace(config.log, url="x:y"))
    findings = {finding.check: finding.state for finding in examine(broken)}
    assert findings["log"] is CheckState.FAIL
    assert findings["contact"] is CheckState.OK


class _Broker:
    """A Kafka log as the doctor asks it, with these topics and findings."""

    def __init__(self, topics: dict[str, int], findings: list[tuple[str, bool, str]]) -> None:
        self._topics = topics
        self._findings = findings
        self.asked: list[str] = []
        self.closed = False

    def topics(self) -> dict[str, int]:
        return self._topics

    def offset_at(self, topic: str, time_ms: int) -> list[int]:
        return self.end(topic)

    def end(self, topic: str) -> list[int]:
        return [0] * self._topics[topic]

    def check(self, topics: Sequence[Topic]) -> list[tuple[str, bool, str]]:
        self.asked = [f"{topic.name}/{topic.partitions}" for topic in topics]
        return self._findings

    def close(self) -> None:
        self.closed = True


def _on_broker(config: Config, broker: _Broker, monkeypatch: pytest.MonkeyPatch) -> list[CheckResult]:
    monkeypatch.setattr("farmwatch.config.opening.open_configured", lambda config, read_only: broker)
    monkeypatch.setattr("farmwatch.doctor.checks.require_broker", lambda config: None)
    log = msgspec.structs.replace(config.log, url="kafka:broker.example:9092")
    found = [finding for finding in examine(msgspec.structs.replace(config, log=log)) if finding.check == "broker"]
    assert broker.closed
    return found


def test_what_is_wrong_with_a_broker_is_told(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each finding about the broker and the topics that are there is a line: OK or FAIL, with how to mend it."""
    wrong = "transaction timeout", False, "60000 ms, the broker allows 1000 ms: see transaction_timeout_s"
    topics = [*all_topics(2, feature_epoch(config.measure))]
    broker = _Broker({topic.name: topic.partitions for topic in topics}, [("kafka version", True, "3.9"), wrong])
    version, transaction = _on_broker(config, broker, monkeypatch)
    assert (version.state, version.found) == (CheckState.OK, "kafka version: 3.9")
    assert transaction.state is CheckState.FAIL
    assert transaction.found == "transaction timeout: 60000 ms, the broker allows 1000 ms: see transaction_timeout_s"
    assert broker.asked == [f"{topic.name}/{topic.partitions}" for topic in topics]


def test_topics_that_up_would_make_are_no_fail(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the first `up` only the broker is asked about, not the topics that are all still to be made."""
    broker = _Broker({}, [("kafka version", True, "3.9")])
    assert [finding.state for finding in _on_broker(config, broker, monkeypatch)] == [CheckState.OK]
    assert broker.asked == []


def test_an_embedded_log_has_no_broker(config: Config) -> None:
    """No line is shown for what is not there."""
    assert not any(finding.check == "broker" for finding in examine(config))


def test_a_broker_that_is_away_says_how_to_mend_it(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    """The broker is reached only when it is asked: that failure too comes with its remedy."""

    class _Away(_Broker):
        def topics(self) -> dict[str, int]:
            raise LogUnavailable("no broker answers")

    broker = _Away({}, [])
    monkeypatch.setattr("farmwatch.config.opening.open_configured", lambda config, read_only: broker)
    monkeypatch.setattr("farmwatch.doctor.checks.require_broker", lambda config: None)
    log = msgspec.structs.replace(config.log, url="kafka:broker.example:9092")
    findings = {finding.check: finding for finding in examine(msgspec.structs.replace(config, log=log))}
    assert (findings["log"].state, "start the broker" in findings["log"].mend) == (CheckState.FAIL, True)
    assert "clock" in findings


def test_one_fault_of_the_log_is_one_line_with_its_own_remedy(config: Config, tmp_path: Path) -> None:
    """Nobody listens: start the broker. A folder that is a file: another folder. The clock does not say it again."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # bound and not listening: connections are refused
        port = unused.getsockname()[1]
        away = msgspec.structs.replace(config.log, url=f"kafka:127.0.0.1:{port}")
        findings = {finding.check: finding for finding in examine(msgspec.structs.replace(config, log=away))}
    assert (findings["log"].state, "start the broker" in findings["log"].mend) == (CheckState.FAIL, True)
    assert findings["clock"].state is not CheckState.FAIL
    assert "broker" not in findings
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "log.sqlite").write_bytes(b"no database at all" * 100)
    finding = _found(config, "log")
    assert (finding.state, "broker" in finding.mend, "folder" in finding.mend) == (CheckState.FAIL, False, True)
    assert _found(config, "clock").state is not CheckState.FAIL


def test_hits_from_the_future_are_a_fail(config: Config) -> None:
    """Records that are an hour ahead of this machine's clock mean that one of the two clocks is wrong."""
    log = open_log(config.log.url)
    log.create(all_topics(2, "e"))
    assert _found(config, "clock").state is not CheckState.FAIL
    ahead_ms = time.time_ns() // 1_000_000 + 3_600_000
    log.append([Output(HITS, 0, b"s", b"v", timestamp_ms=ahead_ms)])
    log.close()
    assert _found(config, "clock").state is CheckState.FAIL


def test_a_full_disk_is_a_fail(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    """Less than a gibibyte free stops a run soon."""
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"free": 10_000_000})())
    assert _found(config, "disk").state is CheckState.FAIL


def test_a_check_that_breaks_is_a_fail_of_its_own(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unknown detector does not end the examination."""
    broken = msgspec.structs.replace(config, score=msgspec.structs.replace(config.score, detectors=["nothing"]))
    findings = {finding.check: finding for finding in examine(broken)}
    assert findings["detector"].state is CheckState.FAIL
    assert "nothing" in findings["detector"].found
    assert "contact" in findings


def _with_extractor(config: Config, name: str) -> Config:
    return msgspec.structs.replace(config, measure=msgspec.structs.replace(config.measure, extractor=name))


def test_the_configured_extractor_is_tried(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    """A misspelt one is answered with the names, one whose package is absent with what installs it, a fit one is OK."""
    assert _found(config, "extractor") == CheckResult("extractor", CheckState.OK, "trafilatura")
    monkeypatch.setattr("filters.extraction.extractor._installed", lambda name: name != "resiliparse")
    finding = _found(_with_extractor(config, "resiliparse"), "extractor")
    assert finding.state is CheckState.FAIL
    assert "pip install 'farmwatch[resiliparse]'" in finding.found


def test_an_extractor_that_finds_nothing_is_a_fail(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its package is there and broken: the plain page comes back without a text."""

    def broken(_html: str, _settings: object) -> None:
        raise ImportError("undefined symbol")

    monkeypatch.setitem(EXTRACTORS, "trafilatura", broken)
    finding = _found(config, "extractor")
    assert (finding.state, "reinstall trafilatura" in finding.mend) == (CheckState.FAIL, True)


def test_a_mistake_in_a_ruleset_is_told_with_what_to_do(config: Config, tmp_path: Path) -> None:
    """One line: file, the first mistake of how many, without the name of a class, and how to mend it."""
    file = tmp_path / "mine.toml"
    file.write_text('[rules.extracted]\nthreshold = "ok"\n[rules.min_tokenz]\nthreshold = 1\n', encoding="utf-8")
    finding = _found(msgspec.structs.replace(config, judge=JudgeSettings(ruleset=str(file))), "ruleset")
    assert finding.state is CheckState.FAIL
    assert finding.found.startswith(f"{file}: ")
    assert "farmwatch rulesets check" in finding.mend and "judge.ruleset" in finding.mend
    assert "more mistake" not in finding.found
    file.write_text('[rules.extracted]\nthreshold = "ok"\n[rules.a]\n[rules.b]\n[rules.c]\n', encoding="utf-8")
    finding = _found(msgspec.structs.replace(config, judge=JudgeSettings(ruleset=str(file))), "ruleset")
    assert finding.found == f"{file}: unknown rule 'a' (and more mistakes: `farmwatch rulesets check` tells them)"


def test_the_exit_code_says_whether_anything_failed(farmwatch: Runner) -> None:
    """Exit 1 with a FAIL (no contact); JSON has the same findings as the lines."""
    ran = farmwatch("doctor")
    assert ran.code == Exit.PROBLEM
    assert any(line.startswith("FAIL") and "crawl.contact" in line for line in ran.out.splitlines())
    findings = json.loads(farmwatch("doctor", "--json").out)
    assert len(findings) == len(ran.out.splitlines())


def _with_score(config: Config, **score: object) -> Config:
    return msgspec.structs.replace(config, score=msgspec.structs.replace(config.score, **score))


def test_a_pair_that_cannot_run_is_told_without_loading_it(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the look at it found is one line with what to do; so is a detector without models or thresholds."""

    def absent(_settings: object) -> None:
        raise NoDevice("torch sees 0 CUDA cards")

    monkeypatch.setattr("scoring.pair.check.refuse_unfit_pair", absent)
    pair = PairSettings(observer="/nowhere/observer")
    chosen = _with_score(config, detectors=["lite-ngram", "binoculars"], pair=pair)
    assert _found(chosen, "pair") == CheckResult(
        "pair",
        CheckState.FAIL,
        "torch sees 0 CUDA cards",
        "do what it says, or take another detector in score.detectors (`farmwatch detectors`)",
    )
    own, other = [finding for finding in examine(chosen) if finding.check == "detector"]
    assert (own.state, other.state) == (CheckState.OK, CheckState.FAIL)
    assert "/nowhere/observer" in other.found


def test_without_a_pair_nothing_is_asked_of_a_card(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    """The built-in detector needs no GPU: its absence is no warning, and no line is about a pair."""
    monkeypatch.setattr("shutil.which", lambda _: None)
    assert _found(config, "gpu").state is CheckState.OK
    assert "pair" not in {finding.check for finding in examine(config)}


def test_a_card_too_full_for_the_models_is_a_warning(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    """SCORE itself may hold the memory, so it is no FAIL; enough of it is OK."""
    chosen = _with_score(config, detectors=["binoculars"])
    for free, state in ((10, CheckState.WARN), (1000, CheckState.OK)):
        found = PairCheck("torch 2", "some card", free_bytes=free * 2**30, weight_bytes=28 * 2**30)
        monkeypatch.setattr("scoring.pair.check.refuse_unfit_pair", lambda _, found=found: found)
        finding = _found(chosen, "pair")
        assert finding.state is state
        assert "weights 28.0 GiB" in finding.found
