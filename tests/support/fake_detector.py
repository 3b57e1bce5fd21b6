"""A detector for tests of other code: no weights, and scores that the test chooses."""

from __future__ import annotations

from collections.abc import Sequence

from scoring.interface import TextScore


class FakeDetector:
    """Flags the texts that contain `mark`, abstains from empty ones, and remembers its batches."""

    warning = "a fake for tests; says nothing about texts"

    def __init__(self, mark: str = "LLM", identity: str = "fake/1") -> None:
        self.identity = identity
        self.given: list[list[str]] = []  # the batches
        self._mark = mark

    def score(self, texts: Sequence[str]) -> list[TextScore]:
        """p_llm is .9 with the mark and .1 without; tokens are characters."""
        self.given.append(list(texts))
        scores = []
        for text in texts:
            flag = self._mark in text
            scored = TextScore(score=float(flag), p_llm=0.9 if flag else 0.1, flag=flag, tokens=len(text))
            scores.append(scored if text else TextScore(abstain="too_short"))
        return scores
