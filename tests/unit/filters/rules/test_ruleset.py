"""Rulesets are validated when read, and identified by everything that affects verdicts."""

from __future__ import annotations

import contextlib
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filters.errors import BadRuleset
from filters.rules.catalogue import RULES
from filters.rules.ruleset import load_ruleset, parse_ruleset

MINIMAL = '[rules.extracted]\nthreshold = "ok"\n'


def rule(name: str, *lines: str) -> str:
    return MINIMAL + "\n".join([f"[rules.{name}]", *lines, ""])


REFUSED = {
    # mistake: (file, message)
    "no TOML": ("[rules.extracted]\nthreshold = x\n", "not TOML: Invalid value (at line 2, "),
    "endless integer": (rule("min_tokens", f"threshold = 1{'0' * 5000}"), "not TOML: "),
    "endless nesting": ("#\nblocks = " + "[" * 60_000, "not TOML: "),
    "endless key": ("a." * 30_000 + "a = 1\n", "a dotted key has more than 32 parts"),
    "endless table": ('[ "a" . ' + "'a' . " * 40 + "a]\n", "a dotted key has more than 32 parts"),
    "endless file": ("#" * 1024 * 1024 + "\n" + MINIMAL, "larger than 1024 KiB"),
    "rule": (rule("min_token", "threshold = 1"), "unknown rule 'min_token'; did you mean 'min_tokens'?"),
    "field of a rule": (rule("min_tokens", "treshold = 1"), "treshold; known: on_unknown, threshold; did you mean"),
    "field": (
        'block = "run"\n' + MINIMAL,
        "field block; known: blocks, description, fluent, kinds, models, otherwise, reads, rules, scores; did",
    ),
    "rule beside rules": (MINIMAL + "[min_tokens]\nthreshold = 1\n", "unknown field min_tokens; known: "),
    "blocks": ('blocks = "runs"\n' + MINIMAL, "blocks: Invalid enum value 'runs'"),
    "reads": ("reads = ['c4']\n" + MINIMAL, "reads: Expected `str`, got `array`"),
    "description": ("description = 3\n" + MINIMAL, "description: Expected `str`, got `int`"),
    "policy": (rule("min_tokens", 'on_unknown = "dropp"'), "rule min_tokens: on_unknown: Invalid enum value 'dropp'"),
    "text for number": (
        rule("min_tokens", 'threshold = "200"'),
        'threshold is "200", not a whole number from 0 to 1,000',
    ),
    "truth for number": (rule("min_tokens", "threshold = true"), "threshold is true, not a whole number"),
    "date for number": (rule("min_tokens", "threshold = 1999-01-01"), "threshold is 1999-01-01, not a whole"),
    "NaN": (rule("link_code_share", "threshold = nan"), "threshold is NaN, not a number from 0 to 1"),
    "share above 1": (rule("link_code_share", "threshold = 20"), "threshold is 20, not a number from 0 to 1"),
    "negative count": (rule("gopher_min_words", "threshold = -1"), "threshold is -1, not a whole number from 0"),
    "more stop words than there are": (rule("gopher_min_stop_words", "threshold = 9"), "a whole number from 0 to 8"),
    "unknown text": (
        rule("gopher_max_words", 'text = "title"'),
        "Invalid enum value 'title'; known: main, c4, nopunc,",
    ),
    "text of an article rule": (rule("min_tokens", "threshold = 9", 'text = "own"'), "unknown field text"),
    "huge count": (rule("min_tokens", f"threshold = 1{'0' * 400}"), "…, not a whole number from 0"),
    "nothing between": (
        rule("gopher_max_words", "threshold = 50", "[rules.gopher_min_words]", "threshold = 51"),
        "no page can pass both gopher_min_words and gopher_max_words",
    ),
    "nothing between families": (
        rule("gopher_min_median_word_chars", "threshold = 4")
        + "[rules.dolma_max_median_word_chars]\nthreshold = 3.5\n",
        "no page can pass both gopher_min_median_word_chars and dolma_max_median_word_chars",
    ),
    "text for list": (rule("language", 'threshold = "en"'), 'threshold is "en", not a list of texts'),
    "no language": (rule("language", "threshold = []"), "threshold is [], not a list of texts that is not empty"),
    "languages": (
        rule("language", 'threshold = ["en", "German", "EN", "jp"]'),
        'has ["EN", "German", "jp"], not among',
    ),
    "likely beyond 1": (rule("language", "min_probability = 90"), "min_probability: Expected `float` <= 1.0"),
    "no block_chars": (rule("large_block_share", "threshold = 0.7"), "rule large_block_share: block_chars is missing"),
    "kind without pattern": (
        rule("url_kind", 'threshold = ["tags", "shop"]', "[rules.url_kind.patterns]", 'tag = "x"'),
        "rule url_kind: no pattern for shop, tags",
    ),
    "kind of what is left": (
        rule("url_kind", "threshold = ['other']", "patterns = {tag = 'x', other = 'y'}"),
        "rule url_kind: other is the kind of a URL without a pattern",
    ),
    "bad pattern": (rule("url_kind", 'patterns = {tag = "("}'), "pattern tag cannot be used in RE2: missing ): ("),
    "pattern by number": (rule("url_kind", "patterns = {tag = 1}"), "patterns[...]: Expected `str`, got `int`"),
    "not extracted first": ("[rules.min_tokens]\nthreshold = 1\n", "the first rule has to be [rules.extracted]"),
    "extracted disabled": ("[rules.extracted]\n", "the first rule has to be [rules.extracted] with threshold"),
    "extracted otherwise": ('[rules.extracted]\nthreshold = "no"\n', 'threshold is "no", not "ok"'),
    "rules as number": ("rules = 3\n", "rules: Expected `object`, got `int`"),
    "nothing": ("", "the first rule has to be [rules.extracted]"),
    "lines of Windows": (rule("min_tokens", "threshold = -3").replace("\n", "\r\n"), "threshold is -3, not"),
}


