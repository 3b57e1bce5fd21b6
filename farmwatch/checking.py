"""The commands that check: `doctor`, `audit` and `config show`."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from farmwatch.errors import Exit
from farmwatch.messages import message, put_json, put_table, put_wrapped
from farmwatch.options import DEFAULTS, AsJson, Common, opened

if TYPE_CHECKING:
    from farmwatch.audit import Step

_BROKEN_SHOWN = 50


def doctor(*, json: AsJson = False, common: Common = DEFAULTS) -> int:
    """Look at the installation: one line each, OK, WARN or FAIL, and how to mend it. Exit code 1 on any FAIL."""
    from farmwatch.doctor import examine
    from farmwatch.finding import State

    failed = False
    findings = []
    for finding in examine(common.load().config):
        failed = failed or finding.state is State.FAIL
        findings.append(asdict(finding))
        if not json:
            mend = f" -> {finding.mend}" if finding.mend else ""
            put_wrapped(f"{finding.state.value:<4}  {finding.check:<12}{finding.found}{mend}", " " * 18)
    if json:
        put_json(findings)
    return Exit.PROBLEM if failed else Exit.OK


def audit(
    *,
    run: Annotated[
        str, Parameter(help="Of this run: its verdicts and rows, in its window; default: the one that is live.")
    ] = "",
    json: AsJson = False,
    common: Common = DEFAULTS,
) -> int:
    """Prove from the log that nothing was lost or counted twice.

    Exit code 1 when a step is broken; the ids that break it are named. What no stage has read yet counts as waiting.
    """
    from farmwatch.audit import audit as audit_log

    with opened(common.load().config) as log:
        if not log.topics():
            message("the log is empty: nothing to audit")
            return Exit.OK
        report = audit_log(log, run)
    if json:
        put_json(
            {
                "ok": report.ok,
                "settled": report.settled,
                "steps": {name: _counts(step) for name, step in report.steps.items()},
                "broken": [asdict(broken) for broken in report.broken],
            }
        )
        return Exit.OK if report.ok else Exit.PROBLEM
    columns = ("records", "done", "dead", "waiting", "expired", "broken")
    put_table(
        ("step", *columns, "reasons"),
        (
            (name, *(getattr(step, column) for column in columns), _reasons(step.reasons))
            for name, step in report.steps.items()
        ),
    )
    for broken in report.broken[:_BROKEN_SHOWN]:
        message(f"broken: {broken.step}: {broken.id} ({broken.site}): {broken.how}")
    if len(report.broken) > _BROKEN_SHOWN:
        message(f"broken: and {len(report.broken) - _BROKEN_SHOWN} more; --json prints all")
    message("audit: clean" if report.ok else f"audit: {len(report.broken)} records are unaccounted for")
    return Exit.OK if report.ok else Exit.PROBLEM


def show_config(*, json: AsJson = False, common: Common = DEFAULTS) -> int:
    """Print every setting with its value and where it came from: flag, env, file or default. Secrets are masked.

    Exit code 2 for a setting that is unknown, of a wrong type, out of range or at odds with another one, as of `up`.
    `farmwatch doctor` looks at the files that settings name, and for a contact.
    """
    from farmwatch.config import shown

    loaded = common.load()
    loaded.config.crawl.check_values()
    rows = shown(loaded)
    if json:
        put_json([{"path": path, "value": value, "origin": origin} for path, value, origin in rows])
    else:
        put_table(("setting", "value", "from"), ((path, _text(value), origin) for path, value, origin in rows))
    return Exit.OK


def _counts(step: Step) -> dict[str, object]:
    # field by field: `asdict` would rebuild the Counter of reasons from its items and count those
    found = {field.name: getattr(step, field.name) for field in fields(step)}
    return {**found, "reasons": dict(step.reasons)}


def _reasons(reasons: dict[str, int]) -> str:
    return ", ".join(f"{reason} {count}" for reason, count in sorted(reasons.items(), key=lambda item: -item[1]))


def _text(value: object) -> str:
    import json

    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
