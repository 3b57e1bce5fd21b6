"""A labelling session: the next page, and counts of answers. Independent of the terminal."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from farmwatch.labels.judgements import ANSWERS, Judgement, SamplePage, judgement, retraction
from farmwatch.labels.labels_file import LabelsFile
from stream.schema.vocabulary import KEPT, PageClass

SKIP, UNDO = "s", "u"


class RulesetChange(NamedTuple):
    """Pages that only one of the runs keeps, and the number of labelled articles among them."""

    what: str
    pages: int
    articles: int


class Session:
    """A person's progress through a sample: pages that they labelled are skipped, and their labels count for it too."""

    def __init__(self, pages: Sequence[SamplePage], labels: LabelsFile, by: str, clock: Callable[[], int]) -> None:
        """`clock` gives milliseconds UTC."""
        self.pages = pages
        self._labels, self._by, self._clock = labels, by, clock
        place = {page.fetch_id: number for number, page in enumerate(pages)}
        labelled = labels.of(by)
        for page in pages:  # also of a site that an earlier review had drawn
            said = labelled.get(page.fetch_id)
            if said is not None and page.drawn_at > said.drawn_at:
                of_sample = {"drawn": page.drawn, "drawn_at": page.drawn_at, "place": page.place}
                labels.add(msgspec.structs.replace(said, **of_sample, text=page.text or ""))
        self._left = deque(number for number, page in enumerate(pages) if page.fetch_id not in labelled)
        self._gone = [place[fetch_id] for fetch_id in labelled if fetch_id in place]  # where `undo` returns to

    @property
    def number(self) -> int | None:
        """Place of the next page in the sample, from 0; None if all were seen."""
        return self._left[0] if self._left else None

    @property
    def labelled(self) -> int:
        return len(self._said())

    def press(self, key: str) -> str:
        """Act on a key of ANSWERS, SKIP or UNDO; returns "" or why it was not possible. Raises FarmwatchError."""
        if key == UNDO:
            if not self._gone:
                return "there is nothing to undo"
            page = self.pages[self._gone[-1]]
            if page.fetch_id in self._labels.of(self._by):
                self._labels.add(retraction(page, self._by, self._clock()))
            self._left.appendleft(self._gone.pop())
            return ""
        if not self._left:
            return "there is no more page"
        number = self._left[0]
        if key != SKIP:
            self._labels.add(judgement(self.pages[number], ANSWERS[key], self._by, self._clock()))
        self._gone.append(self._left.popleft())
        return ""

    def counts(self) -> dict[str, int]:
        """Answer in words -> number of its pages in the sample."""
        words = {(answer.page_type, answer.label): answer.words for answer in ANSWERS.values()}
        said = Counter(words.get((one.page_type, one.label), one.page_type) for one in self._said().values())
        return {
            name: said[name] for name in [*words.values(), *sorted(said.keys() - set(words.values()))] if said[name]
        }

    def changes(self) -> list[RulesetChange]:
        """Numbers of articles among the labelled pages on which the runs differ: which run is right more often."""
        articles_of: dict[str, list[bool]] = {}
        said = self._said()
        for page in self.pages:
            if page.verdict_a != page.verdict_b and page.fetch_id in said:
                runs = page.run_a, page.run_b
                kept, other = runs if page.verdict_a in KEPT else runs[::-1]
                articles = articles_of.setdefault(f"kept by {kept}, dropped by {other}", [])
                articles.append(said[page.fetch_id].page_type == PageClass.ARTICLE)
        return [RulesetChange(what, len(articles), sum(articles)) for what, articles in articles_of.items()]

    def _said(self) -> dict[str, Judgement]:
        latest = self._labels.of(self._by)
        return {page.fetch_id: latest[page.fetch_id] for page in self.pages if page.fetch_id in latest}
