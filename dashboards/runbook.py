"""Where the page of an alert is."""

from __future__ import annotations

import re


def runbook_page(alert: str) -> str:
    """Path in docs/: NoVerdicts -> how-to/runbook/no-verdicts.md."""
    return f"how-to/runbook/{re.sub('(?<!^)(?=[A-Z])', '-', alert).lower()}.md"


def runbook_url(alert: str, docs: str) -> str:
    """Its address."""
    return f"{docs}/{runbook_page(alert)}"
