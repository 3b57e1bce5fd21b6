"""The command `cutover`: makes another run live, or shows the cutovers so far."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from farmwatch.commands.options import AT_LEAST_0, DEFAULTS, Common, Why
from farmwatch.config.opening import opened
from farmwatch.runs.notices import difference_text
from farmwatch.tables.columns import Column, columns_of, fields_of
from farmwatch.tables.listing import LISTING, Listing
from farmwatch.terminal.messages import message, put_json, put_wrapped
from farmwatch.terminal.remedies import in_full
from filters.errors import BadRuleset
from replay.live.cutover import CutoverRequest, CutoverResult, cut_over
from replay.live.live_run import CHOSEN, differences, find_rules
from replay.runs.configured import require_processable
from replay.runs.control_update import operator as operator_here
from replay.runs.overview import members_of
from replay.runs.run_rules import method_name
from replay.runs.topology import MAX_LAG
from scoring.sites.registry import same_method
from stream.schema.control import Control
from stream.schema.runs import Cutover, shown_run
from stream.text.user_errors import Exit, UsageError
from stream.text.wording import counted, one_line

_COLUMNS: list[Column[Cutover]] = columns_of(
    Cutover, lag={"meaning": "records that the run had to catch up with"}, back={"meaning": "by --back"}
)
_SHOWN = ("number", "at", "by", "from_run", "to_run", "to_digest", "why", "lag", "back", "from_digest")


def cutover(
    run: Annotated[str, Parameter(help="Name of the run to make live. Default: list the cutovers so far.")] = "",
    /,
    *,
    back: Annotated[
        bool, Parameter(negative="", help="Go back to the previous live run; a second time, forward again.")
    ] = False,
    why: Why = None,
    operator: Annotated[str, Parameter(help="Name of the operator, for the audit trail. Default: user@host.")] = "",
    max_lag: Annotated[
        int, Parameter(help="Largest accepted lag in records; the live stages catch up.", validator=AT_LEAST_0)
    ] = MAX_LAG,
    partial: Annotated[
        bool,
        Parameter(
            negative="",
            help="Also accept a run that lacks records (older than its start, or expired), scores or articles.",
        ),
    ] = False,
    listing: Listing = LISTING,
    common: Common = DEFAULTS,
) -> int:
    """Make another run the live one: the live stages switch to its ruleset and detector within a second.

    They start at the run's own offsets: nothing is judged twice or left out. The run that was live keeps its records,
    and --back goes back to it.

    Exit code 0 when the run is live; 1 when it is refused: it is behind, lacks records, articles or most scores, cannot
    continue live, or another process made another run live first; 2 when the options do not fit together.
    """
    if back and run:
        raise UsageError("--back goes to the previous live run: name no run")
    if (run or back) and listing != Listing(json=listing.json):
        raise UsageError("the options of lists go without a run and --back")
    selection = listing.of(_COLUMNS)
    config = common.load().config
    with opened(config, write=bool(run or back)) as log:
        if not (run or back):
            selection.put(Control(log).cutovers, "cutover", _SHOWN)
            return Exit.OK
        said = " ".join(why or ())
        request = CutoverRequest(run, one_line(operator) or operator_here(), one_line(said), max_lag, partial)
        moved = cut_over(log, request, check_run=lambda *of: require_processable(config, *of))
        at_work = bool(members_of(log, moved.left or moved.run))
        _report(moved, listing.json, at_work=at_work)
        try:
            for differs in differences(find_rules(log, config), config, Control(log)):
                if differs.what not in CHOSEN:
                    message(one_line(difference_text(differs)))
        except BadRuleset as error:
            message(one_line(f"judge.ruleset: {in_full(error)}"))
    return Exit.OK


def _report(moved: CutoverResult, as_json: bool, *, at_work: bool) -> None:
    done, run = moved.cutover, moved.run
    if as_json:
        row = None if done is None else fields_of(_COLUMNS, done)
        put_json({"live": run.shown, "moved": done is not None, "cutover": row, "lag": dict(moved.lag)})
        return
    if done is None:
        message(f"run {run.shown} is live already: nothing was changed")
        return
    method = f", site method {method_name(run.site_method)}" if run.site_method else ""
    judged_by = f"ruleset {run.ruleset} {run.digest}, detector {run.detector}{method}"
    put_wrapped(one_line(f"live: {shown_run(done.from_run)} -> {shown_run(done.to_run)}, {judged_by}"))
    left = moved.left
    if left and left.site_method and run.site_method and not same_method(left.site_method, run.site_method):
        message(f"the site method changes too: it was {method_name(left.site_method)}")
    if run.unscored and run.articles:
        message(f"{run.unscored:,} of its {counted(run.articles, 'article')} had no score: they count in no verdict")
    behind = f"{counted(done.lag, 'record')} to catch up with" if done.lag else "no record to catch up with"
    live = "the live stages switch within a second" if at_work else "no live stage runs: start `farmwatch up`"
    message(f"{live}; {behind}; `farmwatch cutover --back` makes {shown_run(done.from_run)} live again")
