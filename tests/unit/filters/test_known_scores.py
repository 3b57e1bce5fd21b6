"""The index of scores: the texts that one detector has scored, by partition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hypothesis import given
from hypothesis import strategies as st

from filters.known_scores import KnownScores
from scoring.stages.score import score_key
from stream.schema.records import Score

DETECTOR = "binoculars/a+b@0a1b2c3d/bfloat16/512/accuracy"
NAMES = st.text("ab.-", min_size=1, max_size=3)
SCORED = st.sets(st.tuples(st.integers(0, 2), NAMES, NAMES, st.sampled_from([DETECTOR, "fake/1"])), max_size=30)


def key(site: str, digest: str, detector: str = DETECTOR) -> bytes:
    score = Score(
        id=f"{digest}:{detector}", site=site, page_id="p", fetch_id="f", text_digest=digest, detector=detector
    )
    return score_key(score).encode()


class Topic:
    """Score keys by partition in offset order, and the offsets that were read."""

    def __init__(self) -> None:
        self.keys: dict[int, list[bytes]] = {}
        self.read: list[Mapping[int, int]] = []

    def put(self, partition: int, *keys: bytes) -> None:
        self.keys.setdefault(partition, []).extend(keys)

    def __call__(self, after: Mapping[int, int]) -> Iterator[tuple[int, int, bytes]]:
        self.read.append(dict(after))
        for partition, first in after.items():
            for offset, found in list(enumerate(self.keys.get(partition, [])))[first:]:
                yield partition, offset, found


@given(SCORED, SCORED, st.tuples(st.integers(0, 2), NAMES, NAMES))
def test_it_holds_what_the_set_of_scores_holds(
    scored: set[tuple[int, str, str, str]], later: set[tuple[int, str, str, str]], asked: tuple[int, str, str]
) -> None:
    """A text is known exactly if this detector scored it in its site and partition; later scores count once read."""
    topic = Topic()
    known = KnownScores(DETECTOR, topic)
    there: set[tuple[int, str, str, str]] = set()
    for more in (scored, later):
        for partition, *rest in sorted(more):
            topic.put(partition, *[key(*rest)] * 2)
        there |= more
        known.load(range(3))
        known.read_on()
        for partition, site, digest, detector in there:
            if detector == DETECTOR:
                assert known.has(partition, site, digest)
        assert known.has(*asked) == ((*asked, DETECTOR) in there)


def test_each_offset_is_read_once() -> None:
    """Loading and later queries read each offset once; a later read begins after the last offset."""
    topic = Topic()
    for partition in (1, 2, 3):
        topic.put(partition, key("a.example", "t1"))
    known = KnownScores(DETECTOR, topic)
    known.load([1, 2])
    known.load([2])
    assert [known.has(partition, "a.example", "t1") for partition in (1, 2, 3)] == [True] * 3
    assert not known.has(3, "a.example", "t2")
    assert topic.read == [{1: 0}, {2: 0}, {3: 0}]
    topic.put(3, key("a.example", "t2"), b"")
    known.read_on()
    known.read_on()
    assert known.has(3, "a.example", "t2")
    assert topic.read[3:] == [{1: 1, 2: 1, 3: 1}, {1: 1, 2: 1, 3: 3}]


def test_later_scores_are_sorted_in_once_they_are_many() -> None:
    """Few digests are kept unsorted, and no score is lost when they are sorted in."""
    topic = Topic()
    known = KnownScores(DETECTOR, topic, most_unsorted=3)
    for number in range(20):
        topic.put(0, key("a.example", f"t{number}"))
        known.load([0])
        known.read_on()
        assert len(known._later[0]) <= 3
    assert all(known.has(0, "a.example", f"t{number}") for number in range(20))


def test_a_score_that_will_come_is_known_and_takes_no_offset() -> None:
    """A key at -1 counts as a score; the next read still begins at the first offset."""
    read: list[Mapping[int, int]] = []

    def keys(after: Mapping[int, int]) -> Iterator[tuple[int, int, bytes]]:
        read.append(dict(after))
        yield 0, -1, key("a.example", "t1")

    known = KnownScores(DETECTOR, keys)
    assert known.has(0, "a.example", "t1")
    known.read_on()
    assert read == [{0: 0}, {0: 0}]
