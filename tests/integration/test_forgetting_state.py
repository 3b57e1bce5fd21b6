"""Forgetting on every log: state with and without a running owner, and what the report promises."""

from __future__ import annotations

import threading

import pytest

from farmwatch.share.template_groups import read_template_groups
from farmwatch.upkeep.forgetting import Forgetting, known_hosts
from filters.structure.tag_paths import PLACES
from stream.log.contract import Commit, StateChange, partition_of
from stream.masked import masked
from stream.processing.loop import StageLoop
from stream.processing.metrics import Metrics
from stream.processing.stage import Context, Stage
from stream.schema.records import Hit, Record, SiteState, Template, encode
from stream.schema.topics import HITS, SITES, TALLY_STORE, TEMPLATES, all_topics
from tests.support.logs.loops import FAST
from tests.support.waiting import wait_until
from tests.support.worlds import World, on_embedded, record

HOST, OTHER = "gone.example", "kept.example"
OLD_STORE = "site-memory.e"  # of an epoch that no run has: nobody owns it


class Remembering(Stage):
    """TALLY's group and store: it remembers each site, and writes a row for each hit."""

    name = "tally"
    inputs = {HITS: Hit}  # noqa: RUF012 - as the stages declare it
    store = TALLY_STORE
    poll_s = 0.05

    def process(self, hit: Record, prepared: object, ctx: Context) -> None:
        ctx.state.put(hit.site.encode(), b"tally")
        ctx.state.put(b"%s\0%s" % (hit.site.encode(), hit.id.encode()), b"1")
        ctx.emit(SITES, SiteState(id=hit.site, site=hit.site))


def hit(host: str, number: int) -> bytes:
    return encode(Hit(id=f"{number}", site=host, url=f"https://{host}/{number}"))


@pytest.fixture
def filled(world: World) -> World:
    """Hits of two hosts, and state of both in the store of an earlier feature epoch."""
    world.log.create(all_topics(2, "e"))
    place = partition_of(HOST, 2), partition_of(OTHER, 2)
    for number in range(3):
        world.log.append([record(HITS, p, h, hit(h, number)) for p, h in zip(place, (HOST, OTHER), strict=True)])
    owner = world.owner(2, HITS, group="of old", store=OLD_STORE)
    for p, host in zip(place, (HOST, OTHER), strict=True):
        owner.commit(Commit(state={p: [StateChange(b"%s\0page" % host.encode(), b"v")]}))
    owner.close()
    return world


def sites_in(world: World, store: str) -> set[str]:
    rows = (key for p in range(2) for key, _ in world.log.scan_state(store, p))
    return {key.partition(b"\0")[0].decode() for key in rows}


@on_embedded
def test_state_goes_with_and_without_an_owner(filled: World) -> None:
    """A running stage deletes its own state and goes on; a store without an owner is emptied by the command."""
    log = filled.log
    seen = masked(log, look_s=0)
    member = seen.join("tally", [HITS], member="t", store=TALLY_STORE)
    loop, stop = StageLoop(Remembering(), member, metrics=Metrics(), settings=FAST), threading.Event()
    thread = threading.Thread(target=loop.run, args=(stop,))
    thread.start()
    try:
        wait_until(lambda: sites_in(filled, TALLY_STORE) == {HOST, OTHER}, "the stage", 30)
        assert known_hosts(log, [HOST, "unknown.example"]) == {HOST}
        report = Forgetting(log, masked(filled.again(), look_s=0), None).run([HOST])
        assert sites_in(filled, TALLY_STORE) == sites_in(filled, OLD_STORE) == {OTHER}
        seen.append([record(HITS, partition_of(h, 2), h, hit(h, 9)) for h in (HOST, OTHER)])
        place = partition_of(OTHER, 2)
        wait_until(lambda: log.committed("tally", HITS)[place] == log.end(HITS)[place], "the next hit", 30)
    finally:
        stop.set()
        thread.join()
    assert sites_in(filled, TALLY_STORE) == {OTHER}
    rows = {m.key: m.value for p in range(2) for m in log.read(SITES, p) if m.key}
    assert {key for key, value in rows.items() if value} == {OTHER.encode()}
    assert report.records >= 4 and not report.gone_at_ms


@on_embedded
def test_a_forgotten_host_shares_no_template(world: World) -> None:
    """Its rows are removed as its other records are; the sites that are left keep their group."""
    log, others = world.log, ("a.example", OTHER)
    log.create(all_topics(2, "e"))
    for host in (*others, HOST):
        row = encode(Template(id="1", site=host, url=f"https://{host}/", sketch=bytes(range(PLACES))))
        log.append([record(TEMPLATES, partition_of(host, 2), f"{host} 1", row)])
    seen = masked(world.again(), look_s=0)
    assert [sorted(group.sites) for group in read_template_groups(seen, TEMPLATES).groups] == [sorted((*others, HOST))]
    Forgetting(log, seen, None, sleep=lambda _: None).run([HOST])
    assert [sorted(group.sites) for group in read_template_groups(seen, TEMPLATES).groups] == [sorted(others)]
    newest = {message.key: message.value for message in log.read(TEMPLATES, partition_of(HOST, 2))}
    assert not newest.get(f"{HOST} 1".encode())


def test_a_host_of_which_only_compacted_records_are_left(world: World) -> None:
    """Its hits have expired. Kafka holds the row behind its tombstone until it compacts: that is no process at work."""
    log = world.log
    log.create(all_topics(2, "e"))
    place = partition_of(HOST, 2)
    log.append([record(SITES, place, HOST, encode(SiteState(id=HOST, site=HOST)))])
    report = Forgetting(log, masked(log, look_s=0), None, sleep=lambda _: None).run([HOST])
    assert report.records == 1 and bool(report.gone_at_ms) is not world.embedded
    newest = {message.key: message.value for message in log.read(SITES, place)}
    assert not newest.get(HOST.encode())
