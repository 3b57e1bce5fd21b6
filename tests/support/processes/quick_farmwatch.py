"""farmwatch with quick restarts, heartbeats and retention, for tests of its processes."""

from __future__ import annotations

import sys
from functools import partial

from farmwatch.__main__ import main
from farmwatch.commands.start import running
from farmwatch.daemon import maintenance
from farmwatch.daemon.supervisor import Supervisor

if __name__ == "__main__":
    setattr(running, "Supervisor", partial(Supervisor, restart_min_s=0.1, restart_max_s=0.2))  # noqa: B010 - mypy
    setattr(running, "this_program", lambda: [sys.executable, "-P", "-m", "tests.support.processes.quick_farmwatch"])  # noqa: B010 - mypy
    setattr(maintenance, "HEARTBEAT_S", 1.0)  # noqa: B010 - mypy
    setattr(maintenance, "RETENTION_S", 2.0)  # noqa: B010 - mypy
    main()
