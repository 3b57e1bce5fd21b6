"""Topics that runs need, on Kafka: all records of such a topic stay.

To `retention.ms` and `retention.bytes` a number is added that makes them endless, and taken off again later. So nothing
has to be remembered elsewhere, and the operator may change a held topic's settings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stream.kafka.cluster import KafkaSite
from stream.log.contract import check_offsets

_BASES = {"retention.ms": 10**15, "retention.bytes": 10**18}  # 30,000 years; an exabyte a partition
_POLICY = "cleanup.policy"


def hold(site: KafkaSite, needed: Mapping[str, Sequence[int]]) -> None:
    """Keep all of the topics in `needed`; the others get their own limits back. Raises StreamError, LogUnavailable."""
    partitions = site.topics()
    for name in needed.keys() & partitions.keys():
        check_offsets(name, needed[name], partitions[name])
    if not partitions:
        return
    names = {site.full(name): name in needed for name in partitions}
    found = site.admin.topic_settings(list(names), [*_BASES, _POLICY])
    changes: dict[str, dict[str, str]] = {}
    for topic, settings in found.items():
        deletes = "delete" in settings.get(_POLICY, "")
        for key in _BASES.keys() & settings.keys():
            value = _held(key, settings[key]) if names[topic] and deletes else own(key, settings[key])
            if value != settings[key]:
                changes.setdefault(topic, {})[key] = value
    site.admin.set_topic_settings(changes)


def own(key: str, value: str) -> str:
    """A topic's own value of a setting, which may be held now."""
    base = _BASES.get(key)
    return value if base is None or int(value) < base else str(int(value) - base)


def _held(key: str, value: str) -> str:
    """-1 is without a limit already."""
    return str(int(value) + _BASES[key]) if 0 <= int(value) < _BASES[key] else value
