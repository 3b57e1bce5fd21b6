"""The commands `review canaries`: those sent and processed, with the measured errors; and a file of them, made."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import App, Parameter

from crawler.warc.pages import ArchivedPage, pages_of
from farmwatch.canaries.file import CanarySite
from farmwatch.canaries.lines import SAID, MeasuredCanaries, read_canary_lines
from farmwatch.canaries.maker import LEAST_PAGES, CanaryMaker
from farmwatch.commands.options import DEFAULTS, AsJson, Common
from farmwatch.config.config import Config
from farmwatch.config.detector_config import print_caveats
from farmwatch.config.opening import opened
from farmwatch.daemon import page_inspector
from farmwatch.terminal.jsonl import binary_input
from farmwatch.terminal.messages import message, put, put_json, put_table
from scoring.rates.canary_counts import CANARY_LEAST
from stream.processing.topic_reader import records_of
from stream.schema.records import Page
from stream.schema.topics import PAGES
from stream.schema.vocabulary import SiteClass, Truth
from stream.text.user_errors import Exit, UsageError
from stream.text.wording import counted

canaries = App(name="canaries")


@canaries.default
def show_canaries(*, json: AsJson = False, common: Common = DEFAULTS) -> int:
    """Canaries: pages of known truth (canary.file) that all stages process, and their verdicts.

    Counted per ruleset, detector and site method: of each label and each content one round, the newest that is not on
    its way, within rate.canary_days. In the intervals of page shares whole sites vary, for pages of a site agree.

    JSON: one object a line, for each ruleset, detector and site method.
    """
    config = common.load().config
    with opened(config) as log:
        sent, number, lines = read_canary_lines(log, config, int(time.time() * 1000))
    if not sent:
        message("no canaries are sent: canary.file names no file of pages, see docs/how-to/canaries.md")
    elif not json:
        _put_sent(config, sent, number)
    if not lines:
        message("no canary site has come through")
        return Exit.OK
    for line in lines:
        if json:
            put_json(line.fields())
        else:
            _show(line)
    if not json:
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
    if file.exists():
        raise UsageError(f"{file} exists: choose another name, or remove it")
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
        for capture in pages_of(stream, settings, now_ms=int(time.time() * 1000), inspector=page_inspector):
            if isinstance(capture, ArchivedPage):
                yield capture.page


def _put_sent(config: Config, sent: Sequence[CanarySite], number: int) -> None:
    since = datetime.fromtimestamp(number * config.canary.every_s, UTC).strftime("%Y-%m-%d %H:%M")
    for truth in Truth:
        of_truth = [site for site in sent if site.truth == truth]
        pages = sum(len(site.pages) for site in of_truth)
        newest = max((site.newest for site in of_truth if site.newest), default=None)
        written = f", the newest written on {newest}" if newest else ""
        put(f"{truth}: {counted(len(of_truth), 'site')} of {counted(pages, 'page')} a round{written}")
    put(f"a round every {config.canary.every_s} s; the present one, {number}, began {since} UTC")


def _show(line: MeasuredCanaries) -> None:
    versions, summary = line.versions, line.summary
    put(
        f"ruleset {versions.ruleset or '-'} {versions.digest or '-'}; detector {versions.detector or '-'};"
        f" site method {versions.site_method or '-'} {versions.site_method_digest or '-'}"
    )
    verdicts = tuple(SiteClass)
    put_table(
        ("truth", "sites", *verdicts, "pages sent", "measured", "kept", "scored", "flagged"),
        (
            (
                *(truth, sum(summary.sites[truth].values())),
                *(summary.sites[truth].get(verdict, 0) for verdict in verdicts),
                *msgspec.structs.astuple(pages),
            )
            for truth, pages in summary.pages.items()
        ),
    )
    for kind, share in summary.shares().items():
        put(f"{SAID[kind]}: {share.point:.1%} (95% interval {share.low:.1%} to {share.high:.1%})")
    last = datetime.fromtimestamp(summary.last_at / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    through = f"{line.through} of {line.sent}" if line.sent else "-"
    put(f"{line.correction}; sites of the present round that came through: {through}; the newest was sent {last} UTC")
