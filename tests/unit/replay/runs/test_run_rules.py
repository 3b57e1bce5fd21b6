"""A run with the ruleset that it began with."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from filters.articles.model import shipped_model
from filters.errors import BadRuleset
from filters.rules.ruleset import parse_ruleset
from replay.runs.run_rules import RunRules
from stream.schema.runs import Run


def test_a_run_does_not_go_on_under_an_article_model_that_has_changed(tmp_path: Path) -> None:
    """Its ruleset names a file; with other numbers there the run's rules do not load, with the old ones they do."""
    file, model = tmp_path / "mine.json", shipped_model()
    mine = msgspec.structs.replace(model, bias=tuple(logit + 1 for logit in model.bias))
    file.write_bytes(msgspec.json.encode(mine))
    text = f'[rules.extracted]\nthreshold = "ok"\n[rules.article_probability]\nthreshold = 0.5\nmodel = "{file}"\n'
    began = parse_ruleset(text, "mine")
    run = Run(name="mine", ruleset="mine", digest=began.digest, detector="", epoch="")
    assert RunRules(run, text).ruleset.digest == began.digest
    file.write_bytes(msgspec.json.encode(msgspec.structs.replace(mine, bias=tuple(logit - 1 for logit in model.bias))))
    with pytest.raises(BadRuleset, match="the file of its article model has changed"):
        _ = RunRules(run, text).ruleset
