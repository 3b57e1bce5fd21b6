"""What a site's row must say, by the verdicts and scores that the log has of the site."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from stream.records import SiteState, Verdict

Flags = Mapping[tuple[str, str, str], bool | None]  # (site, text digest, detector) -> flag, None = abstained


class _Counts(NamedTuple):
    """What a row says that can be counted in the log, in the fields' names."""

    digest: str
    pages: int
    articles: int
    scored: int
    abstained: int
    flagged: int


def contradiction(row: SiteState, verdicts: Sequence[Verdict], flags: Flags) -> str:
    """Where the row says something else than the site's verdicts and scores; "" = nowhere.

    Exact, by the rules of the tally. A page's newest fetch counts, and of one fetch the verdict that was written last.
    Only pages whose verdict is of the ruleset that spoke last of the site count. `scored`, `abstained` and `flagged`
    count articles, not texts: articles of one text all have that text's score, and one score record accounts for them.
    Of the scores only those of the detector that the row names count, and of one text the score that was written last.
    """
    newest: dict[str, Verdict] = {}
    for verdict in verdicts:
        known = newest.get(verdict.page_id)
        if known is None or (verdict.fetched_at, verdict.id) >= (known.fetched_at, known.id):
            newest[verdict.page_id] = verdict
    digest = verdicts[-1].digest if verdicts else ""
    pages = [verdict for verdict in newest.values() if verdict.digest == digest]
    keys = [(row.site, page.text_digest, row.detector) for page in pages if page.verdict == "article"]
    found = [flags[key] for key in keys if key in flags]
    abstained = found.count(None)
    log = _Counts(digest, len(pages), len(keys), len(found) - abstained, abstained, found.count(True))
    said = _Counts(row.digest, row.pages, row.articles, row.scored, row.abstained, row.flagged)
    differing = zip(_Counts._fields, said, log, strict=True)
    return "; ".join(f"row says {name} {a}, the log says {b}" for name, a, b in differing if a != b)
