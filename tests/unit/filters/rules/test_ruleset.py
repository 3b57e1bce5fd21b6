"""Rulesets are validated where they are read, and identified by what they decide."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filters.errors import BadRuleset
from filters.rules.catalogue import RULES
from filters.rules.kinds import RuleKind
from filters.rules.ruleset import load_ruleset, parse_ruleset

MINIMAL = '[rules.extracted]\nthreshold = "ok"\n'


REFUSED = {
    # mistake: (file, message, the nearest right name)
    "no TOML": ("[rules.extracted]\nthreshold = x\n", "not TOML: Invalid value (at line 2, ", ""),
    "no end": ('[rules.extracted]\nthreshold = "ok\n', "not TOML", ""),
    "table twice": (MINIMAL + '[rules.extracted]\nthreshold = "ok"\n', "not TOML: Cannot declare", ""),
    "key twice": (MINIMAL + 'threshold = "ok"\n', "not TOML: Cannot overwrite", ""),
    "endless integer": (
        MINIMAL + f"[rules.min_tokens]\nthreshold = 1{'0' * 5000}\n",
        "not TOML: a number has thousands of digits",
        "",
    ),
    "endless nesting": ("#\nblocks = " + "[" * 60_000, "nested too deep", ""),
    "tables in tables": ("a = " + "{a = " * 33 + "1" + "}" * 33, "nested too deep", ""),
    "endless key": (f"#\n{'a.' * 20_000}a = 1\n", "the parts of a key are nested too deep", ""),
    "endless header": ("[\"a\".'a'" + " . a" * 31 + "]\n", "the parts of a key are nested too deep", ""),
    "endless file": ("#" * 64 * 1024 + "\n" + MINIMAL, "not a ruleset: larger than 64 KiB", ""),
    "kind of what is left": (
        MINIMAL + "[rules.url_kind]\nthreshold = ['other']\npatterns = {tag = 'x', other = 'y'}\n",
        "rule url_kind: pattern 'other': other is the kind of a URL without a pattern",
        "",
    ),
    "array of many lines": (
        MINIMAL + "[rules.url_kind]\nthreshold = [\n" + "'a',\n" * 10_000 + "]\n[rules.min_tokens]\nthreshold = 'a'\n"
        "[rules.url_kind.patterns]\na = 'x'\n",
        'threshold is "a", not a number',
        "",
    ),
    "after all kinds of text": (
        'description = """\n a ]\n\\""" \'\'\' [ # """""\n[rules.extracted] # "{[\'\nthreshold = "ok" # """\n'
        "[rules.url_kind]\nthreshold = [ # ]\n 'a', # '\n ']'\n, \"\\\"[\"]\n[rules.url_kind.patterns]\na = '#\"x'\n"
        "']' = '''[\n]''x'''''\n'\"[' = 'x'\n[rules.min_tokens]\nthreshold = -1\n",
        "threshold is -1, less than 0",
        "",
    ),
    "rule": (MINIMAL + "[rules.min_token]\nthreshold = 1\n", "unknown rule 'min_token'", "min_tokens"),
    "quality rule": (
        MINIMAL + "[rules.gopher_min_word]\nthreshold = 1\n",
        "unknown rule 'gopher_min_word'",
        "gopher_min_words",
    ),
    "rule in capitals": (MINIMAL + "[rules.MIN_TOKENS]\n", "unknown rule 'MIN_TOKENS'", "min_tokens"),
    "field of a rule": (
        MINIMAL + "[rules.min_tokens]\n\ntreshold = 1\n",
        "rule min_tokens: unknown field 'treshold'",
        "threshold",
    ),
    "field of another rule": (MINIMAL + "[rules.min_tokens]\nblock_chars = 1\n", "unknown field 'block_chars'", ""),
    "field": ('block = "run"\n' + MINIMAL, "unknown field 'block'; known: description, blocks", "blocks"),
    "table beside rules": (MINIMAL + "[rule.min_tokens]\nthreshold = 1\n", "unknown field 'rule'", "rules"),
    "blocks": ('blocks = "runs"\n' + MINIMAL, 'blocks is "runs", not one of "paragraph", "run"', "run"),
    "blocks by number": ("blocks = 3\n" + MINIMAL, "blocks is 3, not one of", ""),
    "reads": ('reads = "mian"\n' + MINIMAL, 'reads is "mian", not one of "main", "c4"', "main"),
    "scores": ('#\nscores = "C4"\n' + MINIMAL, 'scores is "C4", not one of', "c4"),
    "scores as list": ('scores = ["c4"]\n' + MINIMAL, 'scores is ["c4"], not one of', "c4"),
    "description": ("description = 3\n" + MINIMAL, "description is 3, not a text", ""),
    "policy": (
        MINIMAL + '[rules.min_tokens]\non_unknown = "dropp"\n',
        'rule min_tokens: on_unknown is "dropp", not one of "pass", "drop"',
        "drop",
    ),
    "policy as truth": (MINIMAL + "[rules.min_tokens]\non_unknown = true\n", "on_unknown is true, not one of", ""),
    "text for number": (
        MINIMAL + '[rules.min_tokens]\nthreshold = "200"\n',
        'threshold is "200", not a number: write 200',
        "",
    ),
    "truth for number": (MINIMAL + "[rules.min_tokens]\nthreshold = true\n", "is true, not a number", ""),
    "list for number": (MINIMAL + "[rules.min_tokens]\nthreshold = [\n 1,\n 2]\n", "is [1, 2], not a number", ""),
    "date for number": (MINIMAL + "[rules.min_tokens]\nthreshold = 1999-01-01\n", "is 1999-01-01, not a number", ""),
    "NaN": (MINIMAL + "[rules.link_code_share]\nthreshold = nan\n", "is nan, not a number", ""),
    "infinity": (MINIMAL + "[rules.min_tokens]\nthreshold = inf\n", "is inf, not a number", ""),
    "share above 1": (
        MINIMAL + "[rules.link_code_share]\nthreshold = 20\n",
        "rule link_code_share: threshold is 20, not from 0 to 1; 20% is 0.2",
        "",
    ),
    "share below 0": (MINIMAL + "[rules.duplicate_share]\nthreshold = -0.1\n", "is -0.1, not from 0 to 1", ""),
    "negative count": (MINIMAL + "[rules.gopher_min_words]\nthreshold = -1\n", "is -1, less than 0", ""),
    "count of a part": (MINIMAL + "[rules.c4_min_sentences]\nthreshold = 4.5\n", "is 4.5, not a whole number", ""),
    "more stop words than there are": (MINIMAL + "[rules.gopher_min_stop_words]\nthreshold = 9\n", "0 to 8", ""),
    "more bits than there are": (
        MINIMAL + "[rules.simhash_distance]\nthreshold = 65\n",
        "is 65, not from 0 to 64",
        "",
    ),
    "huge count": (MINIMAL + f"[rules.min_tokens]\nthreshold = 1{'0' * 400}\n", "…, more than any page has", ""),
    "nothing between": (
        MINIMAL + "[rules.gopher_max_words]\nthreshold = 50\n[rules.gopher_min_words]\nthreshold = 51\n",
        "rule gopher_min_words: threshold is 51, and that of gopher_max_words is 50: no page could pass both",
        "",
    ),
    "nothing between families": (
        MINIMAL + "[rules.gopher_min_median_word_chars]\nthreshold = 4\n"
        "[rules.dolma_max_median_word_chars]\n\nthreshold = 3.5\n",
        "threshold is 3.5, and that of gopher_min_median_word_chars is 4: no page could pass both",
        "",
    ),
    "rules after a table": (
        MINIMAL + "rules.min_tokens.threshold = 4\n",
        "unknown field 'rules'; rules stands above the first table",
        "",
    ),
    "text for list": (
        MINIMAL + '[rules.language]\nthreshold = "en"\n',
        'is "en", not a list of texts: write ["en"]',
        "",
    ),
    "list of numbers": (MINIMAL + "[rules.language]\nthreshold = [1]\n", "is [1], not a list of texts", ""),
    "no language": (MINIMAL + "[rules.language]\nthreshold = []\n", "is an empty list", ""),
    "name of a language": (
        MINIMAL + '[rules.language]\nthreshold = [\n  "en",\n  "German"]\n',
        'threshold has "German", none of the codes in docs/reference/languages.md',
        "",
    ),
    "language in capitals": (
        MINIMAL + '[rules.language]\nthreshold = ["DE"]\n',
        'has "DE", none of the codes',
        "de",
    ),
    "three letters": (MINIMAL + '[rules.language]\nthreshold = ["eng"]\n', 'has "eng", none of the codes', "en"),
    "language and country": (
        MINIMAL + '[rules.language]\nthreshold = ["en-US"]\n',
        'has "en-US", none of the codes',
        "en",
    ),
    "country": (MINIMAL + '[rules.language]\nthreshold = ["jp"]\n', 'has "jp", none of the codes', ""),
    "likely beyond 1": (
        MINIMAL + "[rules.language]\nmin_probability = 90\n",
        "min_probability is 90, not from 0 to 1; 90% is 0.9",
        "",
    ),
    "no block_chars": (MINIMAL + "[rules.large_block_share]\nthreshold = 0.7\n", "block_chars is missing", ""),
    "negative block_chars": (
        MINIMAL + "[rules.large_block_share]\nblock_chars = -1\n",
        "rule large_block_share: block_chars is -1, less than 1",
        "",
    ),
    "kind without pattern": (
        MINIMAL + '[rules.url_kind]\nthreshold = ["tags"]\n[rules.url_kind.patterns]\ntag = "x"\n',
        "kind 'tags' has no pattern",
        "tag",
    ),
    "bad pattern": (
        MINIMAL + '[rules.url_kind]\n[rules.url_kind.patterns]\n\ntag = "("\n',
        "pattern 'tag' cannot be used: missing ): (",
        "",
    ),
    "pattern by number": (
        MINIMAL + "[rules.url_kind]\npatterns = { tag = 1 }\n",
        "pattern 'tag' is 1, not a reg",
        "",
    ),
    "patterns as list": (
        MINIMAL + "[rules.url_kind]\npatterns = []\n",
        "patterns is [], not a table: write {kind = 'pattern'}",
        "",
    ),
    "not extracted first": ("[rules.min_tokens]\nthreshold = 1\n", "the first rule has to be extracted", ""),
    "extracted disabled": ("[rules.extracted]\n", "extracted cannot be disabled", ""),
    "extracted otherwise": ('[rules.extracted]\nthreshold = "no"\n', 'threshold is "no", not "ok"', ""),
    "rules as number": ("rules = 3\n", "rules have to be tables", ""),
    "rule as number": (
        MINIMAL + "[rules]\nmin_tokens = 3\n",
        "rule min_tokens: is 3, not a table: write [rules.min_tokens] and below it threshold = 3",
        "",
    ),
    "nothing": ("", "the first rule has to be extracted", ""),
    "dotted keys": ("rules.extracted.threshold = 'ok'\nrules.min_tokens.threshold = -5\n", "is -5, less than 0", ""),
    "inline tables": (
        "[rules]\nextracted = {threshold = 'ok'}\n\nmin_tokens = {threshold = -5}  # too few\n",
        "rule min_tokens: threshold is -5",
        "",
    ),
    "one inline table": (
        "#\nrules = {extracted = {threshold = 'ok'}, min_token = {}}\n",
        "unknown rule",
        "min_tokens",
    ),
    "quoted keys": (MINIMAL + '[ \'rules\' . "min_tokens" ]\n"thresh\\u006Fld" = -5\n', "threshold is -5", ""),
    "text that looks like a table": (
        'description = """\n[rules.min_tokens]\nthreshold = 3\n"""\n'
        + MINIMAL
        + "[rules.min_tokens]\nthreshold = -3\n",
        "threshold is -3",
        "",
    ),
    "date and time": (MINIMAL + "[rules.min_tokens]\nthreshold = 1999-01-01T10:00:00\n", "is 1999-01-01T10", ""),
    "number in a list": (MINIMAL + "[rules.min_tokens]\nthreshold = [200]\n", "not a number: write 200", ""),
    "share as text": (MINIMAL + "[rules.link_code_share]\nthreshold = '.2'\n", "not a number: write 0.2", ""),
    "impossible text": (MINIMAL + "[rules.link_code_share]\nthreshold = '-2'\n", 'is "-2", not a number', ""),
    "truth in a list": (MINIMAL + "[rules.min_tokens]\nthreshold = [true]\n", "is [true], not a number", ""),
    "endless hexadecimal": (
        MINIMAL + f"[rules.min_tokens]\nthreshold = 0x{'F' * 9000}\n",
        "…, more than any page has",
        "",
    ),
    "table for number": (
        MINIMAL + "[rules.min_tokens]\nthreshold = {a = [[[[1]]]], 'b c' = \"\\u001b\"}\n",
        'is {a = [[…]], "b c" = "\\u001b"}, not a number',
        "",
    ),
    "fewer than none": (MINIMAL + "[rules.dolma_max_repetitions]\nthreshold = 0\n", "is 0, less than 1", ""),
    "no characters": (MINIMAL + "[rules.large_block_share]\nblock_chars = 0\n", "block_chars is 0, less than 1", ""),
    "rule beside rules": (
        MINIMAL + "[min_tokens]\nthreshold = 1\n",
        "unknown field 'min_tokens'; a rule stands below rules: write [rules.min_tokens]",
        "",
    ),
    "all rules beside rules": ('[extracted]\nthreshold = "ok"\n', "write [rules.extracted]", ""),
    "field in a rule": (MINIMAL + 'blocks = "run"\n', "unknown field 'blocks'; blocks stands above the first", ""),
    "misspelt extracted": ('[rules.extrcted]\nthreshold = "ok"\n', "unknown rule 'extrcted'", "extracted"),
    "kind on its own line": (
        MINIMAL + "[rules.url_kind]\nthreshold = [\n 'tag',\n 'shop', # sells\n]\npatterns = {tag = 'x'}\n",
        "kind 'shop' has no pattern",
        "",
    ),
    "lines of Windows": (MINIMAL.replace("\n", "\r\n") + "[rules.min_tokens]\r\nthreshold = -3\r\n", "is -3", ""),
}


