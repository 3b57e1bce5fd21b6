"""Real pages and a sample web, crawled over HTTP and carried through every stage as real processes, on both logs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.real_run import HITS_ONLY, Figures, both_logs, run, show
from tests.support.webs import Web, labelled_pages, sample_web

pytestmark = [pytest.mark.data, pytest.mark.kafka]


def on_both_logs(web: Web, folder: Path, settings: dict[str, str]) -> list[Figures]:
    with both_logs(folder / "run", ("embedded", "kafka")) as logs:
        return [run(name, url, web, place, {**settings, **extra}, 600) for name, url, place, extra in logs]


def test_every_labelled_page_is_accounted_for_and_both_logs_agree(shared: Path, tmp_path: Path) -> None:
    """Each labelled page with a URL goes all the way; the audit is clean; verdicts, scores and rows are equal."""
    web = labelled_pages(shared)
    runs = on_both_logs(web, tmp_path, HITS_ONLY)
    assert show("labelled pages", web, runs)
    assert len(runs[0].outcome.verdicts) > 2000
    assert runs[0].outcome == runs[1].outcome


def test_the_sample_web_is_judged_and_both_logs_agree(shared: Path, tmp_path: Path) -> None:
    """60 sites are crawled by hits, sitemaps and links; most are judged as labelled; the logs agree."""
    web = sample_web(shared)
    runs = on_both_logs(web, tmp_path, {})
    assert show("sample web", web, runs)
    assert runs[0].outcome == runs[1].outcome
    judged = sum(n for (_, verdict), n in runs[0].agreement.items() if verdict in ("llm", "human"))
    right = sum(n for (truth, verdict), n in runs[0].agreement.items() if truth == verdict)
    assert judged >= 20
    assert right >= 0.8 * judged
