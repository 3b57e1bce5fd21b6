"""`farmwatch train-detector`: labelled texts → the numbers of the built-in detector."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter

from farmwatch.commands.options import AsJson
from farmwatch.terminal.messages import message, put, put_json
from lab.detector.training import run_training
from lab.extras import require_sklearn
from scoring.errors import TrainingRefused
from stream.text.user_errors import Exit


def train_detector(
    train: Annotated[
        Path, Parameter(help="Texts to learn from: JSONL of {id, domain, generator, label, text, src, lic}.")
    ],
    /,
    *,
    dev: Annotated[Path, Parameter(help="Texts to calibrate and test on, of other groups than those learned from.")],
    out: Annotated[Path, Parameter(help="Folder for the weights and their numbers.")],
    unseen: Annotated[
        list[Path] | None, Parameter(help="Labelled texts to measure on only; `id` and `domain` may lack.", negative="")
    ] = None,
    human_pages: Annotated[
        list[Path] | None,
        Parameter(help="Web pages by people to measure on only: JSONL of {articleBody}.", negative=""),
    ] = None,
    seed: Annotated[int, Parameter(help="Of crops and caps.")] = 0,
    json: AsJson = False,
) -> int:
    """Learn the numbers of the built-in detector, and print every table of its errors.

    Exit code 1, and nothing is written, if it flags too many human pages of a web source that it has not seen.
    JSON: one object, as in the file beside the weights; the tables go to stderr.
    """
    require_sklearn()
    try:
        say = message if json else put
        report = run_training(train, dev, out, unseen=unseen or (), pages=human_pages or (), seed=seed, say=say)
    except TrainingRefused as error:
        message(f"farmwatch: {error}")
        return Exit.PROBLEM
    if json:
        put_json(msgspec.to_builtins(report))
    return Exit.OK
