"""A real Apache Kafka broker for tests, with its data in a temporary folder, that can be killed and restarted.

Each process of tests has one: it runs one test at a time, so that a test may kill and damage its broker.

The controller is a separate process, as in a cluster, and survives a killed broker. If both were killed together, the
broker would start as the leader of all partitions and lose them again when it registers. In between, Kafka 4.3 drops
the markers of a transaction that is being committed (KAFKA-20734), which then never ends; loads of groups fail too.

The jars come from tests/broker/install.sh. `FARMWATCH_TEST_KAFKA=host:port` uses an operator's broker for `broker()`.
"""

from __future__ import annotations

import atexit
import base64
import functools
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from contextlib import closing
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaProducer
from kafka.errors import KafkaError

from tests.support.paths import ROOT

OPERATORS_BROKER = "FARMWATCH_TEST_KAFKA"
REQUIRED = "FARMWATCH_REQUIRE_KAFKA"
LIBS = ROOT / ".broker" / "libs"
# The classes that a broker loads: with this file a start takes half of the CPU
_CLASSES = f"-XX:SharedArchiveFile={LIBS.parent / 'classes.jsa'}"
_JAVA = ("java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{LIBS}/*")
_JAVA_MEMORY = ("-Xms128m", "-Xmx384m")
_CONTROLLER_MEMORY = ("-Xms64m", "-Xmx192m", _CLASSES)
_BOTH = """\
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers=127.0.0.1:{controller}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
"""
# with a short session the broker registers at once after a kill; by default it waits nine seconds
_CONTROLLER_PROPERTIES = (
    _BOTH
    + """\
process.roles=controller
node.id=2
listeners=CONTROLLER://127.0.0.1:{controller}
log.dirs={home}/controller
broker.session.timeout.ms=2000
"""
)
_PROPERTIES = (
    _BOTH
    + """\
process.roles=broker
node.id=1
log.dirs={home}/data
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=4
broker.heartbeat.interval.ms=250
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
log.cleaner.dedupe.buffer.size=8388608
log.cleaner.backoff.ms=500
transaction.abort.timed.out.transaction.cleanup.interval.ms=1000
message.max.bytes=8388608
auto.create.topics.enable=false
"""
)
# a second listener, for clients with TLS, a password and only the rights that they were given
USER, PASSWORD = "farmwatch", "a password"
_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_RIGHTS = """\
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
"""
_GUARD = (
    _RIGHTS
    + f"""\
listeners=PLAINTEXT://127.0.0.1:{{port}},GUARDED://localhost:{{guarded}}
advertised.listeners=PLAINTEXT://127.0.0.1:{{port}},GUARDED://localhost:{{guarded}}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,GUARDED:SASL_SSL
inter.broker.listener.name=PLAINTEXT
sasl.enabled.mechanisms=PLAIN
listener.name.guarded.plain.sasl.jaas.config={_LOGIN} user_{USER}="{PASSWORD}";
ssl.keystore.type=PEM
ssl.keystore.location={{home}}/store.pem
"""
)
# the fate of transaction markers is logged at INFO
_LOGGING = """\
<Configuration status="ERROR"><Appenders><Console name="out">
<PatternLayout pattern="%d{ABSOLUTE} %p %c{1}: %m%n%throwable{8}"/>
</Console></Appenders><Loggers>
<Logger name="kafka.coordinator.transaction.TransactionMarkerChannelManager" level="INFO"/>
<Root level="WARN"><AppenderRef ref="out"/></Root>
</Loggers></Configuration>
"""


