"""A page to label, as the lines of a screen. Text of the page has no control characters here."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from farmwatch.labels.judgements import SamplePage
from stream.text.wording import one_line

TEXT_CAP_CHARACTERS = 200_000  # of a page's text that is shown
KEYS = (
    "a article",
    "n not an article",
    "l article by a language model",
    "h article by a human",
    "s skip",
    "u undo",
    "space more",
    "b back",
    "q quit",
)


@dataclass(frozen=True, slots=True)
class Layout:
    """The lines of a screen. `step` is a screenful of text in lines, `last` the last top line."""

    lines: list[str]
    step: int
    last: int


def layout(
    page: SamplePage | None,
    title: str,
    *,
    columns: int,
    rows: int,
    top: int = 0,
    note: str = "",
    verdicts: bool = False,
) -> Layout:
    """A page with its text from line `top` on, or a message that all pages were seen."""
    head = [_cut(title, columns)]
    text = ["", *_wrapped("No page of the sample is left. q ends, u goes back to the last page.", columns)]
    if page is not None:
        head.append(_cut(page.url, columns))
        head += [_cut(line, columns) for line in _verdicts(page)] if verdicts else []
        text = _text(page.text, page.text_cut, columns)
    foot = _keys(columns)
    step = max(1, rows - len(head) - len(foot) - 2)
    last = max(0, len(text) - step)
    top = min(max(0, top), last)
    shown = [_cut(line, columns) for line in text[top : top + step]]
    where = note or (f"lines {top + 1:,} to {top + len(shown):,} of {len(text):,}" if last else "")
    lines = [*head, _rule(columns), *shown, *[""] * (step - len(shown)), _rule(columns, where), *foot]
    return Layout(lines[:rows], max(1, step - 1), last)


def plain(text: str) -> str:
    """A page's text without control characters, with its paragraphs, so that it cannot control the terminal."""
    kept = text[:TEXT_CAP_CHARACTERS].replace("\r\n", "\n").expandtabs(4)
    return "\n".join(one_line(line).rstrip() for line in kept.split("\n")).strip("\n")


@lru_cache(maxsize=2)  # one page is drawn repeatedly
def _text(text: str | None, cut: int, columns: int) -> list[str]:
    if text is None:
        return _wrapped("(its text is in the log no longer: skip it, or judge by the page itself)", columns)
    if not text.strip():
        return ["(the page has no main text)"]
    lines = _wrapped(plain(text), columns)
    rest = max(0, len(text) - TEXT_CAP_CHARACTERS) + cut
    return [*lines, f"... and {rest:,} characters more, not shown"] if rest > 0 else lines


def _wrapped(text: str, columns: int) -> list[str]:
    wrapped = Text(text, overflow="fold").wrap(Console(width=columns), columns)
    return [line.plain.rstrip() for line in wrapped]


def _verdicts(page: SamplePage) -> list[str]:
    runs = ((page.run_a, page.verdict_a, page.failed_a), (page.run_b, page.verdict_b, page.failed_b))
    return [
        f"{run}: {verdict}{', fails ' + ', '.join(rule.name for rule in failed) if failed else ''}"
        for run, verdict, failed in runs
    ]


def _keys(columns: int) -> list[str]:
    lines = [""]
    for name in KEYS:
        joined = f"{lines[-1]}   {name}" if lines[-1] else name
        lines[-1:] = [joined] if len(joined) <= columns else [lines[-1], name]
    return [line[:columns] for line in lines]


def _rule(columns: int, said: str = "") -> str:
    line = _cut(f"-- {said} " if said else "", columns)
    return line + "-" * (columns - cell_len(line))


def _cut(line: str, columns: int) -> str:
    line = one_line(line)
    return line if cell_len(line) <= columns else set_cell_size(line, columns - 1) + ">"
