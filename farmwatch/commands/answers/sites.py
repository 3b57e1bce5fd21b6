"""`farmwatch sites`."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Annotated, Literal

from cyclopts import Parameter

from farmwatch.commands.options import DEFAULTS, Common
from farmwatch.config.detector_config import caveats, print_caveats
from farmwatch.config.opening import opened
from farmwatch.share.cut_options import read_part
from farmwatch.share.site_lines import SITE_COLUMNS, SITES_SHOWN, TURNS_SHOWN, site_lines
from farmwatch.share.site_operators import OPERATOR_COLUMNS, operator_groups
from farmwatch.share.words import sentences
from farmwatch.tables.listing import LISTING, Listing
from farmwatch.terminal.messages import message
from scoring.rates.canary import is_canary
from scoring.rates.certain_sites import certain_llm_sites, contradicts
from scoring.sites.turn import CHANGED_WRITER, can_tell
from stream.schema.vocabulary import Truth
from stream.text.user_errors import Exit, UsageError
from stream.text.wording import counted


def sites(
    *,
    llm: Annotated[
        bool, Parameter(negative="", help="Only the sites that are most certainly LLM sites, as many as --fdr allows.")
    ] = False,
    fdr: Annotated[
        str,
        Parameter(
            name="--fdr", help="With --llm: the share of the list that may be false, such as 5% or 0.05. Default: 1%."
        ),
    ] = "",
    turned: Annotated[
        bool, Parameter(negative="", help="Only the sites that turned: by people before ChatGPT, by a model since.")
    ] = False,
    by: Annotated[
        Literal["operator"] | None,
        Parameter(help="One row per operator: the sites that share an account or a domain; of several sites only."),
    ] = None,
    canaries: Annotated[bool, Parameter(negative="", help="Show canary sites too; they count in no rate.")] = False,
    run: Annotated[str, Parameter(help="Of this run; default: the one that is live.")] = "",
    listing: Listing = LISTING,
    common: Common = DEFAULTS,
) -> int:
    """One row per site: its verdict and the evidence.

    The verdict bounds how often a human site is called llm, so a site may be `undecided` beside a `p_llm` of 1.00:
    `needs` is how many more articles would decide it. A row is of the ruleset that judged the site last.

    With --llm: the longest list of which at most a share of --fdr is expected not to be LLM sites, the most certain
    first. It is cautious: each `p_llm` is taken where the share of all sites is at the low end of its interval. Sites
    that the review calls human are left out; if they are more than --fdr allows by chance, no site is listed (exit code
    1), for the flags err more here than they did elsewhere.

    With --turned: the sites whose articles were by people before 2022-11-30 and are by a model since, by trusted days
    of publication, the surest first. At most a fifth of the earlier articles are flagged and half of the later ones or
    more, and an exact test tells their scores apart (`turn_p` below .01): 5 articles before and 5 since are enough, 4
    and 4 are not. A few are only another human writer: as many as are expected are said below the list.

    By operator: the numbers of its sites, by verdict. Sites that share an account may be of two owners with one agency,
    and it is no evidence of who wrote the text.
    """
    if by is not None:
        if llm or fdr or turned or canaries:
            raise UsageError("--by operator is of all sites: leave out --llm, --fdr, --turned and --canaries")
        return _show_operators(run, listing, common)
    if fdr and not llm:
        raise UsageError("--fdr goes with --llm")
    if turned and llm:
        raise UsageError(
            "--turned and --llm are two lists: the share of false ones that --fdr allows holds for the whole"
        )
    most_false = read_part(fdr or "1%", "--fdr", 1)
    selection = listing.of(SITE_COLUMNS)
    config = common.load().config
    now_ms = int(time.time() * 1000)
    with opened(config) as log:
        every = site_lines(log, config, run, now_ms)
    lines = [line for line in every if canaries or not is_canary(line.row.site)]
    certain = certain_llm_sites([line.row for line in every], config.rate, now_ms, most_false) if llm else None
    if certain is not None:
        rank = {site: place for place, site in enumerate(certain.sites)}
        lines = [line for line in lines if line.row.site in rank]
        firm = [line.called.label for line in lines if line.called.label in tuple(Truth)]
        labelled, human = len(firm), firm.count(Truth.HUMAN)
        if contradicts(labelled, human, most_false):
            called = f"the review calls {human} of {counted(labelled, 'site')} of this list human"
            mend = "allow more by --fdr, or calibrate the detector (`farmwatch lab calibrate`)"
            message(f"no site is listed: {called}, more than --fdr allows by chance; {mend}")
            return Exit.PROBLEM
        lines = [line for line in lines if line.called.label != Truth.HUMAN]
        lines.sort(key=lambda line: rank[line.row.site])
        lines = [replace(line, p_llm=round(certain.sites[line.row.site], 6)) for line in lines]
    tested = sum(can_tell(line.row.before_scored, line.row.since_scored) for line in lines)
    if turned:
        lines = sorted((line for line in lines if line.turned), key=lambda line: line.row.turn_p or 0)
    selection.put(lines, "site", TURNS_SHOWN if turned else SITES_SHOWN)
    if turned:
        of = f"{len(lines):,} of {counted(tested, 'site')} with enough dated articles turned"
        message(f"{of}; {tested * CHANGED_WRITER:.1f} are expected to be changes of writer alone")
    if certain is not None:
        false = sum(1 - (line.p_llm or 0) for line in lines)
        said = f"{counted(len(lines), 'site')} in the list, of which {false:.1f} are expected not to be LLM sites"
        message(f"{said}: at most {most_false:.1%}")
        for remark in sentences(certain.untold):
            message(remark)
    print_caveats(caveats(config, (line.row.detector for line in lines)), short=True)
    return Exit.OK


def _show_operators(run: str, listing: Listing, common: Common) -> Exit:
    selection = listing.of(OPERATOR_COLUMNS)
    config = common.load().config
    with opened(config) as log:
        lines = site_lines(log, config, run, int(time.time() * 1000))
    groups = operator_groups(
        {line.row.site: line.row.verdict for line in lines}, {line.row.site: line.operator for line in lines}
    )
    selection.put(groups, "operator", [column.name for column in OPERATOR_COLUMNS[:-1]])
    if listing.is_table:
        alone = sum(not (line.operator.name or is_canary(line.row.site)) for line in lines)
        message(f"{counted(alone, 'site')} of no operator with several sites")
    return Exit.OK
