"""The metrics of SCORE and TALLY."""

from __future__ import annotations

from stream.processing.metrics import SECONDS, counter, gauge, histogram

# Probabilities, the scale of Binoculars (.5 to 1.5, with its two published thresholds), that of Fast-DetectGPT.
_SCORES = (
    *(-5.0, -2.0, -1.0, 0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8),
    *(0.8536432310785527, 0.875, 0.9, 0.9015310749276843, 0.925, 0.95, 0.975, 1.0),
    *(1.05, 1.1, 1.2, 1.3, 1.5, 2.0, 3.0, 4.0, 5.0, 7.5, 10.0, 15.0, 20.0),
)

SCORE_BATCH_DURATION_SECONDS = histogram(
    "score_batch_duration_seconds", "Time that a batch kept the detectors busy.", (), SECONDS
)
SCORE_TOKENS = counter("score_tokens", "Tokens that the detectors read, of texts and of padding.", ("kind",))
SCORE_BATCH_TOKENS = gauge(
    "score_batch_tokens", "Tokens of a device's batch at most: halved when its memory is too small."
)
SCORE_DEVICE_ERRORS = counter(
    "score_device_errors", "Memory too small, devices lost, texts that no device takes.", ("kind",)
)
SCORE_DEVICE_MEMORY_BYTES = gauge(
    "score_device_memory_bytes", "Memory of the scoring device: used, peak, total.", ("kind",)
)
SCORE_CACHE_LOOKUPS = counter(
    "score_cache_lookups", "Requests whose text was known already (hit), or read (miss).", ("result",)
)
PAGE_SCORE = histogram("page_score", "Scores of articles, canaries left out.", ("run", "detector"), _SCORES)
SITES_REOPENED = counter("sites_reopened", "Sites whose term has ended, so that CRAWL measures them again.", ("run",))
