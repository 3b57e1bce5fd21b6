"""An explanation as text: verdict and rules, repeats, the score, and on request every measure."""

from __future__ import annotations

from collections.abc import Iterator

from farmwatch.explain.as_json import quality_by_name
from farmwatch.explain.explanation import PageExplanation
from farmwatch.explain.rules import put_rules, shortened, value_text
from farmwatch.explain.segments import is_outlined, page_verdict, shown_segments
from farmwatch.pipes.lines import structure_by_name
from farmwatch.share.signal_words import signal_words
from farmwatch.terminal.messages import put, put_table, put_wrapped
from filters.duplicates.repeats import Repeats
from filters.quality import names as quality_names
from filters.structure.names import MEANINGS
from stream.schema.dates import PageDates
from stream.schema.records import Score
from stream.schema.runs import shown_run
from stream.schema.vocabulary import KEPT
from stream.text.wording import counted, moment, one_line

_PASSAGES = 8  # repeated passages shown without --verbose
_FLAT = "links, lists and tables in it are unknown"
TEXTS = {  # name -> description of a text
    "main": "main text",
    "c4": "main text cleaned as C4 does",
    "nopunc": "main text without lines that end without punctuation",
    "own": "main text without template lines",
    "segments": "joined text of the segments that count",
    "fluent": "main text without unlikely sentences",
    "": "another text",
}
PATHS = {  # extraction paths in words
    "recall": "the inclusive mode (recall)",
    "precision": "the strict mode, because the text of recall was flat, or too much of it links or code (precision)",
    "blocks": "the classifier of text blocks (blocks)",
    "fallback": f"flat fallback: {_FLAT}",
    "plain": f"plain text: {_FLAT}",
    "none": "no main text",
}
ERRORS = {  # extraction errors in words
    "empty": "the page is only white space",
    "not_html": "it is not HTML: it has no element, or is a binary file",
    "too_large": "more bytes of main text than the cap",
    "too_many_elements": "more elements than measure.max_elements",
    "too_many_attributes": "an element with more attributes than any real page has",
    "too_deep": "elements are nested too deeply for the parser",
    "parser_stopped": "the parser stopped early; an unknown part is lost",
    "no_text": "no main text was found",
    "failed": "the extractor failed on it",
    "timeout": "extraction exceeded measure.time_limit_s",
    "out_of_memory": "extraction exceeded measure.memory_bytes",
    "worker_died": "the process that extracted it died",
}


def show(page: PageExplanation, *, everything: bool = False) -> None:
    """Print an explanation. Page text is printed on one line, without control characters."""
    features, verdict = page.features, page.verdict
    name = features.url if page.source == "log" else ", as ".join(filter(None, (features.page_id, features.url)))
    _print(f"{name}: {page_verdict(verdict.verdict, verdict.first_failed)}")
    judged = shown_run(verdict.run) if page.judged == "live" else page.judged
    fetched = f", fetched {moment(features.fetched_at)}" if features.fetched_at else ""
    _print(f"ruleset {verdict.ruleset} {verdict.digest}, judged {judged}; features of epoch {features.epoch}{fetched}")
    _print(f"extraction: {extraction(features.extract_path, features.extract_error)}")
    if features.dates and features.dates != PageDates():
        _print(dates_in_words(features.dates))
    first = features.measures.get("first_article")
    if isinstance(first, float) and features.extract_path == "blocks":
        _print(f"the first text, by Trafilatura, is no article: probability {first:.3f}")
    if features.measures.get("html_cut"):
        cap_bytes = page.settings.max_html_bytes
        _print(f"only its first part was read: the page has more bytes than measure.max_html_bytes ({cap_bytes})")
    put("")
    put_rules(page, everything=everything)
    put("")
    if page.reads not in ("", "main"):
        _print(f"quality rules read the {TEXTS[page.reads]}")
    for line in (
        *_segment_lines(page),
        *_sentence_lines(page),
        text_line(page),
        *_repeats_lines(page, everything=everything),
        score_line(page),
        *_signal_lines(page),
    ):
        _print(line)
    if everything:
        put("")
        _put_measures(page)


def dates_in_words(dates: PageDates) -> str:
    """When a page was published and changed, by what, and how sure that is."""
    parts = []
    if of := dates.published:
        sure = "trusted" if dates.trusted else ", ".join(dates.flags).replace("_", " ") or "not trusted"
        parts.append(f"published {of} by {of.source} ({counted(dates.agreeing, 'source')}, {sure})")
    if of := dates.modified:
        parts.append(f"changed {of} by {of.source}")
    return "; ".join(parts)


def _print(line: str) -> None:
    begins = len(line) - len(line.lstrip(" "))
    put_wrapped(one_line(line), " " * (begins + 2))


def _signal_lines(page: PageExplanation) -> Iterator[str]:
    if page.features.signals is not None:
        yield f"signals: {signal_words(page.features.signals)}"


def _segment_lines(page: PageExplanation) -> Iterator[str]:
    """A line for each kind; none where the main text is the only segment, and does not count as one."""
    segments = list(shown_segments(page))
    if page.features.segments is None and page.counted:
        yield "segments: not in this record, which is older"
    elif is_outlined(segments):
        yield "segments:"
        for of_kind in segments:
            records = f"{counted(of_kind.records, 'record')}, " if of_kind.records else ""
            how = f"not counted: {of_kind.why}" if of_kind.why else "counted"
            yield f"  {of_kind.kind}: {records}{counted(of_kind.words, 'word')}, {how}"


