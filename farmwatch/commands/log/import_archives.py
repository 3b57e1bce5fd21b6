"""`farmwatch log import`: appends pages of WARC files to the log."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import Annotated, BinaryIO, cast

from cyclopts import Parameter

from crawler.stages.hit_records import KnownHits
from crawler.warc.pages import Skipped, pages_of
from farmwatch.commands.options import DEFAULTS, AsJson, Common, host_of
from farmwatch.config.opening import opened
from farmwatch.config.topic_limits import create_missing
from farmwatch.crawl.archive_import import ImportSummary, MeasuredStream, import_pages, imports_lock
from farmwatch.daemon import page_inspector
from farmwatch.terminal.jsonl import STDIN, binary_input
from farmwatch.terminal.messages import counting, message, put, put_json
from stream.schema.dates import CHATGPT
from stream.text.user_errors import Exit, FarmwatchError, UsageError
from stream.text.wording import counted, one_line

_SOURCE = re.compile(r"[a-z0-9_.-]{1,32}")  # a valid label of a metric
_NAMED = 100  # broken records of a file that are named; others are counted


def import_archives(
    files: Annotated[list[Path], Parameter(help="WARC files (.warc, .warc.gz); `-` is stdin.", negative="")],
    /,
    *,
    source: Annotated[str, Parameter(help="Source of hits that the pages are counted under.")] = "warc",
    site: Annotated[list[str] | None, Parameter(help="Only pages of this host; may be repeated.", negative="")] = None,
    controls: Annotated[
        bool,
        Parameter(
            negative="",
            help="Take pages that were fetched before ChatGPT (2022-11-30) as controls, which count in no share.",
        ),
    ] = False,
    json: AsJson = False,
    common: Common = DEFAULTS,
) -> int:
    """Append the pages of WARC files to the log, as if they had been crawled.

    The rules are those of the crawl: HTML, cut at crawl.body_bytes. A parked domain, a bot challenge and the like has a
    record that says so. Records that are passed over are counted by reason. A broken record is reported with its file
    and offset and skipped.

    With --controls, pages of old archives, such as Common Crawl's, are surely human by the time of their fetch: `rate`,
    `review controls` and `lab calibrate --from-controls` say what the detector flags of them. Their sites end in
    .archive.human.canary.invalid, are never crawled, and count in no share. Newer pages are passed over.

    For 90 days, a record is appended once: after an interruption, import the same files again. Imports may run side by
    side on one machine. Exit code 1: a record is broken, or there was no page, new or known.
    """
    if not _SOURCE.fullmatch(source):
        raise UsageError(f"--source {source!r}: use up to 32 of a-z, 0-9, '_', '.' and '-'")
    sites = [host_of(name) for name in site or ()]
    for file in files:
        if file.suffix == ".zst":
            raise UsageError(f"{file}: WARC files in zstd are not read; unpack it first: zstd -d {file.name}")
        if str(file) not in STDIN:
            file.open("rb").close()  # an error comes before a log is made
    config = common.load().config
    total = ImportSummary()
    size_bytes = sum(file.stat().st_size for file in files if file.is_file())
    with opened(config, create=True) as log, counting(size_bytes, "of the input") as advance:
        create_missing(log, config)
        imports = KnownHits(log, imports_lock(config))
        with imports.hold():
            pass  # known pages are skipped before they are parsed
        for file in files:
            with binary_input(file, packed=False) as stream:  # of .warc.gz, each member is reported
                records = pages_of(
                    cast(BinaryIO, MeasuredStream(stream, advance)),
                    config.crawl,
                    now_ms=int(time.time() * 1000),
                    source=source,
                    sites=sites,
                    known=imports.ids,
                    inspector=page_inspector,
                    as_controls=controls,
                )
                try:
                    added = import_pages(log, records, imports, partial(_report_broken, file, count(1)))
                except OSError as error:
                    raise FarmwatchError(f"{file}: cannot be read on: {error.strerror or error}") from error
            if added.broken > _NAMED:
                message(f"{file}: {counted(added.broken - _NAMED, 'more broken record')}")
            total.pages += added.pages
            total.no_pages += added.no_pages
            total.skipped += added.skipped
            total.broken += added.broken
    skipped, no_pages = _by_number(total.skipped), _by_number(total.no_pages)
    if json:
        counts = {"pages": total.pages, "no_page_reasons": no_pages, "skipped": total.skipped.total()}
        put_json({**counts, "skipped_reasons": skipped, "broken": total.broken})
    else:
        said = [f"{counted(total.pages, 'page')} imported, {counted(total.broken, 'broken record')}"]
        for what, reasons in (("no page", no_pages), ("passed over", skipped)):
            if reasons:
                said.append(f"{what}: " + ", ".join(f"{count} {reason}" for reason, count in reasons.items()))
        put("; ".join(said))
    if total.skipped["private_address"]:
        message("--set crawl.allow_private=true lets in what comes from addresses that are not public")
    if controls and not total.pages and (total.skipped["fetched_later"] or total.broken):
        message(f"no page was surely fetched before {CHATGPT}, by its WARC-Date: there are no controls here")
    if not (total.pages or total.skipped or total.broken):
        message("nothing was imported: there is no record")
    return Exit.OK if not total.broken and (total.pages or total.skipped["known"]) else Exit.PROBLEM


def _by_number(reasons: Counter[str]) -> dict[str, int]:
    return dict(sorted(reasons.items(), key=lambda item: (-item[1], item[0])))


def _report_broken(file: Path, numbers: Iterator[int], bad: Skipped) -> None:
    if next(numbers) <= _NAMED:
        url = f"{one_line(bad.url)}: " if bad.url else ""
        message(f"{file}: offset {bad.offset}: {url}{one_line(bad.reason)}")
