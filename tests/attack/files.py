"""A broker's own files, truncated, removed or overwritten by another process while clients send."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path

import rmqfast
from tests.attack.figures import Figure, Scale
from tests.broker.interop.cluster import Cluster
from tests.broker.live_server import LiveServer, Wire, send_fields
from tests.broker.test_harmed_files import bodies, runtime_info
from tests.waiting import PATIENCE, until

_BEFORE = 40
_BODY = b"%08d"


def harmed_files(cluster: Cluster, scale: Scale) -> list[Figure]:
    """Servers of their own, one for each harm; a fourth, fifth... of it at the same one would find it read-only."""
    crashes = lost = silent = 0
    for number in range(scale.harms):
        for name, harm in (("truncated", _truncate), ("removed", _remove), ("overwritten", _overwrite)):
            with LiveServer(cluster.directory.with_name(f"{name}-{number}")) as server:
                sender = _Sender(server)
                sender.run_until(_BEFORE)
                harm(server)
                has_ended = sender.end(is_refused=name != "overwritten")
                crashes += has_ended
                if not has_ended and name == "removed":
                    lost += _lost_after_restart(server, sender.acknowledged)
                if not has_ended and name == "overwritten":
                    silent += sender.acknowledged - len(bodies(server)) - int(runtime_info(server)["harmedMessages"])
    what = f"files of the log truncated, removed, overwritten {scale.harms} times each under load"
    return [
        Figure(f"{what}: brokers that ended", crashes, "", 0, is_time=False),
        Figure(f"{what}: acknowledged, and lost where the file was removed", lost, "", 0, is_time=False),
        Figure(f"{what}: passed over in silence", silent, "", 0, is_time=False),
    ]


class _Sender:
    """Sends one message after the other on a thread, until it is told to end, or is refused for good."""

    def __init__(self, server: LiveServer) -> None:
        self.server = server
        self.acknowledged = 0
        self._is_over = threading.Event()
        self._is_refused = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def run_until(self, count: int) -> None:
        until(lambda: self.acknowledged >= count)

    def end(self, *, is_refused: bool) -> bool:
        """Waits until nothing more is taken, if it is to be so; whether the broker ended by itself."""
        if is_refused:
            self._is_refused.wait(PATIENCE)
        else:
            self.run_until(self.acknowledged + _BEFORE)
        self._is_over.set()
        self._thread.join(PATIENCE)
        with suppress(OSError), Wire(self.server.broker) as wire:
            return bool(wire.ask(28)[0]["code"])
        return True

    def _run(self) -> None:
        with suppress(OSError), Wire(self.server.broker) as wire:
            while not self._is_over.is_set():
                header, _ = wire.ask(310, send_fields("harmed"), _BODY % self.acknowledged)
                if header["code"] == 0:
                    self.acknowledged += 1
                elif header["code"] == 14:
                    break
        self._is_refused.set()


def _log(server: LiveServer) -> Path:
    return server.store / "commitlog" / f"{0:020}"


def _truncate(server: LiveServer) -> None:
    os.truncate(_log(server), 1024)


def _remove(server: LiveServer) -> None:
    _log(server).unlink()


def _overwrite(server: LiveServer) -> None:
    with rmqfast.open_store(server.store) as store:
        places = store.scan("harmed", columns=["physical_offset"]).to_arrow().column("physical_offset").to_pylist()
    with _log(server).open("r+b") as log:
        log.seek(places[10])
        log.write(bytes(places[15] - places[10]))


def _lost_after_restart(server: LiveServer, acknowledged: int) -> int:
    """How many messages that were acknowledged are not there after a restart."""
    until(lambda: "written back" in runtime_info(server).get("storeFailure", ""))
    server.stop()
    server.start()
    found = set(bodies(server))
    return sum(_BODY % number not in found for number in range(acknowledged))
