"""The metrics of processes, rates, canaries and the console; and the list of all metrics of farmwatch."""

from __future__ import annotations

import crawler.metrics
import filters.stages.metrics
import replay.metrics
import scoring.stages.metrics
import stream.processing.metrics
from stream.processing.metrics import SECONDS, Metric, counter, gauge, histogram

BUILD_INFO = gauge("build_info", "Version of this process; always 1.", ("version",))
RULESET_INFO = gauge("ruleset_info", "Ruleset in use; always 1.", ("ruleset", "digest"))
ROLE_RESTARTS = counter(
    "role_restarts", "Times that `farmwatch up` has started this role again, since it began itself."
)
SEARCH_ROUND_TIMESTAMP_SECONDS = gauge(
    "search_round_timestamp_seconds", "When a source's last whole round ended.", ("source",)
)
LOG_BYTES = gauge(
    "log_bytes",
    "Bytes of the log by the first word of topic names: `verdicts` has those of all runs, `state` all stores.",
    ("topic",),
)
DISK_FREE_BYTES = gauge(
    "disk_free_bytes", "Free bytes of the disk of this process's log, or of its archive.", ("folder",)
)
TEMPLATE_SITES = gauge(
    "template_sites",
    "Sites with the template of this rank, 1 = most sites; all: with any. Of at most 50,000 templates.",
    ("rank",),
)
SITES = gauge(
    "sites",
    "Sites by verdict: those last judged by ruleset, detector and site method in force, and those not judged yet.",
    ("run", "ruleset", "verdict"),
)
SITES_EXPIRED = gauge("sites_expired", "Sites whose newest verdict is too old to count.", ("run", "ruleset"))
SHARE = gauge(
    "share",
    "Share of LLM sites among these sites with scored articles, with its interval (low, high) and that for repeated"
    " looks (look_low, look_high); by the method direct or ppi it has a point.",
    ("run", "ruleset", "detector", "source", "definition", "method", "bound"),
)
SHARE_SITES = gauge(
    "share_sites",
    "Sites with a scored article, on which `share` rests.",
    ("run", "ruleset", "detector", "source", "definition", "method"),
)
RESULTS_SHARE = gauge(
    "results_share",
    "Share that LLM sites hold of the search results of the last 7 days by rank, with its interval (low, high); part:"
    " all, first_ten, new (sites that no result named before) or returning.",
    ("run", "ruleset", "detector", "method", "part", "bound"),
)
RESULTS_SCORED = gauge(
    "results_scored",
    "Search results of sites with a scored article, on which `results_share` rests.",
    ("run", "ruleset", "detector", "method", "part"),
)
CONTENT_FARM_SHARE = gauge(
    "content_farm_share",
    "Share of content farms among sites with scored articles: of those with both signs (point), and with those of which"
    " one is unknown (at_most), with the interval of both (low, high).",
    ("run", "ruleset", "detector", "method", "bound"),
)
SHARE_CHANGED = gauge(
    "share_changed",
    "1 where new sites have another share since a day of the last year: an alarm, false in at most 5% of years.",
    ("run", "ruleset", "detector"),
)
DETECTORS_GAP = gauge(
    "detectors_gap",
    "How far what a second detector says lies from the judging one: both intervals of the share (kind share), and the"
    " flagged articles of a site beside what known sites explain (kind flags); above 0 the two part.",
    ("run", "ruleset", "detector", "kind"),
)
CONTROL_SHARE = gauge(
    "control_share",
    "Flagged share of control pages, surely human by their dates, with its interval (low, high), and that of human"
    " pages that the card of the detector states (stated).",
    ("run", "ruleset", "detector", "bound"),
)
FARM_RATE = gauge(
    "farm_rate",
    "Share of llm verdicts among these sites that are classifiable; `share` will take its place.",
    ("run", "ruleset", "source", "bound"),
)
CANARY_PAGES_SENT = counter("canary_pages_sent", "Pages of canary sites put on the way.")
CANARY_SITES = gauge("canary_sites", "Canary sites, one round of each label and content.", ("truth", "verdict"))
CANARY_SHARE = gauge(
    "canary_share", "Of canaries: site_fpr, site_tpr, page_fpr, page_tpr, kept_human, kept_llm.", ("kind",)
)
CANARY_TIMESTAMP_SECONDS = gauge(
    "canary_timestamp_seconds", "When the newest canary page that came through was sent; 0 = none has."
)
CONSOLE_BEHIND_RECORDS = gauge(
    "console_behind_records", "Offsets that the console has not read, so that its pages lack them."
)
CONSOLE_REQUEST_DURATION_SECONDS = histogram(
    "console_request_duration_seconds", "Time of an answer.", ("page", "status"), SECONDS
)

_MODULES = (stream.processing.metrics, crawler.metrics, filters.stages.metrics, scoring.stages.metrics, replay.metrics)
ALL = tuple(
    value for names in (*map(vars, _MODULES), globals().copy()) for value in names.values() if isinstance(value, Metric)
)
