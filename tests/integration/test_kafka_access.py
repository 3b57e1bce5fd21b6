"""The log on a broker with TLS, a password and access rights: those in docs/how-to/kafka.md suffice."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient
from kafka.admin import ACL, ACLOperation, ACLPermissionType, ACLResourcePatternType, ResourcePattern, ResourceType

from stream.kafka.log import KafkaLog
from stream.kafka.settings import KafkaSettings
from stream.log.contract import At, CleanupPolicy, Commit, StateChange, Topic
from stream.log.errors import StreamError
from tests.support.kafka_broker import PASSWORD, USER, Broker, own_broker
from tests.support.limits import with_limits
from tests.support.paths import DOCS
from tests.support.waiting import wait_until
from tests.support.worlds import drain, record, settle, values

pytestmark = pytest.mark.kafka
PREFIX = "fw."
PAGE = (DOCS / "how-to" / "kafka.md").read_text()


@pytest.fixture(scope="module")
def guarded() -> Broker:
    """A broker that gives its user the page's rights."""
    made = own_broker()
    admin = KafkaAdminClient(bootstrap_servers=made.address)
    admin.create_acls(list(rights()))
    admin.close()
    return made


def rights() -> Iterator[ACL]:
    """The rights that the page names, such as 'on topics …: Create, Describe; on groups …: Read'."""
    (said,) = re.findall(r"The user needs, (.+?)\.\n", PAGE, re.DOTALL)
    kinds = {"topics": "TOPIC", "groups": "GROUP", "transactional": "TRANSACTIONAL_ID", "the": "CLUSTER"}
    for part in " ".join(said.split()).split("; "):
        where, names = part.removeprefix("on ").split(": ")
        kind = ResourceType[kinds[where.split()[0]]]
        of_prefix = (ACLResourcePatternType.PREFIXED, PREFIX), (ACLResourcePatternType.LITERAL, "kafka-cluster")
        pattern, name = of_prefix[kind is ResourceType.CLUSTER]
        for right in names.split(", "):
            operation = ACLOperation[re.sub(r"(?<!^)(?=[A-Z])", "_", right).upper()]
            yield ACL(f"User:{USER}", "*", operation, ACLPermissionType.ALLOW, ResourcePattern(kind, name, pattern))


def settings(guarded: Broker, **changed: Any) -> KafkaSettings:
    """The page's [kafka.client], with the broker's certificate and password."""
    (block,) = re.findall(r"```toml\n(\[kafka\.client\].+?)```", PAGE, re.DOTALL)
    client = tomllib.loads(block)["kafka"]["client"]
    client |= {"ssl_cafile": str(guarded.certificate), "sasl_plain_password": PASSWORD} | changed
    return with_limits(KafkaSettings(), client=client, connect_timeout_s=3)


def opened(guarded: Broker, folder: Path, chosen: KafkaSettings) -> KafkaLog:
    return KafkaLog(guarded.guarded_address, prefix=PREFIX, state_folder=folder / "state", settings=chosen)


def test_all_that_farmwatch_does_is_allowed(guarded: Broker, tmp_path: Path) -> None:
    """Topics are created and removed, records written and read, a stage commits state, groups are reset and removed."""
    log = opened(guarded, tmp_path, settings(guarded))
    log.create([Topic("in", 2, retention_ms=86_400_000), Topic("out", 2), Topic("state.s", 2, CleanupPolicy.COMPACT)])
    log.append([record("in", p, "k", f"v{p}") for p in range(2)])
    member = log.join("g", ["in"], member="m", store="s")
    settle([member], 2)
    drain(member, 2)
    member.commit(Commit([record("out", 0, "k", "done")], {At("in", 0): 1}, {0: [StateChange(b"k", b"s")]}))
    assert values(log.read("out", 0)) == ["done"]
    assert log.committed("g", "in")[0] == log.end("in")[0]
    assert list(log.scan_state("s", 0)) == [(b"k", b"s")]
    assert log.sizes(["in"])["in"].bytes > 0
    member.close()
    wait_until(lambda: log.members("g") == [], "the group to be empty")
    log.reset("g", "in", [0, 0])
    log.expire(0, {"in": [0, 0]})
    log.remove(topics=["out"], groups=["g"])
    wait_until(lambda: "out" not in log.topics(), "the removal")
    log.close()


@pytest.mark.parametrize(
    "changed",
    [{"sasl_plain_password": "not this one"}, {"sasl_mechanism": "SCRAM-SHA-256"}, {"security_protocol": "PLAINTEXT"}],
)
def test_a_refused_client_is_told_the_settings(guarded: Broker, tmp_path: Path, changed: dict[str, str]) -> None:
    """A refused client gets an error that names kafka.client, without the password."""
    with pytest.raises(StreamError, match=r"takes this client: kafka\.client") as caught:
        opened(guarded, tmp_path, settings(guarded, **changed)).topics()
    assert "not this one" not in str(caught.value) and PASSWORD not in str(caught.value)
