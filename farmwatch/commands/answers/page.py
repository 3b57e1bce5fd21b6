"""The command `page`: why a page was kept or dropped."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from crawler.errors import UnusableUrl
from farmwatch.commands.options import DEFAULTS, AsJson, Common
from farmwatch.config.detector_config import caveats, load_configured_detector, print_caveats
from farmwatch.config.opening import opened
from farmwatch.explain.as_json import as_json
from farmwatch.explain.explanation import explain_file, explain_page
from farmwatch.explain.page_records import PageRecords, find_page
from farmwatch.explain.report import show
from farmwatch.terminal.messages import put_json
from filters.rules.ruleset import load_ruleset
from replay.live.live_run import find_rules
from replay.runs.configured import load_configured_ruleset, refuse_perplexity, tally_identity
from stream.text.user_errors import Exit, UsageError


def page(
    named: Annotated[str, Parameter(name="PAGE", help="URL of a page in the log, or an HTML file.")],
    /,
    *,
    ruleset: Annotated[
        str | None, Parameter(help="Judge by this ruleset instead of using the verdict in the log.")
    ] = None,
    run: Annotated[str, Parameter(help="Use the ruleset and verdicts of this run. Default: the live run.")] = "",
    url: Annotated[str | None, Parameter(help="Assumed URL of a file. Default: unknown.")] = None,
    verbose: Annotated[
        bool, Parameter(negative="", help="Also each rule with value and bound, every measure and repeated passage.")
    ] = False,
    json: AsJson = False,
    common: Common = DEFAULTS,
) -> int:
    """Explain why a page was kept or dropped: each failed rule with value and bound, repeats, and the score.

    JSON: one object, with the fields of `judge`, the measures, the repeated passages, the score and the detector's
    warning. Each rule also has its other fields, whether it is in force, its pattern found in the URL, and the
    largest contributions of measures to the logit of `article_probability`.
    """
    config = common.load().config
    ruleset_given = load_ruleset(ruleset) if ruleset else None
    is_url = "://" in named
    if is_url and url is not None:
        raise UsageError("--url is only for an HTML file")
    if run and not is_url:
        raise UsageError("--run is only for a page of the log; a file is judged by --ruleset or judge.ruleset")
    try:
        if is_url:
            with opened(config) as log:
                rules = find_rules(log, config, run)
                explanation = explain_page(
                    PageRecords(log, rules.names, find_page(log, named, rules.names.features)),
                    ruleset_given or rules.ruleset,
                    config.measure,
                    live=ruleset_given is None,
                    detector_identity=lambda: rules.run.detector or tally_identity(config),
                )
        else:
            rules_of_file = ruleset_given or load_configured_ruleset(config)
            refuse_perplexity(rules_of_file, [config.tally.detector or config.score.detectors[0]])
            explanation = explain_file(Path(named), config, rules_of_file, load_configured_detector(config), url or "")
    except UnusableUrl as error:
        raise UsageError(str(error)) from error
    scored_by = explanation.score.detector if explanation.score is not None else ""
    warnings = caveats(config, [scored_by])
    if json:
        put_json({**as_json(explanation), "warning": warnings[scored_by]})
    else:
        show(explanation, everything=verbose)
        print_caveats(warnings)
    return Exit.OK
