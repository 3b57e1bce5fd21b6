"""The commands `review canaries`: those sent and processed, with the measured errors; and a file of them, made."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import attrgetter
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from crawler.warc.pages import ArchivedPage, pages_of
from farmwatch.canaries.file import CanarySite
from farmwatch.canaries.lines import MeasuredCanaries, read_canary_lines
from farmwatch.canaries.maker import LEAST_PAGES, CanaryMaker
from farmwatch.commands.options import DEFAULTS, Common
from farmwatch.config.config import Config
from farmwatch.config.detector_config import print_caveats
from farmwatch.config.opening import opened
from farmwatch.daemon import page_inspector
from farmwatch.tables.columns import Column, columns_of
from farmwatch.tables.files import require_new
from farmwatch.tables.listing import LISTING, Listing
from farmwatch.terminal.jsonl import binary_input
from farmwatch.terminal.messages import message, put
from scoring.estimate.intervals import Interval
from scoring.rates.canary_counts import CANARY_LEAST, CanaryPages
from scoring.rates.versions import Versions
from stream.log.contract import wall_ms
from stream.processing.topic_reader import records_of
from stream.schema.records import Page
from stream.schema.topics import PAGES
from stream.schema.vocabulary import SiteClass, Truth
from stream.text.user_errors import Exit, UsageError
from stream.text.wording import counted

canaries = App(name="canaries")


@dataclass(frozen=True, slots=True)
class _OfTruth:
    """The canaries of one truth, of one ruleset, detector and site method."""

    line: MeasuredCanaries
    truth: str
    shares: Mapping[str, Interval]

    def interval(self, kind: str) -> Interval | None:
        """The share of this kind: site_, page_ or kept_."""
        of_truth = self.truth if kind == "kept_" else "tpr" if self.truth == Truth.LLM else "fpr"
        return self.shares.get(f"{kind}{of_truth}")


def _pages(name: str) -> Column[_OfTruth]:
    return Column(name, "integer", lambda row: getattr(row.line.summary.pages[row.truth], name))


def _sites(verdict: str) -> Column[_OfTruth]:
    return Column(verdict, "integer", lambda row: row.line.summary.sites[row.truth].get(verdict, 0))


def _share(name: str, kind: str, meaning: str) -> Iterator[Column[_OfTruth]]:
    """A share with the ends of its interval."""

    def said(row: _OfTruth) -> str:
        share = row.interval(kind)
        return "" if share is None else f"{share.point:.1%} ({share.low:.1%} to {share.high:.1%})"

    def end(field: str) -> Callable[[_OfTruth], float | None]:
        return lambda row: None if (share := row.interval(kind)) is None else getattr(share, field)

    yield Column(name, "share", end("point"), meaning=meaning, said=said)
    yield Column(f"{name}_low", "share", end("low"))
    yield Column(f"{name}_high", "share", end("high"))


_COLUMNS: list[Column[_OfTruth]] = [
    Column("truth", "text", attrgetter("truth"), values=tuple(Truth)),
    Column("sites", "integer", lambda row: sum(row.line.summary.sites[row.truth].values())),
    *map(_sites, SiteClass),
    *map(_pages, CanaryPages.__struct_fields__),
    *_share("called_llm", "site_", "of the classifiable sites"),
    *_share("flagged_share", "page_", "of the scored pages; in its interval whole sites vary"),
    *_share("kept_share", "kept_", "of the pages sent, by the ruleset"),
    Column("through", "integer", attrgetter("line.through"), meaning="sites of the present round that came through"),
    Column("last_at", "time", attrgetter("line.summary.last_at"), meaning="when the newest page was sent"),
    *columns_of(Versions, path="line.versions."),
    Column("correction", "text", attrgetter("line.correction")),
    Column("warning", "text", attrgetter("line.warning")),
]
_SHOWN = (
    *("truth", "sites", *SiteClass, "called_llm", "flagged_share", "kept_share", "sent", "through"),
    *("last_at", "ruleset", "digest", "detector", "site_method"),
)


@canaries.default
def show_canaries(*, listing: Listing = LISTING, common: Common = DEFAULTS) -> int:
    """Canaries: pages of known truth (canary.file) that all stages process, and their verdicts.

    One row per truth, ruleset, detector and site method: of each label and each content one round, the newest that is
    not on its way, within rate.canary_days.
    """
    selection = listing.of(_COLUMNS)
    config = common.load().config
    with opened(config) as log:
        sent, number, lines = read_canary_lines(log, config, wall_ms())
    if not sent:
        message("no canaries are sent: canary.file names no file of pages, see docs/how-to/canaries.md")
    elif listing.is_table:
        _put_sent(config, sent, number)
    selection.put((_OfTruth(line, truth, line.shares) for line in lines for truth in line.summary.pages), "row", _SHOWN)
    if listing.is_table:
        for correction in dict.fromkeys(line.correction for line in lines):
            message(correction)
        print_caveats({line.versions.detector: line.warning for line in lines}, short=True)
    return Exit.OK


@canaries.command(name="make")
def make_canaries(
    file: Annotated[Path, Parameter(help="File to write: .jsonl, .jsonl.gz or .jsonl.zst; for canary.file.")],
    /,
    *,
    human: Annotated[
        list[str] | None,
        Parameter(
            help="Source of human pages: a log (sqlite:FOLDER, kafka:HOST:PORT) or a WARC file; may be repeated.",
            negative="",
        ),
    ] = None,
    llm: Annotated[
        list[Path] | None,
        Parameter(help="Folder of texts by language models (.txt, .md), one a page; may be repeated.", negative=""),
    ] = None,
    common: Common = DEFAULTS,
) -> int:
    """Make a file of canaries: human sites of pages captured before November 2022, LLM sites of folders of texts.

    Human pages come from a log, for example one that `hits search --source commoncrawl` filled from a crawl of
    2022 or before, or from WARC files. The texts of one folder make one LLM site, or several of canary.pages texts. A
    site needs 15 pages. An existing file is not replaced.

    Exit code 1 if a truth that was asked for has fewer than 20 sites, 2 if there is none at all.
    """
    if not human and not llm:
        raise UsageError("give --human LOG or WARC, or --llm FOLDER, or both")
    require_new(file)
    config = common.load().config
    maker = CanaryMaker(config.canary.pages)
    for source in human or ():
        maker.add_human(_pages_of(source, common))
    maker.end_human()
    for folder in llm or ():
        maker.add_llm(folder)
    for reason, pages in maker.skipped.items():
        message(f"{counted(pages, 'page')} skipped: {reason}")
    for truth, sites in maker.small.items():
        message(f"{counted(sites, f'{truth} site')} left out: fewer than {LEAST_PAGES} pages")
    if not maker.lines:
        raise UsageError("no site has enough pages: nothing was written")
    maker.write(file)
    few = False
    for truth, asked in ((Truth.HUMAN, human), (Truth.LLM, llm)):
        if asked:
            sites, pages = len(maker.labels[truth]), sum(line.truth == truth for line in maker.lines)
            put(f"{truth}: {counted(sites, 'site')}, {counted(pages, 'page')}")
            few |= sites < CANARY_LEAST
    if few:
        message(f"fewer than {CANARY_LEAST} sites of a truth correct nothing: add some")
    return Exit.PROBLEM if few else Exit.OK


def _pages_of(source: str, common: Common) -> Iterator[Page]:
    """The pages of a log or of a WARC file. Raises FarmwatchError."""
    if source.startswith(("sqlite:", "kafka:")):
        with opened(common.load(f"log.url={source}").config) as log:
            for partition in range(log.topics().get(PAGES, 0)):
                yield from (page for _, page in records_of(Page, log.read(PAGES, partition)))
        return
    with binary_input(Path(source), packed=False) as stream:
        settings = common.load().config.crawl
        for capture in pages_of(stream, settings, now_ms=wall_ms(), inspector=page_inspector):
            if isinstance(capture, ArchivedPage):
                yield capture.page


def _put_sent(config: Config, sent: Sequence[CanarySite], number: int) -> None:
    since = datetime.fromtimestamp(number * config.canary.every_s, UTC).strftime("%Y-%m-%d %H:%M")
    for truth in Truth:
        of_truth = [site for site in sent if site.truth == truth]
        pages = sum(len(site.pages) for site in of_truth)
        newest = max((site.newest for site in of_truth if site.newest), default=None)
        written = f", the newest written on {newest}" if newest else ""
        message(f"{truth}: {counted(len(of_truth), 'site')} of {counted(pages, 'page')} a round{written}")
    message(f"a round every {config.canary.every_s} s; the present one, {number}, began {since} UTC")
