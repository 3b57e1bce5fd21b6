"""The stages as pipes: JSON lines in and out, without a log. Field names are stable."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from farmwatch.commands.options import JUST_CONFIGURED, Configured, Jobs
from farmwatch.terminal.jsonl import binary_input
from farmwatch.terminal.messages import message, put_json
from scoring.estimate.error_counts import ErrorCounts
from stream.text.user_errors import Exit, UsageError

Files = Annotated[list[Path] | None, Parameter(help="Files of JSON lines; `-` or none is standard input.", negative="")]


def measure(files: Files = None, /, *, jobs: Jobs = 0, common: Configured = JUST_CONFIGURED) -> int:
    """Pages to features. In: {url, html[, site]}.

    Out: {url, site, page_id, text, extract: {path, error}, measures: {name: value}, quality: {text: {name: value}},
    structure: {name: value}, blocks: [[kind, characters, link characters, code characters]], template_lines: [number of
    a line of the text, from 0], segments: [{kind, path, texts, without: [number of a line], words, language,
    language_probability, repetition}], dates, signals, feature_epoch}. Pages of a site are taken in the order given, so
    measures that compare them, template lines and segments are those of a live run.
    """
    from farmwatch.pipes.lines import measure_lines

    return measure_lines(files or [], jobs, common.load().config.measure)


def judge(
    files: Files = None,
    /,
    *,
    ruleset: Annotated[str, Parameter(help="Name of a shipped ruleset, or a TOML file.")] = "default",
    articles: Annotated[
        bool, Parameter(negative="", help="Pass on the articles as {id, url, site, text}, ready for `score`.")
    ] = False,
) -> int:
    """Features to verdicts. In: the lines of `measure`.

    Out: {url, site, verdict, first_failed, failed, rules: [{name, value, op, threshold, outcome}], ruleset, digest}.
    One process: more would gain nothing, because judging takes less time than reading the line.
    """
    from farmwatch.pipes.lines import judge_lines

    return judge_lines(files or [], ruleset, articles)


def score(
    files: Files = None,
    /,
    *,
    detector: Annotated[
        list[str] | None,
        Parameter(help="Name of a detector; repeatable: a line of each. Default: score.detectors.", negative=""),
    ] = None,
    jobs: Jobs = 0,
    common: Configured = JUST_CONFIGURED,
) -> int:
    """Texts to scores. In: {id, text[, site, url]}.

    Out: {id, detector, score, p_llm, flag, abstain, tokens} and the given site and url, a line per text and detector;
    flag is null if a detector abstains, or has no thresholds (see `farmwatch lab detectors`). Language models add
    windows, windows_flagged and windows_spread, and run in one process, whatever --jobs says.
    """
    from farmwatch.pipes.score_lines import score_lines

    flags = [f"score.detectors={','.join(detector)}"] if detector else []
    return score_lines(files or [], common.load(*flags).config.score, jobs)


def tally(
    files: Files = None,
    /,
    *,
    detector: Annotated[
        str, Parameter(help="Whose scores are tallied, by name or identity; needed where lines name several.")
    ] = "",
    common: Configured = JUST_CONFIGURED,
) -> int:
    """Page scores to site verdicts. In: {site, score, flag[, detector]}, in page order.

    Out, at the end of the input, in the order in which the sites came: {site, verdict, pages_used, pages, scored,
    flagged, evidence, mixed, detector, method, method_digest}. `sprt` reads the flags, `deciles` the
    scores. Method and numbers are those of [tally]. Scores of two detectors are never pooled: where lines name several,
    --detector chooses one, and the others are skipped. Where no line and no option names a detector it is lite-ngram;
    a line that names none beside lines that do is bad, unless --detector names it.
    """
    from farmwatch.pipes.score_lines import tally_lines

    return tally_lines(files or [], detector, common.load().config.tally)


def estimate(
    files: Files = None,
    /,
    *,
    llm_sites: Annotated[int | None, Parameter(help="LLM sites on which the site verdict was tested.")] = None,
    llm_found: Annotated[int | None, Parameter(help="Of them, called llm.")] = None,
    human_sites: Annotated[int | None, Parameter(help="Human sites on which it was tested.")] = None,
    human_cleared: Annotated[int | None, Parameter(help="Of them, not called llm.")] = None,
    confidence: Annotated[float, Parameter(help="Of the interval.")] = 0.95,
    review: Annotated[str, Parameter(help="Labels of a review, a file or a folder, as in rate.review.")] = "",
) -> int:
    """Sites to the share. In: {verdict[, site, scored, flagged, queries]}, a line a site; the last of a site counts.

    `scored` and `flagged` give the direct share, as the lines of `tally` and `sites --json` have them. Sites of one
    registrable domain or of one query agree, which widens its interval.

    Refuses input that mixes detectors, rulesets, methods or runs, or names them in only some lines.

    Out: {share, low, high, judged_share, llm, classifiable, unclassifiable, sites, ...}. The four error counts correct
    the judged share; without them it is uncorrected, with a message.
    """
    from farmwatch.pipes.score_lines import estimate_lines

    errors = None
    if llm_sites is None or llm_found is None or human_sites is None or human_cleared is None:
        if (llm_sites, llm_found, human_sites, human_cleared) != (None, None, None, None):
            raise UsageError("error counts come together: --llm-sites --llm-found --human-sites --human-cleared")
        message("no error counts given: the judged share is uncorrected")
    else:
        errors = ErrorCounts(
            llm_sites=llm_sites, llm_found=llm_found, human_sites=human_sites, human_cleared=human_cleared
        )
    return estimate_lines(files or [], errors, confidence, review)


def chunk(file: Annotated[Path, Parameter(help="Any file; `-` or none is standard input.")] = Path("-"), /) -> int:
    """The content-defined cuts of a file's bytes: {lengths: [...]}."""
    from filters.duplicates.chunker import chunk as cut

    with binary_input(file) as stream:
        chunks = cut(stream.read())
    put_json({"lengths": [int(length) for length in chunks.lengths]})
    return Exit.OK
