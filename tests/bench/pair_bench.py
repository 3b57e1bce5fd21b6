"""`python -m tests.bench.pair_bench`: what the pair engine makes of this machine's card. Needs no network, no weights.

    python -m tests.bench.pair_bench [--out FILE.json] [--tiny]

It builds a pair of the shape of Falcon-7B with random weights on the card, measures the card's own limit (a large
bfloat16 product), and sets beside it: the engine at 512 tokens and on mixed lengths, the loop of whole logit tensors,
memory by token budget, the Triton kernel beside chunked torch, scores beside those of the loop in float64, those in
FP8 beside a CPU's, where the time goes, and an encoder of the shape of DeBERTa-v3-large.
Random weights cost what trained ones do; the scores mean nothing, but both sides must give the same.
`--tiny` runs all of it on a CPU with a small shape, to see that it runs. Without a card it ends with status 3.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from stream.text.user_errors import MissingExtra
from tests.bench.pair_tables import FAILED, Bench, Plan, Table, attempt, plan_of

NO_DEVICE = 3  # exit status


def run(plan: Plan, say: Callable[[str], object]) -> Table:
    """All tables, each said as soon as it is there."""
    started = time.perf_counter()
    bench = Bench(plan)
    tables: Table = {"shape": plan.shape._asdict() | {"tokens": plan.tokens, "batch_tokens": plan.budget}}
    for name in ("machine", "throughput", "equality", "fp8_equality", "memory", "profile", "encoder"):
        tables[name] = attempt(getattr(bench, name))
        say(f"\n{name}\n" + "\n".join(_lines(tables[name])))
    tables["seconds"] = time.perf_counter() - started
    say(f"\n{tables['seconds']:.0f} seconds in all")
    return tables


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.pair_bench", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--out", type=Path, help="file for the figures as JSON")
    parser.add_argument("--tiny", action="store_true", help="a small shape on the CPU: sees that the script runs")
    asked = parser.parse_args(arguments)
    try:
        from scoring.engine.loading import libraries

        torch, _ = libraries()
    except MissingExtra as error:
        sys.stderr.write(f"{error}\n")
        return NO_DEVICE
    if not asked.tiny and not torch.cuda.is_available():
        sys.stderr.write(
            "this measures an NVIDIA card with 40 GiB or more of free memory, and torch sees none: run it on such a"
            " machine with pip install '.[gpu]', or try `--tiny`, which runs on the CPU\n"
        )
        return NO_DEVICE

    def say(text: str) -> None:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()

    tables = run(plan_of(tiny=asked.tiny), say)
    if asked.out is not None:
        asked.out.write_text(json.dumps(tables, indent=1) + "\n")
    return 1 if f'"{FAILED}"' in json.dumps(tables) else 0


def _lines(table: Table, indent: str = "  ") -> list[str]:
    lines = []
    for name, value in table.items():
        if isinstance(value, dict):
            lines += [f"{indent}{name}:", *_lines(value, indent + "  ")]
        else:
            lines.append(f"{indent}{name}: {value:.4g}" if isinstance(value, float) else f"{indent}{name}: {value}")
    return lines


if __name__ == "__main__":
    sys.exit(main())
