"""The hostile web: one host per attack, what it does, and what the crawler must record of it.

Each row is its own host under hostile.test, with a robots.txt that allows everything unless that is the attack.
"""

from __future__ import annotations

from tests.hostile.against_http import REDIRECTS, STATUSES, TLS, WIRE
from tests.hostile.against_reading import BODIES, CONTENT, LENGTHS
from tests.hostile.against_ways import HUBBED, HUBS, NAMES, ROBOTS, TRAPS, hubbed

__all__ = ["ATTACKS", "BY_HOST", "HUBBED", "hubbed"]

ATTACKS = [*BODIES, *LENGTHS, *WIRE, *CONTENT, *TRAPS, *ROBOTS, *HUBS, *STATUSES, *REDIRECTS, *NAMES, *TLS]
BY_HOST = {attack.host: attack for attack in ATTACKS}