@pytest.mark.parametrize("wrong", REFUSED)
def test_mistakes_are_named_with_file_and_setting(wrong: str) -> None:
    """A misspelt name, a wrong type or an impossible value is refused; the message names file and setting."""
    text, message = REFUSED[wrong]
    with pytest.raises(BadRuleset) as refused:
        parse_ruleset(text, "mine", "mine.toml")
    said = str(refused.value)
    assert said.startswith("mine.toml: ")
    assert message in said
    assert "\n" not in said


def test_every_bad_rule_is_named_up_to_twenty() -> None:
    """The message has a line for each bad rule, in the order of the rules."""
    text = (
        MINIMAL + "[rules.min_tokns]\nthreshold = 200\n[rules.link_code_share]\nthreshold = 20\n"
        "[rules.language]\nblock_chars = 3\n[rules.min_tokens]\nthreshold = 1\n"
    )
    with pytest.raises(BadRuleset) as refused:
        parse_ruleset(text, "mine", "mine.toml")
    starts = ("unknown rule 'min_tokns'; did", "rule link_code_share: threshold is 20", "rule language: unknown field")
    for line, start in zip(str(refused.value).split("\n"), starts, strict=True):
        assert line.startswith(f"mine.toml: {start}")
    with pytest.raises(BadRuleset) as refused:
        parse_ruleset(MINIMAL + "".join(f"[rules.no{number}]\n" for number in range(500)), "mine")
    assert str(refused.value).count("\n") == 19


def test_files_of_other_systems(tmp_path: Path) -> None:
    """A byte order mark is skipped; a missing file, or one that is not UTF-8, gets a message."""
    path = tmp_path / "mine.toml"
    path.write_bytes(b"\xef\xbb\xbf" + MINIMAL.encode())
    ruleset = load_ruleset(path)
    assert (ruleset.name, ruleset.digest) == ("mine", parse_ruleset(MINIMAL, "other").digest)
    path.write_text(MINIMAL, encoding="utf-16")
    with pytest.raises(BadRuleset, match=r"mine\.toml: the ruleset is not UTF-8 \(byte 1\): save it as UTF-8$"):
        load_ruleset(path)
    with pytest.raises(BadRuleset, match=r"zero: larger than 1024 KiB$"):
        load_ruleset("/dev/zero")
    path.write_text("##" + "é" * 1024 * 1024, encoding="utf-8")  # the limit falls within a character
    with pytest.raises(BadRuleset, match=r"mine\.toml: larger than 1024 KiB$"):
        load_ruleset(path)
    with pytest.raises(BadRuleset, match=r"no\.toml: the ruleset cannot be read: No such file or directory$"):
        load_ruleset(tmp_path / "no.toml")


