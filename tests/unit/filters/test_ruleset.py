"""Rulesets are validated where they are read, and identified by what they decide."""

from __future__ import annotations

from pathlib import Path

import pytest

from filters.errors import BadRuleset
from filters.ruleset import load_ruleset, parse_ruleset, shipped_rulesets

MINIMAL = '[rules.extracted]\nthreshold = "ok"\n'


def test_two_rulesets_are_shipped() -> None:
    """`notes` and `default` have the same rules and thresholds and differ in the definition of a block."""
    assert shipped_rulesets() == ["default", "notes"]
    notes, default = load_ruleset("notes"), load_ruleset("default")
    assert notes.rules == default.rules
    assert (notes.blocks, default.blocks) == ("paragraph", "run")
    assert notes.digest != default.digest
    assert notes.description and default.description


def test_thresholds_of_the_notes() -> None:
    """The shipped numbers are those of the users' notes."""
    assert {rule.name: (rule.threshold, rule.block_chars) for rule in load_ruleset("notes").rules[:-1]} == {
        "extracted": ("ok", 0),
        "min_tokens": (200, 0),
        "link_code_share": (0.2, 0),
        "longest_block": (250, 0),
        "large_block_share": (0.75, 200),
        "list_table_share": (0.2, 100),
        "duplicate_share": (0.5, 0),
        "language": (["en"], 0),
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[rules.extracted]\nthreshold = x\n", r"mine.toml: not TOML: .*line 2"),
        (MINIMAL + "[rules.min_token]\nthreshold = 1\n", r"mine.toml:3: unknown rule 'min_token'; .*mean 'min_tokens'"),
        (
            MINIMAL + "[rules.min_tokens]\n\ntreshold = 1\n",
            r"toml:5: rule min_tokens: unknown field 'treshold'; .*'threshold'",
        ),
        (MINIMAL + "[rules.min_tokens]\nblock_chars = 1\n", r"toml:4: rule min_tokens: unknown field 'block_chars'"),
        ('block = "run"\n' + MINIMAL, r"toml:1: unknown field 'block'; .*did you mean 'blocks'"),
        ('blocks = "lines"\n' + MINIMAL, r"toml:1: blocks is 'lines', not one of paragraph, run"),
        (
            MINIMAL + '[rules.min_tokens]\nthreshold = "200"\n',
            r"toml:4: rule min_tokens: threshold is '200', not a number",
        ),
        (MINIMAL + "[rules.min_tokens]\nthreshold = true\n", r"toml:4: .*not a number"),
        (MINIMAL + '[rules.language]\nthreshold = "en"\n', r"toml:4: .*not a list of texts"),
        (MINIMAL + '[rules.min_tokens]\non_unknown = "keep"\n', r"toml:4: .*not pass or drop"),
        (MINIMAL + "[rules.large_block_share]\nthreshold = 0.7\n", r"toml:3: .*block_chars is missing"),
        (MINIMAL + "[rules.large_block_share]\nblock_chars = -1\n", r"toml:4: .*not a number >= 0"),
        (
            MINIMAL + '[rules.url_kind]\nthreshold = ["tags"]\n[rules.url_kind.patterns]\ntag = "x"\n',
            r"toml:4: .*'tags' has no pattern.*'tag'",
        ),
        (
            MINIMAL + '[rules.url_kind]\n[rules.url_kind.patterns]\ntag = "("\n',
            r"toml:5: pattern 'tag' is no regular expression",
        ),
        ("[rules.min_tokens]\nthreshold = 1\n", r"the first rule has to be extracted"),
        ('[rules.extracted]\nthreshold = "no"\n', r'toml:2: .*not "ok"'),
        ("rules = 3\n", r"toml:1: rules have to be tables"),
        ("", r"the first rule has to be extracted"),
    ],
)
def test_mistakes_are_named_with_their_line(text: str, message: str) -> None:
    """A misspelt rule or field, or a value of the wrong kind, is an error at load that says where and what is right."""
    with pytest.raises(BadRuleset, match=message):
        parse_ruleset(text, "mine", "mine.toml")


def test_unknown_name_lists_the_shipped_ones() -> None:
    """A misspelt name is answered with the nearest; a missing file with its path."""
    with pytest.raises(BadRuleset, match="'defualt' is not shipped; known: default, notes; did you mean 'default'"):
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
