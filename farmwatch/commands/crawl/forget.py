"""The command `forget`: removes all that the log and the archive have of a host."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from farmwatch.commands.options import DEFAULTS, AsJson, Common, host_of
from farmwatch.terminal.messages import message, put_json
from farmwatch.upkeep.forgetting import forget_hosts
from stream.text.user_errors import Exit, UsageError


def forget(
    *hosts: Annotated[str, Parameter(help="Hosts, such as www.example.com.")],
    yes: Annotated[bool, Parameter(negative="", help="Remove: this cannot be undone.")] = False,
    json: AsJson = False,
    common: Common = DEFAULTS,
) -> int:
    """Remove a host: its hits, pages, features, verdicts, scores, rows, dead letters, state, and WARC records.

    The host is excluded first, for ever, and running stages drop it within seconds; the command waits for that. A
    ledger in the log keeps a keyed digest of its name and the day. Hits of the host that come later are dropped. What
    pages of other hosts say of it stays. A host is one name: www.example.com is not example.com.

    On the embedded log the bytes are removed from all of its files; that needs free disk of twice the size of
    log.sqlite, and the stages wait meanwhile. On Kafka nothing reads the host any more at once, compacted topics get
    tombstones, and the command says when the broker has removed the rest.

    If the command is interrupted, run it again: it completes the removal. Exit code 1 for a host that was never
    forgotten and of which log and archive have nothing.
    """
    if not hosts:
        raise UsageError("name a host")
    names = list(dict.fromkeys(host_of(host, "HOST") for host in hosts))
    config = common.load().config
    report = forget_hosts(config, names, message, sure=yes)
    if json:
        removed = {"records": report.records, "warc_records": report.warc_records, "gone_at": report.gone_at_ms}
        put_json({"hosts": len(names), **removed})
    message(f"{', '.join(names)}: {report.text(config.crawl.warc_folder)}")
    return Exit.OK
