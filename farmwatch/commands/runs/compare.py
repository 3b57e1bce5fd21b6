"""The command `compare`: what two runs say of the same pages and sites, and what that does to the rate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from cyclopts import Parameter

from farmwatch.commands.options import DEFAULTS, AsJson, Common
from farmwatch.commands.runs.compare_report import show
from farmwatch.config.detector_config import caveats, print_caveats
from farmwatch.config.opening import opened
from farmwatch.terminal.messages import message, program_version, put_json
from filters.rules.ruleset import load_ruleset, shipped_rulesets
from replay.compare.comparer import ComparisonRequest
from replay.compare.comparer import compare as compare_runs
from replay.compare.comparison import Comparison, Side
from replay.compare.flips import LARGEST
from replay.compare.verdict_join import fetch_key
from stream.log.contract import wall_ms
from stream.text.user_errors import Exit, FarmwatchError, UsageError
from stream.text.wording import counted

Named = Annotated[str, Parameter(help="A run; `live` is the one that is live now, `before` the one before it.")]


def compare(
    a: Named,
    b: Named,
    /,
    *,
    by: Annotated[Literal["source", "rank"] | None, Parameter(help="Also by source, or by rank of the hits.")] = None,
    sample: Annotated[int, Parameter(help="Flips to look at: at most 1000; 0 = none.")] = 20,
    seed: Annotated[int, Parameter(help="Of the sample and of the intervals: the same seed gives the same.")] = 0,
    resamples: Annotated[int, Parameter(help="Resamples of the bootstrap: 100 to 100000.")] = 2000,
    text: Annotated[bool, Parameter(negative="", help="Print the texts of the sample, too.")] = False,
    html: Annotated[Path | None, Parameter(help="Also write a report: one HTML file that needs nothing else.")] = None,
    out: Annotated[Path | None, Parameter(help="Also write the sample as JSON lines, for `farmwatch label`.")] = None,
    json: AsJson = False,
    common: Common = DEFAULTS,
) -> int:
    """Compare two runs: verdicts of pages and of sites, which rules let in and threw out, and the change of the rate.

    The intervals are of a paired bootstrap over sites. Articles without a score so far count neither as llm nor as
    human. The tables of pages leave out the pages that only one run has judged. Both are counted.

    The same seed gives the same sample; the kinds of flips take turns in it. JSON: one object.
    """
    _between("--sample", sample, 0, LARGEST)
    _between("--seed", seed, 0, 2**63 - 1)
    _between("--resamples", resamples, 100, 100_000)
    _two_files(out, html)
    config, asked = common.load().config, ComparisonRequest(sample, seed, resamples)
    with opened(config) as log:
        found = compare_runs(log, a, b, asked, config.rate, wall_ms())
    warnings = caveats(config, dict.fromkeys((found.a.detector, found.b.detector)))
    if out is not None:
        out.write_text(_lines(found, config.log.url), encoding="utf-8")
        judge = f"; to judge them: farmwatch label {out}" if found.sample else ""
        message(f"{out}: {counted(len(found.sample), 'flip')}{judge}")
    if html is not None:
        from replay.compare.report import render

        html.write_text(render(found, program_version()), encoding="utf-8")
        message(f"{html}: the report")
    if json:
        put_json({**as_json(found), "warnings": warnings})
        return Exit.OK

    show(found, by or "", texts=text)
    print_caveats(warnings)
    return Exit.OK


def as_json(found: Comparison) -> dict[str, Any]:
    """The fields of the comparison, with their sums and the changes in words."""
    answer: dict[str, Any] = msgspec.to_builtins(found)
    answer["a"]["classifiable"], answer["b"]["classifiable"] = found.a.classifiable, found.b.classifiable
    answer["pages"]["common"] = found.pages.common
    answer["sites"]["llm_table"] = found.sites.llm_table
    changes = [found.changes, *(group.changes for group in found.groups)]
    for described, of in zip([answer, *answer["groups"]], changes, strict=True):
        described["changes"] = [{**msgspec.to_builtins(change), "text": change.text} for change in of]
    return answer


def _lines(found: Comparison, log: str) -> str:
    """The sample as JSON lines, in a random order of the seed: any order by kind or by rank would show the verdicts."""
    sample = {"seed": found.seed, "size": found.sample_size}
    rulesets = {"ruleset_a": _as_argument(found.a), "ruleset_b": _as_argument(found.b)}
    strata = {(one.kind, one.rule): {"flips": one.flips, "sampled": one.sampled} for one in found.strata}
    lines = (
        {
            **msgspec.to_builtins(flip),
            "run_a": found.a.run,
            "run_b": found.b.run,
            **rulesets,
            "log": log,
            "sample": sample,
            "stratum": strata[flip.kind, flip.rule],
        }
        for flip in sorted(found.sample, key=lambda flip: fetch_key(f"label {flip.fetch_id}", found.seed))
    )
    return "".join(msgspec.json.encode(line).decode() + "\n" for line in lines)


def _as_argument(side: Side) -> str:
    """How a command names the ruleset of a run: a shipped one by its name, any other by a file yet to be made."""
    if side.ruleset in shipped_rulesets() and load_ruleset(side.ruleset).digest == side.digest:
        return side.ruleset
    return f"{side.run}.toml"


def _between(option: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise UsageError(f"{option} {value}: expected a number from {least} to {most}")


def _two_files(out: Path | None, html: Path | None) -> None:
    """Refuse, before the work, what could not be written behind it."""
    if out is not None and html is not None and out.resolve() == html.resolve():
        raise UsageError(f"--out and --html are one file, {out}: the report would take the place of the sample")
    for option, path in (("--out", out), ("--html", html)):
        if path is not None and (path.is_dir() or not path.parent.is_dir()):
            raise FarmwatchError(f"{option} {path}: cannot be written: it is a folder, or has none")