@pytest.mark.parametrize("wrong", REFUSED)
def test_mistakes_are_named_with_file_and_setting(wrong: str) -> None:
    """A misspelt name, a wrong type or an impossible value is refused; the message says where, and the near name."""
    text, message, near = REFUSED[wrong]
    with pytest.raises(BadRuleset) as refused:
        parse_ruleset(text, "mine", "mine.toml")
    said = str(refused.value)
    assert said.startswith("mine.toml: ")
    assert message in said
    assert said.partition("; did you mean ")[2] == (f"{near!r}?" if near else "")
    assert "\n" not in said


def test_all_mistakes_are_told_at_once() -> None:
    """The message has a line for each mistake, in the order of the rules; no line for a consequence of another."""
    text = (
        'blocks = "runs"\n[rules.extracted]\nthreshold = "ok"\n[rules.min_tokns]\nthreshold = 200\n'
        '[rules.link_code_share]\nthreshold = 20\non_unknown = "keep"\n'
        '[rules.language]\nthreshold = [\n  "en",\n  "english",\n  "EN",\n]\nblock_chars = 3\n'
        "[rules.url_kind]\nthreshold = ['shop']\n[rules.large_block_share]\n"
    )
    with pytest.raises(BadRuleset) as refused:
        parse_ruleset(text, "mine", "mine.toml")
    assert str(refused.value).split("\n") == [
        'mine.toml: blocks is "runs", not one of "paragraph", "run"; did you mean \'run\'?',
        "mine.toml: unknown rule 'min_tokns'; did you mean 'min_tokens'?",
        "mine.toml: rule link_code_share: threshold is 20, not from 0 to 1; 20% is 0.2",
        'mine.toml: rule link_code_share: on_unknown is "keep", not one of "pass", "drop"',
        "mine.toml: rule language: unknown field 'block_chars'; known: threshold, on_unknown, min_probability",
        'mine.toml: rule language: threshold has "english", none of the codes in docs/reference/languages.md; '
        "did you mean 'en'?",
        'mine.toml: rule language: threshold has "EN", none of the codes in docs/reference/languages.md; '
        "did you mean 'en'?",
        "mine.toml: rule url_kind: kind 'shop' has no pattern",
        "mine.toml: rule large_block_share: block_chars is missing",
    ]


