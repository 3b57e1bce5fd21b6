"""The commands `crawl`: the role CRAWL alone, in this process; a dry run; pauses."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from typing import Annotated

from cyclopts import App, Parameter

from crawler.stages.orders import order_text
from farmwatch.commands.options import AT_LEAST_0, DEFAULTS, AllowPrivate, AsJson, Common, Hits, Member, Why
from farmwatch.commands.start.running import append_hits_of
from farmwatch.config.member_names import claimed_name, names_folder
from farmwatch.crawl.dry_run import show_plan
from farmwatch.crawl.observer import CrawlObserver
from farmwatch.crawl.orders import order_pause
from farmwatch.crawl.watch import CrawlWatch
from farmwatch.daemon.roles import run_role
from farmwatch.daemon.signals import stopping_on_signals
from farmwatch.doctor.checks import prepare
from farmwatch.terminal.messages import message, start_logging
from stream.schema.roles import Role
from stream.text.user_errors import Exit, UsageError

crawl = App(name="crawl")
for _name, _line in {
    "plan": "What a measurement takes: sites, requests, days, disk, GPU hours.",
    "frontier": "The sites and URLs that the crawl knows, and what they wait for.",
    "robots": "Whether the crawler may fetch a URL, and which line decides it.",
    "key": "The key that signs requests, and the directory in which sites find it.",
    "exclude": "Never visit a host, a domain or a pattern again.",
    "forget": "Remove all that the log and the archive have of a host.",
}.items():
    crawl.command(f"farmwatch.commands.crawl.{_name}:{_name}", help=_line)


@crawl.default
def run_crawl(
    *,
    hits: Hits = None,
    until_done: Annotated[
        bool, Parameter(negative="", help="End when nothing is left to do now; sites that rest are not waited for.")
    ] = False,
    dry_run: Annotated[
        bool, Parameter(negative="", help="Say what would be fetched, when, and why not. Nothing is asked or written.")
    ] = False,
    limit: Annotated[
        int | None, Parameter(help="With --dry-run: sites at most; 0 = all. Default: 50.", validator=AT_LEAST_0)
    ] = None,
    allow_private: AllowPrivate = False,
    member: Member = None,
    json: AsJson = False,
    common: Common = DEFAULTS,
) -> int:
    """Crawl: the role `crawl` of `up` alone, in this process, with a line of status every 10 seconds. Ctrl-C drains.

    What is fetched goes to the topic `pages`, as under
    `up`, and further processes of the role share the work.

    Dry run: as if a crawl began now on the frontier as it is committed, the hits that it has not read yet, and those of
    --hits. One line a site: its next request, when, and what is in the way. The limits per registrable domain are in
    it; those per address are not, because no name is looked up.

    `farmwatch crawl pause` stops all requests of all processes, and `farmwatch crawl resume` lets them go on.

    Exit code 0 after a clean drain or when all is done, 1 when lines of --hits were skipped, 2 when the configuration
    is refused, 3 when the port of the metrics is taken.
    """
    flags = ["crawl.allow_private=true"] if allow_private else []
    config = common.load(*flags).config
    if dry_run:
        if until_done or allow_private or member is not None:
            raise UsageError("--dry-run asks nobody: --until-done, --allow-private and --member do not go with it")
        return show_plan(config, hits or (), 50 if limit is None else limit, as_json=json)
    if json or limit is not None:
        raise UsageError("--limit and --json go with --dry-run")
    prepare(config, [Role.CRAWL])
    stop, hurry = threading.Event(), threading.Event()
    with ExitStack() as held:
        if member is None:
            member = f"{Role.CRAWL.value}-{held.enter_context(claimed_name(names_folder(config), [Role.CRAWL]))}"
        skipped = append_hits_of(config, hits or [])
        watch = CrawlWatch()
        start_logging(role=Role.CRAWL.value)
        held.enter_context(stopping_on_signals(stop, hurry))
        held.enter_context(CrawlObserver(config, watch, stop, hurry, until_done=until_done).observing())
        run_role(Role.CRAWL, config, member, stop, observe=watch.observe)
    return Exit.PROBLEM if skipped else Exit.OK


@crawl.command
def pause(*, why: Why = None, common: Common = DEFAULTS) -> int:
    """Make no requests until `farmwatch crawl resume`: in all processes on this log, within seconds.

    Requests under way finish. The other stages go on, heartbeats too, and a restart keeps the pause. The log keeps who
    paused the crawl, when and why; `crawl`, `crawl frontier`, `status` and `doctor` show it.
    """
    before = order_pause(common.load().config, " ".join(why or ()), on=True)
    message(
        "the crawl is paused already" if before is None else "the crawl is paused; `farmwatch crawl resume` ends it"
    )
    return Exit.OK


@crawl.command
def resume(*, why: Why = None, common: Common = DEFAULTS) -> int:
    """End the pause of `farmwatch crawl pause`. A pause for want of disk ends by itself."""
    before = order_pause(common.load().config, " ".join(why or ()), on=False)
    if before is None:
        message("the crawl was not paused by an operator")
    else:
        message(f"the crawl goes on; it was paused {order_text(before.changes[-1])}")
    return Exit.OK
