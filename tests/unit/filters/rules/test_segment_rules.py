"""Rules on segments, the rules of the pages that a ruleset drops, and the kinds that count."""

from __future__ import annotations

import msgspec
import pytest

from filters.errors import BadRuleset
from filters.rules.judgement import judge, judge_and_text
from filters.rules.ruleset import Ruleset, load_ruleset, parse_ruleset, shipped_rulesets
from stream.schema.records import Features, Segments, Verdict
from tests.support.pages.numbered_pages import page_features

OK = '[rules.extracted]\nthreshold = "ok"\n'
WORDS = '[rules.segment_words]\nthreshold = 100\non_unknown = "drop"\n'
SCORES = f'scores = "segments"\n{OK}{WORDS}'
OTHERWISE = '[otherwise]\nscores = "segments"\n' + (OK + WORDS).replace("[", "[otherwise.")
TEASERS = Segments("teaser", "ul > li", ["One story.", "Another story."], b"", 150, "en", 0.9, 0.1)
ARTICLE = Segments("article", words=120, language="de", language_probability=0.99, repetition=0.5)
ENGLISH = msgspec.structs.replace(ARTICLE, language="en", repetition=None)
COMMENTS = Segments("comment", "ol > li", ["Never the site's."], b"", 900, "fr", 1.0, 0.9)


def features(*segments: Segments, old: bool = False, tokens: float = 9) -> Features:
    page = page_features(tokens=tokens, no_page="ok")
    return msgspec.structs.replace(page, text="The text.\nIts end.", segments=None if old else list(segments))


def read(text: str) -> Ruleset:
    return parse_ruleset(text, "mine", "mine.toml")


def outcomes(verdict: Verdict) -> list[tuple[object, str]]:
    return [(rule.value, rule.outcome) for rule in verdict.rules[1:]]


RULES = SCORES.replace("100", "270") + (
    '[rules.segment_language]\nthreshold = ["en"]\nmin_probability = 0.8\n[rules.segment_repetition]\nthreshold = 0.1\n'
)


@pytest.mark.parametrize(
    ("segments", "expected"),
    [
        ([ARTICLE, TEASERS, COMMENTS], [(270.0, "pass"), ("de", "fail"), (0.5, "fail")]),
        ([TEASERS, ENGLISH, COMMENTS], [(270.0, "pass"), ("en", "pass"), (0.1, "pass")]),
        ([msgspec.structs.replace(ARTICLE, language_probability=0.7), TEASERS], [(270.0, "pass"), ("en", "pass")]),
        ([msgspec.structs.replace(ARTICLE, words=49), TEASERS], [(199.0, "fail"), ("en", "pass"), (0.1, "pass")]),
        ([ARTICLE], [(120.0, "fail"), ("de", "fail"), (0.5, "fail")]),
        ([COMMENTS], [(0.0, "fail"), (None, "n/a"), (None, "n/a")]),
        ([], [(0.0, "fail"), (None, "n/a"), (None, "n/a")]),
        ([msgspec.structs.replace(TEASERS, words=270, language_probability=0.7)], [(270.0, "pass"), (None, "n/a")]),
        ([Segments("post", texts=["Short."], words=270)], [(270.0, "pass"), (None, "n/a"), (None, "n/a")]),
    ],
)
def test_rules_on_segments(segments: list[Segments], expected: list[tuple[object, str]]) -> None:
    """Words are of all kinds that count, and each has to pass the others; comments are none of the site's."""
    assert outcomes(judge(features(*segments), read(RULES)))[: len(expected)] == expected


def test_features_without_segments_are_unknown() -> None:
    """Features of an older epoch have no words to count, and are dropped."""
    old = features(old=True)
    assert outcomes(judge(old, read(RULES))) == [(None, "n/a")] * 3
    assert judge(old, read(RULES)).failed == ["segment_words"]
    assert judge(old, load_ruleset("whole-web")).verdict == "dropped"


def test_the_scored_text_is_that_of_the_kinds_that_count() -> None:
    """Kinds are joined in the page's order, the article without the lines of others; each set has its own digest."""
    page = features(msgspec.structs.replace(ARTICLE, without=b"\x01"), TEASERS, COMMENTS)
    texts = {}
    for kinds, text in (
        ("", "Its end.\nOne story.\nAnother story."),
        ('kinds = ["teaser"]\n', "One story.\nAnother story."),
        ('kinds = ["comment"]\n', "Never the site's."),
    ):
        verdict, found = judge_and_text(page, read(kinds + SCORES))
        assert (found, verdict.verdict, verdict.failed) == (text, "segments", [])
        texts[verdict.text_digest] = text
    assert len(texts) == 3


