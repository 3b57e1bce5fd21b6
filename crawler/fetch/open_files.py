"""How many files and sockets this process may have open: each connection is one."""

from __future__ import annotations

import resource

import structlog

log = structlog.get_logger(__name__)

_OTHERS = 256  # the log, the database, DNS, metrics


def room_for(connections: int) -> bool:
    """Raise this process's own limit, where it is too low for so many connections, as far as the system allows.

    Returns whether that is enough; where it is not, the log says how to mend it.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + _OTHERS
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return True
    found = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (found, hard))
    if found < wanted:
        log.warning(
            "few_open_files", limit=found, wanted=wanted, mend="raise `ulimit -n`, or lower crawl.max_in_flight"
        )
    return found >= wanted
