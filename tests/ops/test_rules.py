"""Rules and alerts in promtool: each fires, each is silent, and no wrong threshold passes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import yaml

from dashboards.__main__ import DOCS
from dashboards.alerts import ALERTS, rule_file
from dashboards.pace import Durations
from tests.ops.promql import flipped, moved, renamed, tokens
from tests.ops.promtool import promtool
from tests.ops.rule_cases import CASES, Case
from tests.support.sizes import LONG

pytestmark = pytest.mark.slow

Rules = dict[str, Any]
_ORDER = ["farmwatch-records", "farmwatch-alerts"]
STEP = 1 if LONG else 16  # of the wrong rules that are tested
_FILES = 150  # per call of promtool


@cache
def rules() -> list[Rules]:
    """Recordings and alerts as Prometheus reads them."""
    return [rule for group in yaml.safe_load(rule_file(DOCS))["groups"] for rule in group["rules"]]


def with_uses(alert: str, all_rules: Sequence[Rules]) -> list[Rules]:
    """The rules of an alert and the recordings that they use."""
    own = [rule for rule in all_rules if rule.get("alert") == alert]
    used = {token.text for rule in own for token in tokens(rule["expr"])}
    return [rule for rule in all_rules if rule.get("record") in used] + own


def written(folder: Path, name: str, alert: str, all_rules: Sequence[Rules], cases: Iterable[Case] = CASES) -> Path:
    """A test file of an alert's cases, next to the tested rules."""
    used = with_uses(alert, all_rules)
    groups = [
        {"name": name, "rules": [rule for rule in used if kind in rule]}
        for name, kind in zip(_ORDER, ("record", "alert"), strict=True)
    ]
    (folder / f"{name}.rules.yml").write_text(json.dumps({"groups": groups}))  # JSON is YAML, and quicker
    tests = [_test(case, used) for case in cases if case.alert == alert]
    file = folder / f"{name}.test.yml"
    # promtool uses one interval per file and reports by file, so each alert has its own
    every = next(case.step for case in cases if case.alert == alert)
    given = {"rule_files": [f"{name}.rules.yml"], "evaluation_interval": every, "group_eval_order": _ORDER}
    file.write_text(json.dumps({**given, "tests": tests}))
    return file


def _test(case: Case, used: Sequence[Rules]) -> dict[str, Any]:
    looks: list[dict[str, Any]] = [{"eval_time": case.silent_at, "alertname": case.alert, "exp_alerts": []}]
    if case.fires_at:
        fired = [_fired(case, used, severity) for severity in case.grave]
        looks.append({"eval_time": case.fires_at, "alertname": case.alert, "exp_alerts": fired})
    series = [{"series": name, "values": values} for name, values in case.series.items()]
    return {"interval": case.step, "input_series": series, "alert_rule_test": looks}


def _fired(case: Case, used: Sequence[Rules], severity: str) -> dict[str, Any]:
    """The alert with that severity, or its expected form if a rule had it."""
    rules_of = [rule for rule in used if rule.get("alert") == case.alert]
    own = [rule for rule in rules_of if case.labels.get("error") in (rule["labels"].get("error"), None)]
    rule = next((rule for rule in own if rule["labels"]["severity"] == severity), own[0])
    labels = {**rule["labels"], "severity": severity, **case.labels}
    return {"exp_labels": labels, "exp_annotations": told(rule, case)}


def told(rule: Rules, case: Case) -> dict[str, str]:
    """The alert's annotations with the case's value and labels."""
    shown = {key: re.sub(r"{{ \$value.*?}}", case.said, text) for key, text in rule["annotations"].items()}
    for label, value in case.labels.items():
        shown = {key: text.replace(f"{{{{ $labels.{label} }}}}", value) for key, text in shown.items()}
    return {key: re.sub(r"{{ \$labels\.\w+ }}", "", text) for key, text in shown.items()}


