"""The command `explain`: all that is known of why a page was kept or dropped."""

from __future__ import annotations

import math
import shutil
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from farmwatch.errors import Exit, UsageError
from farmwatch.messages import counted, one_line, put, put_json, put_table
from farmwatch.options import DEFAULTS, AsJson, Common, opened

if TYPE_CHECKING:
    from farmwatch.explaining import Explanation
    from filters.repeats import Repeats
    from stream.records import RuleOutcome

_PASSAGES = 8  # repeated passages that are shown without --all
_TEXT_CHARS = 100  # of a passage, where no terminal says how wide it is
_FLAT = "which of it is links, lists or tables is unknown"
_TEXTS = {"main": "main text", "c4": "main text cleaned as C4 does"}
PATHS = {
    "recall": "recall",
    "precision": "recall, then precision: too much of the first text was links or code",
    "fallback": f"flat fallback: {_FLAT}",
    "plain": f"plain text: {_FLAT}",
    "none": "no main text",
}
"""Extraction paths in words."""

ERRORS = {
    "empty": "nothing but white space was sent",
    "not_html": "it is not HTML: without any element, or an image, an archive or another binary file",
    "too_large": "more bytes, of HTML or of main text, than the cap",
    "too_many_elements": "more elements than the cap",
    "too_deep": "elements are nested deeper than the parser takes",
    "parser_stopped": "the parser gave up before its end, and an unknown part is lost",
    "no_text": "it was parsed, and no main text was found",
    "failed": "the extractor failed on it",
    "timeout": "extraction took longer than the time limit and was ended",
    "out_of_memory": "extraction needed more memory than its limit",
    "worker_died": "the process that extracted it died",
}
"""Extraction errors in words."""


