"""Sites that are crawled on to see whether they turned: all, or those of a panel."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from farmwatch.daemon.roles import build_stage
from replay.runs.configured import tally_identity
from replay.runs.run_rules import RunRules
from scoring.stages.tally import TallyStage
from stream.processing.metrics import Metrics
from stream.schema.panel import SitePanel, write_panel
from stream.schema.records import Record
from stream.schema.roles import Role
from tests.support.logs.tally_desk import SITE, Desk, page, score
from tests.support.runs.cutover_world import CutoverWorld, cutover_world

PAGES = 14  # enough for a verdict, too few to stop without one


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CutoverWorld]:
    """An empty log."""
    with cutover_world("memory", tmp_path, monkeypatch) as made:
        yield made


@pytest.mark.parametrize(
    ("all_sites", "panels", "stopped"),
    [
        (False, [], True),
        (True, [], False),
        (False, [(SITE, True)], False),
        (False, [(SITE, False), ("other.example", True)], True),
    ],
)
def test_a_decided_site_is_crawled_on_by_the_setting_or_for_a_panel(
    world: CutoverWorld, all_sites: bool, panels: list[tuple[str, bool]], stopped: bool
) -> None:
    """Where its dates straddle ChatGPT's release; another panel, or one that does not follow, changes nothing."""
    for number, (site, follows) in enumerate(panels, 1):
        write_panel(
            world.log, SitePanel(version=number, made_at=0, seed=1, drawn_from=1, sites=[site], follow_turns=follows)
        )
    crawl = msgspec.structs.replace(world.config.crawl, follow_turns=all_sites)
    config = msgspec.structs.replace(world.config, crawl=crawl)
    stage = build_stage(Role.TALLY, config, Metrics(), RunRules(world.begin_live()), world.log)
    assert isinstance(stage, TallyStage)
    desk = Desk()
    desk.stage = stage
    pages: list[Record] = [page(n, published="2021-01-01" if n % 2 else "2024-01-01") for n in range(PAGES)]
    desk.feed(*pages, *(score(f"t{n}", True, tally_identity(config)) for n in range(PAGES)))
    assert desk.row.verdict == "llm"
    assert [decision.stop for decision in desk.decisions] == [True] * stopped