def test_one_measure_may_be_bounded_to_one_value() -> None:
    """Two bounds that meet, or two bounds on one side, leave a range and are accepted."""
    meeting = "[rules.gopher_max_words]\nthreshold = 50\n[rules.gopher_min_words]\nthreshold = 50\n"
    beside = "[rules.dolma_max_median_word_chars]\nthreshold = 9\n[rules.gopher_max_median_word_chars]\nthreshold = 8\n"
    assert parse_ruleset(MINIMAL + meeting + beside, "mine").in_force == 5


OTHERS = {"extracted", "no_page", "page_kind", "url_kind", "segment_words", "segment_language", "segment_repetition"}
NAMES = sorted(set(RULES) - OTHERS)


@given(st.lists(st.sampled_from(NAMES), unique_by=lambda name: RULES[name].of, max_size=8), st.data())
def test_any_ruleset_is_read_as_it_is_written(names: list[str], data: st.DataObject) -> None:
    """Rules, order, thresholds and fields are read unchanged."""
    tables: dict[str, dict[str, object]] = {"extracted": {"threshold": "ok"}}
    for name in names:
        kind, table = RULES[name], tables.setdefault(name, {})
        of_type: dict[type, list[Any]] = {list: [["en"], ["fr", "de"]], date: ["2022-11-30"]}
        possible = of_type.get(kind.threshold, [kind.low, kind.high])
        if data.draw(st.booleans()):
            table["threshold"] = data.draw(st.sampled_from(possible))
        if "block_chars" in kind.fields:
            table["block_chars"] = data.draw(st.integers(1, 500))
        table["on_unknown"] = data.draw(st.sampled_from(["pass", "drop"]))
    lines = []
    for name, table in tables.items():
        lines += [f"[rules.{name}]", *(f"{key} = {value!r}" for key, value in table.items())]
    ruleset = parse_ruleset("\n".join(lines), "mine")
    assert [rule.name for rule in ruleset.rules] == list(tables)
    for rule, table in zip(ruleset.rules, tables.values(), strict=True):
        assert rule.threshold == table.get("threshold")
        assert rule.drop_unknown == (table.get("on_unknown") == "drop")
        assert rule.block_chars == table.get("block_chars", 0)


@given(st.text(max_size=60))
def test_any_text_is_a_ruleset_or_refused(text: str) -> None:
    """Any file content gives a ruleset or BadRuleset."""
    for source in (text, MINIMAL + text, f"{MINIMAL}[rules.min_tokens]\nthreshold = {text}"):
        with contextlib.suppress(BadRuleset):
            assert parse_ruleset(source, "mine").rules[0].name == "extracted"


LITERALS = ["0x" + "F" * 9000, "nan", "[" * 150 + "]" * 150, "{a = 1}", "true", "07:32:00", '"\\u001b"', "'\u202e'"]
PLACES = [
    "description = {0}\n" + MINIMAL,
    "scores = {0}\n" + MINIMAL,
    "rules = {0}\n",
    "rules.extracted = {0}\n",
    "rules.extracted.threshold = {0}\n",
    MINIMAL + "[rules.min_tokens]\nthreshold = {0}\non_unknown = {0}\n",
    MINIMAL + "[rules.language]\nthreshold = [{0}]\nmin_probability = {0}\n",
    MINIMAL + "[rules.large_block_share]\nthreshold = [{0}]\nblock_chars = {0}\n",
    MINIMAL + "[rules.url_kind]\nthreshold = {0}\npatterns = {0}\n",
    MINIMAL + "[rules.url_kind]\nthreshold = [{0}]\npatterns = {{x = {0}}}\n",
    MINIMAL + "[rules." + "x" * 5000 + "]\nthreshold = {0}\n",
]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("literal", LITERALS)
def test_any_value_anywhere_is_answered(place: str, literal: str) -> None:
    """Endless numbers, deep lists, times and control characters give a ruleset or a printable message."""
    try:
        parse_ruleset(place.format(literal), "mine")
    except BadRuleset as error:
        lines = str(error).split("\n")
        assert all(line.startswith("mine") and line.isprintable() and len(line) < 400 for line in lines)