def explain(
    page: Annotated[str, Parameter(help="URL of a page in the log, or a file of HTML.")],
    *,
    ruleset: Annotated[str | None, Parameter(help="Judge by this ruleset, not by the verdict in the log.")] = None,
    everything: Annotated[
        bool,
        Parameter(name="--all", negative="", help="Also every measure, read by a rule or not, and every passage."),
    ] = False,
    json: AsJson = False,
    common: Common = DEFAULTS,
) -> int:
    """Why a page was kept or dropped: every rule with its value, threshold and outcome, what repeats, and the score.

    JSON: one object, with the fields of `judge`, the measures, the repeated passages, the score and the detector's
    warning.
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
                found = explain_url(
                    log,
                    page,
                    rules,
                    config.measure,
                    live=ruleset is None,
                    configured=lambda: load_configured_detector(config).identity,
                )
        except UnusableUrl as error:
            raise UsageError(str(error)) from error
    else:
        found = explain_file(Path(page), config, rules, load_configured_detector(config))
    scored_by = found.score.detector if found.score is not None else ""
    warnings = caveats(config, [scored_by])
    if json:
        put_json({**as_json(found), "warning": warnings[scored_by]})
    else:
        show(found, everything=everything)
        tell(warnings)
    return Exit.OK


def show(found: Explanation, *, everything: bool = False) -> None:
    """Print an explanation for people. What comes from the page goes out as one line without control characters."""
    features, verdict = found.features, found.verdict
    first = f", first by {verdict.first_failed}" if verdict.first_failed else ""
    put(one_line(f"{features.url or features.page_id}: {verdict.verdict}{first}"))
    put(one_line(f"ruleset {verdict.ruleset} {verdict.digest}, judged {found.judged}; {_measured(found)}"))
    put(one_line(f"extraction: {_extraction(features.extract_path, features.extract_error)}"))
    put("")
    _put_rules(found)
    put("")
    if found.reads == "c4":
        put(f"read text: quality rules read the {_TEXTS['c4']}")
    put(f"scored text: {_scored_text(found)}")
    for line in _repeats_lines(found, everything=everything):
        put(line)
    put(one_line(_score_line(found)))
    if everything:
        put("")
        _put_measures(found)


def _measured(found: Explanation) -> str:
    features = found.features
    when = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(features.fetched_at / 1000))
    return f"features of epoch {features.epoch}" + (f", fetched {when}" if features.fetched_at else "")


def _extraction(path: str, error: str) -> str:
    words = PATHS.get(path, path)
    return f"{words}: {ERRORS.get(error, error.replace('_', ' '))} ({error})" if error else words


def _put_rules(found: Explanation) -> None:
    from filters.quality import MEASURES
    from filters.rules import RULES

    features, verdict = found.features, found.verdict
    rows, styles = [], []
    for rule in verdict.rules:
        outcome, style = _outcome(rule, drops=rule.name in verdict.failed)
        passes = "-" if rule.threshold is None else f"{rule.op} {_plain(rule.threshold)}"
        rows.append((rule.name, _value(rule), passes, outcome))
        styles.append(style)
    put_table(("rule", "value", "passes when", "outcome"), rows, styles=styles)
    reading = [rule.name for rule in verdict.rules if rule.name in RULES and RULES[rule.name].of in MEASURES]
    if reading and not features.quality and not features.extract_error:
        put("the record is older than the quality measures: they are unknown until the page is fetched again")
    if verdict.failed:
        put("")
        put(f"{len(verdict.failed)} of {counted(len(verdict.rules), 'rule')} failed:")
    for name in verdict.failed:
        put(one_line(f"  {name}: {RULES[name].doc}" if name in RULES else f"  {name}"))


def _outcome(rule: RuleOutcome, *, drops: bool) -> tuple[str, str]:
    """Words and style of an outcome; what drops the page is in capitals."""
    if rule.threshold is None:
        return "disabled", "dim"
    if rule.outcome == "n/a":
        return ("N/A, DROPS", "bold red") if drops else ("n/a", "dim")
    return ("FAIL", "bold red") if drops else (rule.outcome, "")


def _value(rule: RuleOutcome) -> str:
    """A value with the digits that show on which side of the threshold it is."""
    value, threshold = rule.value, rule.threshold
    if not isinstance(value, float | int) or not isinstance(threshold, float | int):
        return _plain(value)
    for digits in range(3, 18):
        text = _number(value, digits)
        if (float(text) > threshold) == (value > threshold) and (float(text) < threshold) == (value < threshold):
            return text
    return repr(value)


def _plain(value: Any) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, list):
        return ", ".join(value)
    return _number(value) if isinstance(value, float | int) else str(value)


def _number(value: float, digits: int = 3) -> str:
    """A number without exponent: whole ones whole, others with `digits` significant digits."""
    if not math.isfinite(value) or float(value).is_integer():
        return f"{value:.0f}"
    text = f"{value:.{max(1, digits - 1 - math.floor(math.log10(abs(value))))}f}"
    return text.rstrip("0").rstrip(".")


def _scored_text(found: Explanation) -> str:
    text = found.scored_text
    words = counted(len(text.split()), "word")
    size = f"{words}, {counted(len(text), 'character')}, {counted(len(text.encode('utf-8', 'replace')), 'byte')}"
    return f"{_TEXTS[found.scored]}, {size}" + (
        "" if found.verdict.verdict == "article" else "; only articles are scored"
    )


def _repeats_lines(found: Explanation, *, everything: bool) -> Iterator[str]:
    repeats = found.repeats
    if found.source == "file":
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
    if found.differs:
        yield one_line(f"  {found.differs}")
    measures = found.features.measures
    share, distance = measures.get("template_share"), measures.get("simhash_distance")
    near = []
    if isinstance(share, float | int):
        near.append(f"{share:.1%} of the 5-word shingles are on earlier pages")
    if isinstance(distance, float | int):
        near.append(f"the simhash is {counted(int(distance), 'bit')} of 64 from that of the nearest one")
    if near:
        yield f"near-duplicates: {'; '.join(near)}"


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
        yield one_line(f"  {passage.size_bytes:,} bytes on {counted(passage.pages, 'page')}, {where}")
        yield f"    {_shortened(passage.text)}"
    rest = passages[len(shown) :]
    if rest:
        bytes_left = sum(passage.size_bytes for passage in rest)
        yield f"  and {counted(len(rest), 'passage')} more, {bytes_left:,} bytes: --all shows them"


def _shortened(text: str) -> str:
    """The start of a passage as one line that fits the terminal."""
    width = shutil.get_terminal_size().columns - 6 if sys.stdout.isatty() else _TEXT_CHARS
    line = " ".join(one_line(text[: 4 * width]).split())
    whole = len(line) <= width and len(text) <= 4 * width
    return f'"{line}"' if whole else f'"{line[: max(1, width - 3)]}..."'


def _put_measures(found: Explanation) -> None:
    from farmwatch.explaining import quality_by_name
    from filters.quality import MEASURES, TEXTS

    put_table(("measure", "value"), [(name, _plain(value)) for name, value in found.features.measures.items()])
    put("")
    quality = quality_by_name(found.features)
    if not quality:
        put("quality: not in this record: it has no main text, or is older than the quality measures")
        return
    rows = [(name, *(_plain(quality.get(text, {}).get(name)) for text in TEXTS)) for name in MEASURES]
    put_table(("quality", *(f"of {text}" for text in TEXTS)), rows)


def _score_line(found: Explanation) -> str:
    score = found.score
    if score is None:
        return "score: none yet" if found.verdict.verdict == "article" else "score: none, only articles are scored"
    whose = "" if score.page_id == found.features.page_id else " (the same text on another page of the site)"
    if score.flag is None:
        return f"score: the detector abstains: {score.abstain}; {score.detector}{whose}"
    number = "" if score.score is None else f"{score.score:.3f}, "
    p = "" if score.p_llm is None else f"p(llm) {score.p_llm:.3f}{_threshold(score.detector)}, "
    return f"score: {number}{p}{'flagged' if score.flag else 'not flagged'}; {score.detector}{whose}"


def _threshold(identity: str) -> str:
    """The threshold of the detector that scored: the last part of its identity, as in lite-ngram/1a2b3c4d/p0.95."""
    last = identity.rpartition("/")[2]
    is_threshold = last.startswith("p") and last[1:].replace(".", "", 1).isdigit()
    return f" (flagged above {last[1:]})" if is_threshold else ""
