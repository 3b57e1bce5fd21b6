"""The panels: each answers a question that an operator asks, in rows in the order of the data.

In queries `@live` keeps the run that is live, `@run` is the filter of the variable, `@rate` Grafana's window for rates.
"""

from __future__ import annotations

from typing import NamedTuple

Query = tuple[str, str]  # PromQL, and the legend of its series


class Panel(NamedTuple):
    """A question, how to read the answer, and the queries that give it."""

    question: str
    reading: str
    unit: str
    queries: tuple[Query, ...]
    alert: str = ""  # that watches it: its threshold and its runbook are shown
    overview: bool = False
    stat: bool = False  # a number, in place of a graph
    red_from: float | None = None  # where no alert says it


class Row(NamedTuple):
    """Panels of one subject, and the page of docs/ that explains it."""

    name: str
    doc: str
    panels: tuple[Panel, ...]


def _by(labels: str, metric: str, reduce: str = "sum") -> tuple[Query, ...]:
    """A series for each value of the labels."""
    return ((f"{reduce} by ({labels}) ({metric})", " ".join(f"{{{{{label}}}}}" for label in labels.split(", "))),)


def _one(query: str, legend: str) -> tuple[Query, ...]:
    return ((query, legend),)


def _new(label: str, metric: str) -> str:
    """The values of a label that no series had a minute ago; a restart of a process is none."""
    return f"max by ({label}) ({metric}) unless max by ({label}) ({metric} offset 1m)"


def _quantiles(
    metric: str, by: str = "", of: str = "", live: str = "", shares: tuple[float, ...] = (0.5, 0.95)
) -> tuple[Query, ...]:
    """Quantiles of a histogram."""
    labels, legend = (f"le, {by}", f"{{{{{by}}}}} ") if by else ("le", "")
    within = f"sum by ({labels}) (rate({metric}_bucket{of}[@rate]){live})"
    return tuple((f"histogram_quantile({share}, {within})", f"{legend}{share:.0%}") for share in shares)


_VERSIONS = "detector, ruleset, method"  # shares of two detectors are never one series
_LAG = 'farmwatch_log_lag_records{role!="replay"}'
_READ = 'farmwatch_log_records_total{direction="in",role!="replay"}'
_PAGES = 'rate(farmwatch_fetch_requests_total{kind="page"}[@rate])'
_RESULTS = "farmwatch_stage_records_total"
_VERDICTS = "rate(farmwatch_page_verdicts_total{@run}[@rate])"
_ARTICLES = 'rate(farmwatch_page_verdicts_total{verdict="article",@run}[@rate]) @live'
_KNOWN = "rate(farmwatch_score_cache_lookups_total"
_JOBS = '{job=~"farmwatch.*"}'

