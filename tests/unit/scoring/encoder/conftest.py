"""Tiny random sequence classifiers, built once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.encoders import BACKBONES, build_encoder


@pytest.fixture(scope="session")
def encoders(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, bool], Path]:
    """A folder of each backbone and layout; True is the pooled one. Torch then keeps to one thread."""
    import torch

    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("encoders")
    return {
        (backbone, pooled): build_encoder(folder / f"{backbone}-{pooled}", backbone, pooled=pooled)
        for backbone in BACKBONES
        for pooled in (False, True)
    }


@pytest.fixture
def copy(encoders: dict[tuple[str, bool], Path], tmp_path: Path) -> Path:
    """A classifier of two labels that the test may change."""
    return Path(shutil.copytree(encoders["roberta", False], tmp_path / "copy"))
