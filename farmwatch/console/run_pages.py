"""The console's pages on runs and rulesets: progress, comparisons, labels of flips, differences."""

from __future__ import annotations

import getpass
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any

import msgspec

from farmwatch.config.config import Config
from farmwatch.config.detector_config import caveats
from farmwatch.config.member_names import names_folder
from farmwatch.console.jobs import COMPARE, Jobs, Say
from farmwatch.console.replays import Replays
from farmwatch.labels.judgements import ANSWERS, Judgement, SamplePage, judgement, retraction
from farmwatch.labels.labels_file import LabelsFile
from farmwatch.labels.session import Session
from farmwatch.runs.comparison_words import as_json, label_lines
from farmwatch.share.review_labels import read_review
from farmwatch.upkeep.console_files import LABELS
from filters.rules.diff import differences, shown
from filters.rules.ruleset import Ruleset, load_ruleset, shipped_rulesets
from replay.compare.comparer import ComparisonRequest, compare
from replay.compare.comparison import Comparison
from replay.runs.lookup import find_run
from replay.runs.overview import STOPPED, run_states
from replay.runs.run_rules import rules_of
from stream.log.contract import Clock, Log
from stream.log.private_folders import give_to_owner
from stream.schema.control import Control
from stream.schema.runs import shown_run
from stream.text.user_errors import NotFound, UsageError

SAMPLE = 100  # flips
UNDO = "undo"
STARTING = "starting"  # the state of a run whose process does not work yet
_REQUEST = ComparisonRequest(SAMPLE, seed=0, resamples=2000)
_COMPARED_S = 60.0  # for which a comparison is shown again
_CUTOVERS = 20
_OF_RUN = ("ruleset", "digest", "detector", "created_at", "created_by", "why", "error")


