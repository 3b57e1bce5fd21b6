"""Writes dashboards/grafana/*.json and dashboards/rules/farmwatch.yml: `python -m dashboards [--docs URL]`."""

from __future__ import annotations

import argparse
from pathlib import Path

from dashboards.alerts import rule_file
from dashboards.grafana_json import dashboards

DOCS = "https://example.org/farmwatch/docs"  # where the documentation is published; runbook links start with it
HERE = Path(__file__).parent


def files(docs: str = DOCS) -> dict[Path, str]:
    """Every generated file, by its place."""
    made = {HERE / "grafana" / name: text for name, text in dashboards(docs).items()}
    return {**made, HERE / "rules" / "farmwatch.yml": rule_file(docs)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--docs", default=DOCS, help="address of the documentation, for links")
    for file, text in files(parser.parse_args().docs.rstrip("/")).items():
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
