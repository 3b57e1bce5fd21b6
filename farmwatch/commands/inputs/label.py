"""The command `label`: a person labels the pages of a sample, with one key per page."""

from __future__ import annotations

import getpass
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from shlex import quote
from typing import Annotated

from cyclopts import Parameter

from farmwatch.commands.options import AsJson
from farmwatch.labels.judgements import ANSWERS, LabelSample, SamplePage
from farmwatch.labels.labels_file import LabelsFile
from farmwatch.labels.screen import layout
from farmwatch.labels.session import SKIP, UNDO, Session
from farmwatch.labels.terminal import CLOSED, REDRAW, SEVERAL, SignalReceived, Terminal, end_by, key_terminal
from farmwatch.terminal.jsonl import STDIN, binary_input
from farmwatch.terminal.messages import message, put, put_json, put_table
from scoring.estimate.rate import estimate
from stream.log.contract import wall_ms
from stream.text.user_errors import Exit, UsageError
from stream.text.wording import counted, one_line

_QUIT = "q"
_LONGEST_NAME = 64


def label(
    sample: Annotated[Path, Parameter(help="JSON lines, as `farmwatch compare` writes a sample of flips.")],
    /,
    *,
    out: Annotated[Path, Parameter(help="Labels file to add to.")] = Path("labels.jsonl"),
    operator: Annotated[str, Parameter(help="Who labels. Default: the login name.")] = "",
    show_verdicts: Annotated[
        bool, Parameter(help="Show the verdicts of the runs; they bias the labels.", negative="")
    ] = False,
    answers: Annotated[Path | None, Parameter(help="Take the keys from this file; `-` is stdin.")] = None,
    json: AsJson = False,
) -> int:
    """Label the pages of a sample, one key a page, without their verdicts.

    a: an article. n: not an article. l: an article written by a language model. h: an article written by a human.
    s: skip. u: undo. Space: more of the text. q: quit; the same command resumes later with the pages that have no
    label.

    Each answer is written to the labels file before the next page is shown; the last line of a page counts. `farmwatch
    rulesets evaluate` and `farmwatch calibrate` read that file. Keys may come from a pipe; white space is ignored.
    """
    if str(sample) in STDIN and (answers is None or str(answers) in STDIN):
        raise UsageError("the sample and the keys cannot both come from stdin: name a file for one of them")
    if sample.exists() and out.exists() and sample.samefile(out):
        raise UsageError(f"--out {out}: that is the sample; name another file")
    operator = _operator(operator)
    pages = LabelSample(sample)
    with closing(LabelsFile(out)) as labels:
        session = Session(pages.pages, labels, operator, wall_ms)
        leftover, signalled = _ask(session, answers, f"{sample.name} > {out}", show_verdicts=show_verdicts)
        if json:
            counts = {"pages": len(session.pages), "labelled": session.labelled, "answers": session.counts()}
            put_json({"labels": str(out), **counts, "changes": [change._asdict() for change in session.changes()]})
        else:
            _put_summary(session, out, changes=show_verdicts or session.labelled == len(session.pages))
    if signalled:
        _end(signalled)
    if leftover:
        message(f"{leftover}: the keys are not those of this sample?")
    return Exit.PROBLEM if leftover else pages.exit


def _ask(session: Session, answers: Path | None, title: str, *, show_verdicts: bool) -> tuple[str, int]:
    """Ask for answers until there are no more. Returns why the keys do not fit the pages, and the ending signal."""
    if answers is not None or not sys.stdin.isatty():
        return _from_keys(session, answers), 0
    screen = next((stream for stream in (sys.stdout, sys.stderr) if stream.isatty()), None)
    if screen is None:
        raise UsageError("there is no terminal to show the pages on: do not redirect both stdout and stderr")
    try:
        with key_terminal(screen.fileno()) as terminal:
            _at(terminal, session, title, show_verdicts=show_verdicts)
    except SignalReceived as ended:
        return "", ended.number
    return "", 0


