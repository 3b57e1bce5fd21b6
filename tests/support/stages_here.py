"""All stages in this thread, in the order of the data, and articles for them."""

from __future__ import annotations

import random
import threading
from contextlib import ExitStack

from stream.log.contract import Clock, Log, wall_ms
from stream.processing.loop import LoopSettings, StageLoop
from stream.processing.metrics import Metrics
from stream.processing.stage import Stage
from stream.schema.runs import names_of

QUICK = LoopSettings(linger_s=0.0)
RULES = "c4"  # which keeps each article
_WORDS = (
    "river", "village", "boats", "market", "morning", "harvest", "people", "teacher", "garden", "window", "letter",
    "winter", "summer",
)  # fmt: skip


def article(path: str, author: str) -> str:
    """A text that the ruleset keeps, like no other."""
    chance = random.Random(f"{path} {author}")
    text = " ".join(
        "When the {} was near the {}, they would walk to the {} and talk of it.".format(*chance.sample(_WORDS, 3))
        for _ in range(30)
    )
    return f"<html><body><article><h1>By {author}</h1><p>{text} So {author} wrote it.</p></article></body></html>"


class Stages:
    """All stages in this thread, in the order of the data."""

    def __init__(self, log: Log, stages: list[Stage], stack: ExitStack, clock: Clock = wall_ms) -> None:
        self.loops = []
        for stage in stages:
            stage.poll_s = 0.001
            stack.callback(stage.close)
            group = names_of(getattr(stage, "run", "") or "live").tally_group if stage.name == "tally" else stage.name
            member = log.join(group, list(stage.inputs), member="one", store=stage.store, background=stage.background)
            stack.callback(member.close)
            self.loops.append(StageLoop(stage, member, metrics=Metrics(), settings=QUICK, clock=clock))

    def cycle(self) -> None:
        for loop in self.loops:
            loop.cycle(threading.Event())
