"""A batch on its way: read, its slow work under way or done, nothing of it processed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, wait
from typing import Any

from stream.log.contract import Message


class InFlightBatch:
    """The messages of one batch in the order of their reading, and what the stage's `prepare` makes of them."""

    def __init__(
        self,
        messages: Sequence[Message],
        epochs: Sequence[int],
        work: Future[dict[int, Any]] | None,
        started_s: float,
    ) -> None:
        """`epochs` are the ownership epochs under which the messages were read; no `work`: there is nothing to do."""
        self.messages = messages
        self.started_s = started_s
        self._epochs = epochs
        self._work = work

    def prepared(self, timeout_s: float) -> bool:
        """Wait so long for the slow work; True when it has ended."""
        return self._work is None or bool(wait([self._work], timeout=timeout_s).done)

    def still_owned(self, owned: Mapping[int, int]) -> tuple[list[Message], dict[int, Any]]:
        """The messages, and what was prepared of them by index; raises what the slow work raised.

        What belongs to partitions that were lost since it was read is left out: their new owner does it.
        """
        prepared = self._work.result() if self._work is not None else {}
        kept: list[Message] = []
        results: dict[int, Any] = {}
        for index, (message, epoch) in enumerate(zip(self.messages, self._epochs, strict=True)):
            if owned.get(message.partition) == epoch:
                if index in prepared:
                    results[len(kept)] = prepared[index]
                kept.append(message)
        return kept, results

    def drop(self) -> None:
        """Forget it: work that has not begun never does, what has begun ends unheeded."""
        if self._work is not None:
            self._work.cancel()
