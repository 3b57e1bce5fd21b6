"""Writes at a position that are cut off, as in a crash."""

from __future__ import annotations

import os

import pytest

_pwrite = os.pwrite


def tear_writes(monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """After this many calls of `os.pwrite`, each later one writes half of its bytes and raises KeyboardInterrupt."""
    left = after

    def torn(descriptor: int, data: bytes, position: int) -> int:
        nonlocal left
        left -= 1
        if left < 0:
            _pwrite(descriptor, data[: len(data) // 2], position)
            raise KeyboardInterrupt
        return _pwrite(descriptor, data, position)

    monkeypatch.setattr(os, "pwrite", torn)
