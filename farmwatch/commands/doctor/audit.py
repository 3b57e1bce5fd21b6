"""`farmwatch doctor audit`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import msgspec
from cyclopts import Parameter

from farmwatch.archive.release_check import check_release
from farmwatch.audit.audit import audit as audit_log
from farmwatch.audit.report import BrokenRecord, RateCheck
from farmwatch.commands.options import DEFAULTS, AsJson, Common
from farmwatch.config.opening import opened
from farmwatch.share.review_labels import read_review
from farmwatch.share.words import short_share
from farmwatch.terminal.messages import message, put_json, put_table
from replay.live.epoch_change import seams_of
from scoring.rates.split_rates import RateLine
from stream.log.contract import wall_ms
from stream.log.forwarding import innermost
from stream.schema.control import Control
from stream.text.user_errors import Exit, UsageError
from stream.text.wording import one_line

if TYPE_CHECKING:
    from stream.embedded.log import EmbeddedLog

_SHOWN = 50
_VALUE_CHARS = 60
_RATE_FIELDS = (
    *("share", "low", "high", "look_low", "look_high", "method", "scored_sites", "labelled", "judged_share"),
    *("judged_low", "judged_high", "judged_method", "llm", "human", "undecided", "unclassifiable", "sites"),
)


def audit(
    bundle: Annotated[
        Path | None, Parameter(help="A folder that `release` wrote, in place of the log: its share from its files.")
    ] = None,
    /,
    *,
    run: Annotated[
        str, Parameter(help="Audit this run: its verdicts and rows, in its window. Default: the live run.")
    ] = "",
    json: AsJson = False,
    common: Common = DEFAULTS,
) -> int:
    """Prove from the log that nothing was lost or counted twice, and that rows and rate follow from it.

    Each row is recomputed from the hits, verdicts and scores of its site, and the rate from these rows. A row whose
    records expired is unprovable.

    Of a bundle: its files have their checksums, and give the share that it states.

    Exit code 1 when a step is broken, retention removed records before a stage read them, or the rate differs; the
    faults are listed. Records that no stage has read yet are waiting; the last line is "clean" when nothing waits.
    """
    if bundle is not None:
        if run:
            raise UsageError("--run: a bundle has one run")
        return _audit_bundle(bundle, as_json=json)
    config = common.load().config
    with opened(config) as log:
        if not log.topics():
            message("the log is empty: nothing to audit")
            return Exit.OK
        if config.log.url.startswith("sqlite:"):
            cast("EmbeddedLog", innermost(log)).require_sound()
        report = audit_log(log, run, config, review=read_review(config.rate, wall_ms()))
        found_seams = seams_of(Control(log), run)
    if json:
        parts = ("steps", "broken", "waiting", "unreadable", "lost")
        parts_of_report = {name: msgspec.to_builtins(getattr(report, name)) for name in parts}
        rates = [_rate(check) for check in report.rates]
        put_json({"ok": report.ok, "settled": report.settled, **parts_of_report, "rates": rates})
        return Exit.OK if report.ok else Exit.PROBLEM
    columns = ("records", "done", "dead", "waiting", "expired", "unprovable", "unreadable", "broken")
    put_table(
        ("step", *columns, "reasons"),
        (
            (name, *(getattr(step, column) for column in columns), _reasons(step.reasons))
            for name, step in report.steps.items()
        ),
        less=("reasons", "unprovable", "unreadable"),
    )
    _print_faults("broken", list(map(_broken, report.broken)))
    _print_faults("unreadable", [unreadable.text for unreadable in report.unreadable])
    _print_faults("lost", [lost.text for lost in report.lost])
    for check in report.rates:
        message(check.text)
    for seam in found_seams:
        message(seam)
    message(f"audit: {report.text}")
    return Exit.OK if report.ok else Exit.PROBLEM


def _broken(broken: BrokenRecord) -> str:
    differences = [
        f"row says {each.field} {_value(each.stored)}, the log says {_value(each.recomputed)}"
        for each in broken.differences
    ]
    return f"{broken.step}: {broken.id} ({broken.site}): {'; '.join(differences) or broken.how}"


def _value(value: object) -> str:
    text = str(value)
    return text if len(text) <= _VALUE_CHARS else f"{text[: _VALUE_CHARS - 1]}…"


def _audit_bundle(folder: Path, *, as_json: bool) -> int:
    check = check_release(folder)
    if as_json:
        rates = {"rate": _numbers(check.stored), "recomputed": _numbers(check.recomputed)}
        put_json({"ok": check.ok, "changed": check.changed, "differs": check.differs, **rates})
        return Exit.OK if check.ok else Exit.PROBLEM
    for name in check.changed:
        message(one_line(f"changed: {name} does not have its checksum"))
    message(one_line(f"share of the bundle: {short_share(check.stored)}"))
    message(one_line(f"share recomputed from its files: {short_share(check.recomputed)}"))
    if check.differs:
        message(f"different: {', '.join(check.differs)}")
    message(f"audit: {'clean' if check.ok else 'the files and the share do not fit together'}")
    return Exit.OK if check.ok else Exit.PROBLEM


def _print_faults(kind: str, lines: list[str]) -> None:
    for line in lines[:_SHOWN]:
        message(one_line(f"{kind}: {line}"))
    if len(lines) > _SHOWN:
        message(f"{kind}: and {len(lines) - _SHOWN} more; --json prints all")


def _rate(check: RateCheck) -> dict[str, object]:
    return {
        **check.versions._asdict(),
        "ok": check.ok,
        "rows": _numbers(check.rows),
        "recomputed": _numbers(check.recomputed),
        "taken": check.taken,
    }


def _numbers(line: RateLine | None) -> dict[str, object] | None:
    return None if line is None else {name: getattr(line, name) for name in _RATE_FIELDS}


def _reasons(reasons: dict[str, int]) -> str:
    return ", ".join(f"{reason} {count}" for reason, count in sorted(reasons.items(), key=lambda item: -item[1]))
