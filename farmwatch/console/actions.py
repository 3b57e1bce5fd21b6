"""The forms of the console: each does what a command does, and leads back to a page that says what came of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlencode

from crawler.web.exclusions import exclusion_of, is_boundless
from crawler.web.urls import site_of
from farmwatch.config.opening import opened
from farmwatch.console.jobs import FORGET
from farmwatch.console.views import Console
from farmwatch.crawl.orders import order_exclusions, order_pause
from farmwatch.terminal.remedies import in_full
from farmwatch.upkeep.forgetting import forget_hosts
from farmwatch.upkeep.letter_fields import existing_letter
from filters.errors import BadRuleset
from replay.engine.lifecycle import RunAlreadyBegun, begin, cancel
from replay.engine.plan import ReplayRequest, plan, refuse_unfit
from replay.live.cutover import CutoverRequest, cut_over
from replay.rows.dead_letters import LetterState, StoredLetter, settle
from replay.runs.configured import require_processable
from replay.runs.control_update import operator
from replay.runs.lookup import find_run
from replay.runs.overview import state_of
from stream.schema.control import Control
from stream.schema.runs import RunStatus, shown_run
from stream.text.user_errors import LetterRefused, UsageError
from stream.text.wording import one_line

_LONGEST_WHY = 200  # characters
_LONGEST_RULESET = 60_000
_CALLED = re.compile("[a-z0-9-]{1,24}")
ALREADY = "already=1"  # field of the next address: another browser or command was quicker


Form = Mapping[str, str]
Action = Callable[[Console, Form], str]  # -> where the browser goes next


def pause_crawl(console: Console, form: Form) -> str:
    """As `farmwatch crawl pause` and `resume`."""
    changed = order_pause(console.config, _why(form), on=_one_of(form, "order", "pause", "resume") == "pause")
    return "/crawl" if changed is not None else f"/crawl?{ALREADY}"


def exclude(console: Console, form: Form) -> str:
    """As `farmwatch crawl exclude`; a pattern of several domains is left to it. Raises UnusableUrl, UsageError."""
    on = _one_of(form, "order", "exclude", "remove") == "exclude"
    name = exclusion_of(form.get("name", "")[:253], is_new=on)
    if on and is_boundless(name):
        raise UsageError(f"{name} reaches beyond one domain: `farmwatch crawl exclude {name} --yes`, if you mean that")
    changed = order_exclusions(console.config, [(name, _why(form))], on=on)
    return "/crawl" if changed else f"/crawl?{ALREADY}"


def forget(console: Console, form: Form) -> str:
    """As `farmwatch crawl forget`, of one host whose name was typed twice. Raises UnusableUrl, UsageError."""
    host, again = (site_of(f"http://{form.get(name, '').strip()[:253]}/") for name in ("host", "again"))
    if again != host:
        raise UsageError(f"to remove all of {host} for ever, type its name in both fields")

    def work() -> str:
        return forget_hosts(console.config, [host], lambda _: None, sure=True).text(console.config.crawl.warc_folder)

    begun = console.jobs.start((FORGET, host), f"Forgetting {host}", work)
    return "/crawl" if begun else f"/crawl?{ALREADY}"


def settle_letters(console: Console, form: Form) -> str:
    """As `farmwatch log dead retry` and `drop` of the open letters of a stage, run and reason."""
    retry = _one_of(form, "order", "retry", "drop") == "retry"
    group = tuple(form.get(name, "") for name in ("stage", "run", "reason"))

    def wanted(stored: StoredLetter) -> bool:
        is_open = stored.state is LetterState.OPEN and not (retry and stored.letter.expired)
        return is_open and (stored.letter.stage, shown_run(stored.letter.run), stored.letter.reason) == group

    with opened(console.config, write=True) as log:
        settled = settle(log, wanted, retry=retry)
    return f"/letters?settled={settled.count}&refused={settled.refused.total()}"


def settle_letter(console: Console, form: Form) -> str:
    """As `farmwatch log dead retry` and `drop` of one letter. Raises LetterRefused, NotFound, UsageError."""
    retry, letter = _one_of(form, "order", "retry", "drop") == "retry", form.get("id", "")
    with opened(console.config, write=True) as log:
        chosen = existing_letter(log, letter).id
        settled = settle(log, lambda stored: stored.id == chosen, retry=retry)
    if settled.refused:
        raise LetterRefused(f"dead letter {chosen}: {', '.join(settled.refused)}")
    return f"/letter?id={chosen}"


def replay(console: Console, form: Form) -> str:
    """As `farmwatch replay` with a shipped ruleset or with the text of one, or with the name of a run that stopped.

    Raises UsageError, NotFound, RunRefused, BadRuleset, and as `plan`.
    """
    name, text, why = form.get("run") or None, form.get("text", ""), one_line(_why(form))
    if len(text) > _LONGEST_RULESET:
        raise UsageError(f"a ruleset of more than {_LONGEST_RULESET} characters")
    with opened(console.config, write=True) as log, TemporaryDirectory() as folder:
        control = Control(log)
        if name and (console.replays.has(name) or state_of(log, control, find_run(control, name)) == RunStatus.RUNNING):
            return f"/runs?{ALREADY}"
        ruleset = form.get("ruleset") or None
        if ruleset and ("/" in ruleset or ruleset.endswith(".toml")):
            raise UsageError("ruleset: the name of a shipped one, or its text")
        if not (name or ruleset or text.strip()):
            raise UsageError("choose a ruleset, or write one")
        if text:
            called = form.get("called", "") or "changed"
            if not _CALLED.fullmatch(called):
                raise UsageError("the name of a ruleset has 1 to 24 letters a-z, digits and hyphens")
            file = Path(folder) / f"{called}.toml"
            file.write_text(text.replace("\r\n", "\n"), encoding="utf-8")
            ruleset = str(file)
        try:
            planned = plan(log, control, console.config, ReplayRequest(ruleset, name=name, why=why))
        except BadRuleset as error:
            raise UsageError(in_full(error).replace(f"{folder}/", "")) from error
        refuse_unfit(log, console.config, planned)
        same = [run.shown for run in control.runs.values() if run.digest == planned.run.digest]
        if not name and any(map(console.replays.has, same)):
            return f"/runs?{ALREADY}"
        try:
            run = begin(log, planned)
        except RunAlreadyBegun:
            return f"/runs?{ALREADY}"
    console.replays.start(run.shown)
    return "/runs"


def cancel_replay(console: Console, form: Form) -> str:
    """As `farmwatch runs cancel`. Raises NotFound, RunRefused."""
    with opened(console.config, write=True) as log:
        cancel(log, find_run(Control(log), form.get("run", "")).name)
    return "/runs"


def make_live(console: Console, form: Form) -> str:
    """As `farmwatch cutover`, from the live run that the page showed. Raises NotFound, CutoverRefused, OtherCutover."""
    back = _one_of(form, "order", "live", "back") == "back"
    to, number = "" if back else form.get("run", "") or "live", form.get("number", "")[:9]
    seen = int(number) if number.isdecimal() else -1
    request = CutoverRequest(to, operator(), one_line(_why(form)), seen=seen)
    with opened(console.config, write=True) as log:
        cut_over(log, request, check_run=partial(require_processable, console.config))
    return "/runs"


def label(console: Console, form: Form) -> str:
    """As a key of `farmwatch review label`. Raises NotFound, UsageError, Working."""
    changed = console.runs.labels.add(form)
    shown = {name: form[name] for name in ("of", "a", "b", "by", "after", "at") if name in form}
    return f"/label?{urlencode(shown)}" + ("" if changed else f"&{ALREADY}")


ACTIONS: Mapping[str, Action] = {
    "/crawl/pause": pause_crawl,
    "/crawl/exclude": exclude,
    "/crawl/forget": forget,
    "/letters": settle_letters,
    "/letter": settle_letter,
    "/runs/replay": replay,
    "/runs/cancel": cancel_replay,
    "/runs/cutover": make_live,
    "/label": label,
}


def _why(form: Form) -> str:
    return form.get("why", "")[:_LONGEST_WHY]


def _one_of(form: Form, name: str, *allowed: str) -> str:
    value = form.get(name, "")
    if value not in allowed:
        raise UsageError(f"{name}: one of {', '.join(allowed)}")
    return value
