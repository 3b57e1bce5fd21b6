"""The configuration of the broker and its topics: read-only checks, and limits lifted for runs.

A topic that a run needs keeps all records: a huge number is added to its `retention.ms` and `retention.bytes`, and
subtracted later. So the original limits need no other storage, and the operator may change them meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stream.kafka.cluster import KafkaSite
from stream.kafka.settings import configs_of
from stream.log.contract import CleanupPolicy, Topic, check_offsets
from stream.log.errors import StreamError

Finding = tuple[str, bool, str]  # subject, whether it is right, the finding and its remedy
_OLDEST = (2, 5)  # first version that checks transactional offset commits against the group's generation (KIP-447)
# A different value is right if it keeps more; all others must match.
_AT_LEAST = ("max.message.bytes", "delete.retention.ms")
POLICY = "cleanup.policy"
RETENTION_MS = "retention.ms"
SEGMENT_MS = "segment.ms"
_BASES = {RETENTION_MS: 10**15, "retention.bytes": 10**18}  # 30,000 years; an exabyte a partition
_COMPARED = (POLICY, *_BASES, *_AT_LEAST)


def check_broker(site: KafkaSite, topics: Sequence[Topic]) -> list[Finding]:
    """All findings; stops at the first request without an answer."""
    findings = [("crc32c", True, "in C")]  # otherwise the log would not be open
    try:
        version = site.admin.broker_version()
        new_enough = tuple(int(part) for part in version.split(".")[:2]) >= _OLDEST
        findings.append(("kafka version", new_enough, version if new_enough else f"{version}: 2.5 or later is needed"))
        findings += _topics(site, topics)
    except StreamError as error:
        findings.append((f"kafka broker {site.bootstrap}", False, str(error)))
    return findings


def _topics(site: KafkaSite, topics: Sequence[Topic]) -> list[Finding]:
    existing = site.topics()
    present = [topic for topic in topics if topic.name in existing]
    current = site.admin.topic_settings([site.full(topic.name) for topic in present]) if present else {}
    findings: list[Finding] = []
    for topic in topics:
        what = f"topic {site.full(topic.name)}"
        if topic.name not in existing:
            findings.append((what, False, "missing"))
            continue
        wrong = []
        if existing[topic.name] != topic.partitions:
            wrong.append(f"{existing[topic.name]} partitions, configured are {topic.partitions}")
        wanted, settings = configs_of(topic), current[site.full(topic.name)]
        for key in [key for key in _COMPARED if key in wanted]:
            value = own_limit(key, settings[key]) if key in settings else None  # without the addition of a held topic
            keeps_more = key in _AT_LEAST and int(value or "0") > int(wanted[key])
            if value != wanted[key] and not keeps_more:
                wrong.append(f"{key} is {value}, should be {wanted[key]}: set it with kafka-configs")
        findings.append((what, not wrong, "; ".join(wrong) or f"{topic.partitions} partitions"))
    return findings


def defined_topics(site: KafkaSite) -> dict[str, Topic]:
    """The topics as the broker has them, without the addition of held topics. Raises StreamError, LogUnavailable."""
    partitions = site.topics()
    if not partitions:
        return {}
    current = site.admin.topic_settings([site.full(name) for name in partitions], [*_BASES, POLICY])
    topics = {}
    for name, count in partitions.items():
        settings = current.get(site.full(name), {})
        deletes = "delete" in settings.get(POLICY, "")
        limits = [int(own_limit(key, settings.get(key, "-1"))) for key in _BASES]
        kept = [limit if deletes and limit >= 0 else None for limit in limits]
        topics[name] = Topic(name, count, CleanupPolicy.DELETE if deletes else CleanupPolicy.COMPACT, *kept)
    return topics


def set_limits(site: KafkaSite, topics: Sequence[Topic]) -> None:
    """Set the limits of existing topics; a held topic stays held. Raises StreamError, LogUnavailable."""
    if not topics:
        return
    names = [site.full(topic.name) for topic in topics]
    current = site.admin.topic_settings(names, list(_BASES))
    changes = {}
    for name, topic in zip(names, topics, strict=True):
        wanted = configs_of(topic)
        held = {key for key, value in current.get(name, {}).items() if value != own_limit(key, value)}
        changes[name] = {key: _held(key, wanted[key]) if key in held else wanted[key] for key in _BASES}
    site.admin.set_topic_settings(changes)


def hold(site: KafkaSite, needed: Mapping[str, Sequence[int]]) -> None:
    """Lift the limits of the topics in `needed`, restore those of others. Raises StreamError, LogUnavailable."""
    partitions = site.topics()
    for name in needed.keys() & partitions.keys():
        check_offsets(name, needed[name], partitions[name])
    if not partitions:
        return
    names = {site.full(name): name in needed for name in partitions}
    current = site.admin.topic_settings(list(names), [*_BASES, POLICY])
    changes: dict[str, dict[str, str]] = {}
    for topic, settings in current.items():
        deletes = "delete" in settings.get(POLICY, "")
        for key in _BASES.keys() & settings.keys():
            value = _held(key, settings[key]) if names[topic] and deletes else own_limit(key, settings[key])
            if value != settings[key]:
                changes.setdefault(topic, {})[key] = value
    site.admin.set_topic_settings(changes)


def own_limit(key: str, value: str) -> str:
    """A topic's own limit, also while it is lifted."""
    base = _BASES.get(key)
    return value if base is None or int(value) < base else str(int(value) - base)


def _held(key: str, value: str) -> str:
    """A lifted limit; -1 has no limit already."""
    return str(int(value) + _BASES[key]) if 0 <= int(value) < _BASES[key] else value
