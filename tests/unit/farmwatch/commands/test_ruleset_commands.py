"""`farmwatch rulesets`: list, show, check and diff."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from filters.articles.model import load_model
from filters.model_file import digest_of
from filters.perplexity.model_file import encode
from filters.rules.ruleset import load_ruleset, parse_ruleset, shipped_rulesets
from stream.text.user_errors import Exit
from tests.support.front_door import Runner
from tests.support.paths import ROOT
from tests.support.small_ngrams import BIGRAMS, TRIGRAMS, WORDS, tables_of

EXTRACTED = '[rules.extracted]\nthreshold = "ok"\n'
MINE = EXTRACTED + "\n[rules.min_tokens]\nthreshold = 100\n"


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(MINE)
    return path


def test_list_names_every_shipped_ruleset(farmwatch: Runner) -> None:
    """One line per ruleset: name, digest, active rules, description; the same as JSON."""
    ran = farmwatch("rulesets", "list")
    rows = [line.split("\t") for line in ran.out.splitlines()]
    rulesets = [load_ruleset(name) for name in shipped_rulesets()]
    assert (ran.code, ran.err) == (Exit.OK, f"{len(rulesets)} rulesets\n")
    assert rows[0] == ["name", "digest", "rules_in_force", "segments", "description"]
    kinds = {"whole-web": "article, post, teaser"}
    assert rows[1:] == [[r.name, r.digest, str(r.in_force), kinds.get(r.name, ""), r.description] for r in rulesets]
    assert [list(map(str, row.values())) for row in farmwatch("rulesets", "list", "--json").lines] == rows[1:]


@pytest.mark.parametrize("name", shipped_rulesets())
def test_what_show_prints_is_the_ruleset(farmwatch: Runner, name: str) -> None:
    """The printed TOML, saved as a file, is valid and has the digest of its first line."""
    assert farmwatch("rulesets", "check", ROOT / "filters" / "rulesets" / f"{name}.toml").code == Exit.OK
    ran = farmwatch("rulesets", "show", name)
    digest = load_ruleset(name).digest
    assert (ran.code, ran.out.splitlines()[0]) == (Exit.OK, f"# ruleset {name}, digest {digest}")
    assert parse_ruleset(ran.out, "saved").digest == digest


def test_show_as_json_has_everything(farmwatch: Runner) -> None:
    """JSON has the fields of the ruleset, and each rule with operator, threshold, policy, own fields and measure."""
    shown = json.loads(farmwatch("rulesets", "show", "c4", "--json").out)
    assert (shown["name"], shown["reads"], shown["scores"], shown["blocks"]) == ("c4", "main", "c4", "paragraph")
    assert shown["digest"] == load_ruleset("c4").digest
    last = shown["rules"][-1]
    assert {key: last[key] for key in ("name", "op", "threshold", "on_unknown")} == {
        "name": "c4_min_sentences",
        "op": ">=",
        "threshold": 5,
        "on_unknown": "drop",
    }
    assert "sentences" in last["doc"]
    rules = {rule["name"]: rule for rule in json.loads(farmwatch("rulesets", "show", "default", "--json").out)["rules"]}
    assert rules["large_block_share"]["block_chars"] == 200
    assert list(rules["url_kind"]["patterns"])[:5] == ["search", "paging", "tag", "category", "index"]
    assert rules["article_probability"]["model"] == load_model("articles").digest
    assert rules["language"]["threshold"] == ["en"]


def test_an_unknown_ruleset_is_a_usage_error(farmwatch: Runner) -> None:
    """For an unknown ruleset, stderr has the nearest name."""
    for command in (("show", "gohper"), ("diff", "notes", "gohper"), ("check", "gohper")):
        ran = farmwatch("rulesets", *command)
        assert (ran.code, ran.out) == (Exit.USAGE, "")
        assert "did you mean 'gopher'?" in ran.err


def test_every_bad_file_is_named_with_its_mistake(farmwatch: Runner, mine: Path, tmp_path: Path) -> None:
    """Exit code 2, and one line with file and mistake for each bad file; good files are listed as ok."""
    bad: dict[str, tuple[bytes, str]] = {
        "misspelt.toml": (f"{EXTRACTED}[rules.min_token]\n".encode(), ": unknown rule 'min_token'"),
        "share.toml": (f"{EXTRACTED}[rules.link_code_share]\nthreshold = 20\n".encode(), ": rule link_code_share: "),
        "broken.toml": (b"[rules.extracted\n", ": not TOML"),
        "binary.toml": (b"\xff\xfe\x00", ": the ruleset is not UTF-8"),
    }
    for name, (content, _) in bad.items():
        (tmp_path / name).write_bytes(content)
    missing = tmp_path / "missing.toml"
    ran = farmwatch("rulesets", "check", *(tmp_path / name for name in bad), mine, missing)
    assert ran.code == Exit.USAGE
    assert ran.out == f"{mine}: ok, 2 rules in force, digest {parse_ruleset(MINE, 'mine').digest}\n"
    said = ran.err.splitlines()
    assert len(said) == len(bad) + 1
    for line, (name, (_, beginning)) in zip(said, bad.items(), strict=False):
        assert line.startswith(f"{tmp_path / name}{beginning}")
    assert said[0].endswith("did you mean 'min_tokens'?")
    assert said[-1].startswith(f"{missing}: the ruleset cannot be read: ")


def test_rules_that_decide_nothing_are_named(farmwatch: Runner, mine: Path) -> None:
    """Rules without a threshold are one line after "ok", and thresholds that every page passes another; no warning."""
    mine.write_text(MINE + "\n[rules.template_share]\n[rules.longest_block]\n[rules.link_code_share]\nthreshold = 1\n")
    ran = farmwatch("rulesets", "check", mine)
    assert (ran.code, ran.err) == (Exit.OK, "")
    assert ran.out.splitlines()[1:] == [
        "2 rules are disabled (no threshold): template_share, longest_block",
        "1 rule is passed by every page: link_code_share",
    ]
    assert farmwatch("rulesets", "check", mine, "--json").err == ""
    mine.write_text(EXTRACTED + '[rules.link_code_share]\nthreshold = 1\non_unknown = "drop"\n')
    assert "passed by every page" not in farmwatch("rulesets", "check", mine).out


def test_check_as_json_is_one_list(farmwatch: Runner, mine: Path, tmp_path: Path) -> None:
    """JSON has each file with its digest and its rules without effect, or its mistakes, with the same exit code."""
    bad = tmp_path / "bad.toml"
    bad.write_text(EXTRACTED + "[rules.min_token]\n[rules.link_code_share]\nthreshold = 20\n")
    ran = farmwatch("rulesets", "check", mine, bad, "--json")
    good, wrong = json.loads(ran.out)
    assert ran.code == Exit.USAGE
    assert good == {
        "file": str(mine),
        "ok": True,
        "name": "mine",
        "digest": parse_ruleset(MINE, "mine").digest,
        "rules_in_force": 2,
        "disabled": [],
        "always_passed": [],
    }
    assert (wrong["ok"], wrong["errors"]) == (False, ran.err.splitlines())
    unknown, share = wrong["errors"]
    assert unknown.startswith(f"{bad}: unknown rule 'min_token'")
    assert share.startswith(f"{bad}: rule link_code_share: threshold is 20")


def test_diff_of_equal_rulesets_is_exit_0(farmwatch: Runner, mine: Path) -> None:
    """Another name and other comments are no difference, and one line reports that."""
    mine.write_text("# changed nothing\n" + load_ruleset("notes").source)
    ran = farmwatch("rulesets", "diff", "notes", mine)
    assert (ran.code, ran.err) == (Exit.OK, "")
    assert ran.out == f"notes and {mine} are equal in meaning: digest {load_ruleset('notes').digest}\n"
    assert json.loads(farmwatch("rulesets", "diff", "notes", mine, "--json").out)["equal"] is True


def test_diff_lists_what_is_decided_otherwise(farmwatch: Runner, mine: Path) -> None:
    """Exit code 1 and one row per difference; thresholds are shown as the condition that passes."""
    changed = load_ruleset("notes").source.replace('blocks = "paragraph"', 'scores = "c4"')
    changed = changed.replace("threshold = 200\n", "threshold = 100\n").replace("threshold = 250", "threshold = 150")
    mine.write_text(changed + "\n[rules.template_share]\nthreshold = 0.9\n[rules.simhash_distance]\n")
    ran = farmwatch("rulesets", "diff", "notes", mine)
    assert (ran.code, ran.err) == (Exit.PROBLEM, "")
    assert [line.split("\t") for line in ran.out.splitlines()] == [
        ["rule", "field", "notes", str(mine)],
        ["(ruleset)", "scores", "main", "c4"],
        ["min_tokens", "threshold", ">= 200", ">= 100"],
        ["longest_block", "threshold", "> 250", "> 150"],
        ["template_share", "rule", "-", "<= 0.9"],
        ["simhash_distance", "rule", "-", "disabled"],
    ]
    found = json.loads(farmwatch("rulesets", "diff", "notes", mine, "--json").out)
    assert (found["equal"], found["a"]["name"], found["b"]["name"]) == (False, "notes", "mine")
    assert found["differences"][1] == {"rule": "min_tokens", "field": "threshold", "a": 200, "b": 100}
    assert found["differences"][3]["b"] == {"threshold": 0.9, "on_unknown": "pass"}


def test_the_rules_for_segments_are_shown_checked_and_compared(farmwatch: Runner, mine: Path) -> None:
    """The table `otherwise` has its rules and kinds in show, its idle rules in check, its differences in diff."""
    shown = farmwatch("rulesets", "show", "whole-web", "--json").json
    assert (shown["scores"], shown["otherwise"]["scores"]) == ("main", "segments")
    assert shown["otherwise"]["kinds"] == "article, post, teaser"
    assert [rule["name"] for rule in shown["otherwise"]["rules"]][2:4] == ["segment_words", "segment_language"]
    assert farmwatch("rulesets", "show", "default", "--json").json["otherwise"] is None
    changed = load_ruleset("whole-web").source.replace(', "teaser"]', "]").replace("= 0.15", "= 1")
    mine.write_text(f"{changed}\n[otherwise.rules.link_code_share]\n")
    said = farmwatch("rulesets", "check", mine).out
    assert "passed by every page: otherwise.segment_repetition\n" in said and ", otherwise.link_code_share\n" in said
    rows = [line.split("\t") for line in farmwatch("rulesets", "diff", "whole-web", mine).out.splitlines()[1:]]
    assert rows == [
        ["otherwise", "kinds", "article, post, teaser", "article, post"],
        ["otherwise.segment_repetition", "threshold", "<= 0.15", "<= 1"],
        ["otherwise.link_code_share", "rule", "-", "disabled"],
    ]
    rows = [line.split("\t") for line in farmwatch("rulesets", "diff", "default", "whole-web").out.splitlines()[1:]]
    assert ["otherwise", "scores", "-", "segments"] in rows
    assert ["otherwise.segment_words", "rule", "-", ">= 150"] in rows


def test_nothing_of_a_file_steers_the_terminal(farmwatch: Runner, mine: Path) -> None:
    """Escapes in names and values of a file are printed as text, in errors and tables."""
    mine.write_text(EXTRACTED + '[rules."\\u001b[2J"]\n')
    assert "\x1b" not in farmwatch("rulesets", "check", mine).err
    mine.write_text(EXTRACTED + '[rules.url_kind]\n[rules.url_kind.patterns]\n"\\u001b[2J" = "\\u001b[2J["\n')
    assert "\x1b" not in farmwatch("rulesets", "check", mine).err
    mine.write_text(EXTRACTED + '[rules.url_kind]\n[rules.url_kind.patterns]\n"\\u001b[2J" = "\\u001b"\n')
    assert "\x1b" not in farmwatch("rulesets", "diff", "notes", mine).out


def test_a_replay_without_its_ngram_model_is_refused(farmwatch: Runner, finished: str, tmp_path: Path) -> None:
    """A run that scores by a model begins and goes on only where its file is; the danger is said at its begin."""
    data = encode(tables_of(WORDS, BIGRAMS, TRIGRAMS))
    model, ruleset = tmp_path / f"{digest_of(data)}.ngrams", tmp_path / "mine.toml"
    model.write_bytes(data)
    text = f'scores = "fluent"\n[fluent]\nmodel = "{model.name}"\n[rules.extracted]\nthreshold = "ok"\n'
    ruleset.write_text(text, encoding="utf-8")
    begun = farmwatch("replay", "--ruleset", ruleset, "--name", "mine", "--log", finished)
    assert begun.code == Exit.OK and "looks more like a language model's" in begun.err
    model.unlink()
    for words in (["--name", "mine"], ["--name", "other", "--ruleset", ruleset]):
        refused = farmwatch("replay", *words, "--log", finished)
        assert refused.code == Exit.USAGE and f"{model}: the model cannot be read: No such file" in refused.err
