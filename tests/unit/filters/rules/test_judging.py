"""The text that a ruleset gives to the detector, and its digest in the verdict."""

from __future__ import annotations

from itertools import zip_longest

import msgspec
import numpy as np
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from filters.duplicates.lines import pack_marks
from filters.quality.c4 import clean
from filters.quality.names import TEXTS
from filters.rules.judgement import judge, judge_and_text, scored_text
from filters.rules.kinds import NOTHING
from filters.rules.ruleset import Ruleset, parse_ruleset
from filters.stages.judge import JudgeStage
from scoring.lite_ngram.detector import LiteNgram
from scoring.stages.score import ScoreStage
from stream.processing.metrics import Meter
from stream.processing.stage import Context
from stream.schema.records import Features, Score, ScoreRequest, Verdict, decode
from tests.support.pages.numbered_pages import page_features

RULES = '[rules.extracted]\nthreshold = "ok"\n[rules.min_tokens]\nthreshold = 5\n'
MAIN, C4, NOPUNC, OWN = (parse_ruleset(f'scores = "{text}"\n{RULES}', text) for text in TEXTS)
TEXT = "Share this page\nThe river rose over night. Nobody slept.\nTags: river, night\nBy noon it had gone down again."


def page(text: str = TEXT, tokens: int = 20, *template_lines: bool) -> Features:
    """A page with this main text, of whose lines some are template."""
    features = page_features(text, xxhash.xxh3_128_hexdigest(text.encode()), tokens=tokens)
    return msgspec.structs.replace(features, template_lines=pack_marks(np.array(template_lines, np.bool_)))


def test_dropped_pages_have_no_cleaned_text() -> None:
    """Texts of dropped pages are not cleaned: the digest is "" under C4, and the main text's otherwise."""
    short = page(tokens=4)
    assert judge_and_text(short, C4) == (judge(short, C4), "")
    assert judge(short, C4).text_digest == ""
    assert judge_and_text(short, MAIN) == (judge(short, MAIN), "")
    assert judge(short, MAIN).text_digest == short.text_digest


@pytest.mark.parametrize(
    ("ruleset", "features"),
    [
        (C4, page("Share this page\nTags: river, night")),
        (NOPUNC, page("Share this page\nTags: river, night")),
        (OWN, page("Share this page\nTags: river", 20, True, True)),
    ],
)
def test_a_text_of_nothing_is_an_abstention(ruleset: Ruleset, features: Features) -> None:
    """An article without a line of its own, or after C4's cleaning, is scored as "too_short"; it is not dropped."""
    judged, context = (Context(0, None, Meter(), now_ms=0) for _ in range(2))
    JudgeStage(ruleset).process(features, NOTHING, judged)
    emitted = {output.topic: output.value or b"" for output in judged.outputs}
    verdict = decode(Verdict, emitted["verdicts"])
    requests = [decode(ScoreRequest, emitted["score.requests"])]
    nothing = xxhash.xxh3_128_hexdigest(b"")
    assert (verdict.verdict, verdict.text_digest) == ("article", nothing)
    assert [(request.text, request.text_digest) for request in requests] == [("", nothing)]
    stage = ScoreStage(lambda: [LiteNgram.load()])
    for request, prepared in zip(requests, stage.prepare(requests), strict=True):
        stage.process(request, prepared, context)
    scores = [decode(Score, output.value or b"") for output in context.outputs]
    assert [(score.abstain, score.score, score.flag, score.text_digest) for score in scores] == [
        ("too_short", None, None, nothing)
    ]


@given(st.text(alphabet=st.sampled_from("ab .!\n{'\"[1]…é"), max_size=80), st.lists(st.booleans(), max_size=9))
def test_text_and_digest_belong_together(text: str, template_lines: list[bool]) -> None:
    """For any text the verdict's digest is that of the scored text, also after cleaning or without template lines."""
    features = page(text, 20, *template_lines)
    own = [line for line, marked in zip_longest(text.split("\n"), template_lines) if not marked and line is not None]
    ended = [line for line in text.split("\n") if line.strip()[-1:] in {".", "!", "?", '"'}]
    expected_of = {MAIN: text, C4: clean(text).text, NOPUNC: "\n".join(ended), OWN: "\n".join(own)}
    for ruleset, expected in expected_of.items():
        verdict, scored = judge_and_text(features, ruleset)
        assert scored == expected
        assert verdict.text_digest == xxhash.xxh3_128_hexdigest(scored.encode())
        assert scored_text(features, ruleset.scores) == (scored, verdict.text_digest)


def test_which_text_is_read_and_which_is_scored_are_two_things() -> None:
    """The text to read and the text to score each change the ruleset's digest; C4's measures score the main text."""
    reading = parse_ruleset('reads = "c4"\n' + RULES, "mine")
    assert len({ruleset.digest for ruleset in (MAIN, C4, NOPUNC, OWN, reading)}) == 5
    assert scored_text(page(), reading.scores)[0] == TEXT
