"""The log on a broker with TLS, a password and access rights: those in docs/how-to/kafka.md suffice."""

from __future__ import annotations

import re
import subprocess
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
from tests.support.kafka_broker import Broker, broker, free_ports
from tests.support.paths import DOCS
from tests.support.waiting import wait_until
from tests.support.worlds import drain, record, settle, values

pytestmark = pytest.mark.kafka
PREFIX, USER, PASSWORD = "fw.", "farmwatch", "a password"
PAGE = (DOCS / "how-to" / "kafka.md").read_text()


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """Address of a broker with TLS, SASL and the page's rights, and its certificate."""
    folder = tmp_path_factory.mktemp("tls")
    key, certificate = folder / "key.pem", folder / "ca.pem"
    make_certificate(key, certificate, "localhost")
    (folder / "store.pem").write_text(key.read_text() + certificate.read_text())
    (port,) = free_ports(1)
    login = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    with_tls = Broker(
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,GUARDED:SASL_SSL",
        "inter.broker.listener.name=PLAINTEXT",
        "sasl.enabled.mechanisms=PLAIN",
        f'listener.name.guarded.plain.sasl.jaas.config={login} user_{USER}="{PASSWORD}";',
        "ssl.keystore.type=PEM",
        f"ssl.keystore.location={folder / 'store.pem'}",
        "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users=User:ANONYMOUS",
        guarded_port=port,
    )
    try:
        with_tls.start()
        admin = KafkaAdminClient(bootstrap_servers=with_tls.address)
        admin.create_acls(list(rights()))
        admin.close()
        yield f"localhost:{port}", certificate
    finally:
        with_tls.close()


def make_certificate(key: Path, certificate: Path, name: str) -> None:
    """Create a self-signed certificate."""
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}", "-days", "2"]
    names = ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*made, *names], check=True, capture_output=True)


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


def settings(certificate: Path, **changed: Any) -> KafkaSettings:
    """The page's [kafka.client], with this broker's certificate and password."""
    (block,) = re.findall(r"```toml\n(\[kafka\.client\].+?)```", PAGE, re.DOTALL)
    client = tomllib.loads(block)["kafka"]["client"]
    client |= {"ssl_cafile": str(certificate), "sasl_plain_password": PASSWORD} | changed
    return KafkaSettings(client=client, connect_timeout_s=3)


def test_all_that_farmwatch_does_is_allowed(guarded: tuple[str, Path], tmp_path: Path) -> None:
    """Topics are created and removed, records written and read, a stage commits state, groups are reset and removed."""
    address, certificate = guarded
    log = KafkaLog(address, prefix=PREFIX, state_folder=tmp_path / "state", settings=settings(certificate))
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
    ("changed", "said"),
    [
        ({"sasl_plain_password": "not this one"}, "refuses the user or the password: set kafka.client.sasl_plain_"),
        ({"sasl_mechanism": "SCRAM-SHA-256"}, "offers the SASL mechanisms PLAIN, not SCRAM-SHA-256: set kafka.client."),
        (
            {"security_protocol": "SASL_PLAINTEXT"},
            "speaks SASL_SSL, this client SASL_PLAINTEXT: set kafka.client.",
        ),
        (
            {"security_protocol": "PLAINTEXT"},
            "speaks SASL_SSL, this client PLAINTEXT: set kafka.client.",
        ),
        ({"ssl_cafile": "other.pem"}, "CERTIFICATE_VERIFY_FAILED: set kafka.client.ssl_cafile"),
    ],
)
def test_a_refused_client_is_told_the_setting(
    guarded: tuple[str, Path], tmp_path: Path, changed: dict[str, str], said: str
) -> None:
    """A refused client gets an error with the setting, without retries and without the password."""
    address, certificate = guarded
    if "ssl_cafile" in changed:
        make_certificate(tmp_path / "key.pem", tmp_path / "other.pem", "other")
        changed = {"ssl_cafile": str(tmp_path / changed["ssl_cafile"])}
    wrong = settings(certificate, **changed)
    with pytest.raises(StreamError) as caught:
        KafkaLog(address, prefix=PREFIX, state_folder=tmp_path / "state", settings=wrong).topics()
    text = str(caught.value)
    assert text.startswith(f"the broker answers, but refuses this client: {address}") and said in text
    assert not caught.value.retriable
    assert "not this one" not in text and PASSWORD not in text


def test_a_client_with_sasl_is_told_of_a_listener_without(tmp_path: Path) -> None:
    """A client with SASL on an open listener gets an error: the listener has neither TLS nor SASL."""
    trusted = KafkaSettings(client={"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN"})
    plain = broker()
    with pytest.raises(StreamError, match=f"{plain} speaks PLAINTEXT, this client SASL_PLAINTEXT"):
        KafkaLog(plain, prefix=PREFIX, state_folder=tmp_path / "state", settings=trusted).topics()