def test_of_many_mistakes_the_first_are_told() -> None:
    """A file that is no ruleset at all is not answered with a screen for each of its lines."""
    with pytest.raises(BadRuleset) as refused:
        parse_ruleset(MINIMAL + "".join(f"[rules.no{number}]\n" for number in range(500)), "mine")
    said = str(refused.value).split("\n")
    assert (len(said), said[0], said[-1]) == (21, "mine: unknown rule 'no0'", "mine: and 480 more")


def test_files_of_other_systems(tmp_path: Path) -> None:
    """A byte-order mark is no part of the text; what is not UTF-8, or no file, is told in words."""
    path = tmp_path / "mine.toml"
    path.write_bytes(b"\xef\xbb\xbf" + MINIMAL.encode() + b"[rules.min_token]\n")
    with pytest.raises(BadRuleset, match=r"mine\.toml: unknown rule"):
        load_ruleset(path)
    path.write_bytes(b"\xef\xbb\xbf" + MINIMAL.encode())
    assert load_ruleset(path).digest == parse_ruleset(MINIMAL, "mine").digest
    path.write_text(MINIMAL, encoding="utf-16")
    with pytest.raises(BadRuleset, match=r"mine\.toml: the ruleset is not UTF-8, from its byte 1 on: save it so$"):
        load_ruleset(path)
    path.write_bytes(MINIMAL.encode().replace(b"\n", b"\r\n") + b"\r\n" * 40_000)
    with pytest.raises(BadRuleset, match=r"mine\.toml: not a ruleset: larger than 64 KiB$"):
        load_ruleset(path)
    with pytest.raises(BadRuleset, match=r"zero: not a ruleset: larger than 64 KiB$"):
        load_ruleset("/dev/zero")
    with pytest.raises(BadRuleset, match=r"no\.toml: the ruleset cannot be read: No such file or directory$"):
        load_ruleset(tmp_path / "no.toml")


