"""Texts that both runs keep, by the flags of two detectors, and the texts on which these disagree.

Scores of two detectors have no common scale. So a text counts as decisive by ranks: the share of the texts between its
score and the limit of the flags, under the detector that is less sure of it.
"""

from __future__ import annotations

from array import array
from typing import NamedTuple

import numpy as np
import xxhash
from numpy.typing import NDArray

from replay.compare.comparison import Disagreement, TextFlags
from replay.compare.flips import verdicts_at
from replay.compare.verdict_join import SharedTexts
from stream.log.contract import Log
from stream.processing.topic_reader import records_of
from stream.schema.projection import projection_of
from stream.schema.records import Record, Score
from stream.schema.topics import SCORES


class _Scores(NamedTuple):
    texts: NDArray[np.uint64]  # digests, ascending
    scores: NDArray[np.float64]
    flags: NDArray[np.bool_]


@projection_of(Score)
class _Score(Record, frozen=True, kw_only=True):
    text_digest: str
    detector: str
    score: float | None
    flag: bool | None


def text_flags(log: Log, shared: SharedTexts, detectors: tuple[str, str], verdicts: str, most: int) -> TextFlags:
    """Count the texts that both detectors scored, and name the `most` decisive ones of those with one flag.

    `shared.offsets` are of the topic `verdicts`; the first fetch of a text names its page. Raises as `Log.read`.
    """
    a, b = _scores_of(log, detectors)
    scored, in_a, in_b = np.intersect1d(a.texts, b.texts, assume_unique=True, return_indices=True)
    _, places, chosen = np.intersect1d(shared.texts, scored, return_indices=True)
    in_a, in_b = in_a[chosen], in_b[chosen]
    (scores_a, flags_a), (scores_b, flags_b) = (a.scores[in_a], a.flags[in_a]), (b.scores[in_b], b.flags[in_b])
    apart = np.flatnonzero(flags_a != flags_b)
    decisive = np.minimum(_certainty(scores_a, flags_a), _certainty(scores_b, flags_b))[apart]
    named = apart[np.argsort(-decisive, kind="stable")][:most]
    pages = [(int(shared.partitions[place]), int(shared.offsets[place])) for place in places[named]]
    found = verdicts_at(log, verdicts, pages)
    return TextFlags(
        both=int((flags_a & flags_b).sum()),
        a_only=int((flags_a & ~flags_b).sum()),
        b_only=int((flags_b & ~flags_a).sum()),
        neither=int((~flags_a & ~flags_b).sum()),
        apart=[
            Disagreement(
                url=verdict.url,
                site=verdict.site,
                page_id=verdict.page_id,
                fetch_id=verdict.id,
                text_digest=verdict.text_digest,
                score_a=float(scores_a[text]),
                score_b=float(scores_b[text]),
                flagged_by="A" if flags_a[text] else "B",
            )
            for text, page in zip(named, pages, strict=True)
            if (verdict := found.get(page)) is not None
        ],
    )


def _scores_of(log: Log, detectors: tuple[str, str]) -> tuple[_Scores, _Scores]:
    """The newest score of each text by each detector; texts on which it abstained are left out."""
    columns = {detector: (array("Q"), array("d"), array("b")) for detector in detectors}
    for partition in range(log.topics().get(SCORES, 0)):
        for _, said in records_of(_Score, log.read(SCORES, partition)):
            if said.detector in columns and said.score is not None and said.flag is not None:
                keys, scores, flags = columns[said.detector]
                keys.append(xxhash.xxh3_64_intdigest(said.text_digest.encode()))
                scores.append(said.score)
                flags.append(said.flag)

    def newest(detector: str) -> _Scores:
        keys, scores, flags = columns[detector]
        different, from_end = np.unique(np.array(keys, np.uint64)[::-1], return_index=True)
        last = len(keys) - 1 - from_end
        return _Scores(different, np.array(scores, np.float64)[last], np.array(flags, np.bool_)[last])

    return newest(detectors[0]), newest(detectors[1])


def _certainty(scores: NDArray[np.float64], flags: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Of each text: the share of the texts between its score and the limit of the flags; 1 if all flags are equal."""
    flagged = int(flags.sum())
    if flagged in (0, len(flags)):
        return np.ones(len(scores))
    ascending = np.sort(scores)
    ranks = (np.searchsorted(ascending, scores) + np.searchsorted(ascending, scores, side="right")) / 2
    limit = flagged if scores[flags].mean() < scores[~flags].mean() else len(flags) - flagged
    return np.abs(ranks - limit) / len(flags)