def test_what_a_ruleset_drops_counts_otherwise() -> None:
    """An article is judged by the first rules alone; another page by all, and why it is no article stays."""
    ruleset = read(f"{OK}[rules.min_tokens]\nthreshold = 5\n{OTHERWISE}")
    article, other, none = (
        judge_and_text(page, ruleset)
        for page in (features(TEASERS), features(TEASERS, tokens=4), features(COMMENTS, tokens=4))
    )
    assert (article[0].verdict, article[1], len(article[0].rules)) == ("article", "The text.\nIts end.", 2)
    assert (other[0].verdict, other[1], other[0].failed) == ("segments", "One story.\nAnother story.", ["min_tokens"])
    assert (none[0].verdict, none[1]) == ("dropped", "")
    assert none[0].failed == ["min_tokens", "segment_words"]
    assert none[0].first_failed == "min_tokens"
    assert [rule.name for rule in none[0].rules] == ["extracted", "min_tokens", "extracted", "segment_words"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f'kinds = ["post"]\n{OK}', 'kinds needs scores = "segments"'),
        (f'kinds = ["comment", "post"]\n{SCORES}', "comments are the text of visitors"),
        (f"kinds = []\n{SCORES}", "kinds is empty: name kinds, or leave it out"),
        (f'kinds = "post"\n{SCORES}', "kinds: Expected `array`, got `str`"),
        (f'kinds = ["other"]\n{SCORES}', "known: article, post, comment, teaser, list"),
        (f'reads = "segments"\n{OK}', "reads: segments is not read by rules; known: main, c4"),
        (f"{OK}[rules.segment_words]\nthreshold = 1\n", 'a rule on segments needs scores = "segments"'),
        (f'{SCORES}[rules.gopher_max_words]\ntext = "segments"\n', "text: segments is not read by rules"),
        (OK + OTHERWISE.replace('scores = "segments"\n', ""), 'otherwise: scores has to be "segments"'),
        (SCORES + OTHERWISE, "otherwise: the rules above it score segments already"),
        (OK + OTHERWISE.replace("\n", '\nkinds = ["comment"]\n', 1), "otherwise: kinds: comments are the text of"),
        (SCORES.replace(WORDS, ""), 'segments" needs the rule segment_words with a threshold of at least 1'),
        (SCORES.replace("100", "0"), 'segments" needs the rule segment_words with a threshold of at least 1'),
        (SCORES.replace('on_unknown = "drop"\n', ""), 'segments" needs the rule segment_words with a threshold of'),
        (OK + OTHERWISE.replace("threshold = 100\n", ""), 'otherwise: scores = "segments" needs the rule'),
        (OK + OTHERWISE.replace("extracted", "min_tokens"), "otherwise: rule min_tokens: threshold is"),
        (OK + OTHERWISE.replace("[otherwise]\n", "[otherwise]\notherwise = {}\n"), "unknown field otherwise"),
    ],
)
def test_mistakes_about_segments_are_refused(text: str, message: str) -> None:
    """Kinds, rules and tables that could not count anything, or would mix visitors' text in, are refused by name."""
    with pytest.raises(BadRuleset) as refused:
        read(text)
    assert message in str(refused.value)


def test_whole_web_is_default_for_articles() -> None:
    """The first rules of `whole-web` are those of `default`, in order; a run keeps all of it."""
    whole, default = load_ruleset("whole-web"), load_ruleset("default")
    assert (whole.rules, whole.blocks, whole.reads, whole.scores) == (
        *(default.rules, default.blocks, default.reads, default.scores),
    )
    stored = parse_ruleset(whole.stored, "stored")
    assert (stored.digest, stored.otherwise, stored.models) == (
        *(whole.digest, parse_ruleset(whole.source, "stored").otherwise, whole.models),
    )


def test_a_digest_tells_kinds_and_other_rules() -> None:
    """Kinds in any order, and the table `otherwise`, are in a digest; of the shipped rulesets only whole-web has it."""
    plain, teasers, both, same = (
        read(kinds + SCORES).digest
        for kinds in (
            "",
            'kinds = ["teaser"]\n',
            'kinds = ["teaser", "post"]\n',
            'kinds = ["post", "teaser", "post"]\n',
        )
    )
    assert len({plain, teasers, both}) == 3 and both == same
    otherwise = [
        read(OK + table).digest for table in ("", OTHERWISE, OTHERWISE.replace("\n", '\nkinds = ["post"]\n', 1))
    ]
    assert len({*otherwise}) == 3
    for name in shipped_rulesets():
        ruleset = load_ruleset(name)
        assert (ruleset.otherwise is not None) == (name == "whole-web")
        assert ruleset.kinds == () and "kinds" not in ruleset.fields