def test_one_measure_may_be_bounded_to_one_value() -> None:
    """Bounds from both sides that meet, and two from one side, leave something between: they are no mistake."""
    meeting = "[rules.gopher_max_words]\nthreshold = 50\n[rules.gopher_min_words]\nthreshold = 50\n"
    beside = "[rules.dolma_max_median_word_chars]\nthreshold = 9\n[rules.gopher_max_median_word_chars]\nthreshold = 8\n"
    assert parse_ruleset(MINIMAL + meeting + beside, "mine").in_force == 5


def test_unknown_name_lists_the_shipped_ones() -> None:
    """A misspelt name is answered with the nearest; a missing file with its path."""
    with pytest.raises(BadRuleset, match=r"'defualt' is not shipped; known: .*; did you mean 'default'"):
        load_ruleset("defualt")
    with pytest.raises(BadRuleset, match=r"/no/such\.toml"):
        load_ruleset("/no/such.toml")


def test_ruleset_from_a_file_has_the_files_name(tmp_path: Path) -> None:
    """A path loads any ruleset; its name is the file's."""
    path = tmp_path / "mine.toml"
    path.write_text(MINIMAL)
    ruleset = load_ruleset(path)
    assert (ruleset.name, [rule.name for rule in ruleset.rules]) == ("mine", ["extracted"])


