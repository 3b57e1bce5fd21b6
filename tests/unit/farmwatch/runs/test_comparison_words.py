"""A comparison in words: the notes before the numbers, and each change with its remarks."""

from __future__ import annotations

import msgspec

from farmwatch.runs.comparison_words import as_json, change_text, notes_of
from replay.compare.comparison import ChangeKind, ChangeRemark
from scoring.estimate.error_counts import ErrorCounts
from scoring.estimate.remarks import Remark, RemarkKind
from scoring.rates.canary_counts import Correction
from tests.support.runs.comparisons import change, made


def test_notes_say_what_to_know_before_the_numbers() -> None:
    """Unfinished and unscored runs, fetches of one run, other instruments, what is left out, and corrections."""
    a, b = made().a, made().b
    a = msgspec.structs.replace(a, progress="judged 2 of 6", articles=4, unscored=2, other_sites=1, other_verdicts=3)
    b = msgspec.structs.replace(
        b,
        progress="",
        detector="d/1",
        site_method="sprt 0",
        epoch="e",
        unscored=0,
        other_sites=2,
        to_at=1_700_000_000_000,
    )
    errors = ErrorCounts(40, 1, 40, 1)
    remark = Remark.of(RemarkKind.NOT_CORRECTED, reason="few")
    compared = msgspec.structs.replace(
        made(), a=a, b=b, other_windows=True, corrections=[Correction(errors, remark), Correction()]
    )
    notes = list(notes_of(compared))
    assert [note.split(" ")[0:3] for note in notes] == [
        ["A,", "the", "run"],
        ["A", "has", "2"],
        [f"{compared.pages.only_in_a:,}", "fetches", "were"],
        ["two", "detectors,", a.detector],
        ["two", "site", "methods,"],
        ["two", "feature", "epochs,"],
        ["left", "out", "of"],
        ["left", "out", "of"],
        ["A:", "not", "corrected"],
    ]
    assert "2 of 4 articles without a score so far (50.0%)" in notes[1]
    assert "3 verdicts, 1 site" in notes[6]
    assert "earliest .. 2023-11-14" in notes[2] and "`farmwatch replay --from RUN`" in notes[2]


def test_a_change_is_told_with_its_remarks() -> None:
    """In the text, and in JSON as one field."""
    remarks = [ChangeRemark(ChangeKind.NO_DENOMINATOR, ("B",)), ChangeRemark(ChangeKind.UNSCORED, counts=(0, 4, 2, 4))]
    unknown = change("share", "share", (4, 9), (0, 0), 0, 0, remarks=remarks)
    told = (
        "difference not known: B has no denominator; without the articles that have no score so far: A 0 of 4, B 2 of 4"
    )
    assert change_text(unknown) == f"share: {told}"
    (described,) = as_json(msgspec.structs.replace(made(), changes=[unknown]))["changes"]
    assert (described["remark"], described["text"]) == (told, f"share: {told}")
    known = change("share", "share", (4, 10), (5, 10), 0.05, 0.15)
    assert change_text(known) == "share: 40.0% to 50.0%, +10.0 points (interval +5.0 to +15.0)"
