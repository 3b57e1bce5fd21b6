"""What the lines of a pipe are, told by the names in them: a line of another stage is answered with the one to run."""

from __future__ import annotations

from typing import NamedTuple

import msgspec


class _Form(NamedTuple):
    """A line of some stage: what it is called, the names that no other form has all of, and what prints it."""

    noun: str
    names: frozenset[str]
    made_by: str = ""


_FORMS = {
    "labelled texts": _Form("a labelled text", frozenset({"label"})),
    "pages": _Form("a page", frozenset({"url", "html"})),
    "features": _Form("features", frozenset({"url", "measures"}), "measure"),
    "verdicts": _Form("a page verdict", frozenset({"verdict", "rules"}), "judge"),
    "articles": _Form("an article", frozenset({"id", "text"}), "judge --articles"),
    "scores": _Form("a score", frozenset({"flag", "abstain"}), "score"),
    "site verdicts": _Form("a site verdict", frozenset({"verdict", "pages_used"}), "tally"),
}
READS = {
    "measure": "pages",
    "judge": "features",
    "score": "articles",
    "tally": "scores",
    "estimate": "site verdicts",
    "calibrate": "labelled texts",
}
"""Command -> form of the lines that it reads."""

_names = msgspec.json.Decoder(dict[str, msgspec.Raw])


def of_another_stage(line: bytes, command: str) -> str:
    """What a line of another stage is, and what makes the lines that `command` reads; "" where that cannot be told."""
    try:
        names = _names.decode(line).keys()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
    found = next((form for form, known in _FORMS.items() if known.names <= names), None)
    wanted = READS.get(command, "")  # other commands read what no pipe carries
    if found is None or not wanted or found == wanted:
        return ""
    made_by = _FORMS[wanted].made_by
    how = f", which `{made_by}` makes" if made_by else ""
    return f"this is {_FORMS[found].noun}; `{command}` reads {wanted}{how}"
