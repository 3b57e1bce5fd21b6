"""The command `upgrade`."""

from __future__ import annotations

from typing import Annotated

import msgspec
from cyclopts import Parameter
from cyclopts.validators import Number

from farmwatch.commands.options import DEFAULTS, AsJson, Common
from farmwatch.config.opening import opened
from farmwatch.terminal.messages import message, put, put_json, put_wrapped
from farmwatch.terminal.remedies import flags_of
from farmwatch.upkeep.upgrade_check import UpgradeCheck, check_upgrade
from filters.measure.epoch import epoch_settings
from replay.live.epoch_change import change_epoch, epoch_change
from stream.log.contract import wall_ms
from stream.text.user_errors import Exit
from stream.text.wording import counted, one_line


def upgrade(
    *,
    check: Annotated[bool, Parameter(negative="", help="Measure stored pages and compare; change nothing.")] = False,
    pages: Annotated[int, Parameter(help="With --check: how many of the newest pages.", validator=Number(gte=1))] = 200,
    json: AsJson = False,
    common: Common = DEFAULTS,
) -> int:
    """Move the log to the feature epoch of this installation, after an update that changes what features mean.

    `up` names this command when it is needed. Stop farmwatch first. MEASURE then takes all retained pages again, in
    order, before new ones; `farmwatch log topics` shows its lag. A site's row never rests on two epochs: with the first
    page that is measured again, the row drops the others. Sites without a retained page keep their rows.

    --check measures the newest stored pages with the installed versions, and reports differing texts, features,
    verdicts and flags, and the share of LLM sites before and after, while nothing is written.

    Exit code 0 when the log has the epoch, or nothing differs; 1 when --check finds a difference; 3 when MEASURE runs.
    """
    config = common.load().config
    with opened(config, write=not check) as log:
        if check:
            return _report(check_upgrade(log, config, pages), json)
        change = epoch_change(log, config.measure)
        if change is not None:
            change_epoch(log, config.measure, wall_ms())
    if json:
        put_json({"changed": change is not None, **({} if change is None else change._asdict())})
    elif change is None:
        message("the log has the feature epoch of this installation: nothing to do")
    else:
        records = counted(change.records, "record")
        put(f"feature epoch: {change.before} -> {change.after}")
        settings = epoch_settings(config.measure)
        up = f"farmwatch up {flags_of(settings)}" if settings else "farmwatch up"
        message(f"the next `{up}` measures `pages` again (about {records}), before new ones")
    return Exit.OK


def _report(check: UpgradeCheck, as_json: bool) -> int:
    code = Exit.OK if check.is_same else Exit.PROBLEM
    if as_json:
        put_json(msgspec.to_builtins(check))
        return code
    differs = "nothing differs" if check.is_same else "it changes what is measured or judged"
    put_wrapped(f"{differs}: {counted(check.pages, 'page')}, the newest, measured again with this installation")
    epoch = "the same as the log's" if check.installed_epoch == check.epoch else f"the log's is {check.epoch}"
    versions = ", ".join(f"{name} {version or 'missing'}" for name, version in check.versions.items())
    put_wrapped(f"feature epoch: {check.installed_epoch}, {epoch} ({versions})")
    put_wrapped(f"texts that differ: {check.texts}")
    put_wrapped(f"features that differ: {_counts(check.features)}")
    put_wrapped(one_line(f"verdicts that differ: {_counts(check.verdicts)}"))
    if check.flags is None:
        put_wrapped("flags: not compared, the live run's detector needs a device or is not configured here")
    else:
        flagged = f"{check.flagged_before} -> {check.flagged_after}"
        put_wrapped(f"flags that differ: {check.flags}; flagged articles {flagged}")
        put_wrapped(f"share of these pages' sites before: {check.share_before}")
        put_wrapped(f"share of these pages' sites after: {check.share_after}")
    message("nothing was written")
    return code


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items()) or "none"
