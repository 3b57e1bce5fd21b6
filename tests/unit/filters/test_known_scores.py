"""The index of scores: it holds the texts that one detector scored, by partition, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from filters.known_scores import KnownScores
from scoring.score_stage import score_key
from stream.records import Score

DETECTOR = "binoculars/a+b@0a1b2c3d/bfloat16/512/accuracy"
NAMES = st.text("ab.-", min_size=1, max_size=3)
SCORED = st.sets(st.tuples(st.integers(0, 2), NAMES, NAMES, st.sampled_from([DETECTOR, "fake/1"])), max_size=30)


def key(site: str, digest: str, detector: str = DETECTOR) -> bytes:
    """The key under which SCORE writes such a score."""
    score = Score(
        id=f"{digest}:{detector}", site=site, page_id="p", fetch_id="f", text_digest=digest, detector=detector
    )
    return score_key(score).encode()


@given(SCORED, st.tuples(st.integers(0, 2), NAMES, NAMES))
def test_it_holds_what_the_set_of_scores_holds(
    scored: set[tuple[int, str, str, str]], asked: tuple[int, str, str]
) -> None:
    """A text is known exactly where its site and partition have a score of this detector; length counts each once."""
    keys = {n: [key(*rest) for partition, *rest in sorted(scored) if partition == n] * 2 for n in range(3)}
    known = KnownScores(DETECTOR, lambda partition: keys[partition])
    for partition, site, digest, detector in scored:
        if detector == DETECTOR:
            assert known.has(partition, site, digest)
    assert known.has(*asked) == ((*asked, DETECTOR) in scored)
    known.load(range(3))
    assert len(known) == sum(detector == DETECTOR for *_, detector in scored)


def test_a_partition_is_read_once() -> None:
    """Loading, and asking after that, reads each partition a single time."""
    read: list[int] = []

    def keys(partition: int) -> Iterator[bytes]:
        read.append(partition)
        yield key("a.example", "t1")

    known = KnownScores(DETECTOR, keys)
    known.load([1, 2])
    known.load([2])
    assert [known.has(partition, "a.example", "t1") for partition in (1, 2, 3)] == [True] * 3
    assert not known.has(3, "a.example", "t2")
    assert read == [1, 2, 3]
