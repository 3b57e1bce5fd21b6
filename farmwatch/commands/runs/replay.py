"""The command `replay`: judges stored records under another ruleset or detector, as a run next to the live one."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, redirect_stderr, suppress
from typing import Annotated, Any, TextIO, cast

import msgspec
from cyclopts import Parameter

from farmwatch.commands.options import DEFAULTS, AsJson, Common, Why
from farmwatch.commands.runs.progress_line import ProgressLine
from farmwatch.config.config import Config
from farmwatch.config.member_names import claimed_name, names_folder
from farmwatch.config.opening import opened
from farmwatch.daemon.endpoints import Endpoints, Exposition
from farmwatch.daemon.signals import note, signals_to
from farmwatch.metrics import ALL, RULESET_INFO
from farmwatch.runs.notices import early_begin_note
from farmwatch.runs.summary_lines import lines_of, next_commands, rate_text
from farmwatch.share.review_labels import read_review
from farmwatch.terminal.messages import json_line, message, put, put_wrapped, start_logging
from farmwatch.terminal.remedies import resume_command
from filters.perplexity.names import DANGER
from replay.engine.lifecycle import RunAlreadyBegun
from replay.engine.lifecycle import begin as begin_run
from replay.engine.plan import Plan, ReplayRequest, plan, refuse_unfit
from replay.engine.runner import Ending, Replay
from replay.engine.summary import lost_text, summary_of
from replay.live.live_run import configured_method
from replay.rows.gaps import count_dead_letters
from replay.rows.scores import is_scored, scored_detectors
from replay.rows.site_table import short_ruleset
from replay.runs.configured import configured_detectors
from replay.runs.run_rules import method_name
from replay.runs.window import run_window
from scoring.sites.registry import same_method
from stream.log.contract import Log, wall_ms
from stream.processing.health import Health
from stream.processing.metrics import Metrics
from stream.schema.control import Control
from stream.schema.runs import Run
from stream.text.user_errors import Exit, UsageError
from stream.text.wording import counted, one_line

_NICE = 10  # niceness of the process and its children, so that live goes first


def replay(
    *,
    ruleset: Annotated[
        str | None, Parameter(help="A shipped ruleset by name, or a file (.toml). Default: that of the live run.")
    ] = None,
    detector: Annotated[
        str | None, Parameter(help="A detector by name, or its whole identity. Default: that of the live run.")
    ] = None,
    begin: Annotated[
        str | None,
        Parameter(name="--from", help="earliest (default), a time (UTC), or the name of a run, for its window."),
    ] = None,
    end: Annotated[
        str | None, Parameter(name="--to", help="now (default), a time (UTC), or follow: also new records.")
    ] = None,
    name: Annotated[
        str | None, Parameter(help="Name of the run; an existing run is resumed. Default: made of the ruleset.")
    ] = None,
    why: Why = None,
    full_speed: Annotated[
        bool, Parameter(negative="", help="Do not wait while live is behind, and keep the priority of the process.")
    ] = False,
    metrics_port: Annotated[int, Parameter(help="Port of this process's /metrics; 0 = any free one.")] = 0,
    json: AsJson = False,
    common: Common = DEFAULTS,
) -> int:
    """Judge stored records by another ruleset or for another detector, beside the live run, which does not change.

    The replay starts at `features`, or at `pages` if the stored features have another epoch than this configuration; it
    prints which, and why. It uses the scores in the log. It requests the others at low priority, if SCORE runs the
    detector; until then their texts count as unscored.

    After Ctrl-C, SIGTERM or a kill, --name resumes the run. A run that is done adds the scores that arrived since.
    Several runs, and several processes of one run, may work at once. A day means its start in --from and its end in
    --to.

    Exit code 0 when it is done, became live, or was stopped by SIGTERM or because the reader of its standard error left
    (`2>&1 | head`); 1 when the run was cancelled or removed, cannot be resumed, or its window has no record; 2 when the
    ruleset does not load, or the options do not fit together or do not match the run of that name; 3 when the log, the
    extractor or the detector's numbers are missing; 130 after Ctrl-C.
    """
    if ruleset is None and detector is None and name is None:
        raise UsageError("name a --ruleset or a --detector to replay, or a run to resume with --name")
    config = common.load().config
    stop = threading.Event()
    with ExitStack() as resources:
        resources.enter_context(redirect_stderr(cast(TextIO, _Stderr(sys.stderr, stop.set))))
        log = resources.enter_context(opened(config, write=True))
        start_logging("warning", role="replay")  # the progress line and /metrics show the rest
        if not full_speed:
            os.nice(max(0, _NICE - os.nice(0)))
        request = ReplayRequest(ruleset, detector, begin, end, name, " ".join(why or ()))
        process, planned, run = _begin(log, config, request, metrics_port, resources)
        for text in _announcements(log, planned, run, config):
            message(one_line(text))
        message(f"metrics: {process.url}")
        process.metrics.set(RULESET_INFO, 1, ruleset=run.ruleset, digest=run.digest)
        signals: list[int] = []

        def on_signal(number: int) -> None:
            signals.append(number)
            if len(signals) > 1:
                os._exit(Exit.INTERRUPTED)  # commits are atomic; a resumed run does the rest
            note("\ndraining; a second signal ends it at once\n")
            stop.set()

        with signals_to(on_signal):
            process.replay = Replay(
                log,
                config,
                run,
                planned.ruleset,
                process.member,
                metrics=process.metrics,
                stop=stop,
                full_speed=full_speed,
                on_progress=ProgressLine(run.shown).show,
                on_message=lambda text: message(f"{run.shown}: {text}"),
            )
            ending = process.replay.run()
        code, lines = _report_ending(log, config, run, ending, signals, json)
    with suppress(BrokenPipeError):  # the exit code is that of the run, even without a reader
        for text in lines:
            if json:
                put(text)
            else:
                put_wrapped(text, "    ")
    return code


def _begin(
    log: Log, config: Config, request: ReplayRequest, port: int, resources: ExitStack
) -> tuple[_Process, Plan, Run]:
    """Plan and begin the run. If several processes begin it at the same time, the later ones join the first."""
    process = None
    while True:
        planned = plan(log, Control(log), config, request)
        refuse_unfit(log, config, planned)
        process = process or _Process(config, planned.run.name, port, resources)
        with suppress(RunAlreadyBegun):
            return process, planned, begin_run(log, planned)


def _announcements(log: Log, planned: Plan, run: Run, config: Config) -> Iterator[str]:
    what = "begun" if planned.is_new else "resumed"
    judged_by = f"ruleset {short_ruleset(run.ruleset, run.digest)}, detector {run.detector}"
    yield f"run {run.shown} {what}: {judged_by}, window {run_window(run)}"
    yield f"from {run.source}, because {run.why_source}"
    if planned.ruleset.fluent:
        yield DANGER
    if planned.is_new and (early := early_begin_note(log, run)):
        yield early
    if planned.run.error:
        yield f"the last process of this run ended with {planned.run.error}"
    configured = configured_method(config, run.detector)
    if run.site_method and configured and not same_method(configured, run.site_method):
        yield (
            f"warning: [tally] gives the site method {method_name(configured)}, and the run keeps"
            f" {method_name(run.site_method)}: to judge sites by the other one, take another --name"
        )
    if run.gaps:
        yield f"warning: {lost_text(run.gaps)}: the run has no verdict on them"
    if warning := _unscored_warning(log, run, config):
        yield f"warning: {warning}"


def _unscored_warning(log: Log, run: Run, config: Config) -> str:
    control = Control(log)
    if is_scored(control, config, run.detector):
        return ""
    if run.detector in configured_detectors(config):
        remedy = "It is configured here: restart SCORE with this configuration"
    else:
        remedy = "Add it to score.detectors and restart SCORE"
    then = "this process requests" if run.follows else f"`{resume_command(run)}` then requests"
    return (
        f"SCORE runs {', '.join(scored_detectors(control, config))}, not {run.detector}: texts without its score"
        f" are not requested and stay unscored. {remedy}: {then} them, each once"
    )


class _Stderr:
    """Standard error that stops the replay when its reader leaves, instead of failing in a thread."""

    def __init__(self, stream: TextIO, on_left: Callable[[], None]) -> None:
        self._stream, self._on_left = stream, on_left

    def write(self, text: str) -> int:
        try:
            self._stream.write(text)
            self._stream.flush()
        except BrokenPipeError:
            self._on_left()
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Process:
    """The process of a replay: its name in the groups, and its /metrics."""

    def __init__(self, config: Config, run: str, port: int, resources: ExitStack) -> None:
        self.member = f"replay-{resources.enter_context(claimed_name(names_folder(config), [f'replay.{run}']))}"
        self.metrics = Metrics(ALL)
        self.replay: Replay | None = None

        def health() -> Health:
            return Health(True, False, "starting") if self.replay is None else self.replay.health()

        shown = Exposition(self.metrics.registry, "replay")
        endpoints = resources.enter_context(Endpoints(shown, health, config.metrics.host, port))
        self.url = f"http://{config.metrics.host}:{endpoints.port}/metrics"


def _report_ending(
    log: Log, config: Config, run: Run, ending: Ending, signals: list[int], as_json: bool
) -> tuple[int, list[str]]:
    resume = f"`{resume_command(run)}` resumes it"
    if ending is not Ending.DONE:
        messages = {
            Ending.REMOVED: f"the run {run.shown} was removed: this process ends",
            Ending.LIVE: f"the run {run.shown} is live now: the daemon continues it, and this process ends",
            Ending.CANCELLED: f"the run {run.shown} was cancelled; {resume}",
            Ending.STOPPED: f"stopped; {resume}",
        }
        message(messages[ending])
    code = Exit.PROBLEM if ending in (Ending.REMOVED, Ending.CANCELLED) else Exit.OK
    if ending is Ending.STOPPED and signal.SIGINT in signals:
        code = Exit.INTERRUPTED
    if ending is Ending.REMOVED or not (as_json or ending is Ending.DONE):  # no more output
        return code, []
    control = Control(log)
    row = control.runs.get(run.name, run)
    if dead := count_dead_letters(log, row):
        message(f"warning: {counted(dead, 'record')} failed and went to the dead-letter topic")
    now_ms = wall_ms()
    summary = summary_of(log, control, config, row, now_ms, read_review(config.rate, now_ms))
    if not as_json:
        return code, lines_of(summary, row)
    words = {"rate": rate_text(summary.rate), "live_rate": rate_text(summary.live_rate)}
    return code, [json_line({**msgspec.to_builtins(summary), **words, "next": next_commands(summary, row)})]
