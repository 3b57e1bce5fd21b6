"""Notices of runs: how the live run differs from the configuration, and what a window leaves out."""

from __future__ import annotations

from farmwatch.terminal.remedies import flags_of
from filters.rules.ruleset import load_ruleset, shipped_rulesets
from replay.engine.source import retained_range
from replay.live.live_run import ConfigDifference, Differing
from replay.runs.run_rules import method_name
from stream.log.contract import Log
from stream.schema.runs import Run
from stream.text.wording import moment


def difference_text(differs: ConfigDifference) -> str:
    """A difference between configuration and live run, with the remedy."""
    live, wanted = differs.live.run, differs.wanted
    match differs.what:
        case Differing.RULES_AS_READ:
            return (
                f"the live run {live.shown} began with the ruleset {live.ruleset} {live.digest}; this version of"
                f" farmwatch reads it as {differs.live.ruleset.digest} and judges by that from now on. To judge all by"
                f" one ruleset: {_commands(differs)}"
            )
        case Differing.RULESET:
            ruleset = differs.live.ruleset
            setting = "set judge.ruleset to its file (`farmwatch runs show live --ruleset-text` prints it)"
            if ruleset.name in shipped_rulesets() and load_ruleset(ruleset.name).digest == ruleset.digest:
                setting = f'set judge.ruleset = "{ruleset.name}"'
            return (
                f"judge.ruleset ({wanted.ruleset} {wanted.digest}) differs from the live run {live.shown}"
                f" ({live.ruleset} {differs.live.ruleset.digest}). The live run wins. To remove this notice:"
                f" {setting}. To change over: {_commands(differs)}"
            )
        case Differing.DETECTOR | Differing.UNSCORED_DETECTOR:
            keeps = f"keeps {live.detector}"
            if differs.what is Differing.UNSCORED_DETECTOR:
                keeps = f"has {live.detector}, which the configured SCORE does not run: its new articles stay unscored"
            return (
                f"tally.detector is {wanted.detector}, and the live run {live.shown} {keeps}. To change over:"
                f" {_commands(differs)}"
            )
        case Differing.SITE_METHOD:
            return (
                f"[tally] gives the site method {method_name(wanted.site_method)}, and the live run {live.shown} keeps"
                f" {method_name(live.site_method)}. To change over: {_commands(differs)}"
            )
        case Differing.EPOCH:
            return (
                f"[measure] has the feature epoch {wanted.epoch}, and the live run {live.shown} began with"
                f" {live.epoch}: pages are compared only within an epoch. Start `farmwatch up` with the settings of the"
                f" run, {flags_of(live.measured_by)}, and its versions. Or, to measure all pages in one:"
                f" {_commands(differs)}"
            )


def _commands(differs: ConfigDifference) -> str:
    live, wanted, ready = differs.live.run, differs.wanted, differs.ready
    if ready is not None and differs.is_back:
        return f"the run {ready.shown}, which was live before, matches: `farmwatch cutover --back`"
    if ready is not None:
        name = ready.shown
        return f"the run {name} matches already: `farmwatch compare live {name}`, `farmwatch cutover {name}`"
    options = f" --detector {wanted.detector}" if wanted.detector != live.detector else ""
    if wanted.digest != live.digest or not options:
        options = f" --ruleset {differs.setting}{options}"
    return f"`farmwatch replay{options} --name NEW`, `farmwatch compare live NEW`, `farmwatch cutover NEW`"


def early_begin_note(log: Log, run: Run) -> str:
    """A note that the window begins before the first record; "" if it does not."""
    if not run.from_at or run.gaps:
        return ""
    first_at, text = retained_range(log, run.source)
    if run.from_at >= first_at:
        return ""
    return f"--from {moment(run.from_at)} is before the first record, so all are taken: {text}"
