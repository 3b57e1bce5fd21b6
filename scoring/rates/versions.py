"""Which sites may be counted together: those of one run, ruleset, detector and site method.

The verdicts of others mean different things. A site without a page so far has no ruleset yet, and counts with any one
and with any site method. A row from before methods had digests matches no digest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from scoring.errors import PooledDetectors
from stream.schema.records import SiteState
from stream.schema.vocabulary import SiteClass


class Versions(NamedTuple):
    """The values that must be equal for sites to be counted together."""

    run: str
    ruleset: str
    digest: str  # of the ruleset
    detector: str  # identity
    site_method: str
    site_method_digest: str  # "" = older rows


def versions_of(row: SiteState) -> Versions:
    """The versions of a row; without a site method if no page of the site was judged."""
    method = (row.method, row.method_digest) if has_verdict(row) else ("", "")
    return Versions(row.run, row.ruleset, row.digest, row.detector, *method)


def refuse_pooled(rows: Iterable[SiteState]) -> None:
    """Raise PooledDetectors, naming both, for rows of two detectors, rulesets, site methods or runs."""
    seen: dict[str, str] = {}
    for run, ruleset, digest, detector, method, method_digest in dict.fromkeys(map(versions_of, rows)):
        names = {"detector": detector, "ruleset": f"{ruleset} {digest}".strip(), "run": run}
        names["site method"] = f"{method} {method_digest}".strip()
        refuse_another({what: name for what, name in names.items() if name}, seen)


def refuse_another(names: Mapping[str, str], seen: dict[str, str]) -> None:
    """Raise PooledDetectors, naming both, if a detector and so on has another name than in `seen`; else add it."""
    for what, name in names.items():
        if seen.setdefault(what, name) != name:
            one, other = (each or f"a {what} that is not named" for each in sorted((seen[what], name)))
            raise PooledDetectors(f"sites of two {what}s cannot be counted together: {one} and {other}")


def has_verdict(row: SiteState) -> bool:
    """Whether any page of the site was judged; otherwise ruleset and site method had no part in the row."""
    return bool(row.ruleset) or row.verdict != SiteClass.UNCLASSIFIABLE


def comparable(rows: Sequence[SiteState], run: str = "") -> Iterator[tuple[Versions, list[SiteState]]]:
    """Rows that may be counted together; without rows there is one set of versions, of `run`.

    A site without a judged page counts with each of its detector.
    """
    of_versions: dict[Versions, list[SiteState]] = {}
    for row in rows:
        of_versions.setdefault(versions_of(row), []).append(row)
    judged = {versions for versions in of_versions if versions.ruleset}
    for versions in sorted(judged or set(of_versions) or {Versions(run, "", "", "", "", "")}):
        unjudged = Versions(versions.run, "", "", versions.detector, "", "")
        extra = of_versions.get(unjudged, []) if versions in judged else []
        yield versions, [*of_versions.get(versions, []), *extra]