class Broker:
    """One broker on fixed loopback ports. Not started by the constructor; `close` stops it and removes its data."""

    def __init__(self, *properties: str) -> None:
        """Choose ports and format the data folder; `properties` are added. Skips if Java or the jars are missing."""
        require_installed()
        self._home = Path(tempfile.mkdtemp(prefix="farmwatch-broker-"))
        self._port, self._guarded_port, controller = free_ports(3)
        self._config, self._controller_config = self._home / "broker.properties", self._home / "controller.properties"
        places = {"port": self._port, "guarded": self._guarded_port, "controller": controller, "home": self._home}
        for path, text in (
            (self._config, "\n".join([_PROPERTIES + _GUARD, *properties, ""])),
            (self._controller_config, _CONTROLLER_PROPERTIES + _RIGHTS),
        ):
            path.write_text(text.format(**places))
        key = self._home / "key.pem"
        make_certificate(key, self.certificate, "localhost")
        (self._home / "store.pem").write_text(key.read_text() + self.certificate.read_text())
        self._logging = self._home / "log4j2.xml"
        self._logging.write_text(_LOGGING)
        self._output = self._home / "broker.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._controller: subprocess.Popen[bytes] | None = None
        cluster = base64.urlsafe_b64encode(b"\0" + uuid.uuid4().bytes[1:]).decode().rstrip("=")
        self._format(cluster, self._controller_config, "--standalone")
        self._format(cluster, self._config, "--no-initial-controllers")

    @property
    def address(self) -> str:
        """host:port, the same after every restart."""
        return f"127.0.0.1:{self._port}"

    @property
    def guarded_address(self) -> str:
        """host:port of the listener that asks for `USER` and `PASSWORD`, and shows `certificate`."""
        return f"localhost:{self._guarded_port}"

    @property
    def certificate(self) -> Path:
        return self._home / "ca.pem"

    @property
    def data(self) -> Path:
        return self._home / "data"

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pids(self) -> list[int]:
        """The processes of the broker and its controller that run."""
        return [process.pid for process in (self._process, self._controller) if process is not None]

    def start(self, timeout_s: float = 180, *, classes: str = _CLASSES) -> Broker:
        """Start, and wait until it answers. Raises RuntimeError with its output."""
        if self._controller is None:
            self._controller = self._java(_CONTROLLER_MEMORY, self._controller_config, self._home / "controller.log")
        self._process = self._java((*_JAVA_MEMORY, classes), self._config, self._output)
        deadline = time.monotonic() + timeout_s
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(
                    f"the broker does not answer; its output:\n{self._output.read_text(errors='replace')}"
                )
            time.sleep(0.1)
        return self

    def stop(self, timeout_s: float = 30) -> None:
        self._end(signal.SIGTERM, timeout_s)

    def kill(self) -> None:
        self._end(signal.SIGKILL, 10)

    def close(self) -> None:
        self.kill()
        if self._controller is not None:
            self._controller.kill()
            self._controller.wait()
        shutil.rmtree(self._home, ignore_errors=True)

    def _java(self, memory: tuple[str, ...], config: Path, output: Path) -> subprocess.Popen[bytes]:
        logging = f"-Dlog4j2.configurationFile={self._logging}"
        with output.open("wb") as sink:
            return subprocess.Popen(
                [*_JAVA, *memory, logging, "kafka.Kafka", str(config)],
                stdout=sink,
                stderr=subprocess.STDOUT,
                cwd=self._home,
                start_new_session=True,  # a Ctrl-C in the terminal must not end it before its clients
            )

    def _end(self, signum: int, timeout_s: float) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(signum)
        try:
            process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _answers(self) -> bool:
        with socket.socket() as probe:  # kafka-python backs off for seconds if no one listens yet
            if probe.connect_ex(("127.0.0.1", self._port)) != 0:
                return False
        try:
            admin = KafkaAdminClient(bootstrap_servers=self.address, bootstrap_timeout_ms=2000)
        except KafkaError:
            return False
        try:
            return bool(admin.describe_cluster()["brokers"])
        except KafkaError:
            return False
        finally:
            admin.close()

    def _format(self, cluster: str, config: Path, quorum: str) -> None:
        tool = [*_JAVA, *_CONTROLLER_MEMORY, "kafka.tools.StorageTool"]
        done = subprocess.run(
            [*tool, "format", "-t", cluster, "-c", str(config), quorum], capture_output=True, text=True, timeout=60
        )
        if done.returncode != 0:
            raise RuntimeError(f"StorageTool format {config.name} failed: {done.stderr or done.stdout}")


def require_installed() -> None:
    """Skip if Java or the jars are missing; fail if FARMWATCH_REQUIRE_KAFKA is set."""
    if shutil.which("java") is None:
        reason = "no java on the PATH: install a Java 17 runtime"
    elif not any(LIBS.glob("kafka_*.jar")):
        reason = f"no Kafka jars in {LIBS}: run tests/broker/install.sh"
    else:
        return
    if os.environ.get(REQUIRED):
        pytest.fail(f"{REQUIRED} is set, and there is {reason}")
    pytest.skip(reason)


def broker() -> str:
    """host:port of this process's broker, or of the operator's."""
    return os.environ.get(OPERATORS_BROKER) or own_broker().address


def own_broker() -> Broker:
    """The broker of this process, running: started at the first call or if a test killed it, and closed at exit."""
    kept = _kept_broker()
    return kept if kept.running else kept.start()


@functools.cache
def _kept_broker() -> Broker:
    """A broker that has begun a transaction: the first one makes a topic."""
    kept = Broker()
    atexit.register(kept.close)
    kept.start()
    with closing(KafkaProducer(bootstrap_servers=kept.address, transactional_id="first", max_block_ms=60_000)) as first:
        first.init_transactions()
    return kept


def make_certificate(key: Path, certificate: Path, name: str) -> None:
    """Create a self-signed certificate."""
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}", "-days", "2"]
    names = ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*made, *names], check=True, capture_output=True)


def free_ports(count: int) -> list[int]:
    probes = [socket.socket() for _ in range(count)]
    try:
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in probes]
    finally:
        for probe in probes:
            probe.close()


if __name__ == "__main__":  # writes the file of classes
    with closing(Broker().start(classes=_CLASSES.replace("SharedArchiveFile", "ArchiveClassesAtExit"))) as first:
        first.stop()
