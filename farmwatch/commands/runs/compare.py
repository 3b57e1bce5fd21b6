"""The command `compare`: verdicts and rates of two runs over the same pages and sites."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from farmwatch.commands.options import DEFAULTS, AsJson, Common
from farmwatch.commands.runs.compare_report import show
from farmwatch.config.detector_config import caveats, print_caveats
from farmwatch.config.opening import opened
from farmwatch.runs.comparison_words import as_json, label_lines
from farmwatch.share.current_rate import dangers
from farmwatch.share.review_labels import read_review
from farmwatch.tables.files import require_new
from farmwatch.terminal.messages import message, put_json
from replay.compare.comparer import ComparisonRequest
from replay.compare.comparer import compare as compare_runs
from replay.compare.flips import MAX_SAMPLE
from stream.log.contract import wall_ms
from stream.schema.control import Control
from stream.text.user_errors import Exit
from stream.text.wording import counted

RunName = Annotated[str, Parameter(help="A run; `live` is the live run, `before` the one that was live before it.")]


def compare(
    a: RunName,
    b: RunName,
    /,
    *,
    sample: Annotated[
        int, Parameter(help="Flips in the sample; 0 = none.", validator=Number(gte=0, lte=MAX_SAMPLE))
    ] = 20,
    seed: Annotated[
        int, Parameter(help="Seed of the sample and of the intervals.", validator=Number(gte=0, lt=2**63))
    ] = 0,
    out: Annotated[
        Path | None,
        Parameter(name=["--out", "-o"], help="Write the sample into a new file, for `farmwatch review label`."),
    ] = None,
    json: AsJson = False,
    common: Common = DEFAULTS,
) -> int:
    """Compare two runs: verdicts of pages and sites, the rules that let pages in or threw them out, and the rate.

    The intervals are of a paired bootstrap over sites. Unscored articles count neither as llm nor as human. The tables
    of pages leave out pages that only one run has judged. Both are counted.

    The same seed gives the same sample; the kinds of flips take turns in it. JSON: one object.
    """
    if out is not None:
        require_new(out)
    config, request = common.load().config, ComparisonRequest(sample, seed)
    with opened(config) as log:
        review = read_review(config.rate, wall_ms())
        compared = compare_runs(log, a, b, request, config.rate, wall_ms(), review)
        rulesets = Control(log).rulesets
    warnings = caveats(config, dict.fromkeys((compared.a.detector, compared.b.detector)))
    if out is not None:
        out.write_text(label_lines(compared, config.log.url), encoding="utf-8")
        judge = f"; to judge them: farmwatch review label {out}" if compared.sample else ""
        message(f"{out}: {counted(len(compared.sample), 'flip')}{judge}")
    if json:
        put_json({**as_json(compared), "warnings": warnings})
        return Exit.OK

    show(compared)
    print_caveats(warnings)
    for danger in dangers(rulesets, (compared.a, compared.b)):
        message(danger)
    return Exit.OK
