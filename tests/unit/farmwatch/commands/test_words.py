"""The words of every command stand in its golden file: a typical success, and the usual refusals."""

from __future__ import annotations

import shlex
import shutil
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import pytest

from farmwatch.commands.cli import app
from tests.support.front_door import Runner
from tests.support.golden import check_words, golden_file
from tests.support.logs.desk import make_desk
from tests.tools.reference import commands

OWN_TEST = {"demo": "takes half a minute: demo/test_demo_report.py prints a made result"}
RUNS: dict[str, list[str]] = {  # command -> lines that run one after the other in the folder of `make_desk`
    "audit": ["audit", "audit --config tallied.toml", "audit --run none", "audit crawled"],
    "backup": ["backup kept", "backup kept"],
    "calibrate": [
        "calibrate --labels scores.jsonl --detector other/1 --fpr 0.05 --name mine --out sets --no-plot",
        "calibrate --labels scores.jsonl --detector other/1 --fpr 0.001 --name mine",
    ],
    "canaries": ["canaries", "canaries make made.jsonl --llm none"],
    "chunk": ["chunk pages.jsonl", "chunk none"],
    "compare": ["compare live mine --sample 2 --config runs.toml", "compare live none"],
    "completion": ["completion tcsh"],
    "config": ["config show", "config show --set crawl.delay_ms=5"],
    "console": ["console --log sqlite:none"],
    "copy": ["copy --from sqlite:crawled --to sqlite:copied", "copy --from sqlite:crawled --to sqlite:copied"],
    "crawl": [
        "crawl --dry-run",
        "crawl",
        "crawl pause --why 'owner asked'",
        "crawl pause",
        "crawl --dry-run --site kept.site.test",
        "crawl resume",
    ],
    "cutover": [
        "cutover none --config runs.toml",
        "cutover --back --config runs.toml",
        "cutover mine --config runs.toml",
        "cutover mine --partial --why stricter --operator ann --config runs.toml",
        "cutover --back --operator ann --config runs.toml",
        "cutover --list --config runs.toml",
    ],
    "dead": [
        "dead list",
        "dead list --each",
        "dead show 0/0",
        "dead retry",
        "dead retry --all",
        "dead drop 0/0",
        "dead list",
    ],
    "detectors": ["detectors", "detectors --set score.detectors=none"],
    "doctor": ["doctor", "doctor --log sqlite:none"],
    "estimate": ["estimate sites.jsonl", "estimate bad.jsonl"],
    "exclude": [
        "exclude other.test www.kept.site.test --why asked",
        "exclude --list",
        "exclude *.test",
        "exclude --remove other.test",
        "exclude --remove none.test",
    ],
    "export": ["export pages.csv --what pages", "export pages.csv --what pages", "export rates.csv --what rate"],
    "forget": ["forget other.test", "forget other.test --yes", "forget none.test --yes"],
    "frontier": ["frontier", "frontier --site kept.site.test", "frontier --parked", "frontier --site none.test"],
    "help": ["help restore", "help audti"],
    "import": [
        "import archive.warc.gz",
        "import archive.warc.gz --log sqlite:new --set crawl.allow_private=true",
        "import none.warc",
    ],
    "judge": ["judge features.jsonl", "judge bad.jsonl"],
    "label": [
        "review --sites 50 --seed 1 --out sample.jsonl --config tallied.toml",
        "label sample.jsonl --out labels.jsonl --operator ann --answers keys.txt",
        "label bad.jsonl --out labels.jsonl",
    ],
    "measure": ["measure pages.jsonl --jobs 1", "measure bad.jsonl --jobs 1"],
    "pages": ["pages", "pages --where result=dropped --sort url --format csv", "pages --sort name"],
    "panel": ["panel make --sites 2 --seed 1", "panel show", "panel show --version 9"],
    "plan": ["plan how-to", "plan queries.txt", "plan none.txt"],
    "rate": [
        "rate",
        "rate --config tallied.toml",
        "rate --config tallied.toml --verbose",
        "rate --by source --config tallied.toml",
        "rate --history --config tallied.toml",
        "rate --why 2026-01-01 --config tallied.toml",
        "rate --log sqlite:none",
    ],
    "release": ["release bundle --config tallied.toml", "release bundle --config tallied.toml", "audit bundle"],
    "replay": [
        "replay --ruleset gopher --name mine --full-speed",
        "replay --ruleset notes --name mine",
        "replay --ruleset none",
    ],
    "restore": ["backup kept", "restore kept --log sqlite:new", "restore kept", "restore crawled --log sqlite:newer"],
    "review": [
        "review --sites 50 --pages 2 --seed 1 --out sample.jsonl --config tallied.toml",
        "review --sites 50 --out other.jsonl",
        "review --sites 2 --out other.jsonl",
    ],
    "robots": [
        "robots http://kept.site.test/p/1 --stored",
        "robots http://a.example/closed --file robots.txt",
        "robots http://none.test/ --stored",
        "robots http://kept.site.test/p/1",
    ],
    "rulesets": [
        "rulesets list",
        "rulesets show fineweb",
        "rulesets check default bad.toml",
        "rulesets diff notes notes-run",
        "rulesets diff notes notes",
        "rulesets show none",
        "rulesets evaluate notes --labels labelled --jobs 1",
    ],
    "runs": [
        "runs --config runs.toml",
        "runs show mine --config runs.toml",
        "runs cancel live --config runs.toml",
        "runs rm live --config runs.toml",
        "runs rm mine --config runs.toml",
        "runs show mine --config runs.toml",
    ],
    "score": ["score texts.jsonl", "score bad.jsonl"],
    "search": [
        "search --hits hits.txt --log sqlite:new",
        "search --hits hits.txt --log sqlite:new",
        "search --source brave --queries queries.txt",
    ],
    "sites": [
        "sites",
        "sites --llm --fdr 5% --config tallied.toml",
        "sites --where verdict=llm",
        "sites --sort name",
        "sites --log sqlite:none",
    ],
    "status": ["status --config tallied.toml", "status", "status --log sqlite:none"],
    "tally": ["tally page_scores.jsonl", "tally bad.jsonl"],
    "templates": [
        "templates groups",
        "templates split archive.warc.gz --out split --set crawl.allow_private=true",
        "templates split archive.warc.gz --out split",
        "templates evaluate none",
    ],
    "topics": ["topics", "topics --log sqlite:none", "topics --create --log sqlite:new"],
    "train-articles": ["train-articles labelled --out model.json --jobs 1"],
    "train-detector": ["train-detector texts.jsonl --dev texts.jsonl --out trained"],
    "train-extractor": ["train-extractor labelled --out trained --jobs 1"],
    "train-sites": [
        "train-sites scores.jsonl --out deciles.json",
        "train-sites scores.jsonl --out d.json --detector d/1",
    ],
    "up": ["up", "up --role jugde", "up --in-process --role judge,score"],
    "upgrade": [
        "upgrade",
        "upgrade --check",
        "upgrade --set measure.time_limit_s=9",
        "upgrade --set measure.max_elements=9",
    ],
}


@cache
def _desk() -> TemporaryDirectory[str]:
    made = TemporaryDirectory()
    make_desk(Path(made.name))
    return made


@pytest.mark.parametrize("command", RUNS)
def test_the_words_of_a_command(
    farmwatch: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """The outputs are those of its golden file, on a machine without a GPU and with much free disk."""
    monkeypatch.setattr("farmwatch.doctor.machine_checks.output_of", lambda *_: "")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(total=1 << 42, used=0, free=1 << 42))
    shutil.copytree(_desk().name, tmp_path, dirs_exist_ok=True)
    check_words(command, *(farmwatch(*shlex.split(line)) for line in RUNS[command]))


def test_every_command_has_a_golden_file() -> None:
    """Each command and subcommand runs for the file of its first word, or is named with its reason."""
    shown = "".join(golden_file(name).read_text(encoding="utf-8") for name in {*RUNS, "explain", *OWN_TEST})
    silent = {name for name in commands(app) if f"$ farmwatch {name}" not in shown}
    assert silent == set(OWN_TEST)
