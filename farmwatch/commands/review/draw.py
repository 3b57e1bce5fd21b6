"""The command `review draw`: draws a random sample of sites to label, for a share from labels."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter
from cyclopts.validators import Number

from farmwatch.commands.options import DEFAULTS, AsJson, Common
from farmwatch.config.opening import opened
from farmwatch.labels.review import draw_review
from farmwatch.tables.files import require_new
from farmwatch.terminal.messages import message, put_json
from scoring.estimate.reviewed_share import FEWEST_LABELS
from stream.text.user_errors import Exit, UsageError
from stream.text.wording import counted


def draw(
    *,
    sites: Annotated[int, Parameter(help="Sites to draw.")] = 100,
    pages: Annotated[int, Parameter(help="Articles of each to label: 1 to 20.", validator=Number(gte=1, lte=20))] = 3,
    seed: Annotated[int, Parameter(help="The same seed and sites give the same sample.")] = 0,
    out: Annotated[Path, Parameter(help="File to write the sample to.")] = Path("review.jsonl"),
    run: Annotated[str, Parameter(help="Of this run; default: the one that is live.")] = "",
    json: AsJson = False,
    common: Common = DEFAULTS,
) -> int:
    """Draw sites at random, and articles of each, for people to label.

    Label them with `farmwatch review label`, then name the labels in `rate.review`: for `rate.review_days` the
    share rests on these sites, and holds where a detector flags new models less often than the known ones.

    Each site with a scored article has the same chance. The detector's scores are not shown.
    """
    if sites < FEWEST_LABELS:
        raise UsageError(f"--sites {sites}: a review needs {FEWEST_LABELS} sites or more; 100 are a good start")
    require_new(out)
    config = common.load().config
    with opened(config) as log:
        drawn = draw_review(log, config.rate, sites, pages, int(time.time() * 1000), seed, run)
    lines = drawn.lines
    out.write_bytes(msgspec.json.Encoder().encode_lines(lines))
    sampled = len({line["site"] for line in lines})
    if json:
        put_json({"out": str(out), "articles": len(lines), "sites": sampled, "of": drawn.of})
    message(f"{out}: {counted(len(lines), 'article')} of {counted(sampled, 'site')}, of {drawn.of:,}")
    if sampled < drawn.sites:
        message(f"left out: {counted(drawn.sites - sampled, 'site')} whose articles are no longer in the log")
    labels = out.with_name(f"{out.stem}-labels.jsonl")
    message(f"next: farmwatch review label {out} --out {labels}")
    message(f"then: set rate.review to {labels.absolute()}")
    return Exit.OK
