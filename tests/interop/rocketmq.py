"""RocketMQ on the loopback: a name server and a broker of one version, and the Java programs beside this file."""

from __future__ import annotations

import contextlib
import os
import random
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from rmqfast.remoting import RemotingClient, RequestCode

SCRIPT = Path(__file__).parent / "real-rocketmq.sh"
NICE = ("nice", "-n", os.environ.get("RMQFAST_NICE", "0"))
EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
FAR_APART = 10  # a broker takes port - 2 and port + 1, too
START_SECONDS = 500.0  # the script gives each of its steps 120 s
STOP_SECONDS = 300.0
#: Properties of a broker that refuses no send because its machine is busy.
PATIENT = ("brokerFastFailureEnable=false", "osPageCacheBusyTimeOutMills=60000")


class StartError(RuntimeError):
    """A cluster that did not start; the message has the ends of its logs."""


class NameServed(Protocol):
    """Has a name server at which other brokers may register."""

    @property
    def name_server(self) -> str:
        """`host:port`."""

    @property
    def name_server_port(self) -> int:
        """Its port."""


class RocketMQ:
    """A name server and a broker in a directory; `with` starts and ends them.

    Ports that are not given are chosen, and chosen anew once where the first start fails; from then on they stay.
    With `clean=False` the block ends with a crash, which saves ten seconds: for a store that nobody reads afterwards.
    `beside` makes it a broker alone, `broker-b`, at the name server of another one, or of ours, which runs.
    """

    def __init__(
        self,
        version: str,
        directory: Path,
        *properties: str,
        ports: tuple[int, int] | None = None,
        heap: str = "-Xms256m -Xmx1g",
        clean: bool = True,
        beside: NameServed | None = None,
    ) -> None:
        self.version, self.directory, self.properties = version, directory, properties
        self._heap, self._clean, self._settled = heap, clean, ports is not None
        self._beside = beside
        if beside is not None:
            self.properties = (f"namesrvAddr={beside.name_server}", "brokerName=broker-b", *properties)
        self.name_server_port, self.broker_port = ports or self._free_ports()

    @property
    def name_server(self) -> str:
        """`host:port`."""
        return f"127.0.0.1:{self.name_server_port}"

    @property
    def broker(self) -> str:
        """`host:port`."""
        return f"127.0.0.1:{self.broker_port}"

    @property
    def store(self) -> Path:
        """The broker's `storePathRootDir`."""
        return self.directory / "store"

    @property
    def pid(self) -> int:
        """The process of the broker."""
        return int((self.directory / "broker.pid").read_text())

    def start(self) -> None:
        """Starts both and waits until the name server knows the broker; what is stored stays, ports as well.

        Raises:
            StartError: They do not start, on other ports neither.
        """
        failures = []
        for _ in range(1 if self._settled else 2):
            try:
                self._start()
            except StartError as error:
                failures.append(str(error))
                if not self._settled:
                    self.name_server_port, self.broker_port = self._free_ports()
            else:
                self._settled = True
                return
        raise StartError("\n\n".join(failures))

    def stop(self) -> None:
        """Ends both, the broker cleanly; where nothing runs, nothing happens."""
        _script("stop", self.directory, seconds=STOP_SECONDS)

    def kill9(self) -> None:
        """Ends the broker as a crash would."""
        _script("kill9", self.directory, seconds=STOP_SECONDS)

    def create_topic(self, topic: str, queues: int) -> None:
        """A topic with so many queues, which the name server knows then, too."""
        create_topic(self.broker, topic, queues)

    def _free_ports(self) -> tuple[int, int]:
        if self._beside is None:
            name_server, broker = free_ports(2)
            return name_server, broker
        (broker,) = free_ports(1)
        return self._beside.name_server_port, broker

    def _remove_empty_files(self) -> None:
        """Removes files of the log and of queues that a crash left without bytes, as an operator would.

        RocketMQ makes such a file and gives it its size in two steps. Killed in between, it refuses to start:
        "length not matched message store config value, please check it manually".
        """
        for part in ("commitlog", "consumequeue"):
            for path in (self.store / part).rglob("0*"):
                if path.is_file() and path.stat().st_size == 0:
                    path.unlink()

    def _start(self) -> None:
        self._remove_empty_files()
        words = ("start", self.version, self.directory, self.name_server_port, self.broker_port, *self.properties)
        where = f"RocketMQ {self.version}, name server {self.name_server}, broker {self.broker}"
        try:
            _script(*words, seconds=START_SECONDS, environment={"BROKER_HEAP": self._heap})
        except BaseException as error:
            with contextlib.suppress(RuntimeError):
                self.stop()  # of what was begun, nothing goes on
            if not isinstance(error, RuntimeError):
                raise
            raise StartError(f"{where}: {error}") from error

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._clean:
            self.stop()
        else:
            self.kill9()


