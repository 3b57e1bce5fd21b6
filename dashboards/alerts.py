"""What Prometheus records and watches. An alert is a signal, a comparison and a threshold; dashboards show the signals.

Replicas repeat gauges of sites, share and canaries: queries take `max` of them, never `sum`.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import yaml

from dashboards.pace import Durations

_FETCHED = 'sum(rate(farmwatch_fetch_requests_total{kind="page",outcome="fetched"}[@30m]))'
_ASKED = '(sum(rate(farmwatch_fetch_requests_total{kind="page"}[@30m])) >= 0.02)'  # a share of fewer says little
_JUDGED = "sum by (run) (increase(farmwatch_page_verdicts_total[@6h]) @live)"
_SCORED = 'farmwatch_stage_records_total{stage="score",result'
_DEAD = "farmwatch_dead_letters_total"
# A console that is down changes no number: RoleRestarts tells of it, and so does whoever looks
_UP = 'min by (role, instance) (up{job="farmwatch",role!="console"} or absent(up{job="farmwatch",role="tally"}) - 1)'
_BEATS = 'farmwatch_heartbeat_timestamp_seconds{stage="tally"}'


class Recording(NamedTuple):
    """A query that dashboards and alerts share."""

    name: str
    query: str
    share: str = ""  # a label, where several have one name


class Alert(NamedTuple):
    """Fires where `signal` has been `is_` `than` for `after`. Its page is docs/how-to/runbook/<name>.md."""

    name: str
    severity: str  # critical: wake somebody; warning: today; info: know it
    signal: str
    is_: str
    than: float | str  # a number, or a duration in seconds
    after: str
    summary: str
    description: str
    error: str = ""  # a label, where two have one name


RECORDINGS = (
    Recording(
        "farmwatch:verdicts_per_page:ratio30m",
        f"(sum(rate(farmwatch_page_verdicts_total[@30m]) @live) or vector(0)) / ({_FETCHED} >= 0.02)",
    ),
    Recording(
        "farmwatch:fetch_rejected:ratio30m",
        'sum(rate(farmwatch_fetch_requests_total{kind="page",outcome=~"failed|no_page",'
        'status=~"403|429|503|5xx"}[@30m]))'
        f" / {_ASKED}",
    ),
    Recording(
        "farmwatch:fetch_failed:ratio30m",
        f'sum(rate(farmwatch_fetch_requests_total{{kind="page",outcome="failed",status="none"}}[@30m])) / {_ASKED}',
    ),
    Recording(
        "farmwatch:fetch_challenged:ratio30m",
        f'sum(rate(farmwatch_fetch_requests_total{{kind="page",reason="challenge"}}[@30m])) / {_ASKED}',
    ),
    Recording(
        "farmwatch:watched:ratio",
        f'sum by (run) (increase(farmwatch_page_verdicts_total{{verdict="article"}}[@6h])) / ({_JUDGED} >= 200)',
        "kept",
    ),
    Recording(  # of the articles, which no flood of new sites changes
        "farmwatch:watched:ratio",
        f'sum by (run) (increase({_SCORED}="scored"}}[@6h]))'
        f' / (sum by (run) (increase({_SCORED}=~"scored|abstained"}}[@6h]) @live) >= 200)',
        "scored",
    ),
    # A series is born with its first letter, which no increase() shows. After a gap in what was scraped it is not new.
    Recording(
        "farmwatch:dead_letters:increase1h",
        f"sum by (stage, reason) (({_DEAD} unless {_DEAD} offset @1h) and on (instance) (up offset @1h == 1"
        " or on (instance) time() - process_start_time_seconds < @1h seconds))"
        f" or sum by (stage, reason) (increase({_DEAD}[@1h]))",
    ),
    Recording(
        "farmwatch:score_backlog:seconds",
        'sum(farmwatch_log_lag_records{topic="score.requests"})'
        ' / sum(rate(farmwatch_stage_records_total{stage="score"}[@1h]))',
    ),
    Recording(
        "farmwatch:heartbeat_age:seconds",
        f"time() - (max(max_over_time({_BEATS}[@1d]))"
        ' or max(process_start_time_seconds{job="farmwatch",role="tally"}))',
    ),
    Recording(
        "farmwatch:disk:seconds_left",
        "min by (instance, folder) (farmwatch_disk_free_bytes / (-1 * deriv(farmwatch_disk_free_bytes[@1d]) > 0))",
    ),
)

# a table: with an argument a line it would be twice as long
# fmt: off
ALERTS = (
    Alert("NoVerdicts", "critical", "farmwatch:verdicts_per_page:ratio30m", "<", 0.05, "@15m",
          "Pages are fetched and get no verdict",
          "{{ $value | humanizePercentage }} of the pages of the last 30 minutes have a verdict of the live run."),
    Alert("FallingBehind", "warning",
          'max by (role, topic) (farmwatch_log_lag_seconds{role!="replay",topic!~"score.requests.*"})', ">", "@1h",
          "@15m", "{{ $labels.role }} falls behind",
          "{{ $labels.role }} reads records of {{ $labels.topic }} that are {{ $value | humanizeDuration }} old."),
    Alert("RejectedByHosts", "warning", "farmwatch:fetch_rejected:ratio30m", ">", 0.3, "@15m",
          "Hosts reject the crawler",
          "{{ $value | humanizePercentage }} of the page requests of 30 minutes were answered by 403, 429 or 5xx."),
    Alert("RejectedByHosts", "critical", "farmwatch:fetch_rejected:ratio30m", ">", 0.8, "@15m",
          "Hosts reject the crawler nearly everywhere",
          "{{ $value | humanizePercentage }} of the page requests of 30 minutes were answered by 403, 429 or 5xx:"
          " hardly anything is measured."),
    Alert("ChallengedByHosts", "warning", "farmwatch:fetch_challenged:ratio30m", ">", 0.2, "@15m",
          "Hosts answer with bot challenges",
          "{{ $value | humanizePercentage }} of the page requests of 30 minutes were answered by a bot challenge."),
    Alert("FetchFailures", "warning", "farmwatch:fetch_failed:ratio30m", ">", 0.5, "@15m",
          "Most requests get no answer",
          "{{ $value | humanizePercentage }} of the page requests of 30 minutes got no answer: DNS, connection, TLS or"
          " timeout."),
    Alert("CrawlerStarved", "info", 'sum(farmwatch_frontier_urls{state="queued"})', "==", 0, "@6h",
          "The crawler has nothing to fetch", "{{ $value }} URLs have been queued for 6 hours."),
    Alert("CrawlPaused", "warning", "max by (reason) (farmwatch_crawl_paused)", "==", 1, "@10m",
          "The crawl is paused ({{ $labels.reason }})",
          "No request has started for 10 minutes (paused = {{ $value }}), reason {{ $labels.reason }}."),
    Alert("DeadLetters", "warning", "farmwatch:dead_letters:increase1h", ">", 0, "@0s",
          "{{ $labels.stage }} dead-lettered records",
          "{{ $labels.stage }} dead-lettered {{ $value | humanize }} records in an hour: {{ $labels.reason }}."),
    Alert("ShareShifted", "warning", "abs(farmwatch:watched:ratio - farmwatch:watched:ratio offset @1d)", ">", 0.15,
          "@1h", "The {{ $labels.share }} share has shifted",
          "The {{ $labels.share }} share of run {{ $labels.run }} is {{ $value | humanizePercentage }} off that of a"
          " day ago."),
    Alert("ShareChanged", "info", "max by (run) (farmwatch_share_changed @live)"
          " - max by (run) (farmwatch_share_changed offset @1d)", ">", 0, "@1h", "The share of new sites has changed",
          "New sites of run {{ $labels.run }} have another share of LLM sites since a day of the last year."),
    Alert("DetectorsPart", "warning", "max by (run, detector, kind) (farmwatch_detectors_gap @live)", ">", 0, "@1h",
          "Two detectors part",
          "The {{ $labels.kind }} of {{ $labels.detector }} lies {{ $value | humanizePercentage }} beyond what agrees"
          " with the detector that judges run {{ $labels.run }}."),
    Alert("UnscoredArticles", "warning", "farmwatch:score_backlog:seconds", ">", "@6h", "@30m",
          "Unscored articles pile up",
          "At the pace of the last hour SCORE needs {{ $value | humanizeDuration }} for the articles that wait."),
    Alert("CanariesOff", "info", "max(farmwatch_canary_timestamp_seconds)", "==", 0, "@2d",
          "No canary has come through",
          "The newest canary that came through is of {{ $value }} (0 = none): the errors of the share are unknown."),
    Alert("CanariesLate", "warning", "time() - max(farmwatch_canary_timestamp_seconds > 0)", ">", "@2d", "@1h",
          "Canaries do not come through any more",
          "The newest canary page that came through was sent {{ $value | humanizeDuration }} ago."),
    Alert("CanariesDegraded", "warning", 'max by (kind) (farmwatch_canary_share{kind="site_fpr"})', ">", 0.1, "@1h",
          "Human canary sites are called llm",
          "{{ $value | humanizePercentage }} of the human canary sites are called llm, more than 10%.", "called llm"),
    Alert("CanariesDegraded", "warning", 'min by (kind) (farmwatch_canary_share{kind=~"site_tpr|kept_.*"})', "<", 0.5,
          "@1h", "Canaries are dropped or missed",
          "{{ $labels.kind }} of the canaries is {{ $value | humanizePercentage }}, less than 50%.", "missed"),
    Alert("ControlsFlagged", "warning",
          'max by (run, detector) (farmwatch_control_share{bound="low"} @live)'
          ' - max by (run, detector) (farmwatch_control_share{bound="stated"} @live)', ">", 0,
          "@1h", "The detector flags more human pages of these sites than its card states",
          "Of the control pages of run {{ $labels.run }}, {{ $labels.detector }} flags at least"
          " {{ $value | humanizePercentage }} of pages more than its card states of human pages."),
    Alert("ScorerDeviceErrors", "warning",
          'sum by (kind) (increase(farmwatch_score_device_errors_total{kind!="oom"}[@1h]))', ">", 0, "@0s",
          "The scoring device fails",
          "{{ $value | humanize }} errors ({{ $labels.kind }}) of the scoring device in an hour."),
    Alert("DiskForecast", "warning", "farmwatch:disk:seconds_left", "<", "@7d", "@1h",
          "A disk is full in less than 7 days",
          "The disk of the {{ $labels.folder }} at {{ $labels.instance }} is full in {{ $value | humanizeDuration }} at"
          " the pace of the last day."),
    Alert("HeartbeatStale", "critical", "farmwatch:heartbeat_age:seconds", ">", "@10m", "@5m",
          "No heartbeat passes the stages",
          "The last heartbeat reached TALLY {{ $value | humanizeDuration }} ago; one is sent a minute."),
    Alert("RoleDown", "critical", _UP, "==", 0, "@3m",
          "{{ $labels.role }} is down",
          "{{ $labels.role }} at {{ $labels.instance }} has not answered for 3 minutes (up = {{ $value }})."),
    Alert("RoleRestarts", "warning", 'sum by (role) (changes(process_start_time_seconds{job="farmwatch"}[@1h]))', ">",
          3, "@0s", "{{ $labels.role }} restarts again and again",
          "{{ $labels.role }} was started again {{ $value | humanize }} times in an hour."),
    Alert("SearchSourceParked", "warning", "max by (source) (farmwatch_search_parked_timestamp_seconds) - time()", ">",
          "@1h", "@15m", "The source {{ $labels.source }} is parked",
          "{{ $labels.source }} is left alone for another {{ $value | humanizeDuration }}."),
)
# fmt: on


def runbook_page(alert: str) -> str:
    """Its path in docs/: NoVerdicts -> how-to/runbook/no-verdicts.md."""
    return f"how-to/runbook/{re.sub('(?<!^)(?=[A-Z])', '-', alert).lower()}.md"


def runbook_url(alert: str, docs: str) -> str:
    """Its address, where the documentation is at `docs`."""
    return f"{docs}/{runbook_page(alert)}"


def rule_file(docs: str, pace: Durations | None = None) -> str:
    """The rules as YAML; `pace` makes durations shorter, for tests."""
    pace = pace or Durations()
    recordings: list[dict[str, Any]] = [
        {"record": one.name, "expr": pace.query(one.query), **({"labels": {"share": one.share}} if one.share else {})}
        for one in RECORDINGS
    ]
    alerts: list[dict[str, Any]] = [
        {
            "alert": alert.name,
            "expr": f"{pace.query(alert.signal)} {alert.is_} {pace.threshold(alert.than)}",
            **({} if pace.seconds(alert.after) == 0 else {"for": pace.duration(alert.after)}),
            "labels": {"severity": alert.severity, **({"error": alert.error} if alert.error else {})},
            "annotations": {
                "summary": alert.summary,
                "description": alert.description,
                "runbook_url": runbook_url(alert.name, docs),
            },
        }
        for alert in ALERTS
    ]
    groups = [{"name": "farmwatch-records", "rules": recordings}, {"name": "farmwatch-alerts", "rules": alerts}]
    note = "# Generated by `python -m dashboards`: change dashboards/alerts.py, not this file.\n"
    return note + str(yaml.safe_dump({"groups": groups}, sort_keys=False, width=1000))
