"""Replays of what a farm has stored, as its users run them: by live's rules, from `features` and from `pages`."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from stream.log.contract import Log
from stream.schema.control import Control
from stream.schema.records import SiteState, Verdict
from tests.support.farm import Farm
from tests.support.replay_world import rows_of, verdicts_of

LIVE = "live"


class Told(NamedTuple):
    """What a run says: its verdicts in the order of the log, and the row of each site."""

    verdicts: list[Verdict]
    rows: dict[str, SiteState]


class Replayed(NamedTuple):
    """A replay beside live."""

    source: str
    seconds: float
    told: Told
    unlike_live: list[str]  # ids of verdicts and sites of which the two do not say the same


def replays(farm: Farm, timeout_s: float) -> list[Replayed]:
    """Both replays of a farm that has settled and was stopped. Raises RuntimeError where one does not end well."""
    with farm.log() as log:
        live = told(log, LIVE)
    elements = farm.config.measure.max_elements - 1  # another feature epoch, under which these pages measure the same
    found = []
    for source, settings in (("features", []), ("pages", [f"measure.max_elements={elements}"])):
        started = time.monotonic()
        _replay(farm, f"from-{source}", settings, timeout_s)
        seconds = time.monotonic() - started
        with farm.log() as log:
            row, said = Control(log).runs[f"from-{source}"], told(log, f"from-{source}")
        if row.source != source:
            raise RuntimeError(f"the run {row.name} began at {row.source}: {row.why_source}")
        found.append(Replayed(source, seconds, said, differing(live, said)))
    return found


def told(log: Log, run: str) -> Told:
    """What a run says, but for its name, the time of its work and the epoch of the features that it read."""
    verdicts = [msgspec.structs.replace(verdict, epoch="") for verdict in verdicts_of(log, run)]
    return Told(verdicts, rows_of(log, run))


def differing(a: Told, b: Told) -> list[str]:
    """Ids of the verdicts that stand at different places or say different things, and of sites with different rows."""
    longest = max(len(a.verdicts), len(b.verdicts))
    filled = [[*one.verdicts, *[None] * (longest - len(one.verdicts))] for one in (a, b)]
    verdicts = [(x or y).id for x, y in zip(*filled, strict=True) if x != y and (x or y)]
    return verdicts + sorted(site for site in a.rows.keys() | b.rows.keys() if a.rows.get(site) != b.rows.get(site))


def show_replays(found: Sequence[Replayed]) -> bool:
    """Print what the replays of one log came to; True where all say what live said, and that is something."""
    alike = not differing(found[0].told, found[1].told)
    for one in found:
        verdicts, rows, unlike = len(one.told.verdicts), len(one.told.rows), len(one.unlike_live)
        print(
            f"    replay from {one.source:8} {one.seconds:6.1f} s, {verdicts} verdicts and {rows} site rows: "
            f"{f'{unlike} DIFFER from live' if unlike else 'equal to live, record by record'}"
        )
        for name in one.unlike_live[:10]:
            print(f"      differs: {name}")
    print(f"    the two replays: {'equal' if alike else 'DIFFERENT'}")
    return alike and all(one.told.verdicts and one.told.rows and not one.unlike_live for one in found)


def _replay(farm: Farm, name: str, settings: Sequence[str], timeout_s: float) -> None:
    flags = [word for setting in (*farm.flags, *settings) for word in ("--set", setting)]
    command = ["replay", "--ruleset", farm.config.judge.ruleset, "--name", name, "--full-speed", *flags]
    said: Path = farm.output.with_name(f"{name}.log")
    with said.open("ab") as output:
        done = subprocess.run(
            [sys.executable, "-m", "farmwatch", *command],
            stdout=output,
            stderr=output,
            cwd=said.parent,
            timeout=timeout_s,
            check=False,
        )
    if done.returncode:
        raise RuntimeError(f"farmwatch replay ended with {done.returncode}\n{said.read_text(errors='replace')[-4000:]}")