def test_digest_is_of_what_decides() -> None:
    """Comments, name, description and 1 for 1.0 leave the digest; threshold, order, policy and blocks change it."""
    rules = "[rules.min_tokens]\nthreshold = 1\n[rules.language]\nthreshold = ['en']\n"
    base = parse_ruleset(MINIMAL + rules, "a").digest
    assert parse_ruleset("# c\ndescription = 'x'\n" + MINIMAL + rules.replace("= 1", "=  1.0"), "b").digest == base
    swapped = "[rules.language]\nthreshold = ['en']\n[rules.min_tokens]\nthreshold = 1\n"
    for other in (
        MINIMAL + rules.replace("= 1", "= 2"),
        MINIMAL + swapped,
        MINIMAL + rules.replace("= 1\n", "= 1\non_unknown = 'drop'\n"),
        "blocks = 'run'\n" + MINIMAL + rules,
        MINIMAL,
    ):
        assert parse_ruleset(other, "a").digest != base


def written(value: object) -> str:
    """A value as TOML has it."""
    return str(value).lower() if isinstance(value, bool) else repr(value)


def possible(kind: RuleKind) -> st.SearchStrategy[object]:
    """Thresholds of a rule."""
    if kind.threshold is list:
        return st.lists(st.sampled_from(["en", "de", "fr"]), min_size=1, unique=True)
    return st.integers(int(kind.low), int(kind.high)) if kind.whole else st.floats(kind.low, kind.high)


@st.composite
def any_rules(draw: st.DrawFn) -> dict[str, dict[str, object]]:
    """Known rules in any order with thresholds that are possible; of one measure only one side is bounded."""
    names = draw(st.lists(st.sampled_from(sorted(set(RULES) - {"extracted", "url_kind"})), unique=True, max_size=8))
    tables: dict[str, dict[str, object]] = {"extracted": {"threshold": "ok"}}
    bounded = set()
    for name in names:
        kind = RULES[name]
        table: dict[str, object] = {}
        if kind.of not in bounded and draw(st.booleans()):
            bounded.add(kind.of)
            table["threshold"] = draw(possible(kind))
        if "block_chars" in kind.fields:
            table["block_chars"] = draw(st.integers(1, 500))
        if draw(st.booleans()):
            table["on_unknown"] = draw(st.sampled_from(["pass", "drop"]))
        tables[name] = table
    return tables


