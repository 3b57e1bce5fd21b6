"""Modules that are imported at their first use: torch and scipy cost seconds in each process that collects tests."""

from __future__ import annotations

import importlib
from typing import Any


class Lazily:
    """A module that is imported at the first use of one of its names. For type checkers, import it as usual."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # pytest asks all that a module of tests has for such names
            raise AttributeError(name)
        return getattr(importlib.import_module(self._name), name)
