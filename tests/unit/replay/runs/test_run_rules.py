"""A run with the ruleset that it began with."""

from __future__ import annotations

from pathlib import Path

import msgspec

from filters.articles.model import shipped_model
from filters.rules.ruleset import load_ruleset
from replay.runs.run_rules import RunRules
from stream.schema.runs import Run

TEXT = """[rules.extracted]
threshold = "ok"
[rules.article_probability]
threshold = 0.5
model = "mine.json"
"""


def test_a_run_keeps_the_article_model_that_it_began_with(tmp_path: Path) -> None:
    """The model lies beside the ruleset; the run goes on under its numbers when the file is another one, or gone."""
    model = msgspec.structs.replace(shipped_model(), card='odd "card" \x7f\U0001f600', bias=(1.0,) * 7)
    (tmp_path / "mine.json").write_bytes(msgspec.json.encode(model))
    (tmp_path / "mine.toml").write_text(TEXT)
    began = load_ruleset(tmp_path / "mine.toml")
    (tmp_path / "mine.json").unlink()
    run = Run(name="mine", ruleset="mine", digest=began.digest, detector="", epoch="")
    found = RunRules(run, began.stored).ruleset
    assert (found.digest, found.models, found.source) == (began.digest, (model,), TEXT)
    assert found.stored == began.stored
