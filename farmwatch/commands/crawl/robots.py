"""The command `robots`: whether a URL may be fetched, and the line of robots.txt that decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from crawler.fetch.page_checks import is_obeyed_no
from crawler.frontier.report import require_readable
from crawler.frontier.rows import SiteRow, robots_key, site_key, tdm_key, unpack
from crawler.frontier.site_rules import RESERVED
from crawler.robots.lines import ROBOTS_CAP_BYTES
from crawler.robots.preferences import prefers_no
from crawler.robots.rules import RobotsExplanation, explain
from crawler.robots.tdmrep import TdmRep, TdmRule
from crawler.settings import CrawlSettings
from crawler.web.urls import normalise, site_of
from farmwatch.commands.options import DEFAULTS, AsJson, Common
from farmwatch.config.config import Config
from farmwatch.config.opening import log_exists, opened
from farmwatch.crawl.orders import NotVisited
from farmwatch.terminal.jsonl import binary_input
from farmwatch.terminal.messages import put, put_json, put_wrapped
from stream.log.contract import partition_of
from stream.schema.topics import FRONTIER_STORE
from stream.text.user_errors import Exit, FarmwatchError
from stream.text.wording import counted, moment, one_line

_NO_CRAWL = "no crawl has run on it; --file reads a robots.txt"
_SHOWN = 200  # characters shown of a line, URL or name


@dataclass(frozen=True, slots=True)
class _Source:
    """A robots.txt with its origin, and tdmrep.json."""

    text: bytes
    origin: str
    robots_until: int = 0  # milliseconds UTC
    tdm: bytes | None = None  # None: unknown


def robots(
    url: Annotated[str, Parameter(help="The URL that is asked about.")],
    /,
    *,
    file: Annotated[
        Path | None, Parameter(help="Judge by this file in place of the robots.txt that the crawl keeps; - is stdin.")
    ] = None,
    json: AsJson = False,
    common: Common = DEFAULTS,
) -> int:
    """Say whether the crawler may fetch a URL, with the line of robots.txt that decides it.

    The robots.txt and tdmrep.json are those that the crawl keeps of the site; nobody is asked. A host that `farmwatch
    crawl exclude` or `forget` covers may not be fetched.

    Exit code 0: it may be fetched; 1: an exclusion, robots.txt, a Crawl-delay above crawl.crawl_delay_cap_s, a
    reservation in tdmrep.json where crawl.obey_opt_out is on, or a preference where crawl.obey_preferences is on
    forbids it; 3: the crawl keeps no robots.txt of the site.
    """
    config = common.load().config
    settings = config.crawl
    normal = normalise(url if "://" in url else f"https://{url}")
    not_visited = None
    if log_exists(config):
        with opened(config) as log:  # an error ends the command: nobody may be asked whose exclusion is unknown
            not_visited = NotVisited.of(log)
    if not_visited is not None and (why := not_visited.why(host := site_of(normal))):
        reason = "excluded" if not_visited.exclusion_of(host) else "forgotten"
        return _put(normal, reason, {"decision": [why]}, fetched=False, as_json=json)
    if file is not None:
        with binary_input(file) as lines:
            text = lines.read(ROBOTS_CAP_BYTES)
        source = _Source(text, f"from the file {file}, {counted(len(text), 'byte')}")
    else:
        source = _from_frontier(config, normal)
    decision = explain(source.text, settings.name, normal)
    rule = TdmRep.parse(source.tdm).rule_for(normal) if source.tdm is not None else None
    signals = [*([RESERVED] if rule is not None and rule.reserved else []), *decision.preferences]
    too_slow = settings.is_too_slow(decision.crawl_delay_s)
    fetched = decision.allowed and not too_slow and not is_obeyed_no(settings, signals)
    facts = _facts(settings, source, decision, rule)
    return _put(normal, decision.why.value, facts, fetched=fetched, as_json=json)


def _put(url: str, why: str, facts: Mapping[str, Sequence[str]], *, fetched: bool, as_json: bool) -> int:
    if as_json:
        put_json({"url": url, "may_be_fetched": fetched, "why": why, **facts})
    else:
        put(f"{'may be fetched' if fetched else 'may not be fetched'}: {one_line(url)}")
        for name, lines in facts.items():
            for place, words in enumerate(lines):
                put_wrapped(f"  {'' if place else name:<12} {one_line(words)}", " " * 15)
    return Exit.OK if fetched else Exit.PROBLEM


def _from_frontier(config: Config, url: str) -> _Source:
    site = site_of(url)
    if not log_exists(config):
        raise FarmwatchError(f"{config.log.url}: {_NO_CRAWL}")
    with opened(config) as log:
        partitions = log.topics().get(f"state.{FRONTIER_STORE}", 0)
        if not partitions:
            raise FarmwatchError(f"the log has no frontier yet: {_NO_CRAWL}")
        with log.read_state(FRONTIER_STORE, partition_of(site, partitions)) as state:
            require_readable(state)
            value = state.get(site_key(site))
            text, tdm = state.get(robots_key(site)), state.get(tdm_key(site))
    row = unpack(SiteRow, value) if value is not None else None
    if row is None or not row.robots_until:
        why = "is not in the frontier" if row is None else "has not been asked for a robots.txt that is still kept"
        if row is not None and row.stopped:
            why = f"was stopped ({row.stopped}), and its robots.txt was dropped then"
        raise FarmwatchError(one_line(f"{site} {why}; --file reads a robots.txt"))
    origin = f"kept by the frontier, {counted(len(text), 'byte')}" if text is not None else "the site has none"
    return _Source(text or b"", origin, robots_until=row.robots_until, tdm=(tdm or b"") if row.tdm_until else None)


def _facts(
    settings: CrawlSettings, source: _Source, decision: RobotsExplanation, rule: TdmRule | None
) -> dict[str, list[str]]:
    until = [f"asked again after {moment(source.robots_until)}"] if source.robots_until else []
    return {
        "robots.txt": [source.origin, *until],
        "decision": [f"{'allowed' if decision.allowed else 'disallowed'}, {_because(decision)}"],
        "group": [_group(decision, settings.name)],
        "delay": [_delay(decision, settings)],
        "preferences": [_preferences(decision, settings)],
        "tdmrep.json": [_tdm(source, rule, settings)],
    }


def _because(decision: RobotsExplanation) -> str:
    if (rule := decision.rule) is not None:
        return f"line {rule.number}: {'Allow' if rule.allow else 'Disallow'}: {_short(rule.pattern)}"
    return {
        "no_rule": "no rule of the group matches",
        "no_group": "no group is for us and none for *",
        "robots_txt": "robots.txt itself always is",
        "too_costly": "too many patterns with * look as if they match it: it counts as disallowed",
    }[decision.why]


def _group(decision: RobotsExplanation, name: str) -> str:
    if not decision.agents:
        return "none"
    first, *others = decision.agents
    more = f" and {len(others)} more" if others else ""
    whom = f"for everyone, as none names {name}" if first.value.startswith("*") else f"for {name}"
    return f"line {first.number}: User-agent: {_short(first.value)}{more} ({whom}; {counted(decision.rules, 'rule')})"


def _delay(decision: RobotsExplanation, settings: CrawlSettings) -> str:
    line = decision.crawl_delay_line
    if line is None:
        return f"{settings.delay_s:g} s between starts (crawl.delay_s); no Crawl-delay asked of us"
    asked = f"line {line.number}: Crawl-delay: {_short(line.value)}"
    if settings.is_too_slow(decision.crawl_delay_s):
        cap = f"{settings.crawl_delay_cap_s:g} s (crawl.crawl_delay_cap_s)"
        return f"{asked}, above {cap}: the site is left alone"
    return f"{max(settings.delay_s, decision.crawl_delay_s):g} s between starts ({asked})"


def _preferences(decision: RobotsExplanation, settings: CrawlSettings) -> str:
    if not decision.preferences:
        return "none on the use by AI"
    stated = ", ".join(signal.removeprefix("robots.txt:") for signal in decision.preferences)
    if not decision.allowed or not prefers_no(decision.preferences):
        return stated
    done = "on: the page is left alone" if settings.obey_preferences else "off: this is recorded with the page"
    return f"{stated}; crawl.obey_preferences is {done}"


def _tdm(source: _Source, rule: TdmRule | None, settings: CrawlSettings) -> str:
    if source.tdm is None:
        return "not asked"
    if rule is None:
        return "reserves nothing here"
    policy = f", conditions at {_short(rule.policy)}" if rule.policy else ""
    if not rule.reserved:
        return f"location {_short(rule.location)}: not reserved{policy}"
    done = "on: the page is left alone" if settings.obey_opt_out else "off: this is recorded with the page"
    return f"location {_short(rule.location)}: data mining is reserved{policy}; crawl.obey_opt_out is {done}"


def _short(text: str) -> str:
    """Text of a site in one line, without control characters and lone surrogates, cut."""
    shown = one_line(text.encode("utf-8", "replace").decode())
    return shown if len(shown) <= _SHOWN else shown[: _SHOWN - 1] + "…"
