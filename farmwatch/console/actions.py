"""The forms of the console: each does what a command does, and leads back to a page that says what came of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from crawler.web.exclusions import exclusion_of, is_boundless
from farmwatch.config.config import Config
from farmwatch.config.opening import opened
from farmwatch.crawl.orders import order_exclusions, order_pause
from replay.runs.dead_letters import LetterState, StoredLetter
from replay.runs.settle_letters import settle
from stream.text.user_errors import UsageError

Form = Mapping[str, str]
Action = Callable[[Config, Form], str]  # -> where the browser goes next
_LONGEST_WHY = 200  # characters
ALREADY = "already"  # field of the next address: another browser or command was quicker


def pause_crawl(config: Config, form: Form) -> str:
    """As `farmwatch crawl pause` and `resume`."""
    changed = order_pause(config, _why(form), on=_one_of(form, "order", "pause", "resume") == "pause")
    return "/crawl" if changed is not None else f"/crawl?{ALREADY}=1"


def exclude(config: Config, form: Form) -> str:
    """As `farmwatch exclude`; a pattern beyond one domain is left to the command. Raises UnusableUrl, UsageError."""
    on = _one_of(form, "order", "exclude", "remove") == "exclude"
    name = exclusion_of(form.get("name", "")[:253])
    if on and is_boundless(name):
        raise UsageError(f"{name} reaches beyond one domain: `farmwatch exclude {name} --yes`, if you mean that")
    changed = order_exclusions(config, [(name, _why(form))], on=on)
    return "/crawl" if changed else f"/crawl?{ALREADY}=1"


def settle_letters(config: Config, form: Form) -> str:
    """As `farmwatch dead retry` and `drop` of the open letters of a stage and reason."""
    retry = _one_of(form, "order", "retry", "drop") == "retry"
    stage, reason = form.get("stage", ""), form.get("reason", "")

    def wanted(stored: StoredLetter) -> bool:
        is_open = stored.state is LetterState.OPEN and not (retry and stored.letter.expired)
        return is_open and (stored.letter.stage, stored.reason) == (stage, reason)

    with opened(config, write=True) as log:
        found = settle(log, wanted, retry=retry)
    return f"/letters?settled={found.count}&refused={found.refused.total()}"


ACTIONS: Mapping[str, Action] = {"/crawl/pause": pause_crawl, "/crawl/exclude": exclude, "/letters": settle_letters}


def _why(form: Form) -> str:
    return form.get("why", "")[:_LONGEST_WHY]


def _one_of(form: Form, name: str, *allowed: str) -> str:
    value = form.get(name, "")
    if value not in allowed:
        raise UsageError(f"{name}: one of {', '.join(allowed)}")
    return value
