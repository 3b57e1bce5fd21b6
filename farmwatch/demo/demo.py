"""`farmwatch demo`: crawls a small web on loopback over real HTTP, and runs every stage as a real process."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from crawler.frontier.report import frontier_left
from crawler.frontier.rows import Totals
from farmwatch.audit.audit import audit
from farmwatch.audit.report import AuditReport
from farmwatch.config.config import Config, load
from farmwatch.config.detector_config import load_configured_detector
from farmwatch.config.layers import ENV_PREFIX, settings_of
from farmwatch.config.opening import open_configured
from farmwatch.daemon.quiescence import wait_until_quiescent
from farmwatch.daemon.supervisor import this_program
from farmwatch.demo.demo_web import build_demo_web
from farmwatch.demo.report import DemoResult, print_json, print_result
from farmwatch.demo.server import LoopbackWeb
from farmwatch.terminal.messages import message
from replay.rows.site_table import read_sites
from replay.runs.configured import load_configured_ruleset
from stream.schema.records import SiteState
from stream.schema.roles import STAGES
from stream.text.user_errors import Exit, FarmwatchError, UsageError

_CONFIGURATION = """\
[log]
url = {url}
partitions = 4

[crawl]
contact = "https://farmwatch.example/demo"  # only this web on loopback is crawled
delay_s = 0.05  # 5 s on the real web
delay_per_second = 0.5
domain_delay_s = 0.0  # all sites share one address
address_delay_s = 0.0
allow_private = true
resolve_to = {{ "*" = "{web}" }}

[metrics]
port = 0

[console]
port = 0
"""
_ROLES = ",".join(STAGES)  # the console is served afterwards, if at all
_TIMEOUT_S = 150.0
_DRAIN_S = 20.0
_PROGRESS_S = 2.0
_TAIL_CHARACTERS = 3000


def run_demo(keep: Path | None, *, as_json: bool, serve: Callable[[Config, Sequence[str]], None] | None = None) -> Exit:
    """Run the demo and print its result; log and configuration stay in `keep`. `serve` then shows the log.

    Returns PROBLEM if the audit fails. Raises FarmwatchError if the processes end early, NotQuiescent.
    """
    started = time.monotonic()
    if ignored := sorted(os.environ.keys() & {setting.env for setting in settings_of(Config).values()}):
        message(f"{', '.join(ignored)}: ignored, the demo has its own settings; `farmwatch up` uses yours")
    with _folder(keep) as folder:
        demo = build_demo_web()
        with LoopbackWeb(demo.hosts) as web:
            file = write_configuration(folder, web.address)
            config = load(file, (), {}).config
            hits = folder / "hits.jsonl"
            hits.write_text("".join(json.dumps(row) + "\n" for row in demo.hits), encoding="utf-8")
            distinct = len({row["url"] for row in demo.hits})
            results = f"{len(demo.hits)} search results ({distinct} distinct pages)"
            message(f"a web of {len(demo.hosts)} sites on {web.address}; {results} lead there")
            rows, report, pages = _run_up(folder, file, hits, config)
        detector, ruleset = load_configured_detector(config), load_configured_ruleset(config)
        result = DemoResult(
            rows=rows,
            truth=dict(demo.truth),
            expected=demo.expected,
            report=report,
            pages=pages,
            seconds=time.monotonic() - started,
            detector=detector.identity,
            warning=detector.warning,
            ruleset=ruleset.name,
            digest=ruleset.digest,
            rate=config.rate,
            kept=folder if keep else None,
            is_served=serve is not None,
        )
        (print_json if as_json else print_result)(result)
        if serve is not None:
            serve(config, ["--config", str(file)])
    return Exit.OK if report.ok else Exit.PROBLEM


def write_configuration(folder: Path, web_address: str) -> Path:
    """Write farmwatch.toml into `folder`: an embedded log next to it, all host names resolved to the demo's web."""
    file = folder / "farmwatch.toml"
    text = _CONFIGURATION.format(url=json.dumps(f"sqlite:{folder / 'log'}"), web=web_address)
    file.write_text(text, encoding="utf-8")
    return file


@contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="farmwatch-demo-") as temporary:
            yield Path(temporary)
        return
    try:
        if keep.exists() and any(keep.iterdir()):
            raise UsageError(f"--keep {keep}: not empty; name an empty or a new folder")
        keep.mkdir(parents=True, exist_ok=True)
        tempfile.NamedTemporaryFile(dir=keep).close()
    except OSError as error:
        raise UsageError(f"--keep {keep}: {error.strerror}; name another folder") from error
    yield keep.resolve()


def _run_up(folder: Path, file: Path, hits: Path, config: Config) -> tuple[list[SiteState], AuditReport, int]:
    """Run `up` until all work is done. Returns the rows of sites, the audit, and the number of fetched pages."""
    output = folder / "up.log"
    with ExitStack() as stack:
        written = stack.enter_context(output.open("wb"))
        process = subprocess.Popen(
            [*this_program(), "up", "--role", _ROLES, "--leash", "--config", str(file), "--hits", str(hits)],
            stdin=subprocess.PIPE,
            env={name: value for name, value in os.environ.items() if not name.startswith(ENV_PREFIX)},
            stdout=written,
            stderr=written,
        )
        stack.callback(_end, process)
        log = stack.enter_context(closing(open_configured(config)))
        partitions = config.log.partitions
        on_progress = progress_printer(lambda: frontier_left(log, partitions))
        try:
            frontier = wait_until_quiescent(
                log, partitions, _TIMEOUT_S, on_progress=on_progress, is_running=lambda: process.poll() is None
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


def progress_printer(
    count_frontier: Callable[[], Totals], every_s: float = _PROGRESS_S
) -> Callable[[Mapping[str, int]], None]:
    """Print a line of progress every `every_s` seconds."""
    started = printed = time.monotonic()

    def on_progress(waiting: Mapping[str, int]) -> None:
        nonlocal printed
        if time.monotonic() - printed < every_s:
            return
        printed = time.monotonic()
        frontier = count_frontier()
        behind = ", ".join(group.upper() for group, count in waiting.items() if count)
        done = f"{frontier.fetched} pages fetched, {frontier.active} of {frontier.sites} sites open"
        waits = behind and f"; records wait for {behind}"
        message(f"{printed - started:4.0f} s: {done + waits if frontier.sites else 'starting'}")

    return on_progress
