"""`farmwatch doctor`."""

from __future__ import annotations

from dataclasses import asdict

from farmwatch.commands.options import DEFAULTS, AsJson, Common
from farmwatch.doctor.check_result import CheckState
from farmwatch.doctor.checks import examine
from farmwatch.terminal.messages import put_json, put_wrapped
from stream.text.user_errors import Exit


def doctor(*, json: AsJson = False, common: Common = DEFAULTS) -> int:
    """Look at the installation: one line each, OK, WARN or FAIL, and how to mend it. Exit code 1 on any FAIL."""
    failed = False
    findings = []
    for finding in examine(common.load().config):
        failed = failed or finding.state is CheckState.FAIL
        findings.append({"check": finding.check, **asdict(finding)})
        if not json:
            mend = f" -> {finding.mend}" if finding.mend else ""
            put_wrapped(f"{finding.state.value:<4}  {finding.check:<13}{finding.found}{mend}", " " * 19)
    if json:
        put_json(findings)
    return Exit.PROBLEM if failed else Exit.OK
