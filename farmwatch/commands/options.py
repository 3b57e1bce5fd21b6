"""Options that many commands share. Imports nothing heavy, so that help is quick."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from crawler.errors import UnusableUrl
from crawler.web.urls import site_of
from farmwatch.config.config import LoadedConfig, load
from farmwatch.terminal.messages import message
from stream.text.ranges import MOST_PROCESSES
from stream.text.user_errors import UsageError

AT_LEAST_0 = Number(gte=0)
Jobs = Annotated[
    int,
    Parameter(
        name=["--jobs", "-j"], help="Worker processes; 0 = one per core.", validator=Number(gte=0, lte=MOST_PROCESSES)
    ),
]
AsJson = Annotated[bool, Parameter(name="--json", negative="", help="Print JSON in place of a table.")]
Hits = Annotated[
    list[Path] | None,
    Parameter(
        help="Files with search results to append first (CSV, JSONL or URLs).", consume_multiple=True, negative=""
    ),
]
AllowPrivate = Annotated[
    bool, Parameter(negative="", help="Let the crawler reach private addresses. For tests on loopback only.")
]
Why = Annotated[
    list[str] | None, Parameter(help="The reason in words, kept with the order.", consume_multiple=True, negative="")
]
Member = Annotated[
    str | None, Parameter(help="Name of this member, the same after a restart. Default: host and a number.")
]


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Configured:
    """The configuration of a command without a log."""

    config: Annotated[
        Path | None, Parameter(help="Configuration file. Default: ./farmwatch.toml, then $XDG_CONFIG_HOME/farmwatch/.")
    ] = None
    set: Annotated[
        list[str],
        Parameter(name="--set", negative="", help="PATH=VALUE: any setting, such as crawl.delay_s=5; may be repeated."),
    ] = field(default_factory=list)

    def flags(self) -> list[str]:
        """The settings given as flags, `path=value`."""
        return list(self.set)

    def arguments(self) -> list[str]:
        """The arguments that give another command this configuration."""
        file = [] if self.config is None else ["--config", str(self.config)]
        return [*file, *(part for flag in self.flags() for part in ("--set", flag))]

    def load(self, *more: str) -> LoadedConfig:
        """Read the configuration; `more` are further `path=value` flags. Warnings go to stderr. Raises ConfigError."""
        loaded = load(self.config, [*self.flags(), *more])
        for warning in loaded.warnings:
            message(f"warning: {warning}")
        return loaded


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Common(Configured):
    """The configuration, and the log."""

    log: Annotated[str | None, Parameter(help="The log: sqlite:FOLDER or kafka:HOST:PORT. Same as log.url.")] = None

    def flags(self) -> list[str]:
        """The settings given as flags, `path=value`. Raises UsageError."""
        if self.log is None:
            return list(self.set)
        if any(setting.startswith("log.url=") for setting in self.set):
            raise UsageError("--log and --set log.url both name the log: give one of them")
        return [*self.set, f"log.url={self.log}"]


DEFAULTS = Common()
JUST_CONFIGURED = Configured()


def host_of(named: str, option: str = "--site") -> str:
    """The host in an option, as the log spells it; capitals, Unicode and URLs are accepted. Raises UsageError."""
    try:
        return site_of(named if "://" in named else f"http://{named}/")
    except UnusableUrl as error:
        raise UsageError(f"{option} {named!r}: no host name: {error}") from error
