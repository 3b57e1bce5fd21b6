"""Who works here: what the audit trail says of the operator."""

from __future__ import annotations

import getpass
import os
import socket


def operator() -> str:
    """user@host; a user without a name, as in a container, by number."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # Python 3.13 raises OSError, those before KeyError
        user = f"uid{os.getuid()}"
    return f"{user}@{socket.gethostname()}"
