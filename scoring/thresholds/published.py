"""Threshold sets that are published with a detector, and files written by `farmwatch calibrate`.

The authors of Binoculars published two thresholds for one pair, Falcon-7B as observer and its instruct sibling as
performer, in bfloat16 and on the first 512 tokens (arXiv 2401.12070, and their code): `accuracy` with the best F1,
`low-fpr` at a false-positive rate of .01 %. docs/explanation/calibration.md has their errors on real pages.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from scoring.errors import BadThresholds, UnknownThresholds
from scoring.sites.family import not_as_measured
from scoring.thresholds.threshold_set import ThresholdSet
from stream.text.whole_files import write_whole

_SLASHES = 3  # of a base: binoculars / pair / dtype / max_tokens
_PUBLISHED = {"accuracy": 0.9015310749276843, "low-fpr": 0.8536432310785527}
_LARGEST_BYTES = 1 << 20  # a set has a few hundred bytes; a larger file is something else


def published_for(base: str) -> list[ThresholdSet]:
    """The sets that are published for a detector of this base, by name; none for most."""
    if base.count("/") != _SLASHES or not_as_measured(base):
        return []
    return [
        ThresholdSet(name=name, detector=base, threshold=threshold, llm_below=True, published=True)
        for name, threshold in sorted(_PUBLISHED.items())
    ]


def load_thresholds(name_or_path: str, base: str) -> ThresholdSet:
    """The set that `score.thresholds` names for the detector of this base: a published name, or a file.

    A name with a slash or the ending .json is a file. Raises BadThresholds with the fault and the action.
    """
    if "/" not in name_or_path and not name_or_path.endswith(".json"):
        published = {known.name: known for known in published_for(base)}
        if name_or_path in published:
            return published[name_or_path]
        why = not_as_measured(base) if name_or_path in _PUBLISHED else ""
        names = f"; published are {', '.join(published)}" if published else ""
        raise UnknownThresholds(
            f"no threshold set {name_or_path!r} is published for {base}{why and f' ({why})'}{names}"
        )
    thresholds = read_thresholds(Path(name_or_path))
    if thresholds.detector != base:
        raise BadThresholds(f"{name_or_path}: thresholds of {thresholds.detector}, not of {base}")
    return thresholds


def read_thresholds(path: Path) -> ThresholdSet:
    """The set in a file, for any detector. Raises BadThresholds."""
    try:
        with path.open("rb") as file:
            thresholds = msgspec.json.decode(file.read(_LARGEST_BYTES), type=ThresholdSet)
    except OSError as error:
        raise BadThresholds(f"{path}: cannot be read: {error.strerror}") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadThresholds(f"{path}: no threshold set: {error}") from error
    if thresholds.published:
        raise BadThresholds(f"{path}: published sets come with the program, not from a file: set published to false")
    return thresholds


def write_thresholds(path: Path, thresholds: ThresholdSet, *, force: bool = False) -> None:
    """Write a set as readable JSON, in one step. Raises FileExistsError without `force`, and OSError."""
    body = msgspec.json.format(msgspec.json.encode(thresholds, order="sorted"), indent=2) + b"\n"
    write_whole(path, body, force=force)
