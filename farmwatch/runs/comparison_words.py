"""A comparison in words and as JSON, and its sample as the lines of a sample file for labels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from farmwatch.share.words import sentence, sentences, text_of
from filters.rules.ruleset import load_ruleset, shipped_rulesets
from replay.compare.comparison import ChangeKind, ChangeRemark, Comparison, ShareChange, Side
from replay.compare.verdict_join import fetch_key
from replay.runs.window import window_text
from stream.text.wording import counted

OTHER_WINDOWS = "of different windows"  # mark of a difference if `other_windows`


def points(value: float) -> str:
    """A difference of shares in percentage points, with its sign; 0.0 has none."""
    text = f"{100 * value:+.1f}"
    return text if float(text) else "0.0"


def percent(value: float | None) -> str:
    """A share as text; "-" for None."""
    return "-" if value is None else f"{value:.1%}"


def answer_of(compared: Comparison) -> str:
    """The comparison in one sentence: whether the share differs, and how much changes its verdict."""
    if compared.identical:
        return "nothing differs: one ruleset, one detector, and the same verdict for every page and site"
    share, pages = compared.changes[0], compared.pages
    a, b = ("not known" if value is None else percent(value) for value in (share.a, share.b))
    said = f"share of LLM sites: {a} in A, {b} in B"
    if share.difference is not None and share.low is not None and share.high is not None:
        said += f", {points(share.difference)} points ({compared.confidence:.0%} interval {points(share.low)} to"
        said += f" {points(share.high)}): "
        said += "B has more" if share.low > 0 else "B has fewer" if share.high < 0 else "no difference is shown"
    flips = pages.a_only_article + pages.b_only_article
    return (
        f"{said}; {flips:,} of {counted(pages.common, 'page')} and {counted(compared.sites.changed, 'site')} have"
        " another verdict"
    )


def change_text(change: ShareChange) -> str:
    """A change as text."""
    remarks = "; ".join(map(remark_text, change.remarks))
    if change.difference is None or change.low is None or change.high is None:
        return f"{change.title}: {remarks or 'nothing to compare'}"
    text = f"{change.title}: {percent(change.a)} to {percent(change.b)}, {points(change.difference)} points"
    text += f" (interval {points(change.low)} to {points(change.high)})"
    return f"{text}; {remarks}" if remarks else text


def remark_text(remark: ChangeRemark) -> str:
    """A remark that must be shown with its change."""
    sides = remark.sides
    match remark.kind:
        case ChangeKind.NO_SHARE:
            return f"difference not known: {sides[0]}: {text_of(remark.share)}"
        case ChangeKind.OTHER_METHODS:
            return "difference not known: one share is by the review, the other is not"
        case ChangeKind.NO_DENOMINATOR:
            return f"difference not known: {' and '.join(sides)} {'has' if len(sides) == 1 else 'have'} no denominator"
        case ChangeKind.SAME_RUN:
            return "one run twice: nothing can differ"
        case ChangeKind.FEW_SITES:
            return f"only {counted(remark.counts[0], 'site')}: too few for a reliable interval"
        case ChangeKind.NONE_MOVED:
            return "no site differs here, but others might"
        case ChangeKind.UNSCORED:
            a, of_a, b, of_b = remark.counts
            return f"without the articles that have no score so far: A {a:,} of {of_a:,}, B {b:,} of {of_b:,}"


def remarks_of(rows: Iterable[tuple[str, ShareChange]]) -> dict[str, list[str]]:
    """Remark as text -> names of its rows, so that each remark is shown once."""
    names: dict[str, list[str]] = {}
    for name, change in rows:
        for remark in change.remarks:
            texts = [remark_text(remark)]
            if remark.kind == ChangeKind.NO_SHARE:  # its reasons may be those of the other run, too
                first, *others = sentences(remark.share)
                texts = [f"difference not known: {remark.sides[0]}: {first}", *others]
            for text in texts:
                names.setdefault(text, []).append(name)
    return names


def notes_of(compared: Comparison) -> Iterator[str]:
    """Remarks to read before the numbers."""
    a, b, pages = compared.a, compared.b, compared.pages
    for name, side in (("A", a), ("B", b)):
        if side.progress:
            yield f"{name}, the run {side.run}, is not done: {side.progress}; its numbers will change"
    for name, side in (("A", a), ("B", b)):
        if side.unscored:
            yield (
                f"{name} has {side.unscored:,} of {counted(side.articles, 'article')} without a score so far"
                f" ({side.unscored / side.articles:.1%}): they count neither as llm nor as human; new scores will"
                " change its site verdicts and its rate"
            )
    if pages.only_in_a or pages.only_in_b:
        yield (
            f"{pages.only_in_a:,} fetches were judged in A only and {pages.only_in_b:,} in B only"
            f" (windows {window_text(a.from_at, a.to_at)} and {window_text(b.from_at, b.to_at)}): the tables of pages"
            " omit them; site verdicts and rates use all pages of each run"
            "; `farmwatch replay --from RUN` judges those of another run's window"
        )
    if a.detector != b.detector:
        yield (
            f"two detectors, {a.detector or '-'} and {b.detector or '-'}: their scores are not pooled, and sites may"
            " have changed by the detector alone"
        )
    if a.site_method != b.site_method:
        yield f"two site methods, {a.site_method or '-'} and {b.site_method or '-'}: sites may differ for this alone"
    if a.epoch != b.epoch:
        yield f"two feature epochs, {a.epoch} and {b.epoch}: pages may differ because of the features alone"
    for name, side in (("A", a), ("B", b)):
        if side.other_verdicts or side.other_sites:
            yield (
                f"left out of {name}, because they have another ruleset, detector or site method than {side.ruleset}"
                f" {side.digest}: {counted(side.other_verdicts, 'verdict')}, {counted(side.other_sites, 'site')}"
            )
    if not pages.common:
        yield "no fetch was judged by both runs: pages cannot be compared"
    for name, correction in zip("AB", compared.corrections, strict=False):
        if correction.remark:
            yield f"{name}: {sentence(correction.remark)}"


def as_json(compared: Comparison) -> dict[str, Any]:
    """The fields of the comparison, with their sums, and the notes, remarks and changes as text."""
    answer: dict[str, Any] = msgspec.to_builtins(compared)
    del answer["corrections"]
    answer["notes"] = list(notes_of(compared))
    answer["a"]["classifiable"], answer["b"]["classifiable"] = compared.a.classifiable, compared.b.classifiable
    for name, side in (("a", compared.a), ("b", compared.b)):
        for part, remarks in (("estimate", side.estimate.remarks), ("judged", side.judged.remarks)):
            del answer[name][part]["remarks"]
            answer[name][part]["text"] = text_of(remarks)
    answer["pages"]["common"] = compared.pages.common
    answer["sites"]["llm_table"] = compared.sites.llm_table
    if flags := compared.flags:
        answer["flags"] |= {"agreeing": flags.agreeing, "disagreeing": flags.disagreeing}
    answer["changes"] = list(map(_change_as_json, compared.changes))
    return answer


def _change_as_json(change: ShareChange) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(change)
    del fields["remarks"]
    return fields | {"remark": "; ".join(map(remark_text, change.remarks)), "text": change_text(change)}


def label_lines(compared: Comparison, log: str) -> str:
    """The sample as JSON lines, in random order: an order by kind or rank would reveal the verdicts."""
    sample = {"seed": compared.seed, "size": compared.sample_size}
    rulesets = {"ruleset_a": _ruleset_argument(compared.a), "ruleset_b": _ruleset_argument(compared.b)}
    strata = {(each.kind, each.rule): {"flips": each.flips, "sampled": each.sampled} for each in compared.strata}
    lines = (
        {
            **msgspec.to_builtins(flip),
            "run_a": compared.a.run,
            "run_b": compared.b.run,
            **rulesets,
            "log": log,
            "sample": sample,
            "stratum": strata[flip.kind, flip.rule],
        }
        for flip in sorted(compared.sample, key=lambda flip: fetch_key(f"label {flip.fetch_id}", compared.seed))
    )
    return "".join(msgspec.json.encode(line).decode() + "\n" for line in lines)


def _ruleset_argument(side: Side) -> str:
    """The ruleset of a run as a command argument: the name of a shipped one, otherwise a file to be written."""
    if side.ruleset in shipped_rulesets() and load_ruleset(side.ruleset).digest == side.digest:
        return side.ruleset
    return f"{side.run}.toml"
