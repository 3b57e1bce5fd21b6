"""Is this installation fit to run? One finding a question, each with how to mend it."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import TYPE_CHECKING, cast

from farmwatch.config.brokers import require_broker
from farmwatch.config.config import Config
from farmwatch.config.errors import BadCanaries
from farmwatch.doctor import crawl_checks as doctor_crawl
from farmwatch.doctor import run_checks as doctor_runs
from farmwatch.doctor import value_checks as doctor_values
from farmwatch.doctor.check_result import CheckResult, CheckState
from filters.errors import BadRuleset, MissingExtractor
from scoring.errors import (
    BadSiteNumbers,
    BadWeights,
    DifferentTokenizers,
    MissingExtra,
    MissingModel,
    NoDevice,
    NoSiteTest,
    Uncalibrated,
    UnknownDetector,
    UnsupportedModel,
)
from stream.log.errors import StreamError
from stream.text.user_errors import FarmwatchError
from stream.text.wording import counted, one_line

if TYPE_CHECKING:
    from stream.kafka.log import KafkaLog

PACKAGES = ("stream", "crawler", "filters", "scoring", "farmwatch")
_GIB = 1024**3
_DISK_FAIL_BYTES, _DISK_WARN_BYTES = 1 * _GIB, 10 * _GIB
_PLAIN_PAGE = "<html><body><article><p>" + "One sentence of text. " * 20 + "</p></article></body></html>"
_DETECTOR_REMEDY = "do what it says, or take another detector in score.detectors (`farmwatch detectors`)"
_REMEDIES: dict[type[Exception], str] = {  # what to do where the message says what is wrong
    BadRuleset: "mend it (`farmwatch rulesets check FILE`), or set judge.ruleset to one of `farmwatch rulesets list`",
    MissingExtractor: "install it, or set measure.extractor to another one",
    UnknownDetector: "set score.detectors to some of these",
    BadWeights: "set score.weights to a file of `farmwatch train-detector`, or leave it out for the built-in ones",
    **dict.fromkeys((DifferentTokenizers, MissingExtra, MissingModel, NoDevice, UnsupportedModel), _DETECTOR_REMEDY),
}
_CLOCK_SLACK_MS = 60_000  # records of another machine may be this far ahead before it is told


def examine(config: Config) -> Iterator[CheckResult]:
    """Run every check in order. A check that breaks is a FAIL of its own, never the end of the examination."""
    checks: tuple[tuple[str, Callable[[Config], CheckResult | list[CheckResult]]], ...] = (
        ("python", _python),
        ("imports", _imports),
        ("trafilatura", _trafilatura),
        ("extractor", _extractor),
        ("log", _log),
        ("broker", _broker),
        ("segments", doctor_values.segments),
        ("dead letters", doctor_values.dead_letters),
        ("clock", _clock),
        ("disk", _disk),
        ("detector", _detectors),
        ("sites", _sites),
        ("canaries", _canaries),
        ("ruleset", _ruleset),
        ("live run", doctor_runs.live_run),
        ("groups", doctor_runs.groups),
        ("runs", doctor_runs.runs),
        ("gpu", _gpu),
        ("pair", _pair),
        ("contact", doctor_crawl.contact),
        ("crawl", doctor_crawl.crawl),
        ("ports", doctor_crawl.ports),
        ("search", doctor_crawl.search),
    )
    for name, check in checks:
        try:
            found = check(config)
        except Exception as error:  # noqa: BLE001 - whatever breaks is what the doctor is there to tell
            remedy = _REMEDIES.get(type(error))
            first, _, rest = str(error).partition("\n") if isinstance(error, BadRuleset) else (str(error), "", "")
            more = " (and more mistakes: `farmwatch rulesets check` tells them)" if rest else ""
            said = one_line(" ".join(first.split())) + more
            whole = said if remedy else f"{type(error).__name__}: {said}"
            yield CheckResult(name, CheckState.FAIL, whole, remedy or "see the message")
            continue
        yield from found if isinstance(found, list) else [found]


def _python(_config: Config) -> CheckResult:
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < (3, 11):  # noqa: UP036 - a copied tree may run under any Python
        return CheckResult("python", CheckState.FAIL, version, "use Python 3.11 or newer")
    return CheckResult("python", CheckState.OK, version)


def _imports(_config: Config) -> CheckResult:
    """`stream` and `filters` are ordinary words: another distribution may have put packages of these names in front."""
    home = _folder("farmwatch")
    strangers = [name for name in PACKAGES if _folder(name) != home]
    owners = packages_distributions()
    shared = [name for name in PACKAGES if set(owners.get(name, ["farmwatch"])) != {"farmwatch"}]
    if strangers or shared:
        found = ", ".join(
            [*(f"{name} comes from {_folder(name)}" for name in strangers)]
            + [f"{name} is also in {', '.join(sorted(set(owners[name]) - {'farmwatch'}))}" for name in shared]
        )
        return CheckResult("imports", CheckState.FAIL, found, "install farmwatch in a virtual environment of its own")
    return CheckResult("imports", CheckState.OK, f"all packages from {home}")


def _folder(package: str) -> Path | None:
    spec = importlib.util.find_spec(package)
    return Path(spec.origin).resolve().parent.parent if spec is not None and spec.origin else None


def _trafilatura(_config: Config) -> CheckResult:
    try:
        import trafilatura
    except ImportError as error:
        return CheckResult(
            "trafilatura", CheckState.FAIL, str(error), "pip install 'trafilatura>=2.3.1' lxml_html_clean"
        )
    if not trafilatura.extract(_PLAIN_PAGE):
        return CheckResult(
            "trafilatura", CheckState.FAIL, "extracts nothing from a plain page", "reinstall trafilatura and lxml"
        )
    return CheckResult("trafilatura", CheckState.OK, str(trafilatura.__version__))


def _extractor(config: Config) -> CheckResult:
    from filters.extraction.extractor import extract

    name = config.measure.extractor
    found = extract(_PLAIN_PAGE, "", config.measure)
    if found.error:
        said = f"{name} extracts nothing from a plain page: {found.error}"
        return CheckResult(
            "extractor", CheckState.FAIL, said, f"reinstall {name}, or set measure.extractor to another one"
        )
    return CheckResult("extractor", CheckState.OK, name)


def _log(config: Config) -> CheckResult:
    from farmwatch.config.opening import log_exists, open_configured

    if not log_exists(config):
        return CheckResult("log", CheckState.OK, f"{config.log.url}: not made yet; `farmwatch up` makes it")
    try:
        require_broker(config)
        with closing(open_configured(config, read_only=True)) as log:
            topics = log.topics()
    except Exception as error:  # noqa: BLE001 - each log has errors of its own, all of which mean the same here
        return CheckResult("log", CheckState.FAIL, f"{config.log.url}: {error}", _log_remedy(config))
    if not topics:
        return CheckResult("log", CheckState.OK, f"{config.log.url}: no topics yet; `farmwatch up` makes them")
    from filters.measure.epoch import feature_epoch
    from stream.schema.topics import all_topics

    due = {topic.name: topic.partitions for topic in all_topics(config.log.partitions, feature_epoch(config.measure))}
    odd = [f"{name} has {n}" for name, n in sorted(topics.items()) if n != due.get(name, config.log.partitions)]
    if odd:
        return CheckResult(
            "log",
            CheckState.FAIL,
            f"log.partitions is {config.log.partitions}, but {', '.join(odd[:3])}",
            "restore log.partitions, or set another log.prefix",
        )
    return CheckResult(
        "log", CheckState.OK, f"{config.log.url}: {len(topics)} topics of {config.log.partitions} partitions"
    )


def _log_remedy(config: Config) -> str:
    if config.log.url.startswith("kafka:"):
        return "start the broker, or set log.url to sqlite:FOLDER"
    if config.log.url.startswith("sqlite:"):
        return "make the folder readable and writable, or set log.url to another one"
    return "set log.url to sqlite:FOLDER or kafka:HOST:PORT"


def _broker(config: Config) -> list[CheckResult]:
    """Version and limits of a Kafka broker, and the settings of its topics; nothing for a log without a broker."""
    if not config.log.url.startswith("kafka:"):
        return []
    from farmwatch.config.opening import open_configured
    from filters.measure.epoch import feature_epoch
    from stream.schema.topics import all_topics

    try:
        require_broker(config)
    except FarmwatchError:
        return []  # the line before has said so
    with closing(open_configured(config, read_only=True)) as log:
        try:
            made = bool(log.topics())
        except StreamError:
            return []  # the line before has said so
        # before the first `up` all topics are missing, and that is as it should be
        topics = all_topics(config.log.partitions, feature_epoch(config.measure)) if made else []
        findings = cast("KafkaLog", log).check(topics)
    # what was found says how to mend it
    return [
        CheckResult("broker", CheckState.OK if right else CheckState.FAIL, f"{what}: {found}")
        for what, right, found in findings
    ]


def _clock(config: Config) -> CheckResult:
    from farmwatch.config.opening import log_exists, open_configured
    from stream.schema.topics import HITS

    now_ms = time.time_ns() // 1_000_000
    with suppress(StreamError, FarmwatchError):  # the line of the log has said so
        if log_exists(config):
            require_broker(config)
            with closing(open_configured(config, read_only=True)) as log:
                if HITS in log.topics() and log.offset_at(HITS, now_ms + _CLOCK_SLACK_MS) != log.end(HITS):
                    return CheckResult(
                        "clock", CheckState.FAIL, "the log holds hits from the future", "set this machine's clock"
                    )
    synchronised = _output("timedatectl", "show", "-p", "NTPSynchronized", "--value")
    if synchronised == "no":
        return CheckResult("clock", CheckState.WARN, "not synchronised", "turn on NTP: timedatectl set-ntp true")
    return CheckResult("clock", CheckState.OK, time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(now_ms / 1000)))


def _disk(config: Config) -> CheckResult:
    scheme, _, place = config.log.url.partition(":")
    folder = Path(place if scheme == "sqlite" else config.log.state_folder)
    existing = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    if not os.access(existing, os.W_OK):
        return CheckResult(
            "disk", CheckState.FAIL, f"{existing} cannot be written", "change its owner, or set another folder"
        )
    free = shutil.disk_usage(existing).free
    found = f"{free / _GIB:.1f} GiB free at {existing}"
    if free < _DISK_FAIL_BYTES:
        return CheckResult("disk", CheckState.FAIL, found, "free disk, or lower the retention of `pages`")
    if free < _DISK_WARN_BYTES:
        return CheckResult("disk", CheckState.WARN, found, "months of pages want more; watch it")
    return CheckResult("disk", CheckState.OK, found)


def _detectors(config: Config) -> list[CheckResult]:
    """A line per configured detector: that it is there, and that its thresholds are there and its own."""
    from farmwatch.config.configured import known_detectors

    findings = []
    for known in known_detectors(config):
        if not known.configured:
            continue
        said = known.identity
        if known.problem:
            findings.append(
                CheckResult("detector", CheckState.FAIL, f"{known.name}: {known.problem}", _DETECTOR_REMEDY)
            )
        elif not known.calibrated:
            calibrate = f"`farmwatch calibrate --detector {known.name} --labels FILE`, then set score.thresholds"
            findings.append(
                CheckResult("detector", CheckState.FAIL, f"{said}: no thresholds, so `up` refuses it", calibrate)
            )
        else:
            findings.append(CheckResult("detector", CheckState.OK, said))
    return findings


def _sites(config: Config) -> CheckResult:
    """Whose scores judge sites, and by which method: that there are numbers for it, as TALLY will want them."""
    from farmwatch.daemon.preflight import NEVER_SAID_REMEDY, check_detectors, never_said
    from replay.runs.configured import tally_identity
    from stream.schema.roles import Role

    try:
        check_detectors(config, [Role.TALLY])
    except (NoSiteTest, BadSiteNumbers, Uncalibrated) as error:
        return CheckResult(
            "sites", CheckState.FAIL, f"`up` refuses to judge sites: {one_line(error)}", "do what it says"
        )
    if said := never_said(config):
        return CheckResult("sites", CheckState.WARN, said, NEVER_SAID_REMEDY)
    return CheckResult(
        "sites", CheckState.OK, f"judged by {config.tally.method} from scores of {tally_identity(config)}"
    )


def _canaries(config: Config) -> CheckResult:
    from farmwatch.daemon.canaries import read_canaries

    if not config.canary.file:
        return CheckResult("canaries", CheckState.OK, "none are sent: canary.file is not set")
    try:
        sites = read_canaries(config.canary)
    except BadCanaries as error:
        return CheckResult(
            "canaries",
            CheckState.FAIL,
            one_line(error),
            "mend the file (docs/how-to/canaries.md) or unset canary.file",
        )
    of = [counted(sum(site.truth == truth for site in sites), f"{truth} site") for truth in ("human", "llm")]
    return CheckResult("canaries", CheckState.OK, f"{config.canary.file}: {' and '.join(of)} a round")


def _ruleset(config: Config) -> CheckResult:
    from replay.runs.configured import load_configured_ruleset

    ruleset = load_configured_ruleset(config)
    return CheckResult("ruleset", CheckState.OK, f"{ruleset.name} {ruleset.digest}")


def _gpu(config: Config) -> CheckResult:
    names = _output("nvidia-smi", "--query-gpu=name", "--format=csv,noheader")
    if names:
        return CheckResult("gpu", CheckState.OK, ", ".join(names.splitlines()))
    if not config.score.uses_pair or config.score.pair.device == "cpu":
        return CheckResult("gpu", CheckState.OK, "none, and none is needed by the configured detectors")
    return CheckResult(
        "gpu",
        CheckState.WARN,
        "nvidia-smi sees none",
        "mend the driver, or set score.pair.device to cpu with small models",
    )


def _pair(config: Config) -> list[CheckResult]:
    """Libraries, tokenizers, device and memory for a configured pair; the weights are not loaded."""
    if not config.score.uses_pair:
        return []
    from scoring.pair.check import refuse_unfit_pair

    found = refuse_unfit_pair(config.score.pair)
    said = f"{found.libraries}; one tokenizer; on {found.device}; weights {found.weight_bytes / _GIB:.1f} GiB"
    if found.device == "cpu":
        return [CheckResult("pair", CheckState.OK, said)]
    said = f"{said}, {found.free_bytes / _GIB:.1f} GiB free"
    if found.free_bytes < found.weight_bytes:
        return [
            CheckResult(
                "pair", CheckState.WARN, said, "end what else runs on the card (SCORE itself may), or take another"
            )
        ]
    return [CheckResult("pair", CheckState.OK, said)]


def _output(*command: str) -> str:
    """What a program prints, or nothing where it is not installed or fails."""
    program = shutil.which(command[0])
    if program is None:
        return ""
    try:
        done = subprocess.run([program, *command[1:]], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
