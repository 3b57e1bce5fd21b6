"""Shows the progress of a crawl as a terminal view or as one log line, without any crawled text."""

from __future__ import annotations

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from farmwatch.crawl.watch import CrawlFigures
from stream.text.wording import lasting, one_line, size

_REASONS_SHOWN = 8
_LONG_MS = 600_000  # a crawl that has no work for this long is idle


def status_line(figures: CrawlFigures) -> str:
    """All figures in one line."""
    return (
        f"{figures.fetched_now:,} pages fetched ({figures.recent_per_s:.1f}/s), {figures.in_flight} requests in flight,"
        f" sites {_sites(figures, ', ')}; {figures.queued:,} URLs queued{_left(figures)}; due: {_due(figures)};"
        f" {size(figures.received_bytes)} received; last minute: {_outcomes(figures)}"
        + (f"; waits for {figures.waits_for}" if figures.waits_for else "")
        + (f"; paused: {figures.paused}" if figures.paused else "")
    )


def render(figures: CrawlFigures, log_url: str, most_in_flight: int) -> RenderableType:
    """The view: one fact per line, cut at the width of the terminal. `most_in_flight` is the limit of requests."""
    fetched, rate = f"{figures.fetched_now:,} fetched", f"{figures.recent_per_s:.1f}/s over the last minute"
    facts = {
        "pages": f"{fetched}, {rate}, {size(figures.received_bytes)}",
        "in flight": f"{figures.in_flight} of {most_in_flight} requests at most",
        "sites": _sites(figures, " · "),
        "due": _due(figures),
        "left": f"{figures.queued:,} URLs queued{_left(figures)}",
        "last minute": _outcomes(figures),
    }
    is_busy = figures.in_flight or figures.waits_for or figures.paused or figures.oldest_due_ms is not None
    if not is_busy and (figures.next_due_ms is None or figures.next_due_ms >= _LONG_MS):
        facts["idle"] = "nothing is due for 10 min or more; Ctrl-C ends the crawl (--until-done: by itself)"
    if figures.waits_for:
        facts = {"waiting": f"for {figures.waits_for}", **facts}
    if figures.paused:
        facts = {"paused": figures.paused, **facts}
    heading = _line((one_line(f"crawl on {log_url}, {lasting(figures.running_s)}"), "bold"))
    return Group(heading, *(_line((f"{name:<13}", "bold"), fact) for name, fact in facts.items()))


def _line(*parts: str | tuple[str, str]) -> Text:
    return Text.assemble(*parts, no_wrap=True, overflow="ellipsis")


class CrawlView:
    """A live view on a terminal while the block runs; log lines scroll above it."""

    def __init__(self, console: Console, log_url: str, most_in_flight: int) -> None:
        self._log_url = log_url
        self._most = most_in_flight
        self._live = Live(console=console, auto_refresh=False, transient=False)

    def __enter__(self) -> CrawlView:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def show(self, figures: CrawlFigures) -> None:
        self._live.update(render(figures, self._log_url, self._most), refresh=True)

    def close(self) -> None:
        """End the view; the last figures stay on the terminal."""
        self._live.stop()


def _sites(figures: CrawlFigures, between: str) -> str:
    counts = {
        "active": figures.active - figures.parked,
        "parked": figures.parked,
        "resting": figures.resting,
        "stopped": figures.stopped,
    }
    return between.join(f"{count:,} {state}" for state, count in counts.items())


def _due(figures: CrawlFigures) -> str:
    if figures.next_parked and figures.next_due_ms is not None:
        wait = lasting(figures.next_due_ms / 1000)
        return f"only parked sites are left; the next in {wait} ({one_line(figures.next_parked)})"
    if figures.oldest_due_ms is not None:
        return f"the oldest for {lasting(figures.oldest_due_ms / 1000)}"
    if figures.next_due_ms is not None:
        return f"the next in {lasting(figures.next_due_ms / 1000)}"
    return "no site is queued"


def _left(figures: CrawlFigures) -> str:
    if not figures.queued or figures.left_s is None:
        return ""
    return f", about {lasting(figures.left_s)} at this rate"


def _outcomes(figures: CrawlFigures) -> str:
    ranked = sorted(figures.outcomes.items(), key=lambda item: (-item[1], item[0]))
    shown = [f"{one_line(reason)} {count:,}" for reason, count in ranked[:_REASONS_SHOWN]]
    rest = sum(count for _, count in ranked[_REASONS_SHOWN:])
    return ", ".join([*shown, *([f"others {rest:,}"] if rest else [])]) or (
        "no answer yet" if figures.in_flight else "no requests"
    )
