"""For each alert, series for which it fires, and series slightly below the threshold for which it is silent."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

LIVE = {'farmwatch_live_run_info{run="first"}': "1x300"}
_PAGE = 'farmwatch_fetch_requests_total{kind="page",outcome='
_FETCHED = f'{_PAGE}"fetched",status="2xx"}}'
_ROBOTS = {'farmwatch_fetch_requests_total{kind="robots",outcome="fetched",status="2xx"}': "0+9000x300"}


# All others: warning
SEVERITY = dict.fromkeys(("NoVerdicts", "HeartbeatStale", "RoleDown"), "critical") | dict.fromkeys(
    ("CrawlerStarved", "ShareChanged", "CanariesOff"), "info"
)


class Case(NamedTuple):
    """Series by name, in promtool's notation, the time to check the alert, and whether it fires then."""

    alert: str
    step: str  # between two samples
    series: dict[str, str]
    silent_at: str  # just before `for` has passed, or the windows have
    fires_at: str = ""  # just after, or as late as the windows allow; "" = never
    labels: Mapping[str, str] = MappingProxyType({})  # of the firing alert, besides name and severity
    said: str = ""  # its value, in the description
    severities: tuple[str, ...] = ()  # of the firing alerts; () = its only one

    @property
    def grave(self) -> tuple[str, ...]:
        """The severities with which the alert fires."""
        return self.severities or (SEVERITY.get(self.alert, "warning"),)


def _verdicts(a_minute: float, run: str = "first") -> dict[str, str]:
    return {f'farmwatch_page_verdicts_total{{run="{run}",verdict="article"}}': f"0+{a_minute}x60"}


def _answers(a_minute: dict[str, float]) -> dict[str, str]:
    """Page requests by status; without one, there is no answer."""
    return {
        f'{_PAGE}"{"fetched" if status == "2xx" else "failed"}",status="{status}"}}': f"0+{count}x60"
        for status, count in a_minute.items()
    } | _ROBOTS


def _challenges(challenged: float, fetched: float) -> dict[str, str]:
    """Page requests with status 200, answered by a challenge or by a page."""
    said = f'{_PAGE}"no_page",status="2xx",reason="challenge"}}'
    return {said: f"0+{challenged}x60", _FETCHED: f"0+{fetched}x60"} | _ROBOTS


def _kept(articles: int, dropped: int, later: int) -> dict[str, str]:
    """Verdicts per half hour: articles and others; after 30 hours, this many fewer articles."""
    name = 'farmwatch_page_verdicts_total{run="first",verdict="'
    return LIVE | {
        f'{name}article"}}': f"0+{articles}x60 {60 * articles}+{articles - later}x60",
        f'{name}dropped"}}': f"0+{dropped}x60 {60 * dropped}+{dropped + later}x60",
    }


def _scores(scored: int, abstained: int, later: int) -> dict[str, str]:
    """Scored articles per half hour, and others; after 30 hours, this many fewer scored ones."""
    name = 'farmwatch_stage_records_total{run="first",stage="score",result="'
    return LIVE | {
        f'{name}scored"}}': f"0+{scored}x60 {60 * scored}+{scored - later}x60",
        f'{name}abstained"}}': f"0+{abstained}x60 {60 * abstained}+{abstained + later}x60",
        f'{name}unanswered"}}': "0+99x120",
        'farmwatch_stage_records_total{run="first",stage="judge",result="scored"}': "0+99x120",
    }


def _of_old(series: dict[str, str]) -> dict[str, str]:
    return {name.replace('run="first"', 'run="old"'): values for name, values in series.items() if "live" not in name}


def _canaries(**shares: float) -> dict[str, str]:
    return {
        f'farmwatch_canary_share{{kind="{kind}",instance="{i}"}}': f"{share}x99"
        for kind, share in shares.items()
        for i in "ab"
    }


def _up(instance: str) -> str:
    return f'up{{job="farmwatch",instance="{instance}"}}'


def _waiting(requests: int, scored: str = "0+1x150") -> dict[str, str]:
    """After 70 minutes this many articles wait; by default one a minute is scored."""
    lag = 'farmwatch_log_lag_records{topic="score.requests"}'
    return {lag: f"0x70 {requests}x80", 'farmwatch_stage_records_total{stage="score"}': scored}


