"""The reliability plot draws whatever a detector is called."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from scoring.calibration.labelled_scores import LabelledScores
from scoring.calibration.plot import draw
from scoring.calibration.threshold import calibrate


def test_a_name_is_no_mathematics() -> None:
    """An identity with dollar signs and a backslash is drawn as it stands; matplotlib would else refuse it."""
    pytest.importorskip("matplotlib")
    rng = np.random.default_rng(0)
    scores = LabelledScores(
        detector="other/1",
        number="score",
        llm_below=False,
        value=np.concatenate([rng.normal(0, 1, 200), rng.normal(2, 1, 100)]),
        llm=np.arange(300) >= 200,
        words=np.full(300, -1),
        sites=[""] * 300,
        genres=[""] * 300,
    )
    report = msgspec.structs.replace(calibrate(scores, "x", 0.05)[1], identity=r"other/$\foo$/x")
    assert draw(report)["png"].startswith(b"\x89PNG")
