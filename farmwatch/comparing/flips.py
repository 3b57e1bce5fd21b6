"""A reproducible sample of flips, with their verdicts and texts.

Each kind of flip is a stratum: in or out, by the first rule that failed. The strata take turns, the largest first, each
with its next page in the random order of the seed, until the sample is full: so a rule that flips few pages is seen,
too. `Stratum` says how many there are of each, for whoever wants to weigh.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from farmwatch.comparing.choosing import Chosen
from farmwatch.comparing.comparison import FailedRule, Flip, Stratum
from farmwatch.comparing.joining import Joined, Place
from farmwatch.comparing.joining import Stratum as Key
from stream.log import Log, partition_of
from stream.records import Features, Record, Verdict, decode

LARGEST = 1000  # flips in a sample: each is held with its text
_CLOCKS_MS = 60_000  # by which the clock of a fetch may be ahead of the log's


class _Id(Record, frozen=True, kw_only=True):
    """The fetch id, which is all that most records are asked for."""


def sample_of(log: Log, joined: Joined, runs: tuple[Chosen, Chosen], size: int) -> tuple[list[Stratum], list[Flip]]:
    """The strata, largest first, and `size` flips of them in turn, fewer where there are fewer. Raises as `Log.read`.

    Texts are those that B judged; where B's features are gone, those that A did. A flip of which retention has taken a
    verdict meanwhile is left out.
    """
    order = sorted(joined.flips, key=lambda key: (-joined.flips[key], key))
    found = [
        (key, verdicts)
        for key, place in _in_turn(order, joined, size)
        if (verdicts := _verdicts(log, place, runs)) is not None
    ]
    texts = _texts(log, runs[1].names.features, [verdicts[1] for _, verdicts in found])
    if runs[0].names.features != runs[1].names.features:
        missing = [verdicts[0] for _, verdicts in found if verdicts[0].id not in texts]
        texts |= _texts(log, runs[0].names.features, missing)
    flips = [_flip(key, *verdicts, texts.get(verdicts[0].id)) for key, verdicts in found]
    taken = [key for key, _ in found]
    strata = [Stratum(kind=key.kind, rule=key.rule, flips=joined.flips[key], sampled=taken.count(key)) for key in order]
    return strata, flips


def _in_turn(order: list[Key], joined: Joined, size: int) -> Iterator[tuple[Key, Place]]:
    waiting = deque((key, deque(joined.places.get(key, ()))) for key in order)
    left = size
    while waiting and left:
        key, places = waiting.popleft()
        if places:
            yield key, places.popleft()
            waiting.append((key, places))
            left -= 1


def _verdicts(log: Log, place: Place, runs: tuple[Chosen, Chosen]) -> tuple[Verdict, Verdict] | None:
    found = []
    for run, offset in zip(runs, (place.offset_a, place.offset_b), strict=True):
        message = next(iter(log.read(run.names.verdicts, place.partition, offset, offset + 1)), None)
        if message is None or not message.value:
            return None
        found.append(decode(Verdict, message.value))
    return found[0], found[1]


def _flip(key: Key, a: Verdict, b: Verdict, features: Features | None) -> Flip:
    return Flip(
        fetch_id=b.id,
        url=b.url,
        site=b.site,
        page_id=b.page_id,
        kind=key.kind,
        rule=key.rule,
        verdict_a=a.verdict,
        verdict_b=b.verdict,
        failed_a=_failed(a),
        failed_b=_failed(b),
        text=None if features is None else features.text,
        text_digest="" if features is None else features.text_digest,
        fetched_at=b.fetched_at,
    )


def _failed(verdict: Verdict) -> list[FailedRule]:
    outcomes = {outcome.name: outcome for outcome in verdict.rules}
    return [
        FailedRule(name=name, value=found.value, op=found.op, threshold=found.threshold)
        for name in verdict.failed
        if (found := outcomes.get(name)) is not None
    ]


def _texts(log: Log, topic: str, verdicts: list[Verdict]) -> dict[str, Features]:
    """Fetch id -> features, of those that are in the log still.

    Features stand behind their fetch's time. So each partition is read once, from the earliest fetch that is wanted on,
    and what lies before the next wanted one is leapt over.
    """
    found: dict[str, Features] = {}
    if topic not in log.topics():
        return found
    partitions = log.topics()[topic]
    starts: dict[int, dict[str, int]] = {}
    for verdict in verdicts:
        offsets = log.offset_at(topic, max(0, verdict.fetched_at - _CLOCKS_MS))
        partition = partition_of(verdict.site, partitions)
        starts.setdefault(partition, {})[verdict.id] = offsets[partition]
    for partition, wanted in starts.items():
        at = 0
        while wanted:
            at = max(at, min(wanted.values()))
            for message in log.read(topic, partition, at):
                at = message.offset + 1
                if not message.value or (fetch := decode(_Id, message.value).id) not in wanted:
                    continue
                found[fetch] = decode(Features, message.value)
                del wanted[fetch]
                if not wanted or min(wanted.values()) > at:
                    break
            else:
                break  # the end: what is still wanted is no longer there
    return found
