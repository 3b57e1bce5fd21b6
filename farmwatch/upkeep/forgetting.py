"""Forgets hosts: removes their records, their state and their WARC records, and keeps a keyed digest of each.

Every step may be repeated: after a crash the same command completes the work.

1. The ledger gets the digests. From now on no reader sees records of the hosts (`stream.masked`), CRAWL does not visit
   them, and the owners of state delete their rows. Exclusions of these hosts alone end, and panels lose the hosts: rows
   of `control` hold these names. The exclusion of a domain with all its hosts stays.
2. State of stores without a running owner is deleted here.
3. When no state is left, and no process works without the ledger any more, the records are erased.
4. Records in WARC files are erased.
5. The entries of the ledger are marked as done, and the files of the console lose the hosts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from crawler.warc.erasing import archives_of, erase_hosts, names_host
from crawler.web.exclusions import is_domain
from farmwatch.config.config import Config
from farmwatch.config.member_names import names_folder
from farmwatch.config.opening import as_read, opened
from farmwatch.config.topic_limits import create_missing
from farmwatch.upkeep.console_files import forget_in_files
from filters.stages.judge import requested_store
from replay.runs.control_update import operator
from stream.log.contract import Log, Message, Output, partition_of, wall_ms
from stream.log.errors import LogUnavailable
from stream.masked import LOOK_S, keys_of
from stream.schema.control import Control
from stream.schema.control_sites import control_site, real_host
from stream.schema.forgotten import Forgotten, ForgottenHost, site_of_key
from stream.schema.orders import Orders, exclusion, key_of
from stream.schema.panel import panel_key, read_panels, write_panel
from stream.schema.runs import memory_store
from stream.schema.topics import CONTROL, FRONTIER_STORE, HITS, RATES, TALLY_STORE
from stream.text.user_errors import NotFound, UsageError
from stream.text.wording import counted, moment, one_line

_STATE = "state."
_NOT_OF_SITES = (CONTROL, RATES)
_SETTLED_S = 3 * LOOK_S  # after that every process follows the ledger
_WAIT_S = 120.0  # longest wait for the owners of state
_LOOK_S = 0.5
_PASSES = 3  # a batch that was under way may have ended meanwhile

Progress = Callable[[str], None]


@dataclass(slots=True)
class ForgetReport:
    """What was removed."""

    records: int = 0
    warc_records: int = 0
    gone_at_ms: int = 0  # as of `Erased`

    def text(self, warc_folder: str) -> str:
        """What was removed, in words; the archive is in `warc_folder`, "" = there is none."""
        archive = f", {counted(self.warc_records, 'WARC record')} in {warc_folder}" if warc_folder else ""
        if not self.gone_at_ms:
            return f"forgotten: {counted(self.records, 'record')} removed{archive}"
        return (
            f"forgotten: no reader sees {counted(self.records, 'record')} any more; the broker removes the last by"
            f" {moment(self.gone_at_ms)}, and those of compacted topics when it compacts them{archive}"
        )


def records_of_hosts(log: Log, hosts: Sequence[str]) -> Iterator[Message]:
    """The records of these hosts, in a log that is not masked. Reads the partitions of the hosts whole."""
    for topic, partitions in log.topics().items():
        if topic.startswith(_STATE) or topic in _NOT_OF_SITES:
            continue
        for partition in sorted({partition_of(host, partitions) for host in hosts}):
            for message in log.read(topic, partition):
                if message.value is not None and site_of_key(message.key) in hosts:
                    yield message


def known_hosts(log: Log, hosts: Sequence[str], warc_folder: Path | None = None) -> set[str]:
    """Those of the hosts that the log or the archive has something of, or that the ledger has.

    Only the archive has a host if redirects from `www.example.com` led to `example.com`, or the other way round.
    """
    ledger = Forgotten(log)
    known = {host for host in hosts if ledger.entry(host) is not None}
    known |= {host for host in hosts if host not in known and _stores_with(log, _sites_of([host]))}
    if rest := [host for host in hosts if host not in known]:
        known |= {real_host(site_of_key(message.key)) for message in records_of_hosts(log, _sites_of(rest))}
    archives = archives_of(warc_folder) if warc_folder is not None else []
    return known | {host for host in hosts if host not in known and any(names_host(path, host) for path in archives)}


def forget_hosts(config: Config, hosts: Sequence[str], on_progress: Progress, *, sure: bool) -> ForgetReport:
    """Forget these hosts of the configured log, its archive, and the files of the console.

    Raises NotFound if log and archive have nothing of one, UsageError if the operator is not `sure`, and as
    `Forgetting.run`.
    """
    folder = Path(config.crawl.warc_folder) if config.crawl.warc_folder else None
    with opened(config, write=True, is_masked=False) as log:
        if CONTROL not in log.topics():
            create_missing(log, config)
        if unknown := sorted(set(hosts) - known_hosts(log, hosts, folder)):
            raise NotFound(
                f"there is nothing of {', '.join(unknown)}: none was removed; `farmwatch crawl exclude` keeps the crawl"
                " away from a host"
            )
        if not sure:
            raise UsageError(one_line(f"this removes all of {', '.join(hosts)} for ever: add --yes"))
        report = Forgetting(log, as_read(log, config), folder, on_progress).run(hosts)
        forget_in_files(names_folder(config), Forgotten(log), config.rate.review)
        return report


@dataclass(slots=True)
class Forgetting:
    """Forgets hosts. `log` is not masked, `seen` is the same log as its readers see it."""

    log: Log
    seen: Log
    warc_folder: Path | None
    on_progress: Progress = lambda _: None
    sleep: Callable[[float], None] = time.sleep
    monotonic: Callable[[], float] = time.monotonic

    def run(self, hosts: Sequence[str]) -> ForgetReport:
        """Forget the hosts. Raises LogUnavailable, and OSError of an archive; the next call goes on."""
        report = ForgetReport()
        self._enter(hosts, done=False)
        settled_at = self.monotonic() + _SETTLED_S
        self.on_progress("excluded; waiting for the stages")
        self._clear_state(_sites_of(hosts))
        self.sleep(max(0.0, settled_at - self.monotonic()))
        self.on_progress("removing records")
        self._erase(_sites_of(hosts), report)
        for path in archives_of(self.warc_folder) if self.warc_folder is not None else ():
            report.warc_records += erase_hosts(path, hosts)
        self._enter(hosts, done=True)
        return report

    def _enter(self, hosts: Sequence[str], *, done: bool) -> None:
        """Write the entries of the ledger, and take back the exclusions that name these hosts."""
        ledger, now_ms = Forgotten(self.log), wall_ms()
        excluded = Orders(self.log).exclusions
        domains = [host for host in hosts if host in excluded and excluded[host].on and is_domain(host)]
        for domain in () if done else domains:
            self.on_progress(f"the exclusion of {domain} stays, for it covers the domain with all its hosts")
        ended = [host for host in hosts if host in excluded and host not in domains]
        rows = [Output(CONTROL, 0, key, None) for key in _exclusions(ended)]
        for panel in read_panels(self.log).values():
            if any(host in panel.sites for host in hosts):
                write_panel(self.log, replace(panel, sites=[site for site in panel.sites if site not in hosts]))
        for host in hosts:
            entry = ledger.entry(host) or ForgottenHost(at=now_ms, by=operator())
            rows += ledger.outputs(host, ForgottenHost(at=entry.at, by=entry.by, done_at=now_ms if done else 0))
        self.log.append(rows)

    def _clear_state(self, hosts: Sequence[str]) -> None:
        """Wait until no state of the hosts is left; delete that of stores without a running owner."""
        give_up_at = self.monotonic() + _WAIT_S
        while left := _stores_with(self.log, hosts):
            owners = {FRONTIER_STORE: "crawl", TALLY_STORE: "tally"}  # stores of earlier feature epochs have none
            for run in Control(self.log).runs.values():
                names = run.names()
                owners[names.tally_store] = names.tally_group
                owners[memory_store(run.features, run.epoch)] = names.measure_group
                owners[requested_store(run.name)] = names.judge_group
            for store in left:
                if not self.log.members(owners.get(store, "")):
                    self._sweep(store)
            if self.monotonic() > give_up_at:
                raise LogUnavailable(
                    f"state of the hosts is still in {', '.join(sorted(left))}: stop the roles that own it"
                    " (`farmwatch log topics` names groups), and repeat the command"
                )
            self.sleep(_LOOK_S)

    def _sweep(self, store: str) -> None:
        """Delete the state of forgotten hosts as the only owner of a store: `stream.masked` does it in the poll."""
        group = f"forget.{store}"
        with closing(self.seen.join(group, [HITS], member="forget", store=store)) as member:
            until = self.monotonic() + _WAIT_S
            while len(member.assignment()) < self.log.topics()[HITS] and self.monotonic() < until:
                member.poll(_LOOK_S, 1, 1)
            member.poll(0, 1, 1)
        self.log.remove(groups=[group])

    def _erase(self, hosts: Sequence[str], report: ForgetReport) -> None:
        for _ in range(_PASSES):
            panels = [panel_key(version) for version in read_panels(self.log)]
            erased = self.log.erase(hosts, [*_exclusions(hosts), *panels])
            report.records += erased.records
            report.gone_at_ms = max(report.gone_at_ms, erased.gone_at_ms)
            if erased.gone_at_ms or next(records_of_hosts(self.log, hosts), None) is None:
                return
        raise LogUnavailable(f"a process still writes records of {counted(len(hosts), 'host')}: stop it, and repeat")


def _sites_of(hosts: Sequence[str]) -> list[str]:
    """The hosts and their control sites."""
    return [*hosts, *map(control_site, hosts)]


def _exclusions(hosts: Sequence[str]) -> list[bytes]:
    return [key_of(exclusion(host)) for host in hosts]


def _stores_with(log: Log, hosts: Sequence[str]) -> list[str]:
    def has_state(store: str, host: str, partitions: int) -> bool:
        with log.read_state(store, partition_of(host, partitions)) as state:
            return next(keys_of(state, host), None) is not None

    stores = ((name.removeprefix(_STATE), n) for name, n in log.topics().items() if name.startswith(_STATE))
    return [store for store, n in stores if any(has_state(store, host, n) for host in hosts)]
