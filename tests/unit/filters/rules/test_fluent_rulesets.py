"""Rulesets that score a text without its unlikely sentences: the text, the digest, the model's file."""

from __future__ import annotations

from pathlib import Path

import pytest
import xxhash

from filters.errors import BadRuleset
from filters.perplexity.fluent import fluent_text
from filters.perplexity.model import shipped_model
from filters.perplexity.model_file import encode
from filters.rules.judgement import judge_and_text
from filters.rules.ruleset import load_ruleset, parse_ruleset, without_paths
from tests.support.pages.numbered_pages import page_features
from tests.support.small_ngrams import BIGRAMS, TRIGRAMS, WORDS, model_of, tables_of

RULES = '[rules.extracted]\nthreshold = "ok"\n'
NOISE = "Zxqv kwrt 77 plumbago vvv."
TEXT = f"The river rose over night.\n{NOISE}\nIt was a very good day for us."


def of_table(table: str = "") -> str:
    return f'scores = "fluent"\n[fluent]\n{table}\n{RULES}'


def written(folder: Path) -> str:
    """The name of a small model's file in a folder."""
    data, model = encode(tables_of(WORDS, BIGRAMS, TRIGRAMS)), model_of(WORDS, BIGRAMS, TRIGRAMS)
    name = f"{model.digest}.ngrams"
    (folder / name).write_bytes(data)
    return name


def test_unlikely_sentences_are_not_scored() -> None:
    """The text and its digest are those without them; the stored main text and the measures stay."""
    features = page_features(TEXT, xxhash.xxh3_128_hexdigest(TEXT.encode()), tokens=20)
    verdict, text = judge_and_text(features, parse_ruleset(of_table(), "mine"))
    assert text == "The river rose over night.\nIt was a very good day for us."
    assert text == fluent_text(TEXT, shipped_model(), 40_000)
    assert verdict.text_digest == xxhash.xxh3_128_hexdigest(text.encode()) != features.text_digest


def test_the_digest_has_limit_and_model(tmp_path: Path) -> None:
    """Both change what is scored; who may read it changes nothing, nor does the name of the model that ships."""
    name = written(tmp_path)
    tables = (
        "",
        "limit = 7000",
        "limit = 7000.001",
        f'model = "{name}"',
        "allow_perplexity = true",
        'model = "english"',
    )
    digests = [parse_ruleset(of_table(table), "mine", folder=tmp_path).digest for table in tables]
    assert len({*digests, parse_ruleset(RULES, "mine").digest}) == 5
    assert digests[0] == digests[4] == digests[5]


def test_a_run_finds_the_model_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stored text has the path of the model beside the ruleset's file. What is published has
    no path. Without the file it is refused in words."""
    name = written(tmp_path)
    (tmp_path / "mine.toml").write_text(of_table(f'model = "{name}"'), encoding="utf-8")
    monkeypatch.chdir(tmp_path.parent)
    begun = load_ruleset(tmp_path / "mine.toml")
    again = parse_ruleset(begun.stored, "mine")
    assert (again.digest, again.stored, again.source) == (begun.digest, begun.stored, begun.source)
    assert without_paths(begun.stored) == begun.source
    (tmp_path / name).rename(tmp_path / "moved.ngrams")
    with pytest.raises(BadRuleset, match=rf"run r: fluent: .*{name}: the model cannot be read: No such file"):
        parse_ruleset(begun.stored, "mine", "run r")


def test_a_model_behind_a_link(tmp_path: Path) -> None:
    """The link has the name of the digest, and is what a run keeps; one that leads to itself is refused in words."""
    name, loop = written(tmp_path), f"{0:016x}.ngrams"
    (tmp_path / name).rename(tmp_path / "data")
    for link, target in ((name, "data"), (loop, loop)):
        (tmp_path / link).symlink_to(target)
    assert str(tmp_path / name) in parse_ruleset(of_table(f'model = "{name}"'), "mine", folder=tmp_path).stored
    with pytest.raises(BadRuleset, match=r"fluent: .*the model cannot be read: Too many levels"):
        parse_ruleset(of_table(f'model = "{loop}"'), "mine", folder=tmp_path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (of_table("limit = 1"), "fluent: limit: Expected `float` > 1.0"),
        (of_table("limits = 9000"), "fluent: unknown field limits; known: allow_perplexity, limit, model; did you"),
        (
            of_table('model = "french"'),
            "fluent: n-gram model '.*french': take english, or a file with the name of its digest",
        ),
        (f"[fluent]\n{RULES}", 'the table fluent needs scores = "fluent"'),
        (f'reads = "fluent"\n{RULES}', "reads: fluent is not read by rules; known: main, c4"),
        (f'{RULES}[otherwise]\nscores = "fluent"\n[otherwise.fluent]\n', "unknown field fluent"),
    ],
)
def test_mistakes_are_named(text: str, said: str) -> None:
    """What is wrong with the table, in one line."""
    with pytest.raises(BadRuleset, match=said):
        parse_ruleset(text, "mine")
