"""The command `explain`: all that is known of why a page was kept or dropped."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from crawler.errors import UnusableUrl
from farmwatch.commands.options import DEFAULTS, AsJson, Common
from farmwatch.config.detector_config import caveats, load_configured_detector, print_caveats
from farmwatch.config.opening import opened
from farmwatch.explain.as_json import as_json
from farmwatch.explain.explanation import explain_file, explain_url
from farmwatch.explain.report import show
from farmwatch.terminal.messages import put_json
from filters.rules.ruleset import load_ruleset
from replay.live.live_run import in_force
from replay.runs.configured import load_configured_ruleset, tally_identity
from stream.text.user_errors import Exit, UsageError


def explain(
    page: Annotated[str, Parameter(help="URL of a page in the log, or a file of HTML.")],
    /,
    *,
    ruleset: Annotated[str | None, Parameter(help="Judge by this ruleset, not by the verdict in the log.")] = None,
    run: Annotated[str, Parameter(help="By the ruleset and verdicts of this run; default: the one that is live.")] = "",
    url: Annotated[str | None, Parameter(help="URL at which a file is taken to stand; else unknown.")] = None,
    everything: Annotated[
        bool,
        Parameter(name="--all", negative="", help="Also every measure, read by a rule or not, and every passage."),
    ] = False,
    json: AsJson = False,
    common: Common = DEFAULTS,
) -> int:
    """Why a page was kept or dropped: every rule with its value, threshold and outcome, what repeats, and the score.

    JSON: one object, with the fields of `judge`, the measures, the repeated passages, the score and the detector's
    warning. Each rule also says whether it is in force, its other fields, and which pattern was found in the URL;
    `other_score` is what the log has where the text of this verdict has no score.
    """
    config = common.load().config
    asked = load_ruleset(ruleset) if ruleset else None
    is_url = "://" in page
    if is_url and url is not None:
        raise UsageError("--url is for a file of HTML; a page of the log has its own")
    if run and not is_url:
        raise UsageError("--run is for a page of the log: a file is judged by --ruleset, or by judge.ruleset")
    try:
        if is_url:
            with opened(config) as log:
                rules = in_force(log, config, run)
                found = explain_url(
                    log,
                    page,
                    asked or rules.ruleset,
                    config.measure,
                    live=asked is None,
                    configured=lambda: rules.run.detector or tally_identity(config),
                    names=rules.names,
                )
        else:
            rules_of_file = asked or load_configured_ruleset(config)
            found = explain_file(Path(page), config, rules_of_file, load_configured_detector(config), url or "")
    except UnusableUrl as error:
        raise UsageError(str(error)) from error
    shown = found.score if found.other_score is None else found.other_score.score
    scored_by = shown.detector if shown is not None else ""
    warnings = caveats(config, [scored_by])
    if json:
        put_json({**as_json(found), "warning": warnings[scored_by]})
    else:
        show(found, everything=everything)
        print_caveats(warnings)
    return Exit.OK