def _repeats_lines(page: PageExplanation, *, everything: bool) -> Iterator[str]:
    repeats = page.repeats
    if page.source == "file":
        yield "repeats: a file alone has no earlier pages"
        return
    if repeats is None:
        return
    if not repeats.compared:
        yield "repeats: the log has no earlier page of the site"
    elif not repeats.alike:
        yield f"repeats: nothing of {counted(repeats.compared, 'earlier page')} of the site"
    else:
        yield from _passages(repeats, everything=everything)
    if page.differs:
        yield f"  {page.differs}"


def _passages(repeats: Repeats, *, everything: bool) -> Iterator[str]:
    passages = repeats.passages()
    share = repeats.repeated_bytes / repeats.size_bytes
    yield (
        f"repeats: {share:.1%}, {repeats.repeated_bytes:,} of {repeats.size_bytes:,} bytes, of the main text are on"
        f" {repeats.alike:,} of {counted(repeats.compared, 'earlier page')} of the site"
    )
    shown = passages if everything else passages[:_PASSAGES]
    for passage in shown:
        where = f"first on {passage.seen_on[0]}"
        yield f"  {passage.size_bytes:,} bytes on {counted(passage.pages, 'page')}, {where}"
        yield f'    "{shortened(passage.text)}"'
    rest = passages[len(shown) :]
    if rest:
        bytes_left = sum(passage.size_bytes for passage in rest)
        yield f"  and {counted(len(rest), 'passage')} more, {bytes_left:,} bytes: --verbose shows them"


def _put_measures(page: PageExplanation) -> None:
    put_table(("measure", "value"), [(name, value_text(value)) for name, value in page.features.measures.items()])
    put("")
    quality = quality_by_name(page.features)
    if quality:
        texts = [text for text in quality_names.TEXTS if text in quality]
        rows = [(name, *(value_text(quality[text][name]) for text in texts)) for name in quality_names.MEASURES]
        put_table(("quality", *(f"of {text}" for text in texts)), rows)
    else:
        _print("quality: not in this record (no main text, or older than the quality measures)")
    put("")
    structure = structure_by_name(page.features.structure)
    if structure:
        rows_of_structure = [(name, value_text(value), MEANINGS[name]) for name, value in structure.items()]
        put_table(("structure", "value", "meaning"), rows_of_structure)
    else:
        _print("structure: not in this record (the page was not parsed, or older than the structure measures)")


def extraction(path: str, error: str) -> str:
    """How the main text was found, or why there is none."""
    words = PATHS.get(path, path)
    return f"{words}: {ERRORS.get(error, error.replace('_', ' '))} ({error})" if error else words


def _sentence_lines(page: PageExplanation) -> Iterator[str]:
    if page.sentences:
        gone = sum(sentence.is_unlikely for sentence in page.sentences)
        yield f"{gone:,} of {counted(len(page.sentences), 'sentence')} too unlikely: not scored"


def text_line(page: PageExplanation) -> str:
    """The text that is or would be scored."""
    text = page.scored_text if page.scored else page.features.text
    words = counted(len(text.split()), "word")
    size = f"{words}, {counted(len(text), 'character')}, {counted(len(text.encode('utf-8', 'replace')), 'byte')}"
    if page.scored and page.verdict.verdict in KEPT:
        return f"scored text: {TEXTS[page.scored]}, {size}"
    if page.scored:
        return f"text: {TEXTS[page.scored]}, {size}; not scored"
    return f"text: {TEXTS['main']}, {size}; not scored: this ruleset scores another text"


def score_line(page: PageExplanation) -> str:
    """The score of the text of this verdict; without one, the reason."""
    if page.score is not None:
        return f"score: {_score(page, page.score)}"
    if page.verdict.verdict not in KEPT:
        return "score: none, a dropped page is not scored"
    return "score: none yet"


def _score(page: PageExplanation, score: Score) -> str:
    whose = "" if score.page_id == page.features.page_id else " (the same text on another page of the site)"
    if score.abstain:
        return f"the detector abstains: {score.abstain}; {score.detector}{whose}"
    number = "" if score.score is None else f"{score.score:.3f}, "
    p = "" if score.p_llm is None else f"p(llm) {score.p_llm:.3f}{flagged_above(score.detector)}, "
    flag = "no threshold, so no flag" if score.flag is None else "flagged" if score.flag else "not flagged"
    windows = windows_in_words(score.windows, score.windows_flagged, score.windows_spread)
    return f"{number}{p}{flag}{windows}; {score.detector}{whose}"


def windows_in_words(windows: int, flagged: int | None, spread: float | None) -> str:
    """How several windows of a text agree, to be put behind its flag."""
    if windows < 2 or spread is None:
        return ""
    said = f"{windows} windows" if flagged is None else f"{flagged} of {windows} windows flagged"
    return f" ({said}, standard deviation {spread:.3g})"


def threshold_of(identity: str) -> str:
    """The threshold of a detector, the last part of its identity, as in lite-ngram/1a2b3c4d/p0.95; "" without one."""
    last = identity.rpartition("/")[2]
    return last[1:] if last.startswith("p") and last[1:].replace(".", "", 1).isdigit() else ""


def flagged_above(identity: str) -> str:
    """The threshold in words."""
    return f" (flagged above {threshold})" if (threshold := threshold_of(identity)) else ""
