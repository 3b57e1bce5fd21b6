"""The roles by name, and which port each serves its metrics on."""

from __future__ import annotations

from stream.schema.roles import Role


def metrics_port(first: int, role: Role) -> int:
    """Port of a role's metrics: the first one plus the role's place; 0 stays 0 (any free port)."""
    return first + list(Role).index(role) if first else 0