_TALLY = 'farmwatch_heartbeat_timestamp_seconds{stage="tally"}'
_CANARY = 'farmwatch_canary_timestamp_seconds{role="tally"}'
_PAUSED = "farmwatch_crawl_paused{reason="
_FREE = 'farmwatch_disk_free_bytes{folder="log",instance="a:1",role="crawl"}'
_DEAD = 'farmwatch_dead_letters_total{stage="measure",reason="BadRecord",instance="a:1"}'
_LETTER = {"stage": "measure", "reason": "BadRecord"}
_START_OF_A = 'process_start_time_seconds{job="farmwatch",instance="a:1"}'
_GAP = 'farmwatch_detectors_gap{run="first",ruleset="default",detector="y/1",kind="flags"}'
_CONTROLS = 'farmwatch_control_share{run="first",ruleset="default",detector="x/1",bound="low"}'
_STATED = _CONTROLS.replace("low", "stated")
_CHANGED = 'farmwatch_share_changed{run="first",ruleset="default",detector="x/1"}'
_DEVICE = "farmwatch_score_device_errors_total{kind="
_PARKED = 'farmwatch_search_parked_timestamp_seconds{source="brave"}'
_BEAT_OF_CRAWL = {'farmwatch_heartbeat_timestamp_seconds{stage="crawl"}': "0+60x60"}
_UP = {'up{job="farmwatch",role="tally",instance="a:2"}': "1x20"}
_START = 'process_start_time_seconds{job="farmwatch",role='