# a table: with an argument a line it would be three times as long
# fmt: off
_ANSWER = (
    Panel("What share of the sites is written by language models?",
          "Of sites with a scored article; low and high bound it at one look, look_low and look_high at every look.",
          "percentunit", _by(f"bound, {_VERSIONS}",
          'farmwatch_share{source="$source",@run,definition="sites"} @live', "max"), overview=True),
    Panel("On how many sites does it rest?", "Sites with a scored article.", "short", _by(_VERSIONS,
          'farmwatch_share_sites{source="$source",@run,definition="sites"} @live', "max"), overview=True),
    Panel("How are sites judged?", "All sites by verdict, also those without a scored article.", "short",
          _by("verdict", "farmwatch_sites{@run} @live", "max")),
    Panel("Has the share of new sites changed?",
          "1: yes, against a day of the last year; false in at most 5% of years.", "short", _by("detector, ruleset",
          "farmwatch_share_changed{@run} @live", "max"), "ShareChanged", overview=True, stat=True, red_from=1),
    Panel("Does it matter what is counted?", "The share of sites and of domains; all sources.",
          "percentunit", _by(f"definition, bound, {_VERSIONS}",
          'farmwatch_share{source="all",bound!~"look_.*",@run} @live', "max")),
    Panel("What share of the search results do LLM sites hold?",
          "Of the last 7 days, by rank. first_ten: ranks 1 to 10; new: of sites that no result named before.",
          "percentunit", _by(f"part, bound, {_VERSIONS}", "farmwatch_results_share{@run} @live", "max")),
    Panel("On how many search results does it rest?", "Those that name a site with a scored article.", "short",
          _by(f"part, {_VERSIONS}", "farmwatch_results_scored{@run} @live", "max")),
    Panel("What share of the sites are content farms?",
          "By a language model, in mass and monetised; at_most: with the sites of which a sign is unknown.",
          "percentunit", _by(f"bound, {_VERSIONS}", "farmwatch_content_farm_share{@run} @live", "max")),
    Panel("Do the sources of hits differ?", "The share of sites, by source.", "percentunit",
          _by(f"source, bound, {_VERSIONS}",
          'farmwatch_share{source!="all",bound!~"look_.*",@run,definition="sites"} @live', "max")),
    Panel("How many sites share a template?",
          "By rank, 1: the template of most sites; all: sites with any, of at most 50,000 templates."
          " `farmwatch lab templates groups` lists them.",
          "short", _by("rank", "farmwatch_template_sites", "max")),
    Panel("Which errors do the canaries show?",
          "site_fpr: human canary sites called llm; site_tpr: LLM ones found; kept: pages that are articles.",
          "percentunit", _by("kind", "farmwatch_canary_share", "max"), "CanariesDegraded", overview=True),
    Panel("What does the detector flag of control pages?",
          "Pages surely human by their dates; `farmwatch review controls` has them by register.",
          "percentunit", _by("detector, bound", "farmwatch_control_share{@run} @live", "max"), "ControlsFlagged"),
    Panel("Do two detectors part?", "Of a second run beside the live one: above 0 the two no longer measure alike.",
          "percentunit", _by("detector, kind", "farmwatch_detectors_gap{@run} @live", "max"), "DetectorsPart"),
    Panel("How old is the newest canary that came through?", "A round a day is sent by default.", "s",
          _one("time() - max(farmwatch_canary_timestamp_seconds > 0)", "age"), "CanariesLate"),
    Panel("How are canary sites judged?", "Of one round of each content: what they are, and what they were called.",
          "short", _by("truth, verdict", "farmwatch_canary_sites", "max")),
    Panel("How many canary pages are sent?", "Counters of pages include them.", "short",
          _one("sum(increase(farmwatch_canary_pages_sent_total[@rate]))", "pages"), "CanariesOff"),
)
_FLOW = (
    Panel("How much passes each step?", "Articles are those of the live run.", "ops",
          (("sum(rate(farmwatch_search_results_total[@rate]))", "hits"),
          ('sum(rate(farmwatch_fetch_requests_total{kind="page",outcome="fetched"}[@rate]))', "fetched"),
          (f'sum(rate({_RESULTS}{{result="measured",role="measure"}}[@rate]))', "measured"), (f"sum({_ARTICLES})",
          "articles"), (f'sum(rate({_RESULTS}{{stage="score",result="scored"}}[@rate]))', "scored")), "NoVerdicts",
          overview=True),
    Panel("How far is each stage behind?", "Age of the newest record that it has read; 0 where none waits.", "s",
          _by("role, topic", 'farmwatch_log_lag_seconds{role!="replay"}', "max"), "FallingBehind", overview=True),
    Panel("When did a heartbeat last pass each stage?", "One is sent a minute.", "s",
          _one("time() - max by (stage) (farmwatch_heartbeat_timestamp_seconds)", "{{stage}}"), "HeartbeatStale",
          overview=True),
    Panel("How long does a record take through all stages?", "Heartbeats, from CRAWL's input to TALLY.", "s",
          _quantiles("farmwatch_heartbeat_duration_seconds")),
    Panel("How many records wait?", "By topic.", "short", _by("topic", _LAG)),
    Panel("When is each queue empty?", "Records that wait, at the pace at which they are read now.", "s",
          _one(f"sum by (topic) ({_LAG}) / sum by (topic) (rate({_READ}[@rate]))", "{{topic}}")),
    Panel("What becomes of the records of each stage?", "Results, of all runs.", "ops", _by("stage, result",
          f"rate({_RESULTS}[@rate])")),
)
_CRAWL = (
    Panel("How fast are pages requested?", "By outcome.", "reqps", _by("outcome", _PAGES), overview=True),
    Panel("Do hosts reject the crawler?", "Share of page requests answered by 403, 429 or 5xx.", "percentunit",
          _one("farmwatch:fetch_rejected:ratio30m", "rejected"), "RejectedByHosts", overview=True),
    Panel("What comes instead of a page?", "Page requests with the outcome no_page; docs/reference/reasons.md.",
          "reqps", _by("reason", 'rate(farmwatch_fetch_requests_total{kind="page",outcome="no_page"}[@rate])'),
          "ChallengedByHosts"),
    Panel("How many requests get no answer?", "Share of page requests that failed by DNS, connection, TLS or timeout.",
          "percentunit", _one("farmwatch:fetch_failed:ratio30m", "no answer"), "FetchFailures"),
    Panel("Is there work left?", "URLs that are queued.", "short", _one('sum(farmwatch_frontier_urls{state="queued"})',
          "queued"), "CrawlerStarved", overview=True),
    Panel("Is the crawl paused?", "1: by an operator, or for want of disk; requests under way finish.", "short",
          _by("reason", "farmwatch_crawl_paused", "max"), "CrawlPaused", stat=True, overview=True),
    Panel("What do hosts answer?", "Page requests by status; none: no answer came.", "reqps", _by("status", _PAGES)),
    Panel("Why do requests fail?", "Reasons are those of docs/reference/reasons.md.", "reqps", _by("kind, reason",
          'rate(farmwatch_fetch_requests_total{outcome="failed"}[@rate])')),
    Panel("Are sites measured again in time?", "Too old: verdicts that no longer count; reopened: in an hour.", "short",
          (("max(farmwatch_sites_expired{@run} @live)", "too old"),
          ("sum(increase(farmwatch_sites_reopened_total{@run}[1h]) @live)", "reopened"))),
    Panel("In which state are URLs and sites?", "Parked sites are left alone for now; stopped ones are done.", "short",
          (("sum by (state) (farmwatch_frontier_urls)", "URLs {{state}}"),
          ("sum by (state) (farmwatch_frontier_sites)", "sites {{state}}"))),
    Panel("How long do answers take?", "By kind of request.", "s", _quantiles("farmwatch_fetch_duration_seconds",
          "kind")),
    Panel("How late are visits?", "Time that sites waited after they were due.", "s",
          _quantiles("farmwatch_frontier_wait_seconds")),
    Panel("How much runs at once, and how much is put off?", "Put off: waited for the turn of its domain or address.",
          "short", (("sum(farmwatch_fetch_inflight)", "under way"),
          ("sum(rate(farmwatch_fetch_deferred_total[@rate]))", "put off a second"))),
    Panel("What does robots.txt allow?", "By result.", "ops", _by("result",
          "rate(farmwatch_robots_lookups_total[@rate])")),
    Panel("How much is received and archived?", "Decoded bytes by kind of request; compressed bytes of WARC files.",
          "Bps", (*_by("kind", "rate(farmwatch_fetch_response_bytes_total[@rate])"),
          ("sum(rate(farmwatch_warc_bytes_total[@rate]))", "archived"))),
    Panel("What do the sources deliver?", "Hits of `farmwatch hits search --every`.", "short", _by("source, outcome",
          "increase(farmwatch_search_hits_total[@rate])")),
    Panel("For how long is a source parked?", "It is asked again when this is below 0.", "s",
          _one("max by (source) (farmwatch_search_parked_timestamp_seconds) - time()", "{{source}}"),
          "SearchSourceParked"),
)
_RULES = (
    Panel("What share of the pages is kept?", "Articles among the verdicts of the live run.", "percentunit",
          _one(f"sum by (run) ({_ARTICLES}) / sum by (run) ({_VERDICTS})", "{{run}}"), "ShareShifted", overview=True),
    Panel("Which rules drop pages?", "Of the live run; a page may fail several.", "ops", _by("rule",
          "rate(farmwatch_rule_drops_total{@run}[@rate]) @live"), overview=True),
    Panel("How many pages are kept and dropped?", "Verdicts of the live run.", "ops", _by("verdict",
          f"{_VERDICTS} @live")),
    Panel("Does the extraction find a text?", "By mode and outcome.", "ops", _by("mode, outcome",
          "rate(farmwatch_extract_attempts_total[@rate])")),
    Panel("How much do pages repeat of earlier ones of their site?", "Share of a page's bytes.", "percentunit",
          _quantiles("farmwatch_page_duplicate_ratio")),
    Panel("How much do pages share with a template?", "Share of a page's five-word runs that earlier pages have.",
          "percentunit", _quantiles("farmwatch_page_template_ratio")),
    Panel("How much of a page is lines of its site's template?", "Share of the characters of the main text, from a"
          " site's third page on.", "percentunit", _quantiles("farmwatch_page_template_block_ratio")),
    Panel("How much is remembered of sites?", "In MEASURE's memory.", "bytes", _one("sum(farmwatch_site_memory_bytes)",
          "bytes")),
    Panel("Which ruleset judges?", "Of JUDGE.", "short", _by("ruleset, digest", 'farmwatch_ruleset_info{role="judge"}',
          "max"), stat=True),
)
_SCORING = (
    Panel("How many articles are scored?", "By result.", "ops", _by("result",
          f'rate({_RESULTS}{{stage="score"}}[@rate])'), "ShareShifted", overview=True),
    Panel("How long would the articles take that wait?", "At the pace of the last hour.", "s",
          _one("farmwatch:score_backlog:seconds", "waiting"), "UnscoredArticles", overview=True),
    Panel("Does the device fail?", "Errors in an hour; oom: a batch was too large and is halved.", "short", _by("kind",
          "increase(farmwatch_score_device_errors_total[1h])"), "ScorerDeviceErrors", overview=True),
    Panel("Where do the scores lie?", "Of the live run's articles, by detector.", "short",
          _quantiles("farmwatch_page_score", "detector", "{@run}", " @live", (0.1, 0.5, 0.9))),
    Panel("How long does a batch take?", "Time in which it keeps the detectors busy.", "s",
          _quantiles("farmwatch_score_batch_duration_seconds")),
    Panel("How many tokens are read?", "Of texts, and of padding.", "ops", _by("kind",
          "rate(farmwatch_score_tokens_total[@rate])")),
    Panel("How full is the memory of the device?", "0 without a device of its own.", "bytes", _by("kind",
          "farmwatch_score_device_memory_bytes", "max")),
    Panel("How large may a batch be?", "Tokens; halved when the device's memory is too small.", "short",
          _one("max(farmwatch_score_batch_tokens)", "tokens")),
    Panel("How many texts are known already?", "Share of requests whose text was read before.", "percentunit",
          _one(f'sum({_KNOWN}{{result="hit"}}[@rate])) / sum({_KNOWN}[@rate]))', "known")),
)
_LOG = (
    Panel("How large is the log?", "By the first word of topic names; on Kafka, of one replica.", "bytes", _by("topic",
          "farmwatch_log_bytes", "max"), overview=True),
    Panel("When is the disk full?", "At the pace of the last day, within a year.", "s",
          _one("farmwatch:disk:seconds_left < @365d seconds", "{{folder}} {{instance}}"),
          "DiskForecast", overview=True),
    Panel("Which records were dead-lettered?", "Dead letters in an hour, by stage and error.", "short",
          _one("farmwatch:dead_letters:increase1h", "{{stage}} {{reason}}"), "DeadLetters", overview=True),
    Panel("How much disk is free?", "As each process sees it.", "bytes", _by("folder, instance",
          "farmwatch_disk_free_bytes", "min")),
    Panel("Did records expire before they were read?", "In an hour, by topic.", "short", _by("topic",
          "increase(farmwatch_log_expired_unread_records_total[1h])"), red_from=1),
    Panel("How fast are records read and written?", "Heartbeats included.", "ops", _by("topic, direction",
          "rate(farmwatch_log_records_total[@rate])")),
    Panel("How long does a batch take?", "From its first record to the commit.", "s",
          _quantiles("farmwatch_stage_duration_seconds", "stage")),
    Panel("How often do partitions change hands?", "In an hour; a start is one change.", "short", _by("role",
          "increase(farmwatch_log_rebalances_total[1h])")),
)
_REPLAY = (
    Panel("Which run is live?", "The roles carry it on.", "short", _by("run", "farmwatch_live_run_info", "max"),
          overview=True, stat=True),
    Panel("How far is each replay?", "Share of its records, by phase.", "percentunit",
          _one("sum by (run, phase) (farmwatch_replay_records_total{@run})"
          " / max by (run, phase) (farmwatch_replay_records_expected{@run})", "{{run}} {{phase}}"), overview=True),
    Panel("When is it done?", "At its present pace.", "s", _by("run", "farmwatch_replay_eta_seconds{@run}", "max"),
          overview=True),
    Panel("How fast is it?", "By phase.", "ops", _by("run, phase",
          "rate(farmwatch_replay_records_total{@run}[@rate])")),
    Panel("How much of its time does it wait for live?", "It waits while live is behind.", "percentunit", _by("run",
          "rate(farmwatch_replay_yield_seconds_total{@run}[@rate])")),
    Panel("How do runs judge?", "Verdicts by run, replays included.", "ops", _by("run, verdict", _VERDICTS)),
)
_PROCESS = (
    Panel("Which roles are up?", "1: Prometheus reaches it.", "short", _by("role", 'up{job="farmwatch"}', "min"),
          "RoleDown", overview=True),
    Panel("How much memory does each role take?", "Resident; MEASURE's extraction workers are not in it.", "bytes",
          _by("role", f"process_resident_memory_bytes{_JOBS}"), overview=True),
    Panel("How much CPU does each role take?", "Seconds a second.", "short", _by("role",
          f"rate(process_cpu_seconds_total{_JOBS}[@rate])"), overview=True),
    Panel("How often was a role started again?", "In an hour, by whatever starts it.", "short", _by("role",
          'changes(process_start_time_seconds{job="farmwatch"}[1h])'), "RoleRestarts"),
    Panel("How often has `farmwatch up` started a role again?", "Since it began itself.", "short", _by("role",
          "farmwatch_role_restarts_total")),
    Panel("For how long has each role run?", "Since its process began.", "s",
          _one(f"time() - max by (role) (process_start_time_seconds{_JOBS})", "{{role}}")),
    Panel("Was the clock of a machine set?", "Steps of more than 3 s, in an hour.", "short", _by("role, direction",
          "increase(farmwatch_clock_steps_total[1h])")),
    Panel("How long do the pages of the console take?", "From the request to the whole answer.", "s",
          _quantiles("farmwatch_console_request_duration_seconds", "page", shares=(0.95,))),
    Panel("How does the console answer?", "By HTTP status; 5xx: it cannot read the log.", "reqps", _by("status",
          "rate(farmwatch_console_request_duration_seconds_count[@rate])")),
    Panel("How far are the console's pages behind the log?", "Offsets; they grow while it reads a log anew.", "short",
          _by("role", 'farmwatch_console_behind_records{role="console"}', "max")),
    Panel("Are there file descriptors left?", "Share of the limit that is open.", "percentunit", _by("role",
          f"process_open_fds{_JOBS} / process_max_fds{_JOBS}", "max"), red_from=0.8),
    Panel("Which version runs?", "Processes by version.", "short", _by("version", "farmwatch_build_info")),
)
# fmt: on

ROWS = (
    Row("Answer", "explanation/rates.md", _ANSWER),
    Row("Flow", "explanation/architecture.md", _FLOW),
    Row("Crawl", "explanation/crawling.md", _CRAWL),
    Row("Rules", "explanation/rules.md", _RULES),
    Row("Scoring", "explanation/detectors.md", _SCORING),
    Row("Log", "explanation/log.md", _LOG),
    Row("Replay", "explanation/replay.md", _REPLAY),
    Row("Process", "how-to/deploy.md", _PROCESS),
)

ANNOTATIONS = (  # name, colour, query; the series' label is the text
    ("Cutover", "purple", _new("run", "farmwatch_live_run_info")),
    ("Feature epoch", "yellow", _new("epoch", "farmwatch_live_run_info")),
    ("Restart", "orange", 'max by (role) (changes(process_start_time_seconds{job="farmwatch"}[@rate])) > 0'),
    ("Deployment", "blue", _new("version", "farmwatch_build_info")),
)
