"""`farmwatch config show`."""

from __future__ import annotations

from json import dumps

from cyclopts import App

from farmwatch.commands.options import DEFAULTS, AsJson, Common
from farmwatch.config.config import shown
from farmwatch.config.opening import check_log_url
from farmwatch.terminal.messages import put_json, put_table
from stream.text.user_errors import Exit

config = App(name="config")


@config.command(name="show")
def show_config(*, json: AsJson = False, common: Common = DEFAULTS) -> int:
    """Print every setting with its value and where it came from: flag, env, file or default. Secrets are masked.

    Exit code 2 for a setting that is unknown, of a wrong type, out of range or at odds with another one, as of `up`.
    `farmwatch doctor` looks at the files that settings name, and for a contact.
    """
    loaded = common.load()
    loaded.config.crawl.check_values()
    check_log_url(loaded.config)
    rows = shown(loaded)
    if json:
        put_json([{"path": path, "value": value, "origin": origin} for path, value, origin in rows])
    else:
        put_table(("setting", "value", "from"), ((path, _text(value), origin) for path, value, origin in rows))
    return Exit.OK


def _text(value: object) -> str:
    return value if isinstance(value, str) else dumps(value, ensure_ascii=False)
