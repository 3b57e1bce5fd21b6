"""Tiny random pairs of language models, built once for all tests of scoring."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.pairs import ARCHITECTURES, Pair, build_pair


@pytest.fixture
def inference(needs_torch: None) -> Iterator[None]:
    """Without gradients."""
    import torch

    with torch.inference_mode():
        yield


@pytest.fixture(scope="session")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Pair]:
    """A pair of each architecture, by its name. Torch then keeps to one thread: for models this small it is faster."""
    import torch

    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("pairs")
    return {architecture: build_pair(folder / architecture, architecture) for architecture in ARCHITECTURES}


@pytest.fixture
def copy(pairs: dict[str, Pair], tmp_path: Path) -> Pair:
    """A falcon pair that the test may change."""
    return Pair(*(Path(shutil.copytree(folder, tmp_path / folder.name)) for folder in pairs["falcon"]))
