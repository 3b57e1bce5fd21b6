"""Removes forgotten hosts from the files of the console: its index, and the labels that people gave in it."""

from __future__ import annotations

from contextlib import closing

from farmwatch.config.config import Config
from farmwatch.config.member_names import names_folder
from farmwatch.config.opening import opened
from farmwatch.console.read_model import INDEX, ReadModel
from farmwatch.console.run_pages import LABELS
from farmwatch.labels.labels_file import LabelsFile
from farmwatch.upkeep.forgetting import ForgetReport, Progress, forget_hosts
from stream.schema.forgotten import Forgotten


def forget_everywhere(config: Config, hosts: list[str], on_progress: Progress, *, sure: bool) -> ForgetReport:
    """Forget hosts of log and archive as `forget_hosts`, which see, and in the console's files."""
    report = forget_hosts(config, hosts, on_progress, sure=sure)
    folder = names_folder(config)
    with opened(config) as log:
        forgotten = Forgotten(log)
        if (index := folder / INDEX).exists():
            ReadModel(index).forget(forgotten)
        if (labels := folder / LABELS).exists():
            with closing(LabelsFile(labels)) as file:
                file.forget(forgotten.covers)
    return report
