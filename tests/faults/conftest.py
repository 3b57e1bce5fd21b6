"""MEASURE extracts in the process of the test: its worker processes have their own tests."""

from __future__ import annotations

from tests.support.pages.extraction_here import extracted_here

__all__ = ["extracted_here"]
