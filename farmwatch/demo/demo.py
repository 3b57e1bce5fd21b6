"""`farmwatch demo`: the demo's web crawled over real HTTP and carried through every stage by real processes."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from crawler.crawl_stage import frontier_left
from crawler.frontier.rows import Totals
from farmwatch.audit.audit import audit
from farmwatch.audit.report import AuditReport
from farmwatch.config.config import Config, load
from farmwatch.config.detector_config import load_configured_detector
from farmwatch.config.layers import ENV_PREFIX
from farmwatch.config.opening import open_configured
from farmwatch.daemon.quiescence import settle
from farmwatch.daemon.supervisor import this_program
from farmwatch.demo.demo_web import build_demo_web
from farmwatch.demo.report import DemoResult, print_json, print_result
from farmwatch.demo.server import LoopbackWeb
from farmwatch.terminal.messages import message
from replay.runs.configured import load_configured_ruleset
from replay.runs.site_table import read_sites
from stream.schema.records import SiteState
from stream.text.user_errors import Exit, FarmwatchError, UsageError

_CONTACT = "https://farmwatch.example/demo"  # nobody is visited but the demo's own web on this machine
_DELAY_S = 0.05  # between two requests to a host; 5 s against strangers
_CONFIGURATION = """\
[log]
url = {url}
partitions = 4

[crawl]
contact = "{contact}"
delay_s = {delay_s}
delay_per_second = 0.5
domain_delay_s = 0.0  # all of its sites stand at one address
address_delay_s = 0.0
allow_private = true
resolve_to = {{ "*" = "{web}" }}

[metrics]
port = 0
"""
_SETTLE_S = 150.0
_DRAIN_S = 20.0
_SAY_EVERY_S = 2.0
_TAIL_CHARACTERS = 3000


def run_demo(keep: Path | None, *, as_json: bool) -> Exit:
    """Run the demo and print what came out; `keep` holds log and configuration afterwards.

    Returns PROBLEM when the audit is broken. Raises FarmwatchError when the processes end early, NotSettled.
    """
    started = time.monotonic()
    with _folder(keep) as folder:
        demo = build_demo_web()
        with LoopbackWeb(demo.hosts) as web:
            file = write_configuration(folder, web.address)
            config = load(file, (), {}).config
            hits = folder / "hits.jsonl"
            hits.write_text("".join(json.dumps(row) + "\n" for row in demo.hits), encoding="utf-8")
            distinct = len({row["url"] for row in demo.hits})
            found = f"{len(demo.hits)} search results ({distinct} distinct pages)"
            message(f"a web of {len(demo.hosts)} sites on {web.address}; {found} lead there")
            rows, report, pages = _carry_through(folder, file, hits, config)
        detector, ruleset = load_configured_detector(config), load_configured_ruleset(config)
        result = DemoResult(
            rows=rows,
            truth=dict(demo.truth),
            report=report,
            pages=pages,
            seconds=time.monotonic() - started,
            detector=detector.identity,
            warning=detector.warning,
            ruleset=ruleset.name,
            digest=ruleset.digest,
            rate=config.rate,
            kept=folder if keep else None,
        )
    (print_json if as_json else print_result)(result)
    return Exit.OK if report.ok else Exit.PROBLEM


def write_configuration(folder: Path, web_address: str) -> Path:
    """The demo's farmwatch.toml in `folder`: an embedded log there, and every host name resolved to the demo's web."""
    file = folder / "farmwatch.toml"
    file.write_text(
        _CONFIGURATION.format(
            url=json.dumps(f"sqlite:{folder / 'log'}"), contact=_CONTACT, delay_s=_DELAY_S, web=web_address
        ),
        encoding="utf-8",
    )
    return file


@contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="farmwatch-demo-") as temporary:
            yield Path(temporary)
        return
    try:
        if keep.exists() and any(keep.iterdir()):
            raise UsageError(f"--keep {keep}: not empty; the demo wants a folder of its own")
        keep.mkdir(parents=True, exist_ok=True)
        tempfile.NamedTemporaryFile(dir=keep).close()
    except OSError as error:
        raise UsageError(f"--keep {keep}: no folder can be used there: {error.strerror}; name another one") from error
    yield keep.resolve()


def _carry_through(folder: Path, file: Path, hits: Path, config: Config) -> tuple[list[SiteState], AuditReport, int]:
    """Run `up` until all is at rest; returns the rows of sites, the audit, and how many pages were fetched."""
    output = folder / "up.log"
    with ExitStack() as stack:
        written = stack.enter_context(output.open("wb"))
        process = subprocess.Popen(
            [*this_program(), "up", "--leash", "--config", str(file), "--hits", str(hits)],
            stdin=subprocess.PIPE,
            env={name: value for name, value in os.environ.items() if not name.startswith(ENV_PREFIX)},
            stdout=written,
            stderr=written,
        )
        stack.callback(_end, process)
        log = stack.enter_context(closing(open_configured(config)))
        on_progress = _progress(lambda: frontier_left(log, config.log.partitions))
        try:
            frontier = settle(
                log, config, _SETTLE_S, on_progress=on_progress, still_running=lambda: process.poll() is None
            )
        except FarmwatchError as error:
            tail = output.read_text(encoding="utf-8", errors="replace")[-_TAIL_CHARACTERS:]
            raise type(error)(f"{error}\n{tail}") from error
        _end(process)
        return read_sites(log), audit(log, config=config), frontier.fetched


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(_DRAIN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    if process.stdin is not None:
        process.stdin.close()


def _progress(look: Callable[[], Totals]) -> Callable[[Mapping[str, int]], None]:
    """A line of progress now and then. `look` counts what the frontier has: the same pages that the result counts."""
    started = said = time.monotonic()

    def say(waiting: Mapping[str, int]) -> None:
        nonlocal said
        if time.monotonic() - said < _SAY_EVERY_S:
            return
        said = time.monotonic()
        frontier = look()
        behind = ", ".join(group.upper() for group, count in waiting.items() if count)
        message(
            f"{said - started:4.0f} s: {frontier.fetched} pages fetched, {frontier.active} of {frontier.sites} sites"
            f" open{behind and f'; records wait for {behind}'}"
        )

    return say