def failed(files: Sequence[Path]) -> dict[Path, str]:
    """The test files that fail in promtool, with its output."""
    found: dict[Path, str] = {}
    for start in range(0, len(files), _FILES):
        some = files[start : start + _FILES]
        parts = re.split(r"^Unit Testing: +", promtool("test", "rules", *some).stdout, flags=re.MULTILINE)[1:]
        assert len(parts) == len(some)
        found |= {file: part for file, part in zip(some, parts, strict=True) if "SUCCESS" not in part}
    return found


def test_promtool_finds_no_fault_with_the_rules(tmp_path: Path) -> None:
    """promtool's linter reports neither an error nor a remark."""
    file = tmp_path / "rules.yml"
    file.write_text(rule_file(DOCS))
    checked = promtool("check", "rules", file)
    assert (checked.returncode, "SUCCESS" in checked.stdout) == (0, True), checked.stdout


def test_each_alert_fires_and_is_silent() -> None:
    """Every alert, and every part of one, has cases of both kinds."""
    assert {case.alert for case in CASES if case.fires_at} == {alert.name for alert in ALERTS}
    assert {case.alert for case in CASES if not case.fires_at} == {alert.name for alert in ALERTS}


def test_an_alert_fires_when_it_should_and_says_the_value(tmp_path: Path) -> None:
    """Each alert fires once `for` has passed, with its labels and texts; below the threshold it does not."""
    assert failed([written(tmp_path, alert.name, alert.name, rules()) for alert in ALERTS]) == {}


def mutants(changes: Callable[[str], Iterator[str]]) -> Iterator[tuple[str, list[Rules]]]:
    """The rules with one change, and an alert that depends on it."""
    original = rules()
    for place, rule in enumerate(original):
        name = rule.get("alert") or next(alert.name for alert in ALERTS if rule["record"] in alert.signal)
        wrong = [{"expr": expr} for expr in changes(rule["expr"])]
        if changes is moved and "for" in rule:
            after_s = Durations().seconds(f"@{rule['for']}")
            wrong += [{"for": f"{round(after_s * factor)}s"} for factor in (0.5, 2)]
        for one in wrong:
            yield name, [*original[:place], {**rule, **one}, *original[place + 1 :]]


def other_severities() -> Iterator[tuple[str, list[Rules]]]:
    """The rules with another severity of one alert."""
    original = rules()
    for place, rule in enumerate(original):
        for severity in {"info", "warning", "critical"} - {rule.get("labels", {}).get("severity")}:
            if "alert" in rule:
                wrong = {**rule, "labels": {**rule["labels"], "severity": severity}}
                yield rule["alert"], [*original[:place], wrong, *original[place + 1 :]]


def unseen(folder: Path, wrong: Iterable[tuple[str, list[Rules]]]) -> tuple[int, list[str]]:
    """The number of wrong rules, and the expressions of those that pass the alert's cases."""
    files = {written(folder, f"{number}", name, found): found for number, (name, found) in enumerate(wrong)}
    right = {rule["expr"] for rule in rules()}
    passed = files.keys() - failed(list(files)).keys()
    return len(files), [str([r for r in files[file] if r["expr"] not in right] or file) for file in passed]


@pytest.mark.parametrize("changes", [flipped, moved, renamed])
def test_a_wrong_rule_fails_its_cases(changes: Callable[[str], Iterator[str]], tmp_path: Path) -> None:
    """promtool detects reversed comparisons, halved and doubled thresholds, windows and `for`, and changed names."""
    count, passed = unseen(tmp_path, islice(mutants(changes), 0, None, STEP))
    assert count > 20 / STEP and passed == []


def test_a_wrong_severity_fails_its_cases(tmp_path: Path) -> None:
    """The severity is in the cases, not taken from the rule."""
    count, passed = unseen(tmp_path, islice(other_severities(), 0, None, STEP))
    assert count >= 2 * len(ALERTS) // STEP and passed == []
