"""The two runs that are compared: by name, by ruleset, and how far each of them is."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches

from farmwatch.errors import NotFound
from farmwatch.messages import counted, one_line
from farmwatch.runs.named import FIRST
from farmwatch.runs.offsets import between, done_by, lag_on
from stream.control import Control
from stream.log import Log
from stream.records import RuleOutcome, Verdict, decode
from stream.runs import LIVE, Run, RunNames, State

BEFORE = "before"  # the run that was live before
EXACTLY = "run/"  # in front of a name: that run, where the name alone means the live one
_NAMES_SHOWN = 20
_BACK = 200  # offsets looked through for a partition's last verdict: on Kafka markers stand between records


@dataclass(frozen=True, slots=True)
class Chosen:
    """A run, where it writes, and the ruleset that its verdicts are of. `rules` are those of its newest verdict."""

    run: Run
    names: RunNames
    is_live: bool
    ruleset: str
    digest: str
    epoch: str
    rules: list[RuleOutcome]
    progress: str  # how far it is, in words; "" = all is judged and tallied


def choose(log: Log, control: Control, name: str) -> Chosen:
    """The run that a command line means by `name`.

    `live` is the run that the alias names, `before` the one that was live before it, and `run/NAME` always the run of
    that name. Raises NotFound: for a name that is not there, with those that are, and for a run without a verdict.
    """
    run = _run(control, name)
    is_live = run.name == control.alias.run
    names = run.names(is_live=is_live)
    progress = _progress(log, run, names)
    newest = _newest(log, names.verdicts, run.digest)
    if newest is None:
        so_far = f" ({progress})" if progress else ""
        raise NotFound(f"the run {run.name} has judged nothing yet{so_far}: wait for it; `farmwatch runs` shows it")
    return Chosen(
        run=run,
        names=names,
        is_live=is_live,
        ruleset=newest.ruleset,
        digest=newest.digest,
        epoch=newest.epoch,
        rules=newest.rules,
        progress=progress,
    )


def _run(control: Control, name: str) -> Run:
    asked = name.removeprefix(EXACTLY)
    if name == LIVE:
        asked = control.alias.run
    elif name == BEFORE and BEFORE not in control.runs and control.alias.before:
        asked = control.alias.before
    found = control.runs.get(asked, FIRST if asked == LIVE else None)
    if found is not None and found.state != State.REMOVED:
        return found
    there = sorted({LIVE, *(run.name for run in control.runs.values() if run.state != State.REMOVED)})
    near = get_close_matches(asked, there, 1)
    meant = f"did you mean {near[0]}? " if near else ""
    more = f" and {len(there) - _NAMES_SHOWN} more" if len(there) > _NAMES_SHOWN else ""
    raise NotFound(
        f"there is no run {one_line(name)[:60]!r}; {meant}The runs of this log: {', '.join(there[:_NAMES_SHOWN])}{more}"
    )


def _newest(log: Log, topic: str, digest: str) -> Verdict | None:
    """The verdict that was given last; of this ruleset, where one is named."""
    if topic not in log.topics():
        return None
    newest: Verdict | None = None
    for look_back in (_BACK, None):
        for partition, (first, end) in enumerate(zip(log.beginning(topic), log.end(topic), strict=True)):
            start = first if look_back is None else max(first, end - look_back)
            for message in log.read(topic, partition, start, end):
                if not message.value:
                    continue
                verdict = decode(Verdict, message.value)
                wanted = not digest or verdict.digest == digest
                if wanted and (newest is None or verdict.judged_at >= newest.judged_at):
                    newest = verdict
        if newest is not None:
            break
    return newest


def _progress(log: Log, run: Run, names: RunNames) -> str:
    """What is not judged or not tallied yet, in words."""
    topics = log.topics()
    said = []
    group = names.measure_group if run.remeasures else names.judge_group
    if run.source in topics:
        end = log.end(run.source)
        stop = run.stop.get(run.source, end)
        start = run.start.get(run.source, log.beginning(run.source))
        whole, left = between(start, stop), between(done_by(log, group, run.source), stop)
        if left:
            share = 1 - min(left, whole) / whole if whole else 0.0
            word = "measured" if run.remeasures else "judged"
            said.append(f"{word} {max(0, whole - left):,} of {whole:,} records, {share:.0%}")
        elif run.remeasures and names.features in topics:
            unjudged = lag_on(log, names.judge_group, names.features)
            said += [f"{counted(unjudged, 'measured page')} not judged yet"] if unjudged else []
    if names.verdicts in topics:
        behind = lag_on(log, names.tally_group, names.verdicts)
        said += [f"{counted(behind, 'verdict')} not yet in its site verdicts"] if behind else []
    if said and run.state == State.CANCELLED:
        said.insert(0, "cancelled")
    return "; ".join(said)
