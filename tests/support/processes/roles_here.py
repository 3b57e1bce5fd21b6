"""Roles of `farmwatch up` as threads of the test's process: a fraction of the CPU of processes."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from farmwatch.config.config import Config
from farmwatch.daemon.roles import run_role
from stream.processing.metrics import Metrics
from stream.schema.roles import Role


@contextmanager
def roles_at_work(config: Config, metrics: Mapping[Role, Metrics]) -> Iterator[None]:
    """Roles in threads of this process, drained at the end; each counts in its metrics."""
    stop, failures = threading.Event(), list[BaseException]()

    def run(role: Role) -> None:
        try:
            run_role(role, config, f"{role.value}-1", stop, metrics=metrics[role], cutover_check_s=0.05)
        except BaseException as error:  # noqa: BLE001 - told below, in the test's own thread
            failures.append(error)

    threads = [threading.Thread(target=run, args=(role,)) for role in metrics]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join(60)
    if failures:
        raise failures[0]
