"""The command that learns: `train-detector`."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from farmwatch.terminal.messages import message, put
from scoring.errors import TrainingRefused
from stream.text.user_errors import Exit, FarmwatchError


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
    card: Annotated[Path | None, Parameter(help="Markdown file whose tables are renewed.")] = None,
    seed: Annotated[int, Parameter(help="Of crops and caps.")] = 0,
) -> int:
    """Learn the numbers of the built-in detector, and print every table of what it gets wrong.

    Nothing is written, with exit code 1, when it flags too many human pages of a web source that it has not seen.
    """
    if importlib.util.find_spec("sklearn") is None:  # told now, not after the texts have been read
        raise FarmwatchError("training needs scikit-learn: pip install 'farmwatch[train]'")
    from scoring.training.training import run_training

    try:
        run_training(train, dev, out, unseen=unseen or (), pages=human_pages or (), card=card, seed=seed, say=put)
    except TrainingRefused as error:
        message(f"farmwatch: {error}")
        return Exit.PROBLEM
    return Exit.OK
