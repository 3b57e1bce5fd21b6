"""`farmwatch sites`."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from farmwatch.commands.options import DEFAULTS, Common
from farmwatch.config.detector_config import caveats, print_caveats
from farmwatch.config.opening import opened
from farmwatch.crawl.orders import NotVisited
from farmwatch.share.blocklists import blocklist, expected_false, header_of, is_plain_host, made_by, part_of_list
from farmwatch.share.current_rate import read_sitemaps
from farmwatch.share.cut_options import read_part
from farmwatch.share.evidence_pages import evidence_pages
from farmwatch.share.site_lines import SITE_COLUMNS, SITES_SHOWN, TURNS_SHOWN, ListedSite, site_lines
from farmwatch.share.site_operators import OPERATOR_COLUMNS, operator_groups
from farmwatch.share.words import sentences
from farmwatch.tables.columns import Column
from farmwatch.tables.files import Blocklist
from farmwatch.tables.listing import SITE_LISTING, Listing, SiteListing
from farmwatch.terminal.messages import message, put
from scoring.rates.canary import is_canary
from scoring.rates.certain_sites import certain_llm_sites, contradicts
from scoring.rates.farm_signs import FarmSigns
from scoring.sites.turn import CHANGED_WRITER, can_tell
from stream.schema.vocabulary import Truth
from stream.text.user_errors import Exit, UsageError
from stream.text.whole_files import write_whole
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
    farm: Annotated[
        bool, Parameter(negative="", help="With --llm: only farms, which publish in mass and are monetised.")
    ] = False,
    turned: Annotated[
        bool, Parameter(negative="", help="Only the sites that turned: by people before ChatGPT, by a model since.")
    ] = False,
    by: Annotated[
        Literal["operator"] | None,
        Parameter(help="One row per operator of several sites: they share an account, a stated owner or a domain."),
    ] = None,
    canaries: Annotated[bool, Parameter(negative="", help="Show canary sites too; they count in no rate.")] = False,
    run: Annotated[str, Parameter(help="Of this run; default: the one that is live.")] = "",
    listing: SiteListing = SITE_LISTING,
    common: Common = DEFAULTS,
) -> int:
    """One row per site: its verdict and the evidence.

    The verdict bounds how often a human site is called llm, so a site may be `undecided` beside a `p_llm` of 1.00:
    `needs` is how many more articles would decide it. A row is of the ruleset that judged the site last.

    With --llm: the longest list of which at most a share of --fdr is expected not to be LLM sites, the most certain
    first. It is cautious: each `p_llm` is taken where the share of all sites is at the low end of its interval. Sites
    that the review calls human are left out; if they are more than --fdr allows by chance, no site is listed (exit code
    1), for the flags err more here than they did elsewhere. Sites that were measured before but not yet in their newest
    term are left out, and so are excluded and forgotten hosts: `farmwatch crawl exclude HOST --why ...` removes an
    entry for good. CSV, JSON and Parquet have an evidence page of each site, and in each row what the header of a
    blocklist says: `listed_at`, `listed_by`, `list_sites` of the list without --where and --limit, `expected_false`
    sites of the rows, `contact` and the detector's `warning`.

    With --llm --format ublacklist, hosts, adblock or searxng: the list as such programs read it. Its header has the
    date, the versions, the expected error and crawl.contact, which owners of sites need. A list without an entry is not
    written (exit code 1).

    With --turned: the sites whose articles were by people before 2022-11-30 and are by a model since, by trusted days
    of publication, the surest first. At most a fifth of the earlier articles are flagged and half of the later ones or
    more, and an exact test tells their scores apart (`turn_p` below .01): 5 articles before and 5 since are enough, 4
    and 4 are not. A few are only another human writer: as many as are expected are said below the list.

    By operator: the numbers of its sites, by verdict. Sites that share an account may be of two owners with one agency,
    and it is no evidence of who wrote the text.
    """
    if (farm or listing.blocklist) and not llm:
        raise UsageError(f"{'--farm' if farm else f'--format {listing.format}'} goes with --llm")
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
    evidence: dict[str, str] = {}
    proof: Column[ListedSite] = Column("evidence", "text", lambda line: evidence.get(line.row.site, ""))
    head: dict[str, Any] = {}
    selection = listing.of([*SITE_COLUMNS, proof, *_head_columns(head)] if llm else SITE_COLUMNS)
    config = common.load().config
    if listing.blocklist:
        config.crawl.check()  # owners need a contact
    now_ms = int(time.time() * 1000)
    with opened(config) as log:
        every = site_lines(log, config, run, now_ms)
        rows, certain = [line.row for line in every], None
        if llm:
            signs = FarmSigns.of(rows, read_sitemaps(log)) if farm else None
            gone = NotVisited.of(log).orders.excludes
            certain = certain_llm_sites(rows, config.rate, now_ms, most_false, left_out=gone, signs=signs)
            if not listing.is_table and not listing.blocklist:
                evidence |= evidence_pages(log, {row.site: row for row in rows if row.site in certain.sites}, run)
    lines = [line for line in every if canaries or not is_canary(line.row.site)]
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
    if listing.blocklist:
        lines = [line for line in lines if is_plain_host(line.row.site)]
    whole = len(lines)
    if llm and not listing.is_table:
        lines = list(islice(selection.rows(lines), listing.limit or None))
        head |= {"listed_at": now_ms, "listed_by": made_by(), "expected_false": round(expected_false(lines), 6)}
        head["list_sites"] = whole
        head["contact"] = config.crawl.contact
    warnings = head["warning"] = caveats(config, (line.row.detector for line in lines))
    if listing.blocklist and lines:
        header = header_of(lines, whole, config.crawl.contact, warnings, now_ms)
        _put_blocklist(listing.blocklist, listing.out, lines, header)
    elif not listing.blocklist:
        selection.put(lines, "site", TURNS_SHOWN if turned else SITES_SHOWN)
    if turned:
        of = f"{len(lines):,} of {counted(tested, 'site')} with enough dated articles turned"
        message(f"{of}; {tested * CHANGED_WRITER:.1f} are expected to be changes of writer alone")
    if certain is not None:
        false = f"{expected_false(lines):.1f} are expected not to be LLM sites"
        said = f"{part_of_list(len(lines), whole)}, of which {false}"
        message(f"{said}: at most {most_false:.1%}")
        for remark in sentences(certain.untold):
            message(remark)
    print_caveats(warnings, short=True)
    return Exit.PROBLEM if listing.blocklist and not lines else Exit.OK


def _head_columns(head: Mapping[str, Any]) -> list[Column[ListedSite]]:
    """What is the same for the whole list; `head` is filled before a row is written."""
    return [
        Column("listed_at", "time", lambda _: head.get("listed_at", 0)),
        Column("listed_by", "text", lambda _: head.get("listed_by", "")),
        Column("list_sites", "integer", lambda _: head.get("list_sites", 0)),
        Column("expected_false", "number", lambda _: head.get("expected_false")),
        Column("contact", "text", lambda _: head.get("contact", "")),
        Column("warning", "text", lambda line: head.get("warning", {}).get(line.row.detector, "")),
    ]


def _put_blocklist(form: Blocklist, out: Path | None, lines: list[ListedSite], header: Iterable[str]) -> None:
    text = blocklist(form, "LLM sites, measured by farmwatch", header, [line.row.site for line in lines])
    if out is None:
        put(text.removesuffix("\n"))
    else:
        write_whole(out, text.encode(), force=False)
        message(f"{out}: {counted(len(lines), 'site')}")


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
