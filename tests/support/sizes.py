"""FARMWATCH_LONG: tests that simulate or generate much run at full size (`make real`, `make chaos`)."""

from __future__ import annotations

import os

LONG = bool(os.environ.get("FARMWATCH_LONG"))
