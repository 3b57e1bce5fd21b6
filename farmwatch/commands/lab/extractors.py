"""The commands on extractors: those of the lab."""

from __future__ import annotations

from cyclopts import App

extractors = App(name="extractors")
extractors.command(
    "lab.extractor_bench.command:bench_extractors", name="bench", help="Compare extractors on labelled pages."
)