# a table
# fmt: off
CASES = (
    Case("NoVerdicts", "1m", {_FETCHED: "0+60x60"}|LIVE|_ROBOTS|_verdicts(2)|_verdicts(60, "old"), "15m", "17m",
          said="3.333%"),
    Case("NoVerdicts", "1m", {_FETCHED: "0+60x60"}, "15m", "17m", said="0%"),
    Case("NoVerdicts", "1m", {_FETCHED: "0+60x60"}|LIVE|_ROBOTS|_verdicts(4), "59m"),
    Case("NoVerdicts", "1m", {_FETCHED: "0+2x60"}, "30m", "36m", said="0%"),
    Case("NoVerdicts", "1m", {_FETCHED: "0+0.9x60"}, "59m"),
    Case("FallingBehind", "1m", {'farmwatch_log_lag_seconds{role="measure",topic="pages"}': "5000x60"}, "14m", "15m",
          {"role": "measure", "topic": "pages"}, "1h 23m 20s"),
    Case("FallingBehind", "1m", {'farmwatch_log_lag_seconds{role="measure",topic="pages"}': "2500x60",
          'farmwatch_log_lag_seconds{role="replay",topic="pages"}': "9999x60",
          'farmwatch_log_lag_seconds{role="score",topic="score.requests"}': "9999x60"}, "59m"),
    Case("RejectedByHosts", "1m", _answers({"403": 25, "429": 10, "503": 5, "5xx": 5, "2xx": 55}), "15m", "17m",
          said="45%"),
    Case("RejectedByHosts", "1m", _answers({"403": 85, "5xx": 5, "2xx": 10}), "15m", "17m", said="90%",
          severities=("warning", "critical")),
    Case("RejectedByHosts", "1m", _answers({"403": 2}), "30m", "36m", said="100%", severities=("warning", "critical")),
    Case("RejectedByHosts", "1m", _answers({"403": 8, "429": 7, "503": 5, "5xx": 4, "404": 20, "none": 10, "2xx": 46}),
          "59m"),
    Case("RejectedByHosts", "1m", _answers({"403": 0.9}), "59m"),
    Case("RejectedByHosts", "1m", {f'{_PAGE}"no_page",status="403"}}': "0+45x60", _FETCHED: "0+55x60"}, "15m", "17m",
          said="45%"),
    Case("ChallengedByHosts", "1m", _challenges(25, 75), "15m", "17m", said="25%"),
    Case("ChallengedByHosts", "1m", _challenges(19, 81), "59m"),
    Case("ChallengedByHosts", "1m", _challenges(2, 0), "30m", "36m", said="100%"),
    Case("ChallengedByHosts", "1m", _challenges(0.9, 0), "59m"),
    Case("FetchFailures", "1m", _answers({"none": 75, "2xx": 25}), "15m", "17m", said="75%"),
    Case("FetchFailures", "1m", _answers({"none": 2}), "30m", "36m", said="100%"),
    Case("FetchFailures", "1m", _answers({"none": 35, "403": 30, "2xx": 35}), "59m"),
    Case("FetchFailures", "1m", _answers({"none": 0.9}), "59m"),
    Case("CrawlerStarved", "30m", {'farmwatch_frontier_urls{state="queued"}': "0x60",
          'farmwatch_frontier_urls{state="fetched"}': "9x60"}, "5h30m", "6h", said="0"),
    Case("CrawlerStarved", "30m", {'farmwatch_frontier_urls{state="queued"}': "1x60",
          'farmwatch_frontier_urls{state="fetched"}': "0x60"}, "29h"),
    Case("DeadLetters", "1m", {_DEAD: "_x70 2x90", _up("a:1"): "1x199"}, "69m", "110m", _LETTER, "2"),
    Case("DeadLetters", "1m", {_DEAD: "_x70 2x20", _up("a:1"): "_x30 1x60", _up("b:1"): "1x99", _START_OF_A: "1800x99"},
          "69m", "71m", _LETTER, "2"),
    Case("DeadLetters", "1m", {_DEAD: "3x10 4x80 5x60"}, "75m", "140m", _LETTER, "1"),
    Case("DeadLetters", "1m", {_DEAD: "3x99", _up("a:1"): "1x99"}, "90m"),
    Case("DeadLetters", "1m", {_DEAD: "3x20 _x30 3x60", _up("a:1"): "1x20 0x30 1x60", _up("b:1"): "1x110",
          _START_OF_A: "0x110"}, "90m"),
    Case("ShareShifted", "30m", _kept(15, 10, 6), "30h", "50h", {"run": "first", "share": "kept"}, "24%"),
    Case("ShareShifted", "30m", _kept(15, 10, 3), "50h"),
    Case("ShareShifted", "30m", _kept(7, 5, 4), "50h"),
    Case("ShareShifted", "30m", _scores(15, 10, 6), "34h30m", "35h", {"run": "first", "share": "scored"}, "19.64%"),
    Case("ShareShifted", "30m", _scores(15, 10, 3), "50h"),
    Case("ShareShifted", "30m", _scores(7, 5, 4), "50h"),
    Case("ShareShifted", "30m", LIVE | _of_old(_kept(15, 10, 6) | _scores(15, 10, 6)), "50h"),
    Case("ShareChanged", "30m", LIVE | {_CHANGED: "0x59 1x60"}, "30h30m", "31h", {"run": "first"}),
    Case("ShareChanged", "30m", LIVE | {_CHANGED: "0x59 1x60"}, "55h", "53h", {"run": "first"}),
    Case("ShareChanged", "30m", LIVE | {_CHANGED: "1x120"} | _of_old({_CHANGED: "0x59 1x60"}), "50h"),
    Case("DetectorsPart", "30m", LIVE | {_GAP: "-0.04x20 0.03x40"}, "11h", "11h30m",
          {"run": "first", "detector": "y/1", "kind": "flags"}, "3%"),
    Case("DetectorsPart", "30m", LIVE | {_GAP: "-0.04x20 0x40"}, "29h"),
    Case("DetectorsPart", "30m", LIVE | _of_old({_GAP: "0.03x60"}), "29h"),
    Case("ControlsFlagged", "30m", LIVE | {_CONTROLS: "0.04x20 0.08x40", _STATED: "0.05x60"}, "11h", "11h30m",
          {"run": "first", "detector": "x/1"}, "3%"),
    Case("ControlsFlagged", "30m", LIVE | {_CONTROLS: "0.09x60", _STATED: "0.1x60",
          _CONTROLS.replace("low", "point"): "0.3x60"}, "29h"),
    Case("ControlsFlagged", "30m", LIVE | {_CONTROLS: "0.5x60"}, "29h"),
    Case("ControlsFlagged", "30m", LIVE | _of_old({_CONTROLS: "0.14x60", _STATED: "0.05x60"}), "29h"),
    Case("UnscoredArticles", "1m", _waiting(600) | {'farmwatch_stage_records_total{stage="judge"}': "0+99x150"}, "100m",
          "101m", said="10h 0m 0s"),
    Case("UnscoredArticles", "1m", _waiting(600, "0x85 80x70"), "99m", "101m", said="7h 30m 0s"),
    Case("UnscoredArticles", "1m", _waiting(250) | {'farmwatch_log_lag_records{topic="pages"}': "9999x150"}, "149m"),
    Case("CanariesOff", "2h", {_CANARY: "0x60"}, "46h", "48h", said="0"),
    Case("CanariesOff", "2h", {_CANARY: "1x60", 'farmwatch_canary_timestamp_seconds{role="crawl"}': "0x60"}, "110h"),
    Case("CanariesLate", "30m", {_CANARY: "3600x120", 'farmwatch_canary_timestamp_seconds{role="crawl"}': "0x120"},
          "50h", "50h30m", said="2d 1h 30m 0s"),
    Case("CanariesLate", "30m", {_CANARY: "0x120"}, "58h"),
    Case("CanariesDegraded", "30m", _canaries(site_fpr=0.15, site_tpr=0.9, kept_human=0.8, kept_llm=0.8), "30m",
          "1h", {"kind": "site_fpr", "error": "called llm"}, "15%"),
    Case("CanariesDegraded", "30m", _canaries(site_fpr=0.02, site_tpr=0.4, kept_human=0.8, kept_llm=0.8), "30m",
          "1h", {"kind": "site_tpr", "error": "missed"}, "40%"),
    Case("CanariesDegraded", "30m", _canaries(site_fpr=0.02, site_tpr=0.9, kept_human=0.4, kept_llm=0.8), "30m",
          "1h", {"kind": "kept_human", "error": "missed"}, "40%"),
    Case("CanariesDegraded", "30m", _canaries(site_fpr=0.07, site_tpr=0.7, kept_human=0.7, kept_llm=0.7, page_fpr=0.3,
          page_tpr=0.3), "30h"),
    Case("ScorerDeviceErrors", "1m", {f'{_DEVICE}"lost"}}': "0x10 1x90"}, "75m", "65m", {"kind": "lost"}, "1"),
    Case("ScorerDeviceErrors", "1m", {f'{_DEVICE}"oom"}}': "0+5x60", f'{_DEVICE}"lost"}}': "0x60"}, "59m"),
    Case("CrawlPaused", "1m", {f'{_PAUSED}"disk",instance="a"}}': "0x4 1x20", f'{_PAUSED}"disk",instance="b"}}': "0x9"},
          "14m", "15m", {"reason": "disk"}, "1"),
    Case("CrawlPaused", "1m", {f'{_PAUSED}"operator",instance="a"}}': "0x4 1x9 0x20"}, "29m"),
    Case("DiskForecast", "30m", {_FREE: "432e8-18e7x60"}, "1h", "1h30m", {"folder": "log", "instance": "a:1"},
          "4d 22h 30m 0s"),
    Case("DiskForecast", "30m", {_FREE: "432e8x60 432e8-18e7x60"}, "42h", "54h", {"folder": "log", "instance": "a:1"},
          "4d 0h 44m 12s"),
    Case("DiskForecast", "30m", {_FREE: "864e8-18e7x60"}, "29h"),
    Case("DiskForecast", "30m", {_FREE: "432e8+1x60"}, "29h"),
    Case("HeartbeatStale", "1m", {_TALLY: "60x60"} | _BEAT_OF_CRAWL, "16m", "17m", said="16m 0s"),
    Case("HeartbeatStale", "1m", {f'{_START}"tally"}}': "60x60", f'{_START}"crawl"}}': "0+60x60"} | _BEAT_OF_CRAWL,
          "16m", "17m", said="16m 0s"),
    Case("HeartbeatStale", "1m", {_TALLY: "0+60x60", 'farmwatch_heartbeat_timestamp_seconds{stage="crawl"}': "0x60"},
          "59m"),
    Case("HeartbeatStale", "1m", {_TALLY: "60 _x1500", f'{_START}"tally"}}': "_x1465 87900x60"} | _BEAT_OF_CRAWL,
          "24h40m", "23h", said="22h 59m 0s"),
    Case("RoleDown", "1m", _UP | {'up{job="farmwatch",role="judge",instance="a:1"}': "0x20"}, "2m", "3m",
          {"role": "judge", "instance": "a:1"}, "0"),
    Case("RoleDown", "1m", {'up{job="farmwatch",role="judge",instance="a:1"}': "1x20"}, "2m", "3m", {"role": "tally"},
          "0"),
    Case("RoleDown", "1m", _UP | {'up{job="farmwatch",role="judge",instance="a:1"}': "1x20",
          'up{job="other",role="judge",instance="a:2"}': "0x20",
          'up{job="farmwatch",role="console",instance="a:3"}': "0x20"}, "19m"),
    Case("RoleRestarts", "1m", {f'{_START}"judge",instance="a:1"}}': "1x10 2 3 4x20",
          f'{_START}"judge",instance="a:2"}}': "1x10 2x30"}, "10m", "14m", {"role": "judge"}, "4"),
    Case("RoleRestarts", "1m", {f'{_START}"judge"}}': "1x10 2 3 4 5x80"}, "75m", "65m", {"role": "judge"}, "4"),
    Case("RoleRestarts", "1m", {f'{_START}"judge"}}': "1x10 2 3x20",
          'process_start_time_seconds{job="other",role="judge"}': "0+1x30"}, "29m"),
    Case("SearchSourceParked", "1m", {_PARKED: "7000x60"}, "14m", "15m", {"source": "brave"}, "1h 41m 40s"),
    Case("SearchSourceParked", "1m", {_PARKED: "3000x60"}, "15m"),
)
# fmt: on
