"""Forms of the lines of pipes, known by their keys: a line of another stage is answered with the command to run."""

from __future__ import annotations

import msgspec

_FORMS = {  # what a command reads -> a line of it, the keys that no other form has all of, the command that writes it
    "labelled texts": ("a labelled text", {"label"}, ""),
    "pages": ("a page", {"url", "html"}, ""),
    "features": ("features", {"url", "measures"}, "measure"),
    "verdicts": ("a page verdict", {"verdict", "rules"}, "judge"),
    "articles": ("an article", {"id", "text"}, "judge --articles"),
    "scores": ("a score", {"flag", "abstain"}, "score"),
    "site verdicts": ("a site verdict", {"verdict", "pages_used"}, "tally"),
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
    """The form of a line of another stage, and the one that `command` reads; "" where the form is not known."""
    try:
        names = _names.decode(line).keys()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
    wanted = READS.get(command, "")  # other commands read what no pipe carries
    found, noun = next(((form, noun) for form, (noun, keys, _) in _FORMS.items() if keys <= names), (wanted, ""))
    if found == wanted or not wanted:
        return ""
    made_by = _FORMS[wanted][2]
    how = f", which `{made_by}` makes" if made_by else ""
    return f"this is {noun}; `{command}` reads {wanted}{how}"
