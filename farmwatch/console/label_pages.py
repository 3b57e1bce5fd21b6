"""The console's page on which people label, without verdicts: pages on which two runs differ, or those of a review."""

from __future__ import annotations

import getpass
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from farmwatch.config.config import Config
from farmwatch.config.member_names import names_folder
from farmwatch.console.site_lists import number_in, one_of
from farmwatch.labels.judgements import ANSWERS, LONGEST_NAME, Judgement, LabelSample, SamplePage, judgement, retraction
from farmwatch.labels.labels_file import LabelsFile
from farmwatch.labels.session import Session
from farmwatch.runs.comparison_words import label_lines
from farmwatch.upkeep.console_files import LABELS, REVIEW, REVIEW_LABELS
from replay.compare.comparison import Comparison
from stream.log.contract import Clock, Log
from stream.log.private_folders import give_to_owner
from stream.text.user_errors import FarmwatchError, NotFound, UsageError

UNDO = "undo"
_OF_REVIEW = {"of": "review"}
Query = Mapping[str, str]
Compared = Callable[[Query], Comparison]  # raises NotFound, Working


class _Sample(NamedTuple):
    """Pages to label, the fields of the address that name them, and the file of their labels."""

    pages: list[SamplePage]
    where: dict[str, str]
    file: Path


class LabelPages:
    """Answers the requests for this page."""

    def __init__(self, log: Log, config: Config, compared: Compared, clock: Clock) -> None:
        self._log, self._config, self._compared, self._clock = log, config, compared, clock
        self._lock = threading.Lock()  # of the labels files, which one writer has at a time
        folder = names_folder(config)
        self._labels, self._review = folder / LABELS, folder / REVIEW
        in_force = Path(config.rate.review).expanduser() if config.rate.review else folder
        self._review_labels = in_force / REVIEW_LABELS if in_force.is_dir() else in_force

    def label(self, query: Query) -> dict[str, Any]:
        """A page of the sample without its verdicts: the one at `at`, or the next one after `after` without a label.

        Raises NotFound, UsageError, Working.
        """
        sample = self._sample(query)
        pages, by = sample.pages, _person(query)
        with self._opened(sample.file) as labels:
            session, of_person = Session(pages, labels, by, self._clock), labels.of(by)
            wanted, after = number_in(query, "at"), number_in(query, "after")
            later = () if after is None else range(after + 1, len(pages))
            following = (number for number in later if pages[number].fetch_id not in of_person)
            at = wanted if wanted is not None and wanted < len(pages) else next(following, session.number)
            page = None if at is None else pages[at]
            said = "" if page is None else _words_of(of_person.get(page.fetch_id))
            return {
                "where": sample.where,
                "by": by,
                "at": at,
                "of": len(pages),
                "labelled": session.labelled,
                "page": None if page is None else msgspec.to_builtins(page, str_keys=True),
                "said": said,
                "last": None if said else _last(pages, of_person),
                "answers": {key: answer.words for key, answer in ANSWERS.items()},
                "counts": session.counts(),
                "changes": [change._asdict() for change in session.changes()] if at is None else [],
                "file": str(sample.file),
                "drawn": str(self._review),
                "in_force": bool(self._config.rate.review),
                "already": bool(query.get("already")),
            }

    def add(self, query: Query) -> bool:
        """Label a page of the sample; False if another browser or command labelled it since it was shown.

        Raises NotFound for a page that is not in the sample, UsageError, Working.
        """
        answer, fetch_id = query.get("answer", ""), query.get("fetch_id", "")
        sample = self._sample(query)
        page = next((page for page in sample.pages if page.fetch_id == fetch_id), None)
        if page is None:
            raise NotFound("the sample has no such page any more: look at the list again")
        if answer != UNDO and answer not in ANSWERS:
            raise UsageError(f"answer: one of {', '.join(ANSWERS)}, {UNDO}")
        with self._opened(sample.file) as labels:
            by, now_ms = _person(query), self._clock()
            if _words_of(labels.of(by).get(page.fetch_id)) != query.get("said", ""):
                return False
            is_undo = answer == UNDO
            labels.add(retraction(page, by, now_ms) if is_undo else judgement(page, ANSWERS[answer], by, now_ms))
        return True

    def _sample(self, query: Query) -> _Sample:
        by = {"by": _person(query)} if query.get("by") else {}
        if one_of(query, "of", ("", "review")):
            pages = LabelSample(self._review).pages if self._review.exists() and self._review.stat().st_size else []
            return _Sample(pages, _OF_REVIEW | by, self._review_labels)
        comparison = self._compared(query)
        pages = msgspec.json.Decoder(SamplePage).decode_lines(label_lines(comparison, self._config.log.url))
        return _Sample(pages, {"a": comparison.a.run, "b": comparison.b.run} | by, self._labels)

    @contextmanager
    def _opened(self, file: Path) -> Iterator[LabelsFile]:
        try:
            file.touch(0o600)  # as the log's own files
            give_to_owner(file)
        except OSError as error:
            raise FarmwatchError(f"{file}: cannot be written: {error.strerror or error}") from error
        with self._lock, closing(LabelsFile(file)) as labels:
            yield labels


def _person(query: Query) -> str:
    """Who labels: a name that was given, or the account of the console. Raises UsageError."""
    by = query.get("by", "").strip()
    if len(by) > LONGEST_NAME or not by.isprintable():
        raise UsageError(f"by: up to {LONGEST_NAME} characters that print")
    return by or getpass.getuser()


def _last(pages: list[SamplePage], labels: dict[str, Judgement]) -> dict[str, Any] | None:
    """The page of the sample that was labelled last."""
    place = {page.fetch_id: number for number, page in enumerate(pages)}
    last = next((one for one in reversed(labels.values()) if one.fetch_id in place), None)
    if last is None:
        return None
    return {"at": place[last.fetch_id], "fetch_id": last.fetch_id, "said": _words_of(last)}


def _words_of(said: Judgement | None) -> str:
    if said is None:
        return ""
    words = {(answer.page_type, answer.label): answer.words for answer in ANSWERS.values()}
    return words.get((said.page_type, said.label), said.page_type)
