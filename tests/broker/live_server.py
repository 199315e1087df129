"""`rmqfast server` in a process of its own, and what can be seen of it from outside."""

from __future__ import annotations

import json
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from tests.disks import ROOMY
from tests.waiting import PATIENCE

from .interop.cluster import OurCluster
from .mutations import json_frame

#: Short files, so that a store is small; how full the disk is does not matter, nor how busy the machine is.
SMALL = ROOMY | {
    "mappedFileSizeCommitLog": "8388608",
    "mappedFileSizeConsumeQueue": "200000",
    "maxHashSlotNum": "1000",
    "maxIndexNum": "4000",
    "osPageCacheBusyTimeOutMills": "60000",
    "syncFlushTimeout": "60000",
}


class Wire:
    """A connection: frames as they are."""

    def __init__(self, address: str, source: tuple[str, int] | None = None) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=PATIENCE, source_address=source)

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


def own_memory(pid: object = "self") -> int:
    """Bytes of memory of a process's own: pages of files are not counted."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("RssAnon"))) << 10


class LiveServer(OurCluster):
    """A cluster with a small store."""

    def __init__(self, directory: Path, config: dict[str, str] | None = None) -> None:
        super().__init__(directory, tuple(f"{name}={value}" for name, value in (SMALL | (config or {})).items()))

    def address(self, server: str) -> str:
        """Of the server of that name in a recording."""
        return self.name_server if server == "namesrv" else self.broker

    def defects(self) -> list[str]:
        """Requests whose processor failed by something else than a refusal, and threads that ended by an error."""
        signs = ("Error: ", "Exception in thread", "panicked", "failed")
        known = ("ended: ",)
        return [
            line
            for line in (self.directory / "server.log").read_text(errors="replace").splitlines()
            if any(s in line for s in signs) and not any(k in line for k in known)
        ]

    def threads(self) -> set[str]:
        """Names of its threads that stay."""
        names = set()
        for task in Path(f"/proc/{self.pid}/task").iterdir():
            with suppress(OSError):
                names.add((task / "comm").read_text().strip())
        return names
