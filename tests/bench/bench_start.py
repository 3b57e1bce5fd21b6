"""How long `farmwatch --help` takes, beside an interpreter that does nothing.

Run: python -m tests.bench.bench_start
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time


def seconds(command: list[str], rounds: int = 15) -> float:
    """Median wall time of a command."""
    spent = []
    for _ in range(rounds):
        started = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        spent.append(time.perf_counter() - started)
    return statistics.median(spent)


def main() -> None:
    """Print both and the ratio."""
    helped = seconds([sys.executable, "-m", "farmwatch", "--help"])
    nothing = seconds([sys.executable, "-c", "pass"])
    print(f"farmwatch --help {helped:.3f} s, python -c pass {nothing:.3f} s, ratio {helped / nothing:.1f}")


if __name__ == "__main__":
    main()
