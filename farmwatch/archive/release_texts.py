"""README.md and CITATION.cff of a bundle."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from farmwatch.config.config import Config
from farmwatch.share.words import text_of
from farmwatch.terminal.messages import program_version
from replay.live.epoch_change import seams
from scoring.rates.split_rates import RateLine
from stream.schema.records import SiteState
from stream.schema.runs import Run
from stream.text.wording import moment

_README = """\
# A measurement by farmwatch {version}, {day}

Share of LLM sites: {text}

{sites:,} sites that search engines returned were measured under ruleset {ruleset} `{digest}` and detector
`{detector}`.{seams}

| file | content |
|---|---|
| `rate.json` | the share, as `farmwatch rate --json` without what only the crawl knows |
| `rates.jsonl` | the share as it was over time |
| `sites.jsonl` | a row per site: verdict and evidence; sites that end in `.canary.invalid` are pages of known truth |
{labels}| `settings.json` | the settings of the share, and the time of this bundle |
| `scores.jsonl` | the score of each article that a row counts, by the digest of its text |
| `verdicts.jsonl` | the ruleset's verdict on each page, once for each feature epoch{missing} |
| `ruleset.toml` | the ruleset |
| `versions.json` | farmwatch, libraries, ruleset, detector, feature epoch, site method |
| `SHA256SUMS` | checksums: `sha256sum -c SHA256SUMS` |

Columns are described in farmwatch's `docs/reference/formats.md`. Times are milliseconds since 1970, UTC. Texts are
named by the xxh3-128 of their UTF-8; the bundle holds none.

## Compute it again

With farmwatch {version}:

```sh
farmwatch audit .                                  # rate.json again
farmwatch estimate{confidence} sites.jsonl         # the share by flags{alone}
farmwatch tally scores.jsonl | farmwatch estimate{confidence}
```

The first line reads {files}. The last one leaves out sites without a scored article,
which are not part of the share. The site verdicts are those of `sites.jsonl`: TALLY reads a text that is on several
pages once.
"""

_LABELS = "| `labels.jsonl` | the labels of the review, by fetch id and site; forgotten hosts have no name |\n"


def readme(rate: RateLine, run: Run, sites: Sequence[SiteState], config: Config, now_ms: int, missing_ms: int) -> str:
    """README.md. `missing_ms`: retention has removed verdicts before this time; 0 = none."""
    level, review = config.rate.confidence, config.rate.review
    return _README.format(
        version=program_version(),
        day=_day(now_ms),
        text=text_of(rate.remarks),
        sites=len(sites),
        ruleset=run.ruleset,
        digest=run.digest,
        detector=run.detector,
        seams="".join(f" {seam[0].upper()}{seam[1:]}." for seam in seams(run)),
        missing=f"; those from before {moment(missing_ms)} were no longer kept" if missing_ms else "",
        labels=_LABELS if review else "",
        files=f"`sites.jsonl`, {'`labels.jsonl` ' if review else ''}and `settings.json`",
        alone=" alone" if review else "",
        confidence="" if level == 0.95 else f" --confidence {level}",
    )


_CITATION = """\
cff-version: 1.2.0
message: "If you use these data, cite them with the date and the digests in versions.json."
type: dataset
title: "Share of sites written by language models among sites that search engines return, {day}"
abstract: {abstract}
authors:
  - name: "Name of the people who measured"
date-released: "{day}"
references:
  - type: software
    title: farmwatch
    version: "{version}"
    authors:
      - name: "The farmwatch developers"
"""


def citation(rate: RateLine, now_ms: int) -> str:
    """CITATION.cff with authors to be filled in."""
    abstract = msgspec.json.encode(text_of(rate.remarks)).decode()
    return _CITATION.format(day=_day(now_ms), abstract=abstract, version=program_version())


def _day(now_ms: int) -> str:
    return datetime.fromtimestamp(now_ms / 1000, UTC).strftime("%Y-%m-%d")
