"""The result of a replay in words, and the commands that may follow it."""

from __future__ import annotations

from collections.abc import Sequence

from farmwatch.share.words import text_of
from farmwatch.terminal.remedies import resume_command
from replay.engine.summary import NextStep, ReplaySummary
from replay.rows.site_table import short_ruleset
from scoring.estimate.remarks import Remark
from stream.schema.runs import LIVE, Run, RunStatus
from stream.text.wording import counted, one_line


def lines_of(summary: ReplaySummary, run: Run) -> list[str]:
    """The summary of a run as text."""
    lines = [
        f"{summary.run}: {counted(summary.pages, 'page')} judged by {short_ruleset(summary.ruleset, summary.digest)},"
        f" {counted(summary.articles, 'article')}; {counted(summary.sites, 'site')}: "
        + ", ".join(f"{count} {verdict}" for verdict, count in summary.verdicts.items()),
        f"  {_named(rate_text(summary.rate))}",
    ]
    if summary.run != summary.live:
        lines.append(f"  {summary.live} (live): {_named(rate_text(summary.live_rate))}")
    if summary.lost:
        lines.append(f"  {summary.lost_said}: a cutover to this run needs --partial")
    if summary.unscored:
        verb = "has no score yet: it counts" if summary.unscored == 1 else "have no score yet: they count"
        why = ""
        if summary.scored_by and summary.detector not in summary.scored_by:
            why = f"; SCORE runs {', '.join(summary.scored_by)}, not {summary.detector}"
        elif summary.requests_wait and summary.run != summary.live:
            start = "and none is running: start `farmwatch up --role score`"
            then = "which scores live texts first" if summary.score_runs else start
            why = f"; requests of replays wait for SCORE, {then}"
        lines.append(f"  {counted(summary.unscored, 'article')} {verb} as unscored, in no verdict{why}")
    return [one_line(line) for line in [*lines, *(f"  next: {step}" for step in next_commands(summary, run))]]


def next_commands(summary: ReplaySummary, run: Run) -> list[str]:
    """The commands of the next steps."""
    effect = "resumes it" if summary.state != RunStatus.DONE else "adds newer scores, requests missing ones"
    commands = {
        NextStep.REMOVE: f"farmwatch runs rm {run.shown}",
        NextStep.RESUME: f"{resume_command(run)}    # {effect}",
        NextStep.COMPARE: f"farmwatch compare {LIVE} {run.shown}",
        NextStep.CUT_OVER: f"farmwatch cutover {run.shown}",
    }
    return [commands[step] for step in summary.next]


def rate_text(rate: Sequence[Sequence[Remark]]) -> str:
    """The shares of a run in one line."""
    return " | ".join(map(text_of, rate)) or "none yet"


def _named(text: str) -> str:
    """A text that does not name the share gets the word in front."""
    return text if "share" in text else f"share {text}"
