"""The console's pages on dead letters: by stage and reason, and each alone."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from farmwatch.console.read_model import ReadModel
from farmwatch.upkeep.letter_fields import existing_letter, letter_content
from replay.rows.dead_letters import LetterState, settled_in_words
from stream.log.contract import Log
from stream.processing.topic_reader import dead_letters_of
from stream.schema.forgotten import Forgotten
from stream.schema.runs import shown_run
from stream.schema.topics import DEAD_LETTERS

_READ_S = 0.2  # longest time for which a request reads new letters


class LetterPages:
    """Answers the requests on dead letters."""

    def __init__(self, log: Log, model: ReadModel, forgotten: Forgotten) -> None:
        self._log, self._model, self._forgotten = log, model, forgotten

    def letters(self, query: Mapping[str, str]) -> dict[str, Any]:
        """Dead letters by stage and reason, as `farmwatch dead list` says them."""
        until_s = time.monotonic() + _READ_S
        with suppress(sqlite3.Error):  # the thread that follows has the index
            self._model.follow_letters(self._log, self._forgotten, lambda: time.monotonic() < until_s)
        groups = [
            {
                "stage": group.stage,
                "run": shown_run(group.run),
                "reason": group.reason,
                "open": group.states[LetterState.OPEN],
                "settled": settled_in_words(group.states),
                "newest": f"{partition}/{offset}",
                "at": time_ms,
                "error": self._error_of(partition, offset),
            }
            for group in self._model.letters(self._log)
            for time_ms, partition, offset in [group.newest]
        ]
        done = {name: query.get(name, "")[:9] for name in ("settled", "refused")}
        is_done = all(number.isdecimal() for number in done.values())
        return {"letters": groups, "done": {name: int(done[name]) for name in done} if is_done else {}}

    def letter(self, query: Mapping[str, str]) -> dict[str, Any]:
        """A dead letter, as `farmwatch dead show` shows it. Raises NotFound, UsageError."""
        return letter_content(existing_letter(self._log, query.get("id", "")))

    def _error_of(self, partition: int, offset: int) -> str:
        letters = dead_letters_of(self._log.read(DEAD_LETTERS, partition, offset, offset + 1))
        return next((letter.error for _, letter in letters), "")
