"""The metrics of MEASURE and JUDGE."""

from __future__ import annotations

from stream.processing.metrics import counter, gauge, histogram

_SHARE = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)

RULE_DROPS = counter("rule_drops", "Pages on which a rule failed.", ("run", "ruleset", "rule"))
EXTRACT_ATTEMPTS = counter("extract_attempts", "Extractions of a main text.", ("mode", "outcome"))
PAGE_DUPLICATE_RATIO = histogram(
    "page_duplicate_ratio", "Share of a page's bytes that repeat earlier pages.", (), _SHARE
)
PAGE_TEMPLATE_RATIO = histogram(
    "page_template_ratio", "Share of a page's five-word runs that earlier pages have.", (), _SHARE
)
PAGE_TEMPLATE_BLOCK_RATIO = histogram(
    "page_template_block_ratio", "Share of a page's characters in template lines.", (), _SHARE
)
SITE_MEMORY_SITES = gauge("site_memory_sites", "Sites whose earlier pages this process has in memory.")
SITE_MEMORY_BYTES = gauge("site_memory_bytes", "Bytes of what is remembered of them.")
PAGE_VERDICTS = counter("page_verdicts", "Page verdicts.", ("run", "ruleset", "verdict"))