class RunPages:
    """Answers the requests for these pages."""

    def __init__(self, log: Log, config: Config, jobs: Jobs, replays: Replays, clock: Clock) -> None:
        self._log, self._config, self._jobs, self._replays, self._clock = log, config, jobs, replays, clock
        self._lock = threading.Lock()  # of the labels file, which one writer has at a time
        self.labels_file = names_folder(config) / LABELS

    def runs(self, query: Mapping[str, str]) -> dict[str, Any]:
        """The runs of the log, as `farmwatch runs` lists them, and the cutovers."""
        control = Control(self._log)
        states = run_states(self._log, control, self._clock())
        return {
            "runs": [
                {
                    "run": state.run.shown,
                    "state": STARTING if state.state == STOPPED and self._replays.has(state.run.shown) else state.state,
                    **{name: getattr(state, name) for name in ("done", "eta_s", "window", "lag")},
                    **{name: getattr(state.run, name) for name in _OF_RUN},
                }
                for state in states
            ],
            "cutovers": [
                {**msgspec.structs.asdict(move), "from_run": shown_run(move.from_run), "to_run": shown_run(move.to_run)}
                for move in control.cutovers[-_CUTOVERS:][::-1]
            ],
            "before": shown_run(control.alias.before) if control.alias.before else "",
            "number": control.alias.number,
            "rulesets": shipped_rulesets(),
            "already": bool(query.get("already")),
        }

    def compare(self, query: Mapping[str, str]) -> dict[str, Any]:
        """Two runs, as `farmwatch compare` says it. Raises NotFound, Working."""
        comparison = self._compared(query, _COMPARED_S)
        warnings = caveats(self._config, dict.fromkeys((comparison.a.detector, comparison.b.detector)))
        pages = self._sample(comparison)
        with self._labels() as labels:
            session = Session(pages, labels, getpass.getuser(), self._clock)
            labelled, changes = session.labelled, [change._asdict() for change in session.changes()]
        return {**as_json(comparison), "warnings": warnings, "labelled": labelled, "labels": changes}

    def label(self, query: Mapping[str, str]) -> dict[str, Any]:
        """A page of the sample without its verdicts: the one at `at`, or the next one after `after` without a label.

        Raises NotFound, Working.
        """
        comparison = self._compared(query, float("inf"))
        pages = self._sample(comparison)
        with self._labels() as labels:
            session = Session(pages, labels, getpass.getuser(), self._clock)
            said = labels.of(getpass.getuser())
            wanted = query.get("at", "")[:9]
            after = query.get("after", "")[:9]
            later = range(int(after) + 1, len(pages)) if after.isdecimal() else ()
            following = (number for number in later if pages[number].fetch_id not in said)
            at = int(wanted) if wanted.isdecimal() and int(wanted) < len(pages) else next(following, session.number)
            page = None if at is None else pages[at]
            return {
                "a": comparison.a.run,
                "b": comparison.b.run,
                "at": at,
                "of": len(pages),
                "labelled": session.labelled,
                "page": None if page is None else msgspec.to_builtins(page, str_keys=True),
                "said": "" if page is None else _words_of(said.get(page.fetch_id)),
                "answers": {key: answer.words for key, answer in ANSWERS.items()},
                "counts": session.counts(),
                "changes": [change._asdict() for change in session.changes()] if at is None else [],
                "file": str(self.labels_file),
                "already": bool(query.get("already")),
            }

    def add_label(self, query: Mapping[str, str]) -> bool:
        """Label a page of the sample; False if another browser or command labelled it since it was shown.

        Raises NotFound for a page that is not in the sample, UsageError, Working.
        """
        answer, fetch_id = query.get("answer", ""), query.get("fetch_id", "")
        pages = self._sample(self._compared(query, float("inf")))
        page = next((page for page in pages if page.fetch_id == fetch_id), None)
        if page is None:
            raise NotFound("the sample has no such page any more: compare the runs again")
        if answer != UNDO and answer not in ANSWERS:
            raise UsageError(f"answer: one of {', '.join(ANSWERS)}, {UNDO}")
        with self._labels() as labels:
            by, now_ms = getpass.getuser(), self._clock()
            if _words_of(labels.of(by).get(page.fetch_id)) != query.get("said", ""):
                return False
            is_undo = answer == UNDO
            labels.add(retraction(page, by, now_ms) if is_undo else judgement(page, ANSWERS[answer], by, now_ms))
        return True

    def rulesets(self, query: Mapping[str, str]) -> dict[str, Any]:
        """The rulesets that ship and those of runs; the text of one, and its differences from another.

        Raises NotFound, BadRuleset.
        """
        control, names = Control(self._log), self.ruleset_names()
        a = query.get("a", "") or (f"run {control.live.shown}" if control.live else names[0])
        b = query.get("b", "") or a
        one, other = self.ruleset(a), self.ruleset(b)
        fields = ("rule", "field", "a", "b")
        return {
            "names": names,
            "a": {"name": a, "digest": one.digest, "rules_in_force": one.in_force},
            "b": {"name": b, "digest": other.digest, "rules_in_force": other.in_force, "text": other.source},
            "differences": [dict(zip(fields, shown(each), strict=True)) for each in differences(one, other)],
        }

    def ruleset_names(self) -> list[str]:
        """The rulesets that ship, and `run NAME` for that of each run."""
        control = Control(self._log)
        of_runs = [f"run {run.shown}" for run in control.runs.values() if control.ruleset_text(run)]
        return [*shipped_rulesets(), *of_runs]

    def ruleset(self, name: str) -> Ruleset:
        """One of them by its name. Raises NotFound."""
        names = self.ruleset_names()
        if name not in names:
            raise NotFound(f"{name[:80]!r}: no such ruleset; there are {', '.join(names)}")
        if name.startswith("run "):
            control = Control(self._log)
            return rules_of(control, find_run(control, name.removeprefix("run "))).ruleset
        return load_ruleset(name)

    def _compared(self, query: Mapping[str, str], keep_s: float) -> Comparison:
        control = Control(self._log)
        a, b = (find_run(control, query.get(side, "")[:60] or default).shown for side, default in SIDES)

        def work(_: Say) -> Comparison:
            now_ms = self._clock()
            review = read_review(self._config.rate, now_ms)
            return compare(self._log, a, b, _REQUEST, self._config.rate, now_ms, review)

        return self._jobs.result((COMPARE, a, b), f"Comparing {a} and {b}", work, keep_s)

    def _sample(self, comparison: Comparison) -> list[SamplePage]:
        return msgspec.json.Decoder(SamplePage).decode_lines(label_lines(comparison, self._config.log.url))

    @contextmanager
    def _labels(self) -> Iterator[LabelsFile]:
        self.labels_file.touch(0o600)  # as the log's own files
        give_to_owner(self.labels_file)
        with self._lock, closing(LabelsFile(self.labels_file)) as labels:
            yield labels


def _words_of(said: Judgement | None) -> str:
    if said is None:
        return ""
    words = {(answer.page_type, answer.label): answer.words for answer in ANSWERS.values()}
    return words.get((said.page_type, said.label), said.page_type)


SIDES = (("a", "live"), ("b", "before"))  # fields of the address, and the runs without them
