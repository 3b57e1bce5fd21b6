"""Runs: names of their topics, groups and stores, and their rows on `control`.

A run is one ruleset and one detector over the stored records. The alias `live` names the run of the live stages. A run
that becomes live resumes at the offsets of its own groups, so it judges each record exactly once.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import msgspec

from stream.schema.topics import (
    FEATURES,
    PAGES,
    REPLAY_REQUESTS,
    SCORE_REQUESTS,
    SITE_TERMS,
    SITES,
    TALLY_STORE,
    TEMPLATES,
    VERDICTS,
    site_memory,
)

LIVE = "live"  # in the log: the run that it begins with, and the alias; in a command: the live run
FIRST = "first"  # for users: the first run of the log
BEFORE = "before"  # in a command: the previous live run
LAYOUT = 2  # the newest that this code reads, see `Run`
RUN_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")  # part of topic names, and a metric's label
RESERVED = frozenset({LIVE, FIRST, BEFORE, "now", "earliest", "follow", "terms"})


def shown_run(run: str) -> str:
    """The name of a run for users."""
    return FIRST if run == LIVE else run


class RunNames(NamedTuple):
    """The topics, stores and groups of a run."""

    features: str  # topic of the judged features
    templates: str  # topic of the templates of their pages
    verdicts: str
    sites: str
    terms: str  # rows of earlier terms
    requests: str  # topic of score requests
    tally_store: str
    measure_group: str  # the group that fills `features`
    judge_group: str
    tally_group: str


def names_of(run: str, features: str = FEATURES, *, is_live: bool = False) -> RunNames:
    """Topics, groups and stores of a run that judges `features`. Requests of the live run are scored first."""
    of_first = run == LIVE
    end = "" if of_first else f".{run}"
    return RunNames(
        features=features,
        templates=TEMPLATES + features.removeprefix(FEATURES),
        verdicts=VERDICTS + end,
        sites=SITES + end,
        terms=SITE_TERMS + end,
        requests=SCORE_REQUESTS if of_first or is_live else REPLAY_REQUESTS,
        tally_store=TALLY_STORE + end,
        measure_group="measure" + features.removeprefix(FEATURES),
        judge_group="judge" + end,
        tally_group="tally" + end,
    )


def features_of(run: str) -> str:
    """Topic of the features that a run measures itself, from `pages`."""
    return f"{FEATURES}.{run}"


def memory_store(features: str, epoch: str) -> str:
    """MEASURE's store behind a topic of features."""
    return site_memory(epoch) + features.removeprefix(FEATURES)


class RunStatus:
    """The states of a run."""

    RUNNING = "running"  # or interrupted: possibly no process works on it
    DONE = "done"  # everything up to its stop is judged and tallied
    CANCELLED = "cancelled"
    REMOVED = "removed"


class Gap(NamedTuple):
    """Offsets that expired before a run read them, including those before its start."""

    topic: str
    partition: int
    first: int
    last: int  # exclusive
    kept_at: int | None = None  # if before the start of the run: ms UTC of the first record retained then, 0 = none


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """The row of a run, under `run/<name>`. Times in milliseconds UTC, offsets per partition.

    Every role and command reads the row of the live run first. So `v` is the layout of the whole log: a farmwatch that
    knows only older ones refuses the log by name.
    """

    v: int = LAYOUT
    name: str
    ruleset: str
    digest: str  # of the ruleset; its text is under `ruleset/<digest>`
    detector: str  # identity
    epoch: str  # feature epoch of the judged features
    features: str = FEATURES  # topic that is judged
    remeasures: bool = False  # `features` is its own, measured from `pages`
    why_source: str = ""  # reason for starting at features or at pages
    start: dict[str, list[int]] = {}  # topic -> first offsets; a missing topic is read from its beginning
    stop: dict[str, list[int]] = {}  # topic -> offsets to stop at; empty = it follows
    from_at: int = 0  # the requested window; 0 = earliest
    to_at: int = 0  # 0 = follows
    state: str = RunStatus.RUNNING
    created_at: int = 0
    created_by: str = ""
    why: str = ""
    began_at: int = 0  # when the present process began, and the records done then: for the rate
    began_done: int = 0
    began_effort: float = 0.0  # and their cost, for the time left
    gaps: list[Gap] = []  # at its begin, in its window; at a resume, in the unread rest
    ended_at: int = 0
    articles: int | None = None  # from its rows when it was last done, and those without a score
    unscored: int | None = None
    site_method: str = ""  # the site method with its numbers, as text; "" = as configured
    error: str = ""  # the error that ended its last process; "" = none
    measured_by: dict[str, str] = {}  # settings of its feature epoch that are not the defaults
    earlier_epochs: dict[str, int] = {}  # of the features that it judged before -> when the next epoch began, ms

    @property
    def shown(self) -> str:
        return shown_run(self.name)

    @property
    def follows(self) -> bool:
        return not self.stop

    @property
    def source(self) -> str:
        return PAGES if self.remeasures else self.features

    def names(self, *, is_live: bool = False) -> RunNames:
        return names_of(self.name, self.features, is_live=is_live)


class Alias(msgspec.Struct, frozen=True, kw_only=True):
    """The name of the live run; under `alias/live`."""

    v: int = 1
    run: str = LIVE
    before: str = ""  # the previous live run: `cutover --back` goes there
    at: int = 0
    number: int = 0  # of the cutover that made it live; 0 = none did


class Cutover(msgspec.Struct, frozen=True, kw_only=True):
    """One change of the live run; under `cutover/<number>`, kept for ever."""

    v: int = 1
    number: int
    at: int
    by: str
    from_run: str
    to_run: str
    from_digest: str = ""  # of the rulesets
    to_digest: str = ""
    why: str = ""
    lag: int = 0  # records that the run had not processed
    back: bool = False
