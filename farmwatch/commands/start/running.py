"""The commands that run farmwatch: `up` and `demo`."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from farmwatch.commands.options import DEFAULTS, AllowPrivate, AsJson, Common, Hits, Member
from farmwatch.config.config import Config
from farmwatch.config.member_names import claimed_name, names_folder
from farmwatch.config.opening import check_log_url
from farmwatch.crawl.append_hits import append_files
from farmwatch.daemon.roles import run_role
from farmwatch.daemon.signals import stopping_on_signals
from farmwatch.daemon.supervisor import Supervisor, follow_parent, restarts, this_program
from farmwatch.doctor.checks import prepare, require_fit
from farmwatch.terminal.messages import message, start_logging
from stream.schema.roles import Role
from stream.text.user_errors import Exit, UsageError


def up(
    *,
    role: Annotated[
        list[str] | None,
        Parameter(help="crawl, measure, judge, score, tally, console, several by commas. Default: all.", negative=""),
    ] = None,
    hits: Hits = None,
    allow_private: AllowPrivate = False,
    in_process: Annotated[
        bool, Parameter(negative="", help="Run the one role in this process, unsupervised: for containers.")
    ] = False,
    member: Member = None,
    leash: Annotated[bool, Parameter(show=False, negative="")] = False,
    common: Common = DEFAULTS,
) -> int:
    """Run the daemon: a process per role, restarted when one dies, drained together on SIGTERM.

    A line of --hits without a usable hit is reported with its number and skipped. A console that fails is started
    again, and the other roles go on. On a terminal a screen shows the console's address and the status, and the log
    goes to up.log in the folder of the log; elsewhere the log goes to standard error.

    Exit code 0 after a clean drain, 1 when a process had to be killed or lines of --hits were skipped, 2 when the
    configuration is refused, 3 when the log or a model cannot be used, when a port of the metrics or the console is
    taken, or when another process of this machine runs one of the roles on this embedded log: before any role starts.
    """
    roles = parse_roles(role or [])
    loaded = common.load(*(["crawl.allow_private=true"] if allow_private else []))
    if in_process and len(roles) != 1:
        raise UsageError("--in-process runs one role: give exactly one --role")
    check_log_url(loaded.config)
    start_logging(role=roles[0].value if in_process else "supervisor")
    folder, name = names_folder(loaded.config), member
    with ExitStack() as held:

        def claim() -> str:
            """Hold the roles' member name.

            In a folder's log, a second process of a role is a mistake; a broker's log allows many.
            """
            alone = loaded.config.log.url.startswith("sqlite:")
            return held.enter_context(claimed_name(folder, roles, alone=alone))

        if name is None and os.path.isdir(folder):  # noqa: PTH112 - no error for a folder of others; before all that takes time, but no folder is made for a wrong setting
            name = claim()
        if not in_process:
            prepare(loaded.config, roles)
        elif not leash:  # of a supervisor, which has checked this
            require_fit(loaded.config, roles)
        if name is None:
            name = claim()
        if member is None:
            member = f"{roles[0].value}-{name}" if in_process else name
        skipped = append_hits_of(loaded.config, hits or ())
        if in_process:
            code = _run_one(roles[0], loaded.config, member, leash, common.arguments())
        else:
            code = _supervise(loaded.config, roles, member, common, allow_private, leash)
    return Exit.PROBLEM if skipped and code == Exit.OK else code


def demo(
    *,
    keep: Annotated[Path | None, Parameter(help="Folder in which to keep the demo's log and configuration.")] = None,
    serve: Annotated[
        bool, Parameter(negative="", help="Then serve the console on the demo's log, until Ctrl-C.")
    ] = False,
    json: AsJson = False,
) -> int:
    """Make a small web on loopback, carry it through every stage, and show the rate. Takes under a minute."""
    from farmwatch.commands.start.console import serve_until_signal
    from farmwatch.demo.demo import run_demo

    return run_demo(keep, as_json=json, serve=serve_until_signal if serve else None)


def parse_roles(names: list[str]) -> list[Role]:
    """Roles in pipeline order, each once; without names, all of them. Raises UsageError."""
    wanted = {part.strip() for name in names for part in name.split(",") if part.strip()}
    unknown = sorted(wanted - set(Role))
    if unknown:
        raise UsageError(f"--role: no such role: {', '.join(unknown)}; there are {', '.join(Role)}")
    return [role for role in Role if not wanted or role in wanted]


def child_command(role: Role, name: str, arguments: Sequence[str]) -> list[str]:
    """Command line of one role's process; `arguments` give it this process's configuration."""
    member = f"{role.value}-{name}"
    return [*this_program(), "up", "--role", role.value, "--in-process", "--leash", "--member", member, *arguments]


def _supervise(config: Config, roles: list[Role], name: str, common: Common, allow_private: bool, leash: bool) -> int:
    arguments = [*common.arguments(), *(["--set", "crawl.allow_private=true"] if allow_private else [])]
    stop, hurry = threading.Event(), threading.Event()
    children = {role.value: child_command(role, name, arguments) for role in roles}
    last_lines: Callable[[], list[str]] = list
    with stopping_on_signals(stop, hurry), ExitStack() as held:
        if sys.stderr.isatty():
            from farmwatch.commands.start.up_screen import up_screen

            last_lines = held.enter_context(up_screen(config, roles, stop))
        if leash:
            follow_parent(stop, 2 * config.loop.end_s)
        code = Supervisor(children, config.loop.end_s, extras=[Role.CONSOLE.value]).run(stop, hurry)
    for line in last_lines() if code else ():
        message(line)
    return code


def _run_one(role: Role, config: Config, name: str, leash: bool, arguments: Sequence[str]) -> int:
    stop = threading.Event()
    with stopping_on_signals(stop):
        if leash:
            follow_parent(stop, config.loop.end_s)
        if role is Role.CONSOLE:
            from farmwatch.console.serving import run_console

            run_console(config, stop, restarts(), arguments)
        else:
            run_role(role, config, name, stop, restarts=restarts())
    return Exit.OK


def append_hits_of(config: Config, files: Sequence[Path]) -> int:
    """Append the files' hits and print the number of new ones in each; returns the number of lines without a hit."""
    skipped = 0
    for file, added in append_files(config, files) if files else ():
        message(f"{file}: {added.text}")
        skipped += added.skipped
    return skipped
