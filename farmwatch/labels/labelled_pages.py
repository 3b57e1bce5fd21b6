"""Labelled pages of a folder, measured as a live run measures pages, to evaluate rulesets and extractors.

The layout: `FOLDER/<source>/gold.jsonl` has a line for each page and `FOLDER/<source>/html/<id>.html.zst` its HTML, in
UTF-8; `id` is the SHA-256 of the HTML, in hex. In a line, `url`, `name`, `page_type` (the kind of page by human label)
and `articleBody` (the main text, by people) may be absent or null; `with` and `without` are segments inside and outside
of the main text. Other keys are ignored. The file `FOLDER/<source>/LICENSE` may say the licence of the labels.

A page belongs to the site of its URL, as in a live run, and the pages of a site are taken in the order of the file; so
`duplicate_share` is that of a crawl with exactly these pages, and lower than live. Sources are separate. A page without
a URL that a crawler could fetch is alone on its site, and its `url_path` is unknown.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import msgspec
import zstandard

from crawler.errors import UnusableUrl
from crawler.web.urls import normalise, site_of
from farmwatch.terminal.jsonl import JsonLines, batches
from farmwatch.terminal.messages import message
from filters.rules.evaluation import LabelledVerdict
from filters.rules.judgement import judge
from filters.rules.ruleset import Ruleset
from filters.settings import MeasureSettings
from filters.stages.measure import MeasureStage
from stream.log.sql_state import MemoryState
from stream.processing.metrics import Meter
from stream.processing.stage import Context
from stream.processing.state import KeyedState
from stream.schema.records import Features, Page, decode
from stream.text.user_errors import Exit, FarmwatchError, UsageError

HTML_CAP_BYTES = 64 * 1024 * 1024  # of one page, inflated
_LICENCE_CHARS = 100
_BATCH = 32  # pages in memory at once
_ID = re.compile("[0-9a-f]{64}")


class _GoldLine(msgspec.Struct):
    """A line of `gold.jsonl`; other keys are ignored."""

    id: str
    name: str | None = None
    url: str | None = None
    page_type: str | None = None
    articleBody: str | None = None
    belongs: tuple[str, ...] | None = msgspec.field(name="with", default=None)
    foreign: tuple[str, ...] | None = msgspec.field(name="without", default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """The human label of a page. Without one, `page_type`, `name` and `url` are "" and `gold` is None."""

    source: str
    id: str
    place: str  # file and line, for messages
    name: str = ""
    url: str = ""  # normalised
    page_type: str = ""
    gold: str | None = None  # the main text
    belongs: tuple[str, ...] = ()  # segments of the main text
    foreign: tuple[str, ...] = ()  # segments of the rest of the page

    @property
    def site(self) -> str:
        """That of the URL; a page without one is alone on its site."""
        return site_of(self.url) if self.url else self.id


@dataclass(frozen=True, slots=True)
class LabelledPage:
    """A labelled page and its features, whose `text` is the main text that was extracted."""

    label: Label
    features: Features

    def judged(self, ruleset: Ruleset) -> LabelledVerdict:
        """Its verdict under a ruleset."""
        return LabelledVerdict(self.label.page_type, self.label.source, judge(self.features, ruleset))


class LabelledPages:
    """The pages of a folder. Damage is reported to `bad` with file and line, and skipped; `skipped` counts it."""

    def __init__(self, folder: Path, sources: Sequence[str] = (), *, on_bad: Callable[[str], None] = message) -> None:
        """Read the labels of the given sources, of all by default.

        Raises FarmwatchError for a folder without labelled pages, UsageError for a source that is not in it.
        """
        self.skipped = 0
        self._folder = folder
        self._on_bad = on_bad
        there = sorted(file.parent.name for file in folder.glob("*/gold.jsonl"))
        if not there:
            raise FarmwatchError(f"{folder}: no labelled pages: there is no <source>/gold.jsonl in it")
        for source in sources:
            if source not in there:
                raise UsageError(f"{folder}: no source {source!r}; there are {', '.join(there)}")
        self.sources = [source for source in there if not sources or source in sources]
        self.labels = [label for source in self.sources for label in self._labels(source)]

    @property
    def exit(self) -> Exit:
        return Exit.PROBLEM if self.skipped else Exit.OK

    def narrow(self, is_wanted: Callable[[Label], bool]) -> None:
        """Leave out the other pages, which are then not measured."""
        self.labels = [label for label in self.labels if is_wanted(label)]

    def measured(
        self, settings: MeasureSettings, advance: Callable[[int], None] = lambda _: None
    ) -> Iterator[LabelledPage]:
        """Every page with its features, in order; `advance` gets the number of labels processed since.

        Extraction runs in `settings.workers` processes, which end at the end.
        """
        with closing(MeasureStage(settings)) as stage:
            for partition, source in enumerate(self.sources):
                state = KeyedState(MemoryState())
                for batch in batches(((label.place, label) for label in self.labels if label.source == source), _BATCH):
                    pages = list(self._pages(label for _, label in batch))
                    prepared = stage.prepare([page for _, page in pages])
                    for (label, page), measures in zip(pages, prepared, strict=True):
                        context = Context(partition, state, Meter(), now_ms=0)
                        stage.process(page, measures, context)
                        output, *_ = context.outputs  # a row of its template may follow
                        assert output.value is not None
                        yield LabelledPage(label, decode(Features, output.value))
                    advance(len(batch))

    def htmls(self, advance: Callable[[int], None] = lambda _: None) -> Iterator[tuple[Label, str]]:
        """Every page with its HTML, in order; `advance` gets the number of labels processed since."""
        for label in self.labels:
            for _, page in self._pages([label]):
                html = zstandard.ZstdDecompressor().decompressobj().decompress(page.body)
                yield label, html.decode("utf-8", "replace")
            advance(1)

    def licence(self, source: str) -> str:
        """The first line of the file LICENSE in the folder of a source; "" = no such file."""
        try:
            text = (self._folder / source / "LICENSE").read_text("utf-8", "replace")
        except OSError:
            return ""
        return text.strip().partition("\n")[0][:_LICENCE_CHARS]

    def _labels(self, source: str) -> Iterator[Label]:
        file = self._folder / source / "gold.jsonl"
        lines = JsonLines([file], _GoldLine, "rulesets evaluate", on_bad=lambda line: self._on_bad(f"{file}: {line}"))
        seen: set[str] = set()
        for place, gold in lines:
            if not _ID.fullmatch(gold.id):
                lines.bad(place, f"id {gold.id!r} is no SHA-256 in lower-case hex")
            elif gold.id in seen:
                lines.bad(place, f"page {gold.id} has a line already", "twice")
            else:
                seen.add(gold.id)
                yield _label(source, gold, f"{file}: {place}")
        lines.end()
        self.skipped += lines.skipped

    def _pages(self, labels: Iterable[Label]) -> Iterator[tuple[Label, Page]]:
        """The pages as a crawl would have stored them, except those with a damaged file."""
        for label in labels:
            file = self._folder / label.source / "html" / f"{label.id}.html.zst"
            try:
                body = _checked(file, label.id)
            except OSError as error:
                self._bad(label.place, f"html/{file.name}: cannot be read: {error.strerror}")
            except zstandard.ZstdError:
                self._bad(label.place, f"html/{file.name}: no zstd file, or a damaged one")
            except ValueError as error:
                self._bad(label.place, f"html/{file.name}: {error}")
            else:
                page = Page(id=label.id, site=label.site, page_id=label.id, url=label.url, encoding="utf-8", body=body)
                yield label, page

    def _bad(self, place: str, reason: object) -> None:
        self.skipped += 1
        self._on_bad(f"{place}: {' '.join(str(reason).split())}")


def _checked(file: Path, ident: str) -> bytes:
    """Content of a page's file. Raises OSError, ZstdError, and ValueError if its id differs."""
    body = file.read_bytes()
    with zstandard.ZstdDecompressor(max_window_size=2**27).stream_reader(io.BytesIO(body)) as reader:
        html = reader.read(HTML_CAP_BYTES + 1)
    if len(html) > HTML_CAP_BYTES:
        raise ValueError(f"above {HTML_CAP_BYTES // 1024**2} MiB")
    if hashlib.sha256(html).hexdigest() != ident:
        raise ValueError("the SHA-256 of its content is not its id")
    return body


def _label(source: str, gold: _GoldLine, place: str) -> Label:
    try:
        url = normalise(gold.url or "")
    except UnusableUrl:
        url = ""  # some collections have their own page names there
    return Label(
        source=source,
        id=gold.id,
        name=gold.name or "",
        url=url,
        page_type=gold.page_type or "",
        gold=gold.articleBody or None,
        belongs=gold.belongs or (),
        foreign=gold.foreign or (),
        place=place,
    )
