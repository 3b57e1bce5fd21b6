"""A bench in two checkouts, in turns: each number of its output as a median before, after, and their ratio.

    python -m tests.bench.compare OTHER [--rounds N] BENCH [ARGUMENT ...]

OTHER is another checkout (`git worktree add`), the state before; its bench runs with its code in this environment.
Lines with the same words are the same figure; a line that one of the two lacks is printed as it is.
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

ROUNDS = 5
_NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?(?![\w.]*\w)|(?<![\w.])\.\d+")

Line = tuple[str, int]  # a line without its numbers, and how many like it came before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("other", type=Path, help="the checkout before")
    parser.add_argument("bench", help="a module of tests.bench")
    parser.add_argument("arguments", nargs="*", help="of the bench")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args()
    command = [sys.executable, "-m", f"tests.bench.{given.bench}", *given.arguments]
    before: list[str] = []
    after: list[str] = []
    for _ in range(given.rounds):
        for folder, runs in ((given.other, before), (Path.cwd(), after)):
            runs.append(subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=True).stdout)
    print(f"{given.bench}, medians of {given.rounds} runs in turns: before -> after (ratio)")
    print("\n".join(compared(before, after)))


def compared(before: Sequence[str], after: Sequence[str]) -> list[str]:
    """The lines of the last run after, with the medians of all runs."""
    old, new = medians(before), medians(after)
    lines = []
    for line in numbers_of(after[-1]):
        found = new.get(line)
        if found is None:
            continue
        earlier: list[float | None] = [*old.get(line, ())] or [None] * len(found)
        places = iter(_told(one, other) for one, other in zip(earlier, found, strict=True))
        lines.append(re.sub("#", lambda _, places=places: next(places), line[0]))  # type: ignore[misc]
    return lines


def medians(runs: Sequence[str]) -> dict[Line, list[float]]:
    """Of each number of each line that all runs have."""
    found = [numbers_of(run) for run in runs]
    of_all = {line: [of[line] for of in found] for line in found[0] if all(line in of for of in found)}
    return {line: list(map(statistics.median, zip(*rows, strict=True))) for line, rows in of_all.items()}


def numbers_of(output: str) -> dict[Line, list[float]]:
    seen: Counter[str] = Counter()
    found: dict[Line, list[float]] = {}
    for text in output.splitlines():
        words = " ".join(_NUMBER.sub("#", text.replace("#", "")).split())
        found[words, seen[words]] = [float(number.replace(",", "")) for number in _NUMBER.findall(text)]
        seen[words] += 1
    return found


def _told(before: float | None, after: float) -> str:
    if before is None or before == after:
        return f"{after:g}"
    return f"{before:g} -> {after:g}" + (f" ({after / before:.2f})" if before else "")


if __name__ == "__main__":
    main()