def tabled(tables: Mapping[str, Mapping[str, object]], space: str = "") -> str:
    """A ruleset's text with a table a rule; `space` stands after every statement."""
    lines = []
    for name, table in tables.items():
        lines += [f"[rules.{name}]{space}", *(f"{key} = {written(value)}{space}" for key, value in table.items())]
    return "\n".join(lines)


def inline(tables: Mapping[str, Mapping[str, object]]) -> str:
    """The same in dotted keys with inline tables."""
    rows = (", ".join(f"{key} = {written(value)}" for key, value in table.items()) for table in tables.values())
    return "\n".join(f"rules.{name} = {{{row}}}" for name, row in zip(tables, rows, strict=True))


@given(any_rules(), st.sampled_from(["  # why", "\n\n# a line", "\t"]))
def test_any_ruleset_is_read_as_it_is_written(tables: dict[str, dict[str, object]], space: str) -> None:
    """Rules, order, thresholds and fields come out as they went in; comments, space and inline tables say the same."""
    ruleset = parse_ruleset(tabled(tables), "mine")
    assert [rule.name for rule in ruleset.rules] == list(tables)
    for rule, table in zip(ruleset.rules, tables.values(), strict=True):
        assert rule.threshold == table.get("threshold")
        assert rule.drop_unknown == (table.get("on_unknown") == "drop")
        assert rule.block_chars == table.get("block_chars", 0)
    for text in (tabled(tables, space), inline(tables), "description = 'x'\n" + tabled(tables)):
        again = parse_ruleset(text, "other")
        assert (again.rules, again.digest) == (ruleset.rules, ruleset.digest)


@given(any_rules(), st.data())
def test_any_other_threshold_is_another_digest(tables: dict[str, dict[str, object]], data: st.DataObject) -> None:
    """One threshold more, less or otherwise changes the digest, and so does one rule less."""
    base = parse_ruleset(tabled(tables), "mine").digest
    names = [name for name in tables if RULES[name].threshold is float and tables[name].get("threshold") != 1]
    if not names:
        return
    name = data.draw(st.sampled_from(names))
    fewer = {key: table for key, table in tables.items() if key != name}
    without = tables | {name: {key: value for key, value in tables[name].items() if key != "threshold"}}
    rounded = tables | {name: tables[name] | {"threshold": 1}}
    others = [fewer, without] if "threshold" in tables[name] else [fewer]
    if sum(RULES[other].of == RULES[name].of for other in tables) == 1:
        others.append(rounded)
    for other in others:
        assert parse_ruleset(tabled(other), "mine").digest != base


@given(any_rules(), st.data(), st.sampled_from([tabled, inline]))
def test_any_impossible_value_is_named_with_its_rule(
    tables: dict[str, dict[str, object]], data: st.DataObject, write: Callable[..., str]
) -> None:
    """Wherever in a ruleset one value is negative, the message names the file, the rule and the value."""
    numbered = [name for name in tables if RULES[name].threshold is float]
    if not numbered:
        return
    name = data.draw(st.sampled_from(numbered))
    text = write(tables | {name: {**tables[name], "threshold": -987654}})
    with pytest.raises(BadRuleset, match=rf"^mine: rule {name}: threshold is -987654"):
        parse_ruleset(text, "mine")


@given(st.text(max_size=60))
def test_any_text_is_a_ruleset_or_refused(text: str) -> None:
    """Whatever a file holds, reading it ends in a ruleset or in BadRuleset."""
    for source in (text, MINIMAL + text, f"{MINIMAL}[rules.min_tokens]\nthreshold = {text}"):
        with contextlib.suppress(BadRuleset):
            assert parse_ruleset(source, "mine").rules[0].name == "extracted"


LITERALS = [
    "0x" + "F" * 9000,
    "-1e400",
    "nan",
    "[" * 150 + "]" * 150,
    "{a = 1}",
    "true",
    "07:32:00",
    '"\\u001b"',
    "'\u202e'",
]
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
    """Endless numbers, deep lists, times and characters that steer a terminal end in a ruleset or a plain message."""
    try:
        parse_ruleset(place.format(literal), "mine")
    except BadRuleset as error:
        lines = str(error).split("\n")
        assert all(line.startswith("mine") and line.isprintable() and len(line) < 400 for line in lines)
