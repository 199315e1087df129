"""`rmqfast server` in a process of its own, and what can be seen of it from outside."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from tests.waiting import PATIENCE

from .mutations import json_frame

#: Short files, so that a store is small; how full the machine's disk is does not matter, nor how busy the machine is.
SMALL = {
    "mappedFileSizeCommitLog": "8388608",
    "mappedFileSizeConsumeQueue": "200000",
    "maxHashSlotNum": "1000",
    "maxIndexNum": "4000",
    "rocketmq.broker.diskSpaceWarningLevelRatio": "1.0",
    "rocketmq.broker.diskSpaceCleanForciblyRatio": "1.0",
    "osPageCacheBusyTimeOutMills": "60000",
    "syncFlushTimeout": "60000",
}


class Wire:
    """A connection: frames as they are."""

    def __init__(self, address: str, timeout: float = PATIENCE) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=timeout)

    def ask(self, code: int, fields: dict[str, str] | None = None, body: bytes = b"") -> tuple[dict[str, Any], bytes]:
        """Header and body of the answer."""
        self.socket.sendall(json_frame(code, fields, body))
        return self.answer()

    def answer(self) -> tuple[dict[str, Any], bytes]:
        """Header and body of the next frame."""
        frame = self._exactly(int.from_bytes(self._exactly(4), "big"))
        length = int.from_bytes(frame[1:4], "big")
        return json.loads(frame[4 : 4 + length]), frame[4 + length :]

    def is_ended(self) -> bool:
        """Whether the other side ends the connection; what comes before that is passed over."""
        try:
            while self.socket.recv(1 << 16):
                pass
        except TimeoutError:
            return False
        except OSError:
            pass
        return True

    def close(self) -> None:
        """Ends it."""
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            more = self.socket.recv(count - len(data))
            if not more:
                raise ConnectionError("the server ended the connection")
            data += more
        return data


def send_fields(topic: str, queue_id: int = 0, properties: str = "") -> dict[str, str]:
    """Header fields of SEND_MESSAGE_V2."""
    numbers = {"d": "4", "e": str(queue_id), "f": "0", "g": "1700000000000", "h": "0"}
    return {"a": "p", "b": topic, "c": "TBW102", "i": properties} | numbers


def pull_fields(topic: str, group: str, queue_id: int = 0, offset: int = 0, sys_flag: int = 4) -> dict[str, str]:
    """Header fields of PULL_MESSAGE; the request says what it wants."""
    numbers = {"queueId": queue_id, "queueOffset": offset, "maxMsgNums": 32, "sysFlag": sys_flag, "commitOffset": 0}
    texts = {
        "consumerGroup": group,
        "topic": topic,
        "subscription": "*",
        "suspendTimeoutMillis": "0",
        "subVersion": "0",
    }
    return texts | {name: str(number) for name, number in numbers.items()}


class LiveServer:
    """A cluster in another process."""

    def __init__(self, directory: Path, config: dict[str, str] | None = None) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._log = directory / "server.log"
        (directory / "broker.conf").write_text(
            "".join(f"{name}={value}\n" for name, value in (SMALL | (config or {})).items())
        )
        self.start()

    def start(self) -> None:
        """Starts it; a second time on the same store."""
        ports = [*("--namesrv-port", "0"), *("--broker-port", "0")]
        store = ["--store", str(self._directory / "store"), "-c", str(self._directory / "broker.conf")]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "rmqfast.cli", "server", *ports, *store], stdout=subprocess.PIPE, stderr=log
            )
        assert self._process.stdout is not None
        ready = self._process.stdout.readline().decode()
        assert ready.startswith("ready "), self.log()
        addresses = dict(part.split("=") for part in ready.split()[1:])
        self.name_server, self.broker = addresses["name_server"], addresses["broker"]

    def address(self, server: str) -> str:
        """Of the server of that name in a recording."""
        return self.name_server if server == "namesrv" else self.broker

    def log(self) -> str:
        """What it has logged."""
        return self._log.read_text(errors="replace")

    def defects(self) -> list[str]:
        """Requests whose processor failed by something else than a refusal, and threads that ended by an error."""
        signs = ("Error: ", "Exception in thread", "panicked", "failed")
        known = ("ended: ",)
        return [
            line
            for line in self.log().splitlines()
            if any(s in line for s in signs) and not any(k in line for k in known)
        ]

    def memory(self) -> int:
        """Bytes of memory of its own: pages of files are not counted."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(next(line.split()[1] for line in status.splitlines() if line.startswith("RssAnon"))) << 10

    def threads(self) -> set[str]:
        """Names of its threads that stay."""
        names = set()
        for task in Path(f"/proc/{self._process.pid}/task").iterdir():
            with suppress(OSError):
                names.add((task / "comm").read_text().strip())
        return names

    def kill(self) -> None:
        """Ends it as a loss of power would, but for the caches of the operating system."""
        os.kill(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._close()

    def stop(self) -> int:
        """Ends it as it is meant to; how it ended."""
        self._process.terminate()
        code = self._process.wait(timeout=PATIENCE)
        self._close()
        return code

    def _close(self) -> None:
        if self._process.stdout is not None:
            self._process.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self.kill()
