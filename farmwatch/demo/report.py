"""Prints the result of the demo: sites, rate and denominators."""

from __future__ import annotations

import shlex
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import msgspec

from farmwatch.audit.report import AuditReport
from farmwatch.share.site_lines import SITE_COLUMNS, verdict_words
from farmwatch.share.words import line_fields, text_of
from farmwatch.terminal.messages import put, put_json, put_table, put_wrapped
from scoring.rates.settings import RateSettings
from scoring.rates.split_rates import RateLine, RateQuery, rate_lines
from stream.schema.records import SiteState
from stream.schema.runs import shown_run
from stream.schema.vocabulary import DECIDED, SiteClass


@dataclass(frozen=True, slots=True)
class DemoResult:
    """The result of the demo.

    `truth` has who wrote each site, `expected` its expected verdict; `kept` is the folder that stays. `is_served`: the
    console comes next.
    """

    rows: list[SiteState]
    truth: dict[str, str]
    expected: dict[str, str]
    report: AuditReport
    pages: int
    seconds: float
    detector: str
    warning: str
    ruleset: str
    digest: str
    rate: RateSettings
    kept: Path | None
    is_served: bool = False

    @property
    def rates(self) -> list[RateLine]:
        """The rate of all sites; none is crawled any more at the end of the demo."""
        return [
            msgspec.structs.replace(line, crawling=0) for line in rate_lines(self.rows, RateQuery(settings=self.rate))
        ]

    @property
    def agreeing(self) -> int:
        """Number of sites with the expected verdict."""
        return sum(self.expected.get(row.site) == row.verdict for row in self.rows)


def print_result(result: DemoResult) -> None:
    """Print the result as text."""
    title = f"{len(result.rows)} sites, {result.pages} pages fetched, {result.seconds:.0f} s"
    headings = ("site", "truth", "verdict", "pages", "articles", "flagged", "pages_used", "most_dropped_by")
    rows = [
        (
            *(row.site, result.truth.get(row.site, "-"), verdict_words(row.verdict, row.scored)),
            *(row.pages, row.articles, row.flagged, row.pages_used),
            max(row.dropped_by, key=row.dropped_by.__getitem__, default=""),
        )
        for row in sorted(result.rows, key=lambda row: (list(SiteClass).index(SiteClass(row.verdict)), row.site))
    ]
    shown = put_table(headings, rows, title, less=("most_dropped_by", "pages_used", "flagged"))
    meanings = {column.name: column.meaning for column in SITE_COLUMNS if column.meaning}
    legend = [f"{heading}: {meanings[heading]}" for heading in shown if heading in meanings]
    put_wrapped("; ".join(("truth: who wrote the site", *legend)))
    put("")
    for line in result.rates:
        put_wrapped(f"Share of LLM sites: {text_of(line.remarks)}", " " * 6)
        true = [result.truth.get(row.site) for row in result.rows if row.scored]
        not_judged = f"{line.sites - line.scored_sites} of {line.sites} not judged"
        put(f"      in truth {true.count('llm')} of {len(true)}; {not_judged}")
        put(f"      decided one by one: {line.llm} llm, {line.human} human; {line.open_of_scored} open")
    judged = [row for row in result.rows if row.verdict in DECIDED]
    right = sum(result.truth.get(row.site) == row.verdict for row in judged)
    of_all = f"of all, {result.agreeing} of {len(result.rows)}"
    put(f"Truth: the verdicts of {right} of the {len(judged)} decided sites are right; {of_all} as expected")
    put(f"Audit: {result.report.text}")
    put(f"Versions: ruleset {result.ruleset} {result.digest}, detector {result.detector}")
    put_wrapped(f"Warning: {result.warning.partition('. ')[0].removesuffix('.')}. In full: `farmwatch lab detectors`")
    put_wrapped(
        "This web was made on this machine for the demo: the share shows that the parts work, and says nothing about"
        " the real web."
    )
    put("")
    for line_of_advice in _advice(_program(), result.kept, is_served=result.is_served):
        put(line_of_advice)


def print_json(result: DemoResult) -> None:
    """Print the result as JSON."""
    columns = ("site", "verdict", "pages", "articles", "flagged", "pages_used")
    sites = [
        {
            "truth": result.truth.get(row.site),
            "expected": result.expected.get(row.site),
            **{name: getattr(row, name) for name in columns},
        }
        for row in result.rows
    ]
    versions = {name: getattr(result, name) for name in ("ruleset", "digest", "detector", "warning")}
    put_json(
        {
            "seconds": round(result.seconds, 1),
            "pages": result.pages,
            "sites": sites,
            "rates": [line_fields(line) | {"run": shown_run(line.run)} for line in result.rates],
            "agreeing": result.agreeing,
            "audit_ok": result.report.ok,
            **versions,
            "kept": str(result.kept) if result.kept else None,
        }
    )


def _advice(program: str, kept: Path | None, *, is_served: bool) -> list[str]:
    if kept is not None:
        options = f"--config {shlex.quote(str(kept / 'farmwatch.toml'))}"
        lines = [
            "Next, with the kept log:",
            f"  {program} console {options}     # look at it in a browser",
            f"  {program} sites {options}",
            f"  {program} page {options} URL        # which rules a page passed and failed, and its score",
            f"  {program} doctor audit {options}",
            f"  {program} replay {options} --ruleset notes --name notes     # the same pages under another ruleset;"
            " then `compare live notes`",
        ]
    else:
        lines = [
            "Next:",
            f"  {program} demo --serve          # look at it in a browser: the demo once more, then the console",
            f"  {program} demo --keep DIR       # keep the log, and inspect it with sites, page, doctor audit, replay",
            f"  {program} hits add FILE         # your own search results",
            f"  {program} up                    # set crawl.contact first; then rate, and the console at its address",
        ]
    return [lines[0], *lines[2:]] if is_served else lines


def _program() -> str:
    """The word with which a shell starts this farmwatch again: after `make demo` it is not on the PATH."""
    called = sys.argv[0]
    if Path(called).name != "farmwatch":
        return f"{shlex.quote(sys.executable)} -P -m farmwatch"
    on_path = shutil.which("farmwatch")
    return "farmwatch" if on_path is not None and Path(on_path).samefile(called) else shlex.quote(called)
