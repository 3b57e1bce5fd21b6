"""The commands that watch: `rate`, `sites`, `explain` and `topics`. They only read."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from farmwatch.errors import Exit, UsageError
from farmwatch.messages import counted, message, put, put_json, put_table
from farmwatch.options import DEFAULTS, AsJson, Common, opened

if TYPE_CHECKING:
    from farmwatch.config import Config
    from farmwatch.explaining import Explanation
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


def explain(
    page: Annotated[str, Parameter(help="URL of a page in the log, or a file of HTML.")],
    *,
    ruleset: Annotated[str | None, Parameter(help="Judge by this ruleset, not by the verdict in the log.")] = None,
    json: AsJson = False,
    common: Common = DEFAULTS,
) -> int:
    """Why a page was kept or dropped: every rule with its value, threshold and outcome, and the score.

    JSON: one object, with the fields of `judge`, the measures, the score and the detector's warning.
    """
    from pathlib import Path

    from crawler.errors import UnusableUrl
    from farmwatch.caveats import caveats, tell
    from farmwatch.explaining import as_json, explain_file, explain_url
    from farmwatch.roles import load_configured_detector, load_configured_ruleset
    from filters.ruleset import load_ruleset

    config = common.load().config
    rules = load_ruleset(ruleset) if ruleset else load_configured_ruleset(config)
    if "://" in page:
        try:
            with opened(config) as log:
                found = explain_url(log, page, rules, live=ruleset is None)
        except UnusableUrl as error:
            raise UsageError(str(error)) from error
    else:
        found = explain_file(Path(page), config, rules, load_configured_detector(config))
    scored_by = found.score.detector if found.score is not None else ""
    warnings = caveats(config, [scored_by])
    if json:
        put_json({**as_json(found), "warning": warnings[scored_by]})
    else:
        show(found)
        tell(warnings)
    return Exit.OK


def show(found: Explanation) -> None:
    """Print an explanation for people."""
    from filters.judging import explain_table

    features, verdict, score = found.features, found.verdict, found.score
    put(
        f"{features.url or features.page_id}: {verdict.verdict}"
        + (f" ({verdict.first_failed})" if verdict.first_failed else "")
    )
    put(f"ruleset {verdict.ruleset} {verdict.digest}, judged {found.judged}; features of epoch {features.epoch}")
    put(
        f"extraction: {features.extract_path}"
        + (f", error: {features.extract_error}" if features.extract_error else "")
    )
    put_table(
        ("rule", "value", "passes when", "outcome"),
        ((name, _whole(value), _whole(passes), outcome) for name, value, passes, outcome in explain_table(verdict)),
    )
    if score is None:
        put("score: none yet" if verdict.verdict == "article" else "score: none, only articles are scored")
    elif score.flag is None:
        put(f"score: the detector abstains: {score.abstain}")
    else:
        p = f", p(llm) {score.p_llm:.3f}{_threshold(score.detector)}" if score.p_llm is not None else ""
        put(f"score: {score.score:.3f}{p}, {'flagged' if score.flag else 'not flagged'}; {score.detector}")


def _whole(number: str) -> str:
    """A number of a table without the .0 of a whole one."""
    return number.removesuffix(".0")


def _threshold(identity: str) -> str:
    """The threshold of the detector that scored: the last part of its identity, as in lite-ngram/1a2b3c4d/p0.95."""
    last = identity.rpartition("/")[2]
    is_threshold = last.startswith("p") and last[1:].replace(".", "", 1).isdigit()
    return f" (flagged above {last[1:]})" if is_threshold else ""


def sites(
    *,
    verdict: Annotated[SiteVerdict | None, Parameter(help="Only sites with this verdict.")] = None,
    limit: Annotated[int, Parameter(help="Rows at most; 0 = all.")] = 100,
    json: AsJson = False,
    common: Common = DEFAULTS,
) -> int:
    """One row per site: its verdict and what that rests on; the detector's warning on stderr.

    JSON: one object a line.
    """
    import msgspec

    from farmwatch.caveats import caveats, tell
    from farmwatch.site_table import COLUMNS, read_sites

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
    put_table(
        ("site", "verdict", "pages", "articles", "scored", "flagged", "used", "llr", "most dropped by", "detector"),
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
                row.detector,
            )
            for row in shown
        ),
        less=("llr", "most dropped by", "scored", "used", "flagged"),
        same=("detector",),
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
