"""An embedded log whose frontier has given sites."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from crawler.frontier.rows import SiteRow, pack, site_key
from stream.log.contract import Commit, StateChange, partition_of
from stream.opening import open_log
from stream.schema.topics import FRONTIER_STORE, HITS, all_topics
from tests.support.front_door import PARTITIONS


def frontier_log(folder: Path, *sites: SiteRow) -> str:
    """URL of a log whose frontier has these sites."""
    url = f"sqlite:{folder / 'log'}"
    rows: dict[int, list[StateChange]] = {}
    for row in sites:
        rows.setdefault(partition_of(row.site, PARTITIONS), []).append(StateChange(site_key(row.site), pack(row)))
    with closing(open_log(url)) as log:
        log.create(all_topics(PARTITIONS, "epoch"))
        member = log.join("crawl", [HITS], member="0", store=FRONTIER_STORE)
        while not member.assignment():
            member.poll(0.05, 1, 1)
        member.commit(Commit(state=rows))
        member.close()
    return url
