"""`farmwatch rulesets evaluate`: results of rulesets on labelled pages."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from farmwatch.commands.options import DEFAULTS, AsJson, Common, Jobs
from farmwatch.commands.runs.labelled import Labels, labelled
from farmwatch.labels.evaluation_tables import remarks, report, tables_of
from farmwatch.terminal.messages import counting, message, put, put_json, put_table
from filters.rules.evaluation import LabelledVerdict, evaluate
from filters.rules.ruleset import load_ruleset, shipped_rulesets
from stream.text.user_errors import FarmwatchError


def evaluate_rulesets(
    rulesets: Annotated[
        list[str] | None, Parameter(help="Shipped rulesets or TOML files; all shipped ones by default.", negative="")
    ] = None,
    /,
    *,
    labels: Labels,
    source: Annotated[
        list[str] | None, Parameter(help="Read only this source of the folder; may be repeated.", negative="")
    ] = None,
    verbose: Annotated[bool, Parameter(help="The drops of each rule, also of several rulesets.", negative="")] = False,
    jobs: Jobs = 0,
    json: AsJson = False,
    common: Common = DEFAULTS,
) -> int:
    """Evaluate rulesets on labelled pages: precision and recall for articles, pass rates, and each rule's drops.

    The pages are measured once, as in a live run, and judged by every ruleset. A line of gold.jsonl is {id[, page_type,
    url, name, articleBody]}, `id` the SHA-256 of the HTML. Precision, recall and F1 count the pages with a page_type:
    `article` or not. Of a rule: drops = pages that fail
    it, marginal = and no rule before it, sole = and no other rule.
    Of a file of `farmwatch review label` the pages' features are taken from the log (--log), as the live run has them.
    Damaged entries are reported and skipped: exit code 1; 3 if no page is left.
    """
    named = rulesets or shipped_rulesets()
    loaded = [load_ruleset(name) for name in named]
    judged: list[list[LabelledVerdict]] = [[] for _ in loaded]
    with labelled(labels, source or [], common, jobs) as (pages, measured), counting(len(pages.labels), "pages") as bar:
        for page in measured(bar):
            for verdicts, ruleset in zip(judged, loaded, strict=True):
                verdicts.append(page.judged(ruleset))
    reports = report(named, loaded, list(map(evaluate, judged)))
    if not reports[0].evaluation.whole.pages:
        raise FarmwatchError(f"{labels}: no usable page")
    for remark in remarks(reports):
        message(remark)
    if learned := [name for name, ruleset in zip(named, loaded, strict=True) if ruleset.models]:
        message(
            f"{', '.join(learned)}: pages that the article model learned from are judged better than others;"
            " `farmwatch lab train-articles` measures a model on pages that it did not learn from"
        )
    tables = tables_of(reports, details=verbose or len(reports) == 1)
    if json:
        put_json({"skipped": pages.skipped, "rulesets": [evaluated.as_json() for evaluated in reports]})
    else:
        for number, table in enumerate(tables):
            if number:
                put("")
            put_table(table.headings, table.rows, table.title)
    return pages.exit