def create_topic(broker: str, topic: str, queues: int, attributes: str = "") -> None:
    """Makes a topic with so many queues at a broker, RocketMQ's or ours; mqadmin would start a JVM for it.

    Attributes are those of 5.x: `+cleanup.policy=COMPACTION`.
    """
    fields = {"topic": topic, "defaultTopic": "TBW102", "perm": "6", "order": "false", "topicSysFlag": "0"}
    fields |= {"readQueueNums": str(queues), "writeQueueNums": str(queues), "topicFilterType": "SINGLE_TAG"}
    fields |= {"attributes": attributes} if attributes else {}
    with RemotingClient(broker, timeout=10) as client:
        client.ask(RequestCode.UPDATE_AND_CREATE_TOPIC, fields)


def free_ports(count: int) -> list[int]:
    """Ports that nobody has, nor the three beside them that a broker takes; none that the kernel gives to clients."""
    low, high = map(int, EPHEMERAL.read_text().split())
    # from 11,000: a broker that is given no port takes 10909 to 10912
    within = range(11_000, low - FAR_APART) if low > 15_000 else range(min(high + FAR_APART, 60_000), 65_500)
    found: list[int] = []
    for port in random.sample(within, len(within)):
        if all(abs(port - other) >= FAR_APART for other in found) and all(map(_is_free, range(port - 2, port + 2))):
            found.append(port)
        if len(found) == count:
            return found
    raise RuntimeError(f"expected {count} free ports in {within}, got {len(found)}")


def java(
    version: str,
    main: str,
    *words: object,
    extra: str = "",
    heap: str = "-Xmx1g",
    stdin: str = "",
    seconds: float = 300,
    check: bool = True,
) -> str:
    """The output of a main class of this directory.

    Raises:
        RuntimeError: It ended with something else than 0 (but for `check=False`), or not in time.
    """
    environment = {"JAVA_EXTRA": extra, "CLIENT_HEAP": heap}
    words = ("java", version, main, *words)
    return _script(*words, stdin=stdin, seconds=seconds, environment=environment, check=check)


@contextlib.contextmanager
def running(
    version: str, main: str, *words: object, log: Path, extra: str = "", cwd: Path | None = None
) -> Iterator[subprocess.Popen[str]]:
    """A main class while the block runs, with pipes; its errors go to a file, what it leaves behind to `cwd`."""
    command = [*NICE, str(SCRIPT), "java", version, main, *map(str, words)]
    environment = {**os.environ, "JAVA_EXTRA": extra, "CLIENT_HEAP": "-Xmx512m"}
    pipe = subprocess.PIPE
    with log.open("ab") as sink:
        child = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=sink, text=True, env=environment, cwd=cwd)
    try:
        yield child
    finally:
        child.terminate()
        try:
            child.wait(30)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        for end in (child.stdin, child.stdout):
            assert end is not None
            with contextlib.suppress(BrokenPipeError):
                end.close()


def build(*versions: str) -> None:
    """Fetches and compiles what the rest needs of these versions, where that is not done yet."""
    _script("build", *versions, seconds=1200)


def _script(
    *words: object, seconds: float, stdin: str = "", environment: dict[str, str] | None = None, check: bool = True
) -> str:
    """The output of a command of the script; an error has its standard error."""
    command, environment = [*NICE, str(SCRIPT), *map(str, words)], {**os.environ, **(environment or {})}
    what = " ".join(command[len(NICE) + 1 :][:4])
    try:
        done = subprocess.run(
            command, input=stdin, capture_output=True, text=True, check=False, timeout=seconds, env=environment
        )
    except subprocess.TimeoutExpired as error:
        raise RuntimeError(f"{what} took more than {seconds} s: {_text(error.stderr)[-8000:]}") from None
    if check and done.returncode != 0:
        raise RuntimeError(f"{what} ended with {done.returncode}: {done.stdout[-2000:]}{done.stderr[-8000:]}")
    sys.stderr.write(done.stderr)
    return done.stdout


def _text(output: bytes | str | None) -> str:
    """The output so far, which is bytes after a timeout."""
    return output.decode(errors="replace") if isinstance(output, bytes) else output or ""


def _is_free(port: int) -> bool:
    """Whether one may listen there, at every address."""
    with socket.socket() as probe:
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True