def _at(terminal: Terminal, session: Session, title: str, *, show_verdicts: bool) -> None:
    """Ask at a terminal until the person quits."""
    top, note = 0, ""
    while True:
        size = terminal.size()
        number, of = session.number, len(session.pages)
        page = None if number is None else session.pages[number]
        seen = f"page {number + 1:,} of {of:,}, " if number is not None else f"{counted(of, 'page')}, "
        shown = layout(
            page,
            f"{seen}{session.labelled:,} labelled   {title}",
            columns=size.columns,
            rows=size.lines,
            top=top,
            note=note,
            verdicts=show_verdicts,
        )
        terminal.draw(shown.lines)
        key, note = terminal.key(), ""
        top = min(top, shown.last)
        if key in (_QUIT, "\x04", CLOSED):
            return
        if key in ANSWERS or key in (SKIP, UNDO):
            top, note = 0, session.press(key)
        elif key == SEVERAL:
            note = "several keys at once: none was taken"
        elif key in _MOVES:
            top = min(max(0, top + _MOVES[key](shown.step)), shown.last)
        elif key != REDRAW:
            note = f"{key!r} is no key here"


_MOVES: dict[str, Callable[[int], int]] = {
    " ": lambda step: step,
    "page down": lambda step: step,
    "b": lambda step: -step,
    "page up": lambda step: -step,
    "down": lambda _: 1,
    "\n": lambda _: 1,
    "up": lambda _: -1,
    "home": lambda _: -(10**9),
    "end": lambda _: 10**9,
}


def _from_keys(session: Session, answers: Path | None) -> str:
    """Press the keys of a file. Returns "", or the keys without a page. Raises UsageError for an unknown key."""
    for place, key in _keys(answers):
        if key == _QUIT:
            break
        if key not in ANSWERS and key not in (SKIP, UNDO):
            raise UsageError(
                f"{place}: {one_line(key)!r} is no key; there are {' '.join(ANSWERS)}, {SKIP}, {UNDO} and {_QUIT}."
                " What was answered before it stands"
            )
        if why := session.press(key):
            return f"{place}: {key}: {why}"
    return ""


def _keys(answers: Path | None) -> Iterator[tuple[str, str]]:
    with binary_input(answers or Path("-")) as stream:
        for number, line in enumerate(stream, 1):
            for key in line.decode("latin-1").lower():
                if not key.isspace():
                    yield f"{answers or 'stdin'}: line {number}", key


def _operator(name: str) -> str:
    """The name of the operator, by default the login name. Raises UsageError for a name that cannot be stored."""
    if not name:
        try:
            return getpass.getuser()
        except (OSError, KeyError, ImportError):  # an account without a name, as in some containers
            return ""
    if len(name) > _LONGEST_NAME or not name.isprintable():
        raise UsageError(f"--operator: up to {_LONGEST_NAME} characters that print")
    return name


def _put_summary(session: Session, out: Path, *, changes: bool) -> None:
    """The progress; with `changes` also the results of the runs, which would bias later labels."""
    of, labelled = len(session.pages), session.labelled
    left = "" if labelled == of else f"; {of - labelled} left: the same command resumes"
    put(f"{labelled} of {counted(of, 'page')} labelled in {one_line(out)}{left}")
    if labelled:
        put_table(("answer", "pages"), list(session.counts().items()))
    if labelled == of:
        for step in _next(session.pages[0], out):
            put(one_line(f"next: farmwatch {step}"))
    shares = [(change, estimate(change.articles, change.pages, None)) for change in session.changes() if changes]
    if not shares:
        return
    rows = (
        (change.what, f"{change.articles} of {change.pages}", f"{share.rate:.0%} ({share.low:.0%}-{share.high:.0%})")
        for change, share in shares
    )
    put_table(("judged pages that are", "articles", "share of this sample, not of all flips (95% interval)"), rows)


def _next(page: SamplePage, out: Path) -> Iterator[str]:
    """The next commands: evaluate both rulesets of the sample on these labels."""
    log = f"--log {quote(page.log) if page.log else 'LOG'}"
    if not page.ruleset_a:  # a sample of `farmwatch review`
        yield f"rate --set rate.review={quote(str(out))}"
        return
    named = dict(zip((page.ruleset_a, page.ruleset_b), (page.run_a, page.run_b), strict=True))
    for ruleset, run in named.items():
        if ruleset.endswith(".toml"):
            yield f"runs show {quote(run)} --ruleset-text {log} > {quote(ruleset)}"
    rulesets = "".join(f" {quote(ruleset)}" for ruleset in named if ruleset)
    yield f"rulesets evaluate{rulesets} --labels {quote(str(out))} {log}"


def _end(number: int) -> None:
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    sys.stdout.flush()
    end_by(number)
