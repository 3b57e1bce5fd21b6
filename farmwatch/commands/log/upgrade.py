"""The command `upgrade`."""

from __future__ import annotations

from farmwatch.commands.options import DEFAULTS, AsJson, Common
from farmwatch.config.opening import opened
from farmwatch.terminal.messages import message, put, put_json
from farmwatch.terminal.remedies import flags_of
from filters.measure.epoch import epoch_settings
from replay.live.epoch_change import change_epoch, epoch_change
from stream.log.contract import wall_ms
from stream.text.user_errors import Exit
from stream.text.wording import counted


def upgrade(*, json: AsJson = False, common: Common = DEFAULTS) -> int:
    """Move the log to the feature epoch of this installation, after an update that changes what features mean.

    `up` names this command when it is needed. Stop farmwatch first. MEASURE then takes all retained pages again, in
    order, before new ones; `farmwatch log topics` shows its lag. A site's row never rests on two epochs: with the first
    page that is measured again, the row drops the others. Sites without a retained page keep their rows.

    `farmwatch replay` and `farmwatch compare` show before what differs.

    Exit code 3 when MEASURE runs.
    """
    config = common.load().config
    with opened(config, write=True) as log:
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
