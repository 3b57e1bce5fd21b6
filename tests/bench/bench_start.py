"""The time of `farmwatch --help`, and of an interpreter that does nothing. Run: python -m tests.bench.bench_start"""

from __future__ import annotations

import statistics
import subprocess
import sys

from tests.bench.timing import wall_and_cpu_s


def seconds(*arguments: str) -> float:
    command = [sys.executable, *arguments]
    return statistics.median(
        wall_and_cpu_s(lambda: subprocess.run(command, check=True, capture_output=True))[0] for _ in range(15)
    )


if __name__ == "__main__":
    helped, nothing = seconds("-m", "farmwatch", "--help"), seconds("-c", "pass")
    print(f"farmwatch --help {helped:.3f} s, python -c pass {nothing:.3f} s, ratio {helped / nothing:.1f}")
