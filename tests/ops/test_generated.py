"""The committed dashboards and rules equal the generated ones."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml
from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards.__main__ import HERE, files
from dashboards.alerts import ALERTS, runbook_page
from dashboards.grafana_json import as_text
from dashboards.panels import ROWS
from tests.ops.promtool import promtool, tool
from tests.support.paths import DOCS, ROOT

_FOLDERS = (HERE / "grafana", HERE / "rules")
_GRAVE = ("info", "warning", "critical")
_RUNBOOK = ("## What it means", "## Confirm", "## Do", "## Do not")


def test_files_are_generated_identically() -> None:
    """Each generated file exists with these bytes, and no others exist."""
    made = files()
    assert {file: file.read_text() for folder in _FOLDERS for file in folder.iterdir()} == made


@pytest.mark.parametrize("file", sorted(_FOLDERS[0].iterdir()), ids=lambda file: file.stem)
def test_json_survives_grafanas_own_model(file: Path) -> None:
    """Dashboards read and written by the Foundation SDK are unchanged: nothing is unknown or misplaced."""
    read = Dashboard.from_json(json.loads(file.read_text()))
    assert as_text(read) == file.read_text()


def test_each_dashboard_has_its_picture_in_the_docs() -> None:
    """`make screenshots` draws them from the JSON and a real Prometheus."""
    cited = re.findall(r"\(\.\./images/grafana-(\w+)\.png\)", (DOCS / "how-to/monitor.md").read_text(encoding="utf-8"))
    assert sorted(cited) == sorted(file.stem for file in _FOLDERS[0].iterdir())
    assert all((DOCS / f"images/grafana-{name}.png").is_file() for name in cited)


@pytest.mark.parametrize("file", sorted(_FOLDERS[0].iterdir()), ids=lambda file: file.stem)
def test_each_panel_is_a_question_with_an_answer(file: Path) -> None:
    """Panels have a question, a description, a unit and valid links; they do not overlap, and ids are unique."""
    board = json.loads(file.read_text())
    panels = [panel for panel in board["panels"] if panel["type"] != "row"]
    assert [variable["name"] for variable in board["templating"]["list"]] == ["datasource", "run", "source"]
    notes = [note["name"] for note in board["annotations"]["list"]]
    assert notes == ["Cutover", "Feature epoch", "Restart", "Deployment"]
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
    cells: set[tuple[int, int]] = set()
    for panel in panels:
        assert panel["title"].endswith("?") and panel["description"] and panel["fieldConfig"]["defaults"]["unit"]
        for link in panel["links"]:
            assert (DOCS / link["url"].partition("/docs/")[2]).is_file(), link
        at = panel["gridPos"]
        covered = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not covered & cells and at["x"] + at["w"] <= 24
        cells |= covered


def test_there_is_an_overview_and_a_dashboard_for_each_row() -> None:
    """There is an overview and a dashboard per row, in the order of the pipeline."""
    names = [row.name for row in ROWS]
    assert names == ["Answer", "Flow", "Crawl", "Rules", "Scoring", "Log", "Replay", "Process"]
    assert {file.stem for file in _FOLDERS[0].iterdir()} == {"overview", *(name.lower() for name in names)}
    overview = json.loads((HERE / "grafana" / "overview.json").read_text())
    assert [panel["title"] for panel in overview["panels"] if panel["type"] == "row"] == names


def test_each_alert_has_a_page_and_a_panel() -> None:
    """Each alert has a page with meaning, confirmation, remedy and mistakes, and there are no other pages."""
    pages = {runbook_page(alert.name) for alert in ALERTS}
    assert {f"how-to/runbook/{file.name}" for file in (DOCS / "how-to" / "runbook").iterdir()} == pages
    for page in pages:
        text = (DOCS / page).read_text()
        assert [part for part in _RUNBOOK if f"\n{part}\n" not in text] == [], page
    assert {panel.alert for row in ROWS for panel in row.panels} - {""} == {alert.name for alert in ALERTS}


def test_severities_are_those_of_the_documentation() -> None:
    """Severities in the alerts equal those on their pages and in the table."""
    table = (DOCS / "how-to" / "monitor.md").read_text()
    rows = dict(re.findall(r"^\| \[(\w+)\]\(runbook/\S+\) \| ([\w, ]+?) \|", table, re.MULTILINE))
    for name in {alert.name for alert in ALERTS}:
        known = {alert.severity for alert in ALERTS if alert.name == name}
        (line,) = re.findall(r"^Severity: .*", (DOCS / runbook_page(name)).read_text(), re.MULTILINE)
        assert set(rows.pop(name).split(", ")) == known == set(re.findall("|".join(_GRAVE), line)), name
    assert rows == {}


def test_what_deploy_sets_up_is_read_by_prometheus_and_alertmanager(tmp_path: Path) -> None:
    """Their own tools accept the files; inhibiting alerts exist, and none inhibits a more severe one."""
    folder = ROOT / "deploy"
    settings = (folder / "prometheus" / "prometheus.yml").read_text()
    (tmp_path / "prometheus.yml").write_text(settings.replace("/rules/", f"{HERE / 'rules'}/"))
    checked = promtool("check", "config", tmp_path / "prometheus.yml")
    assert checked.returncode == 0 and "1 rule files found" in checked.stdout, checked.stdout
    alerts = folder / "alertmanager" / "alertmanager.yml"
    read = subprocess.run([tool("amtool"), "check-config", alerts], capture_output=True, text=True, check=False)
    assert read.returncode == 0, read.stderr
    rules = yaml.safe_load(alerts.read_text())["inhibit_rules"]
    for rule in rules:
        source, target = (_gravities(rule[f"{of}_matchers"]) for of in ("source", "target"))
        assert min(source) >= max(target), rule


def _gravities(matchers: list[str]) -> list[int]:
    """Severities of the alerts in matchers such as `alertname =~ "NoVerdicts|RoleDown"`, perhaps limited to one."""
    wanted = {words[0]: set(words[1:]) for text in matchers if (words := re.findall(r"\w+", text))}
    named = [alert for alert in ALERTS if alert.name in wanted["alertname"]]
    assert {alert.name for alert in named} == wanted["alertname"]
    return [_GRAVE.index(one.severity) for one in named if one.severity in wanted.get("severity", _GRAVE)]


def test_compose_mounts_what_is_there() -> None:
    """The compose file mounts existing folders of the three servers, and Prometheus scrapes the roles' names."""
    read = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text())["services"]
    for name in ("prometheus", "alertmanager", "grafana"):
        folders = [mount.split(":")[0] for mount in read[name]["volumes"] if mount.startswith(".")]
        assert folders and all((ROOT / "deploy" / folder).is_dir() for folder in folders)
    jobs = yaml.safe_load((ROOT / "deploy" / "prometheus" / "prometheus.yml").read_text())["scrape_configs"]
    asked = {job["labels"]["role"] for job in jobs[0]["static_configs"]}
    assert set(read["farmwatch"]["networks"]["default"]["aliases"]) == asked


def test_a_share_is_shown_with_its_interval_and_never_pooled() -> None:
    """Queries of panels and docs keep all bounds, and separate detectors, rulesets and methods."""
    queries = [text for row in ROWS for panel in row.panels for text, _ in panel.queries]
    queries += re.findall(r"^max by .*", (DOCS / "how-to" / "monitor.md").read_text(), re.MULTILINE)
    shares = [text for text in queries if "farmwatch_share{" in text]
    of_sites = [text for text in queries if "farmwatch_share_sites{" in text]
    assert len(shares) == 4 and of_sites
    for text in shares + of_sites:
        (by,) = re.findall(r"by \((.*?)\)", text)
        assert {"detector", "ruleset", "method"} <= set(by.split(", ")), text
        assert text in of_sites or ("bound" in by and "bound=" not in text), text
