"""The package's front: every public name is there, and none is paid for before it is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

import scoring


def test_every_public_name_resolves() -> None:
    """Each name of __all__ is there; any other is an AttributeError."""
    assert all(getattr(scoring, name) is not None for name in scoring.__all__)
    with pytest.raises(AttributeError, match="nothing_like_it"):
        _ = scoring.nothing_like_it


def test_importing_names_does_not_import_their_weight() -> None:
    """Package, settings, test, rate and detector registry come without numpy; nothing comes with scikit-learn."""
    code = (
        "import sys, scoring\n"
        "from scoring import ErrorCounts, ScoreSettings, SiteTest, TallySettings, detector_names, site_rate\n"
        "assert 'numpy' not in sys.modules\n"
        "from scoring import ScoreStage, TallyStage, TrainingOptions, load_detector\n"
        "load_detector()\n"
        "assert not {'sklearn', 'scipy', 'torch'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
