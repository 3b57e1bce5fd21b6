"""`farmwatch crawl --dry-run`: prints the next requests of a crawl as text or JSON."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from typing import TypeVar

import msgspec

from crawler.reasons import reason_text, what_ends_stop
from crawler.stages.dry_run import DryRun, SitePlan
from crawler.stages.orders import exclusions_of
from crawler.stages.preflight import check_settings
from farmwatch.config.config import Config
from farmwatch.config.opening import log_exists, opened
from farmwatch.crawl.append_hits import hits_of
from farmwatch.crawl.orders import pause_in_words
from farmwatch.daemon import page_inspector
from farmwatch.terminal.messages import message, put_json, put_table
from stream.log.contract import Log, StateReader, partition_of
from stream.log.sql_state import MemoryState
from stream.processing.topic_reader import records_of
from stream.schema.orders import Orders
from stream.schema.records import Decision, Hit, Record
from stream.schema.topics import DECISIONS, FRONTIER_STORE, HITS
from stream.text.registrable_domain import registrable_domain
from stream.text.user_errors import Exit
from stream.text.wording import counted, lasting, queue_in_words, when

R = TypeVar("R", bound=Record)
_ALL = 10**9
_WAITS_FOR = {
    "delay": "the delay after its last request",
    "parked": "parked",
    "revisit": "rests until its next visit",
    "domain": "other hosts of {domain} come first (crawl.domain_delay_s)",
    "begin": "a new crawl waits one delay",
}
_LIMITS = (
    "for a crawl that starts now; without the limits per IP address, because no name is looked up, and without the"
    " requests of a running crawl"
)


def show_plan(config: Config, files: Sequence[Path], limit: int, *, as_json: bool) -> int:
    """Print the plan of at most `limit` sites (0: all); returns PROBLEM if lines of the files hold no hit.

    Raises BadCrawlSettings and BadSigningKey, as a crawl would; a contact may still be missing.
    """
    check_settings(config.crawl, contact_required=False)
    most = limit or _ALL  # one more is computed, to detect whether the list is cut
    now_ms = int(time.time() * 1000)
    from_files, skipped = hits_of(files, now_ms)
    with ExitStack() as held:
        log = held.enter_context(opened(config)) if log_exists(config) or not files else None
        inputs = _PlanInputs(log, config.log.partitions, from_files)
        run = DryRun(config.crawl, now_ms, most + 1, inputs.excludes, page_inspector)
        for partition in range(inputs.partitions):
            with inputs.state(partition) as state:
                run.add(state, inputs.records(partition), partition=partition)
    plans = run.plans()
    if as_json:
        for plan in plans[:most]:
            put_json(msgspec.to_builtins(plan))
    else:
        _print_sites(plans[:most], now_ms)
    if len(plans) > most:
        message(f"the first {counted(limit, 'site')}; --limit shows more, --limit 0 all")
    message(_LIMITS)
    if inputs.paused:
        message(inputs.paused)
    return Exit.PROBLEM if skipped else Exit.OK


class _PlanInputs:
    def __init__(self, log: Log | None, partitions: int, from_files: Sequence[Hit]) -> None:
        topics = log.topics() if log is not None else {}
        self._log = log
        self._topics = topics
        self.excludes = exclusions_of(Orders(log)).covers if log is not None else lambda _: False
        self.paused = pause_in_words(log) if log is not None else ""
        self.partitions = topics.get(HITS, partitions)
        self._from_files: dict[int, list[Hit]] = {}
        for hit in from_files:
            self._from_files.setdefault(partition_of(hit.site, self.partitions), []).append(hit)

    def state(self, partition: int) -> AbstractContextManager[StateReader]:
        if self._log is None or f"state.{FRONTIER_STORE}" not in self._topics:
            return nullcontext(MemoryState())
        return self._log.read_state(FRONTIER_STORE, partition)

    def records(self, partition: int) -> Iterator[Hit | Decision]:
        yield from self._unread(HITS, Hit, partition)
        yield from self._from_files.get(partition, ())
        yield from self._unread(DECISIONS, Decision, partition)

    def _unread(self, topic: str, kind: type[R], partition: int) -> Iterator[R]:
        """Records that CRAWL has not read. Undecodable ones are reported and skipped."""
        if self._log is None or topic not in self._topics:
            return
        start = max(self._log.committed("crawl", topic)[partition] or 0, self._log.beginning(topic)[partition])
        yield from (record for _, record in records_of(kind, self._log.read(topic, partition, start)))


def _print_sites(plans: Sequence[SitePlan], now_ms: int) -> None:
    put_table(
        ("site", "when", "request", "URL", "then", "queued", "why"),
        (
            (plan.site, *_next_request(plan, now_ms), queue_in_words(plan.queued_in), _why(plan, now_ms))
            for plan in plans
        ),
        less=("queued", "then", "request", "URL"),
    )
    if not plans:
        message("nothing to crawl: the frontier is empty, and there is no unread hit")


def _next_request(plan: SitePlan, now_ms: int) -> tuple[str, str, str, str]:
    if not plan.request:
        return "-", "none", "", ""
    kind = plan.request + (" if changed" if plan.conditional else "")
    return when(plan.start_at, now_ms), kind, plan.url, plan.first_page if plan.request != "page" else ""


def _why(plan: SitePlan, now_ms: int) -> str:
    parts = []
    if plan.stopped_why:
        passes = what_ends_stop(plan.stopped_why)
        parts.append(f"stopped: {reason_text(plan.stopped_why)}" + (f" (until: {passes})" if passes else ""))
    elif plan.parked_until:
        parts.append(f"parked for {lasting((plan.parked_until - now_ms) / 1000)} after {reason_text(plan.parked_why)}")
    elif plan.waits_for:
        parts.append(_WAITS_FOR[plan.waits_for].format(domain=registrable_domain(plan.site)))
    elif not plan.request:
        parts.append("no URL is left; it rests until the next hit")
    if plan.imported:
        parts.append(f"{counted(plan.imported, 'hit')} came with a page from an archive, so not crawled")
    if plan.unusable:
        parts.append(f"unusable hits: {plan.unusable}")
    if plan.refused:
        refused = counted(sum(plan.refused.values()), "URL")
        parts.append(f"{refused} refused without a request: {', '.join(plan.refused)}")
    return "; ".join(parts)
