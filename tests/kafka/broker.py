"""A real Apache Kafka for tests: one node (KRaft) on 127.0.0.1, its data in a folder of its own.

It listens twice: plainly, and by TLS with SASL PLAIN. It takes three seconds to start.
"""

import os
import shutil
import signal
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.kafka.artifacts import NoKafka

CLUSTER = "4L6g3nShT-eMCtK--X86sw"
USER, PASSWORD = "mara", "open-sesame"
STORE_PASSWORD = "only-for-tests"
START_SECONDS, STOP_SECONDS = 60.0, 20.0
LIGHT = (
    "-Xms128m",
    "-Xmx384m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
)
PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:{plain},SECURE://127.0.0.1:{secure},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{plain},SECURE://127.0.0.1:{secure}
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SECURE:SASL_SSL
inter.broker.listener.name=PLAINTEXT
listener.name.secure.sasl.enabled.mechanisms=PLAIN
listener.name.secure.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \
 user_{user}="{password}";
listener.name.secure.ssl.keystore.type=PKCS12
listener.name.secure.ssl.keystore.location={keystore}
listener.name.secure.ssl.keystore.password={store_password}
log.dirs={data}
auto.create.topics.enable=false
broker.heartbeat.interval.ms=200
broker.session.timeout.ms=1000
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
"""


@dataclass
class Broker:
    """A broker that is started, stopped, killed and frozen. Its ports and its folder outlive its process."""

    folder: Path
    classpath: str
    plain: int = 0
    secure: int = 0
    controller: int = 0
    process: "subprocess.Popen[bytes] | None" = field(default=None, repr=False)

    @property
    def bootstrap(self) -> str:
        """Where it listens plainly."""
        return f"127.0.0.1:{self.plain}"

    @property
    def secure_bootstrap(self) -> str:
        """Where it listens by TLS, to USER with PASSWORD."""
        return f"127.0.0.1:{self.secure}"

    @property
    def certificate(self) -> Path:
        """The certificate that a client must trust, as PEM."""
        return self.folder / "certificate.pem"

    @property
    def said(self) -> str:
        """What it wrote to standard error and output."""
        path = self.folder / "said"
        return path.read_text(errors="replace") if path.exists() else ""

    def start(self) -> "Broker":
        """Starts it on the data it has, or on none. Returns when it listens. Raises NoKafka."""
        properties = self.folder / "server.properties"
        if not properties.exists():
            self._settle(properties)
        if not self._data.exists():
            storage = ("kafka.tools.StorageTool", "format", "--standalone", "--cluster-id", CLUSTER)
            self._run(["java", *LIGHT, "-cp", self.classpath, *storage, "--config", str(properties)])
        command = ["java", *LIGHT, "-cp", self.classpath, "kafka.Kafka", str(properties)]
        with (self.folder / "said").open("ab") as said:
            self.process = subprocess.Popen(command, stdout=said, stderr=said, start_new_session=True)
        self._listens()
        return self

    def stop(self) -> None:
        """Ends it as one should."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Ends it as a power cut would."""
        self._end(signal.SIGKILL)

    def freeze(self) -> None:
        """It keeps its connections, and says nothing any more."""
        os.kill(self._running.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """It goes on."""
        os.kill(self._running.pid, signal.SIGCONT)

    def empty(self) -> None:
        """Loses all its data. It must not run."""
        assert self.process is None
        shutil.rmtree(self._data, ignore_errors=True)

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    @property
    def _running(self) -> "subprocess.Popen[bytes]":
        assert self.process is not None, "it does not run"
        return self.process

    def _settle(self, properties: Path) -> None:
        """Chooses its ports, and makes its key."""
        self.plain, self.secure, self.controller = free_ports(3)
        keystore = self.folder / "keystore.p12"
        access = ("-keystore", str(keystore), "-storetype", "PKCS12", "-storepass", STORE_PASSWORD, "-alias", "broker")
        named = ("-dname", "CN=wedgewatch-test", "-ext", "san=ip:127.0.0.1", "-validity", "30")
        self._run(["keytool", "-genkeypair", "-keyalg", "EC", *named, *access])
        self._run(["keytool", "-exportcert", "-rfc", "-file", str(self.certificate), *access])
        properties.write_text(
            PROPERTIES.format(
                plain=self.plain,
                secure=self.secure,
                controller=self.controller,
                keystore=keystore,
                store_password=STORE_PASSWORD,
                user=USER,
                password=PASSWORD,
                data=self._data,
            )
        )

    def _run(self, command: list[str]) -> None:
        run = subprocess.run(command, capture_output=True, text=True, timeout=START_SECONDS)
        if run.returncode:
            raise NoKafka(f"{command[0]} failed: {run.stderr.strip() or run.stdout.strip()}")

    def _listens(self) -> None:
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until and self._running.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.plain), timeout=1).close()
                return
            except OSError:
                time.sleep(0.05)
        self.kill()
        raise NoKafka(f"the broker did not start: {self.said[-2_000:]}")

    def _end(self, number: int) -> None:
        if self.process is None:
            return
        os.kill(self.process.pid, number)
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None


def free_ports(count: int) -> list[int]:
    """Ports on 127.0.0.1 that nobody uses."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()
