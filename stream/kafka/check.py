"""Checks of the broker and its topics. Questions only; nothing is changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stream.kafka.cluster import KafkaSite
from stream.kafka.retention import own
from stream.kafka.settings import KafkaSettings, configs_of
from stream.log.contract import Topic
from stream.log.errors import StreamError

Finding = tuple[str, bool, str]  # subject, whether it is right, the finding and its remedy
_OLDEST = (2, 5)  # transactional offset commits are checked against the group's generation from here on (KIP-447)
# A differing value is right where it keeps more; the rest must be as configured.
_AT_LEAST = ("max.message.bytes", "delete.retention.ms")
_LIMITS = {"group.min.session.timeout.ms", "group.max.session.timeout.ms", "transaction.max.timeout.ms"}
_COMPARED = ("cleanup.policy", "retention.ms", "retention.bytes", *_AT_LEAST)


def check_broker(site: KafkaSite, topics: Sequence[Topic]) -> list[Finding]:
    """All findings; the later questions are left out where the broker does not answer."""
    findings = [("crc32c", True, "in C")]  # or the log would not be open
    try:
        version, broker = site.admin.broker()
        new_enough = tuple(int(part) for part in version.split(".")[:2]) >= _OLDEST
        findings.append(("kafka version", new_enough, version if new_enough else f"{version}: 2.5 or later is needed"))
        findings += _times(site.settings, broker)
        findings += _topics(site, topics)
    except StreamError as error:
        findings.append((f"kafka broker {site.bootstrap}", False, str(error)))
    return findings


def _times(settings: KafkaSettings, broker: Mapping[str, str]) -> list[Finding]:
    if not broker.keys() >= _LIMITS:
        return [("kafka broker settings", False, "not given: the client needs the right to describe configurations")]
    session_ms = round(settings.session_timeout_s * 1000)
    least, most = int(broker["group.min.session.timeout.ms"]), int(broker["group.max.session.timeout.ms"])
    session = f"{session_ms} ms, the broker allows {least} to {most} ms: see session_timeout_s"
    transaction_ms = round(settings.transaction_timeout_s * 1000)
    longest = int(broker["transaction.max.timeout.ms"])
    transaction = f"{transaction_ms} ms, the broker allows {longest} ms: see transaction_timeout_s"
    return [
        ("session timeout", least <= session_ms <= most, session),
        ("transaction timeout", transaction_ms <= longest, transaction),
    ]


def _topics(site: KafkaSite, topics: Sequence[Topic]) -> list[Finding]:
    existing = site.topics()
    present = [topic for topic in topics if topic.name in existing]
    found = site.admin.topic_settings([site.full(topic.name) for topic in present]) if present else {}
    findings: list[Finding] = []
    for topic in topics:
        what = f"topic {site.full(topic.name)}"
        if topic.name not in existing:
            findings.append((what, False, "missing: run `farmwatch topics --create`"))
            continue
        wrong = _differences(configs_of(topic), found[site.full(topic.name)])
        if existing[topic.name] != topic.partitions:
            wrong.insert(0, f"{existing[topic.name]} partitions, configured are {topic.partitions}")
        findings.append((what, not wrong, "; ".join(wrong) or f"{topic.partitions} partitions"))
    return findings


def _differences(wanted: Mapping[str, str], found: Mapping[str, str]) -> list[str]:
    wrong = []
    for key in _COMPARED:
        value = own(key, found[key]) if key in found else None  # a held limit is beyond it
        if key not in wanted or value == wanted[key]:
            continue
        if key in _AT_LEAST and int(value or "0") > int(wanted[key]):
            continue
        wrong.append(f"{key} is {value}, should be {wanted[key]}: set it with kafka-configs")
    return wrong
