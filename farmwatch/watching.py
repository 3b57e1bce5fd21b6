"""The commands that watch: `rate`, `sites` and `topics`. They only read."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from farmwatch.errors import Exit, UsageError
from farmwatch.messages import counted, message, put, put_json, put_table
from farmwatch.options import DEFAULTS, AsJson, Common, opened

if TYPE_CHECKING:
    from farmwatch.config import Config
    from stream.log import Log


class By(enum.StrEnum):
    """What a rate may be split by."""

    SOURCE = "source"
    QUERY = "query"
    RANK = "rank"
    DAY = "day"


class SiteVerdict(enum.StrEnum):
    """Site verdicts."""

    LLM = "llm"
    HUMAN = "human"
    UNDECIDED = "undecided"
    UNCLASSIFIABLE = "unclassifiable"


def rate(
    *,
    by: Annotated[By | None, Parameter(help="Split by source, query or rank of the hits, or by day.")] = None,
    json: AsJson = False,
    common: Common = DEFAULTS,
) -> int:
    """The share of LLM sites with its interval and all its denominators; one line per ruleset and detector.

    By day: of each site's latest row, in UTC. A site counts on one day, so that this is no history of the rate.

    JSON: one object a line, with the fields of `estimate`, the group, the versions and the detector's warning.
    """
    import msgspec

    from farmwatch.caveats import caveats, tell
    from farmwatch.rating import rate_lines
    from farmwatch.site_table import read_sites

    config = common.load().config
    with opened(config) as log:
        rows = read_sites(log)
        open_sites, waiting = _still_to_come(log, config)
    lines = rate_lines(rows, by.value if by else "", config.rate.errors, config.rate.confidence, open_sites)
    warnings = caveats(config, (line.detector for line in lines))
    if not rows and waiting:
        message(f"{counted(waiting, 'hit')} {'waits' if waiting == 1 else 'wait'}; start `farmwatch up`")
    if json:
        for line in lines:
            put_json({**msgspec.to_builtins(line), "warning": warnings[line.detector]})
        return Exit.OK
    for line in lines:
        group = f"{line.by} {line.group}: " if line.by else ""
        put(f"{group}{line.text}")
        put(
            f"  {line.sites} sites: {line.llm} llm, {line.human} human, {line.undecided} undecided,"
            f" {line.unclassifiable} unclassifiable; ruleset {line.ruleset or '-'} {line.digest or '-'};"
            f" detector {line.detector or '-'}"
        )
    tell(warnings)
    return Exit.OK


def _still_to_come(log: Log, config: Config) -> tuple[int | None, int]:
    """Sites that the crawl has not done with, and hits that it has not read.

    On a broker the frontier is not looked at: its state would have to be read back from the changelog.
    """
    from crawler.crawl_stage import frontier_left
    from farmwatch.flow import lag_of
    from stream.topics import DECISIONS, HITS

    topics = log.topics()
    if HITS not in topics or DECISIONS not in topics:
        return None, 0
    embedded = config.log.url.startswith("sqlite:")
    return frontier_left(log, topics[HITS]).active if embedded else None, lag_of(log, "crawl")


def sites(
    *,
    verdict: Annotated[SiteVerdict | None, Parameter(help="Only sites with this verdict.")] = None,
    limit: Annotated[int, Parameter(help="Rows at most; 0 = all.")] = 100,
    json: AsJson = False,
    common: Common = DEFAULTS,
) -> int:
    """One row per site: its verdict and what that rests on; the detector's warning on stderr.

    A row is of one ruleset: the one that judged the site last. JSON: one object a line.
    """
    import msgspec

    from farmwatch.caveats import caveats, tell
    from farmwatch.site_table import COLUMNS, read_sites, ruleset_of

    if limit < 0:
        raise UsageError("--limit: 0 or more")
    config = common.load().config
    with opened(config) as log:
        rows = read_sites(log)
    found = [row for row in rows if verdict is None or row.verdict == verdict]
    shown = found[: limit or None]
    warnings = caveats(config, (row.detector for row in shown))
    if json:
        for row in shown:
            put_json({name: msgspec.to_builtins(getattr(row, name)) for name in SITE_FIELDS})
        tell(warnings, short=True)
        return Exit.OK
    numbers = ("pages", "articles", "scored", "flagged", "used", "llr")
    put_table(
        ("site", "verdict", *numbers, "most dropped by", "ruleset", "detector"),
        (
            (
                row.site,
                row.verdict,
                row.pages,
                row.articles,
                row.scored,
                row.flagged,
                row.pages_used,
                round(row.llr, 2),
                max(row.dropped_by, key=lambda rule: row.dropped_by[rule], default=""),
                ruleset_of(row),
                row.detector,
            )
            for row in shown
        ),
        less=("llr", "most dropped by", "scored", "used", "flagged"),
        same=("ruleset", "detector"),
    )
    if shown:
        message(COLUMNS)
    message(f"{len(shown)} of {len(found)} sites shown; {len(rows)} in the log")
    tell(warnings, short=True)
    return Exit.OK


def topics(
    *,
    create: Annotated[bool, Parameter(negative="", help="Create the topics that are missing.")] = False,
    json: AsJson = False,
    common: Common = DEFAULTS,
) -> int:
    """The topics of the log: partitions, records, first and last offsets, and how far each group is behind."""
    from farmwatch.flow import topic_states

    config = common.load().config
    with opened(config, create=create) as log:
        if create:
            from farmwatch.roles import create_topics

            create_topics(log, config)
        states = topic_states(log)
    if json:
        put_json(
            [
                {
                    "topic": state.name,
                    "partitions": state.partitions,
                    "records": state.records,
                    "beginning": state.beginning,
                    "end": state.end,
                    "lag": state.lag,
                }
                for state in states
            ]
        )
        return Exit.OK
    put_table(
        ("topic", "partitions", "records", "beginning", "end", "lag"),
        (
            (
                state.name,
                state.partitions,
                state.records,
                sum(state.beginning),
                sum(state.end),
                ", ".join(f"{group} {behind}" for group, behind in state.lag.items()),
            )
            for state in states
        ),
    )
    if not states:
        message("no topics yet: `farmwatch topics --create`, or `farmwatch up`")
    return Exit.OK


SITE_FIELDS = (
    "site",
    "verdict",
    "pages",
    "articles",
    "scored",
    "abstained",
    "flagged",
    "pages_used",
    "llr",
    "dropped_by",
    "sources",
    "queries",
    "best_rank",
    "hits",
    "ruleset",
    "digest",
    "detector",
    "updated_at",
    "run",
)
