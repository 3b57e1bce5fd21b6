"""The commands `doctor` and `config show`."""

from __future__ import annotations

from dataclasses import asdict
from json import dumps

from cyclopts import App

from farmwatch.commands.options import DEFAULTS, AsJson, Common
from farmwatch.config.config import setting_rows
from farmwatch.config.opening import check_log_url
from farmwatch.doctor.check_result import CheckState
from farmwatch.doctor.checks import examine
from farmwatch.terminal.messages import put_json, put_table, put_wrapped
from stream.text.user_errors import Exit

config = App(name="config")


def doctor(*, json: AsJson = False, common: Common = DEFAULTS) -> int:
    """Check the installation: one line each, OK, WARN or FAIL, and the remedy. Exit code 1 on any FAIL."""
    found = []
    for result in examine(common.load().config):
        found.append(result)
        if not json:
            mend = f" -> {result.mend}" if result.mend else ""
            put_wrapped(f"{result.state.value:<4}  {result.check:<13}{result.found}{mend}", " " * 19)
    if json:
        put_json([{"check": result.check, **asdict(result)} for result in found])
    return Exit.PROBLEM if any(result.state is CheckState.FAIL for result in found) else Exit.OK


@config.command(name="show")
def show_config(*, json: AsJson = False, common: Common = DEFAULTS) -> int:
    """Print every setting with its value and where it came from: flag, env, file or default. Secrets are masked.

    Exit code 2 for a setting that is unknown, of a wrong type, out of range or at odds with another one, as of `up`.
    `farmwatch doctor` looks at the files that settings name, and for a contact.
    """
    loaded = common.load()
    loaded.config.crawl.check(contact_required=False)
    check_log_url(loaded.config)
    rows = setting_rows(loaded)
    if json:
        put_json([{"path": path, "value": value, "origin": origin} for path, value, origin in rows])
    else:
        texts = [value if isinstance(value, str) else dumps(value, ensure_ascii=False) for _, value, _ in rows]
        put_table(("setting", "value", "from"), [(row[0], text, row[2]) for row, text in zip(rows, texts, strict=True)])
    return Exit.OK
