"""`farmwatch sites`."""

from __future__ import annotations

import time
from typing import Annotated, Literal

from cyclopts import Parameter

from farmwatch.commands.options import AT_LEAST_0, DEFAULTS, AsJson, Common
from farmwatch.config.detector_config import caveats, print_caveats
from farmwatch.config.opening import opened
from farmwatch.share.current_rate import reasons_without_page, site_fields
from farmwatch.share.review_labels import read_review
from farmwatch.share.words import sentences
from farmwatch.terminal.messages import message, put_columns, put_json
from replay.rows.site_table import legend, read_sites, ruleset_of
from scoring.estimate.definitions import SITES
from scoring.rates.canary import is_canary
from scoring.rates.certain_sites import certain_llm_sites
from scoring.rates.split_rates import llm_probabilities
from scoring.rates.terms import counted_at, is_too_old
from stream.schema.vocabulary import Truth
from stream.text.user_errors import Exit, UsageError
from stream.text.wording import counted


def sites(
    *,
    verdict: Annotated[
        Literal["llm", "human", "undecided", "unclassifiable"] | None, Parameter(help="Only sites with this verdict.")
    ] = None,
    llm: Annotated[
        bool, Parameter(negative="", help="Only the sites that are most certainly LLM sites, as many as --fdr allows.")
    ] = False,
    fdr: Annotated[
        str, Parameter(name="--fdr", help="With --llm: the share of the list that may be false, such as 5% or 0.05.")
    ] = "1%",
    limit: Annotated[int, Parameter(help="Rows at most; 0 = all.", validator=AT_LEAST_0)] = 100,
    canaries: Annotated[bool, Parameter(negative="", help="Show canary sites too; they count in no rate.")] = False,
    run: Annotated[str, Parameter(help="Of this run; default: the one that is live.")] = "",
    json: AsJson = False,
    common: Common = DEFAULTS,
) -> int:
    """One row per site: its verdict and the evidence; the detector's warning on stderr.

    `p_llm` is the probability that it is an LLM site, by its flagged articles and those of all sites; a site that has
    too few articles for a verdict has one too. The verdict is stricter: it bounds how often a human site is called llm,
    so a site may be `undecided` beside a p_llm of 1.00. `label` is what people called it in the review in force
    (`rate.review`). A row is of one ruleset: the one that judged the site last. A verdict that is too old counts in no
    share: its term has ended, and the site was not measured again. `no_page` says why a site has no page, such as a bot
    challenge (not on a broker).

    With --llm: the longest list of which at most a share of --fdr is expected not to be LLM sites, the most certain
    first. It is cautious: each `p_llm` is taken where the share of all sites is at the low end of its interval. Sites
    that the review calls human are left out.

    JSON: one object a line.
    """
    most_false = _share_of(fdr)
    config = common.load().config
    now_ms = int(time.time() * 1000)
    review = read_review(config.rate, now_ms)
    is_llm = {} if review is None else review.is_llm(SITES)
    labels = {site: Truth.LLM if llm else Truth.HUMAN for site, llm in is_llm.items()}
    with opened(config) as log:
        everything = read_sites(log, run)
        no_page = reasons_without_page(log, config, everything, now_ms)
    likely = llm_probabilities(everything, config.rate, now_ms)
    too_old = {row.site for row in everything if is_too_old(counted_at(row, now_ms))}
    rows = [row for row in everything if canaries or not is_canary(row.site)]
    matching = [row for row in rows if verdict is None or row.verdict == verdict]
    certain = certain_llm_sites(everything, config.rate, now_ms, most_false) if llm else None
    if certain is not None:
        likely, rank = certain.sites, {site: place for place, site in enumerate(certain.sites)}
        matching = [row for row in matching if row.site in rank and labels.get(row.site) != Truth.HUMAN]
        matching.sort(key=lambda row: rank[row.site])
    shown = matching[: limit or None]
    warnings = caveats(config, (row.detector for row in shown))
    if json:
        for row in shown:
            put_json(
                site_fields(row, likely, now_ms) | {"label": labels.get(row.site), "no_page": no_page.get(row.site)}
            )
        print_caveats(warnings, short=True)
        return Exit.OK
    headings = put_columns(
        shown,
        {
            "site": "site",
            "verdict": lambda row: f"{row.verdict} (too old)" if row.site in too_old else row.verdict,
            "p_llm": lambda row: f"{likely[row.site]:.2f}" if row.site in likely else "",
            **({"label": lambda row: labels.get(row.site, "")} if labels else {}),
            "mixed": lambda row: "mixed" if row.mixed else "",
            **{name: name for name in ("pages", "articles", "scored", "flagged")},
            "used": "pages_used",
            "llr": lambda row: round(row.llr, 2),
            "most dropped by": lambda row: max(
                row.dropped_by, key=row.dropped_by.__getitem__, default=no_page.get(row.site, "")
            ),
            "ruleset": ruleset_of,
            "detector": "detector",
            "feature epoch": "epoch",
        },
        less=(
            *("ruleset", "detector", "feature epoch"),
            *("most dropped by", "scored", "pages", "articles", "mixed", "llr", "used", "flagged"),
        ),
    )
    if shown and (explained := legend(headings)):
        message(explained)
    message(f"{len(shown)} of {counted(len(matching), 'site')} shown; {len(rows)} in the log")
    if certain is not None:
        false = sum(1 - likely[row.site] for row in matching)
        message(f"of {len(matching)}, {false:.1f} are expected not to be LLM sites: at most {most_false:.1%}")
        for remark in sentences(certain.untold):
            message(remark)
    print_caveats(warnings, short=True)
    return Exit.OK


def _share_of(text: str) -> float:
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = -1.0
    if not 0 < share < 1:
        raise UsageError(f"--fdr {text}: give a share above 0 and below 1, such as 1% or 0.05")
    return share
