"""The command `label`: a person labels the pages of a sample, each by a key and Enter."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from shlex import quote
from typing import Annotated

from cyclopts import Parameter

from farmwatch.commands.options import AsJson
from farmwatch.labels.judgements import ANSWERS, LONGEST_NAME, LabelSample, SamplePage
from farmwatch.labels.labels_file import LabelsFile
from farmwatch.labels.session import SKIP, UNDO, Session
from farmwatch.terminal.jsonl import STDIN, binary_input
from farmwatch.terminal.messages import message, put, put_json, put_table
from scoring.estimate.intervals import Z95, wilson
from stream.log.contract import wall_ms
from stream.text.user_errors import Exit, UsageError
from stream.text.wording import counted, one_line

_QUIT = "q"
_KEYS = (*ANSWERS, SKIP, UNDO, _QUIT)
_NO_KEY = f"{{!r}} is no key; there are {' '.join(_KEYS)}"


def label(
    sample: Annotated[Path, Parameter(help="JSON lines, as `farmwatch compare` writes a sample of flips.")],
    /,
    *,
    out: Annotated[Path, Parameter(help="Labels file to add to.")] = Path("labels.jsonl"),
    operator: Annotated[str, Parameter(help="Who labels. Default: the login name.")] = "",
    answers: Annotated[Path | None, Parameter(help="Take the keys from this file; `-` is stdin.")] = None,
    json: AsJson = False,
) -> int:
    """Label the pages of a sample, each by a key and Enter, without their verdicts.

    a: an article. n: not an article. l: an article written by a language model. h: an article written by a human.
    s: skip. u: undo. q: quit; the same command resumes later with the pages that have no label.

    Each answer is written to the labels file before the next page is shown; the last line of a page and
    operator counts. Another --operator labels the same pages anew. `farmwatch rulesets evaluate` and `farmwatch lab
    calibrate` read that file. Keys may come from a pipe; white space is ignored.
    """
    if str(sample) in STDIN and (answers is None or str(answers) in STDIN):
        raise UsageError("the sample and the keys cannot both come from stdin: name a file for one of them")
    if sample.exists() and out.exists() and sample.samefile(out):
        raise UsageError(f"--out {out}: that is the sample; name another file")
    operator = _operator(operator)
    pages = LabelSample(sample)
    with closing(LabelsFile(out)) as labels:
        session = Session(pages.pages, labels, operator, wall_ms)
        leftover = _press(session, _asked(session) if answers is None and sys.stdin.isatty() else _read(answers))
        if json:
            counts = {"pages": len(session.pages), "labelled": session.labelled, "answers": session.counts()}
            put_json({"labels": str(out), **counts, "changes": [change._asdict() for change in session.changes()]})
        else:
            _put_summary(session, out, changes=session.labelled == len(session.pages))
    if leftover:
        message(f"{leftover}: the keys are not those of this sample?")
    return Exit.PROBLEM if leftover else pages.exit


def _press(session: Session, keys: Iterable[tuple[str, str]]) -> str:
    """Press keys until `q`. Returns "", or the key without a page. Raises UsageError for an unknown key."""
    for place, key in keys:
        if key == _QUIT:
            break
        if key not in _KEYS:
            raise UsageError(f"{place}: {_NO_KEY.format(one_line(key))}. What was answered before it stands")
        if why := session.press(key):
            return f"{place}: {key}: {why}"
    return ""


def _read(answers: Path | None) -> Iterator[tuple[str, str]]:
    """The keys of a file or pipe, with their places."""
    with binary_input(answers or Path("-")) as stream:
        for number, line in enumerate(stream, 1):
            for key in line.decode("latin-1").lower():
                if not key.isspace():
                    yield f"{answers or 'stdin'}: line {number}", key


def _asked(session: Session) -> Iterator[tuple[str, str]]:
    """The key that the person types below each page, until all were seen. Other input is asked for again."""
    while (number := session.number) is not None:
        page = session.pages[number]
        message(f"\n{page.url}")
        message("(its text is no longer in the log)" if page.text is None else page.text)
        if page.text_cut:
            message(f"... and {page.text_cut:,} characters more, not shown")
        message(f"page {number + 1:,} of {len(session.pages):,}, one of {' '.join(_KEYS)} and Enter:")
        while typed := sys.stdin.readline():
            if (key := typed.strip().lower()) in _KEYS:
                break
            message(_NO_KEY.format(one_line(key)))
        else:
            return
        yield "stdin", key


def _operator(name: str) -> str:
    """The name of the operator, by default the login name. Raises UsageError for a name that cannot be stored."""
    if not name:
        try:
            return getpass.getuser()
        except (OSError, KeyError, ImportError):  # an account without a name, as in some containers
            return ""
    if len(name) > LONGEST_NAME or not name.isprintable():
        raise UsageError(f"--operator: up to {LONGEST_NAME} characters that print")
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
    shares = [(change, wilson(change.articles, change.pages, Z95)) for change in session.changes() if changes]
    if not shares:
        return
    rows = (
        (change.what, f"{change.articles} of {change.pages}", f"{share.point:.0%} ({share.low:.0%}-{share.high:.0%})")
        for change, share in shares
    )
    put_table(("judged pages that are", "articles", "share of this sample, not of all flips (95% interval)"), rows)


def _next(page: SamplePage, out: Path) -> Iterator[str]:
    """The next commands: evaluate both rulesets of the sample on these labels."""
    log = f"--log {quote(page.log) if page.log else 'LOG'}"
    if not page.ruleset_a:  # a sample of `farmwatch review draw`
        yield f"rate --set rate.review={quote(str(out))}"
        return
    named = dict(zip((page.ruleset_a, page.ruleset_b), (page.run_a, page.run_b), strict=True))
    for ruleset, run in named.items():
        if ruleset.endswith(".toml"):
            yield f"runs show {quote(run)} --ruleset-text {log} > {quote(ruleset)}"
    rulesets = "".join(f" {quote(ruleset)}" for ruleset in named if ruleset)
    yield f"rulesets evaluate{rulesets} --labels {quote(str(out))} {log}"
