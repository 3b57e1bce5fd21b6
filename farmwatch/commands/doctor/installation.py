"""The commands `doctor`, `doctor config` and `doctor completion`."""

from __future__ import annotations

from dataclasses import asdict
from json import dumps
from typing import Annotated, Literal

from cyclopts import App, Parameter

from farmwatch.commands.options import DEFAULTS, AsJson, Common
from farmwatch.config.config import Config, setting_rows
from farmwatch.config.layers import settings_of
from farmwatch.config.opening import check_log_url, opened
from farmwatch.doctor.check_result import CheckState
from farmwatch.doctor.checks import examine
from farmwatch.terminal.messages import message, put, put_json, put_table, put_wrapped
from farmwatch.upkeep.deleted_groups import repair_groups
from stream.text.user_errors import Exit
from stream.text.wording import one_line

doctor = App(name="doctor")
doctor.command(
    "farmwatch.commands.doctor.audit:audit", help="Prove from the log that nothing was lost or counted twice."
)


@doctor.default
def examine_all(
    *,
    deploy: Annotated[
        bool, Parameter(negative="", help="Also what a deployment needs: user, folders, secrets, brokers, metrics.")
    ] = False,
    repair: Annotated[
        bool, Parameter(negative="", help="First set the lost offsets of groups; only while farmwatch is stopped.")
    ] = False,
    json: AsJson = False,
    common: Common = DEFAULTS,
) -> int:
    """Check the installation: one line each, OK, WARN or FAIL, and the remedy. Exit code 1 on any FAIL."""
    results = []
    loaded = common.load()
    if repair:
        with opened(loaded.config, write=True) as log:
            said = ""
            for said in repair_groups(log):
                message(one_line(f"repaired the group {said}"))
        if not said:
            message("no group needs a repair")
    for result in examine(loaded.config, loaded.file, deploy=deploy):
        results.append(result)
        if not json:
            mend = f" -> {result.mend}" if result.mend else ""
            put_wrapped(f"{result.state.value:<4}  {result.check:<13}{result.found}{mend}", " " * 19)
    if json:
        put_json([{"check": result.check, **asdict(result)} for result in results])
    return Exit.PROBLEM if any(result.state is CheckState.FAIL for result in results) else Exit.OK


@doctor.command(name="config")
def show_config(
    *,
    changed: Annotated[bool, Parameter(negative="", help="Only settings that do not have their default.")] = False,
    json: AsJson = False,
    common: Common = DEFAULTS,
) -> int:
    """Print every setting with its value and where it came from: flag, env, file or default. Secrets are masked.

    Exit code 2 for a setting that is unknown, of a wrong type, out of range or at odds with another one, as of `up`.
    `farmwatch doctor` looks at the files that settings name, and for a contact. Files to begin with are
    deploy/farmwatch.toml for one machine, and deploy/kubernetes/overlays/cluster/farmwatch.toml for a cluster on Kafka.
    """
    loaded = common.load()
    loaded.config.crawl.check(contact_required=False)
    check_log_url(loaded.config)
    rows = [row for row in setting_rows(loaded) if not changed or row[2] != "default"]
    if json:
        known = settings_of(Config)
        names = ("path", "value", "origin", "meaning")
        put_json([dict(zip(names, (*row, known[row[0]].meaning), strict=True)) for row in rows])
    else:
        texts = [value if isinstance(value, str) else dumps(value, ensure_ascii=False) for _, value, _ in rows]
        put_table(("setting", "value", "from"), [(row[0], text, row[2]) for row, text in zip(rows, texts, strict=True)])
    return Exit.OK


@doctor.command
def completion(shell: Annotated[Literal["bash", "zsh", "fish"], Parameter(help="The shell.")], /) -> int:
    """Print a script that completes commands and options in a shell.

    For bash, for example: farmwatch doctor completion bash > ~/.local/share/bash-completion/completions/farmwatch
    """
    from farmwatch.commands.cli import app

    put(app.generate_completion(shell=shell))
    return Exit.OK
