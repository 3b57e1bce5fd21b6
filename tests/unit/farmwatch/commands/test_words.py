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
    "doctor-audit": [
        "doctor audit",
        "doctor audit --config tallied.toml",
        "doctor audit --run none",
        "doctor audit crawled",
    ],
    "log-backup": ["log backup kept", "log backup kept"],
    "lab-calibrate": [
        "lab calibrate --labels scores.jsonl --detector other/1 --fpr 0.05 --name mine --out sets",
        "lab calibrate --labels scores.jsonl --detector other/1 --fpr 0.001 --name mine",
    ],
    "review-canaries": ["review canaries", "review canaries make made.jsonl --llm none"],
    "lab-chunk": ["lab chunk pages.jsonl", "lab chunk none"],
    "compare": ["compare live mine --sample 2 --config runs.toml", "compare live none"],
    "doctor-completion": ["doctor completion tcsh"],
    "doctor-config": ["doctor config", "doctor config --set crawl.delay_ms=5"],
    "console": ["console --log sqlite:none"],
    "log-copy": [
        "log copy --from sqlite:crawled --to sqlite:copied",
        "log copy --from sqlite:crawled --to sqlite:copied",
    ],
    "crawl": ["crawl --dry-run", "crawl", "crawl pause --why owner asked", "crawl pause", "crawl resume"],
    "cutover": [
        "cutover none --config runs.toml",
        "cutover --back --config runs.toml",
        "cutover mine --config runs.toml",
        "cutover mine --partial --why shorter articles --operator ann --config runs.toml",
        "cutover --back --operator ann --config runs.toml",
        "cutover --config runs.toml",
    ],
    "log-dead": [
        "log dead list",
        "log dead show 0/0",
        "log dead retry",
        "log dead retry --all",
        "log dead drop 0/0",
        "log dead list",
    ],
    "lab-detectors": ["lab detectors", "lab detectors --set score.detectors=none"],
    "doctor": ["doctor", "doctor --log sqlite:none"],
    "lab-estimate": ["lab estimate sites.jsonl", "lab estimate bad.jsonl"],
    "crawl-exclude": [
        "crawl exclude other.test www.kept.site.test --why asked",
        "crawl exclude",
        "crawl exclude *.test",
        "crawl exclude --remove other.test",
        "crawl exclude --remove none.test",
    ],
    "log-export": [
        "log export pages.csv --what pages",
        "log export pages.csv --what pages",
        "log export rates.csv --what rate",
    ],
    "crawl-forget": ["crawl forget other.test", "crawl forget other.test --yes", "crawl forget none.test --yes"],
    "crawl-frontier": [
        "crawl frontier",
        "crawl frontier --site kept.site.test",
        "crawl frontier --where state=parked",
        "crawl frontier --site none.test",
    ],
    "log-import": [
        "log import archive.warc.gz",
        "log import archive.warc.gz --log sqlite:new --set crawl.allow_private=true",
        "log import none.warc",
    ],
    "lab-judge": ["lab judge features.jsonl", "lab judge bad.jsonl"],
    "lab-extractors": [
        "lab extractors bench labelled --out bench --tool none",
        "lab extractors bench labelled --out bench --recorded none",
        "lab extractors bench none --out bench",
    ],
    "review-label": [
        "review draw --sites 50 --seed 1 --out sample.jsonl --config tallied.toml",
        "review label sample.jsonl --out labels.jsonl --operator ann --answers keys.txt",
        "review label bad.jsonl --out labels.jsonl",
    ],
    "lab-clean": [
        "lab clean pages.jsonl labelled --out cleaned --limit 2000",
        "lab clean pages.jsonl --out cleaned --model model.bin",
    ],
    "lab-lm": [
        "lab lm train pages.jsonl --out models --licence CC0-1.0",
        "lab lm train queries.txt --out models --licence CC0-1.0",
        "lab lm calibrate labelled --formula published",
        "lab lm calibrate none",
    ],
    "lab-measure": ["lab measure pages.jsonl --jobs 1", "lab measure bad.jsonl --jobs 1"],
    "pages": ["pages", "pages --where result=dropped --sort url --format csv", "pages none.test", "pages --sort name"],
    "review-controls": ["review controls", "review controls --sort name"],
    "review-panel": ["review panel make --sites 2 --seed 1", "review panel show", "review panel show --version 9"],
    "crawl-key": [
        "crawl key none.pem --set crawl.contact=https://crawler.example",
        "crawl key .well-known/none.pem --new --set crawl.contact=https://crawler.example",
        "crawl key none.pem --new --set crawl.contact=ann@mail.example",
    ],
    "crawl-plan": ["crawl plan --sites 10000", "crawl plan --half-width 5%", "crawl plan --hits none.csv"],
    "rate": [
        "rate",
        "rate --config tallied.toml",
        "rate --config tallied.toml --verbose",
        "rate --by source --config tallied.toml",
        "rate --by published",
        "rate --of farm --config tallied.toml",
        "rate --history --config tallied.toml",
        "rate --why 2026-01-01 --config tallied.toml",
        "rate --log sqlite:none",
    ],
    "log-release": [
        "log release bundle --config tallied.toml",
        "log release bundle --config tallied.toml",
        "doctor audit bundle",
    ],
    "replay": [
        "replay --ruleset gopher --name mine --full-speed",
        "replay --ruleset notes --name mine",
        "replay --ruleset none",
    ],
    "log-restore": [
        "log backup kept",
        "log restore kept --log sqlite:new",
        "log restore kept",
        "log restore crawled --log sqlite:newer",
    ],
    "review-draw": [
        "review draw --sites 50 --pages 2 --seed 1 --out sample.jsonl --config tallied.toml",
        "review draw --sites 50 --out other.jsonl",
        "review draw --sites 2 --out other.jsonl",
    ],
    "crawl-robots": [
        "crawl robots http://kept.site.test/p/1",
        "crawl robots http://a.example/closed --file robots.txt",
        "crawl robots http://none.test/",
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
    "lab-score": ["lab score texts.jsonl", "lab score bad.jsonl"],
    "hits": [
        "hits add hits.txt --log sqlite:new",
        "hits add hits.txt --log sqlite:new",
        "hits list --log sqlite:new --sort rank",
        "hits imports",
        "hits undo none",
        "hits search --source brave --queries queries.txt",
    ],
    "site": [
        "site http://kept.site.test/p/1",
        "crawl exclude kept.site.test --why asked",
        "site kept.site.test",
        "site none.test",
        "site s5.example --config tallied.toml",
    ],
    "sites": [
        "sites",
        "sites --llm --fdr 5% --config tallied.toml",
        "sites --llm --fdr 5% --format adblock --config tallied.toml --set crawl.contact=https://operator.example/",
        "sites --llm --farm --config tallied.toml",
        "sites --where verdict=llm",
        "sites --turned",
        "sites --sort name",
        "sites --log sqlite:none",
    ],
    "status": ["status --config tallied.toml", "status", "status --log sqlite:none"],
    "lab-tally": ["lab tally page_scores.jsonl", "lab tally bad.jsonl"],
    "lab-templates": [
        "lab templates groups",
        "lab templates split archive.warc.gz --out split --set crawl.allow_private=true",
        "lab templates split archive.warc.gz --out split",
    ],
    "log-topics": ["log topics", "log topics --log sqlite:none", "log topics --create --log sqlite:new"],
    "lab-train-articles": ["lab train-articles labelled --out model.json --jobs 1"],
    "lab-train-detector": ["lab train-detector texts.jsonl --dev texts.jsonl --out trained"],
    "lab-train-extractor": ["lab train-extractor labelled --out trained --jobs 1"],
    "lab-train-sites": [
        "lab train-sites scores.jsonl --out deciles.json",
        "lab train-sites scores.jsonl --out d.json --detector d/1",
    ],
    "up": ["up", "up --role jugde", "up --in-process --role judge,score"],
    "log-upgrade": [
        "log upgrade",
        "log upgrade --check",
        "log upgrade --set measure.time_limit_s=9",
        "log upgrade --set measure.max_elements=9",
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
    shown = "".join(golden_file(name).read_text(encoding="utf-8") for name in {*RUNS, "page", *OWN_TEST})
    silent = {name for name in commands(app) if f"$ farmwatch {name}" not in shown}
    assert silent == set(OWN_TEST)
