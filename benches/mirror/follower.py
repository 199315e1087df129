"""A bare socket and the mirror's own copy, timed; run as a module, it is a peer's child."""

from __future__ import annotations

import socket
import statistics
import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path

from peer import Answer, Failed, serve, timed
from rmqfast import AppendOptions, Mirror, MirrorOptions
from rmqfast.replication import Following
from rmqfast.store.replica import Replica

HEADER = struct.Struct(">qi")
NO_REPLICA = struct.pack(">q", -(1 << 62))
REPORT_EVERY = 4.0
RECORD = 64 << 20
LOOK = 0.002
STORED_AT = 56  # of a record whose hosts have IPv4


def bare(address: str, begin: str, end: str, _: str) -> Answer:
    """Reads the log from `begin` to `end`, and drops it."""
    start, stop = int(begin), int(end)

    def work() -> Answer:
        drop(address, max(start, 1), stop)
        return {"rows": stop - start}

    return timed(work)


def written(address: str, begin: str, end: str, directory: str) -> Answer:
    """Reads the log from `begin` to `end`, and writes what comes to one file: what any copy does at least."""
    start, stop = int(begin), int(end)
    Path(directory).mkdir()
    with Path(directory, "log").open("wb", buffering=0) as file:

        def work() -> Answer:
            drop(address, max(start, 1), stop, file.write)
            return {"rows": stop - start}

        return timed(work)


def drop(address: str, start: int, stop: int, take: Callable[[memoryview], object] | None = None) -> None:
    """Reads so many bytes into one buffer, and has them taken by whoever wants them."""
    buffer = memoryview(bytearray(1 << 20))
    host, port = address.split(":")
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(struct.pack(">q", start))
        # a frame has 12 bytes before up to 32 KiB of the log: one in 2,700
        left, reported = stop - start, time.monotonic()
        while left > 0:
            count = connection.recv_into(buffer)
            if not count:
                raise Failed("the connection ended")
            left -= count
            if take is not None:
                take(buffer[:count])
            if time.monotonic() > reported + REPORT_EVERY:
                connection.sendall(NO_REPLICA)
                reported = time.monotonic()


def log(address: str, begin: str, end: str, directory: str) -> Answer:
    """The log into a copy, without queues and index."""
    return copied(address, int(begin), int(end), Path(directory), lists=False)


def lists(address: str, begin: str, end: str, directory: str) -> Answer:
    """The log into a copy, with queues and index."""
    return copied(address, int(begin), int(end), Path(directory), lists=True)


def copied(address: str, begin: int, end: int, directory: Path, *, lists: bool) -> Answer:
    """All of it is written, and listed if that is asked for, when the clock stops; not yet on the disk."""
    with Replica(directory, AppendOptions(), begin=begin) as copy:

        def work() -> Answer:
            following = Following(copy, address, begin, max_record=RECORD, lists=lists)
            try:
                while following.progress().listed_to < end:
                    ended = following.wait(LOOK)
                    if ended is not None:
                        raise Failed(ended.text)
            finally:
                following.stop()
            return {"rows": end - begin}

        return timed(work)


class Lag:
    """A mirror and a bare follower beside it, looked at again and again: how old is the newest message of each?"""

    def begin(self, name_server: str, address: str, directory: str) -> Answer:
        """Both follow from the end of the log on."""
        self._is_over, self._newest = threading.Event(), 0
        self._ages: dict[str, list[float]] = {"mirror": [], "bare": []}
        options = MirrorOptions(start="latest", cold_rate=0)
        self._mirror = Mirror(directory, name_server=name_server, options=options)
        self._mirror.start()
        while not self._mirror.is_caught_up():
            self._mirror.wait(LOOK)
        begin = self._mirror.status()[0].position
        self._threads = [
            threading.Thread(target=self._look),
            threading.Thread(target=self._read, args=(address, begin)),
        ]
        for thread in self._threads:
            thread.start()
        return {}

    def end(self) -> Answer:
        """The median ages in milliseconds, of looks at both at the same times, from the first message on."""
        self._is_over.set()
        for thread in self._threads:
            thread.join()
        self._mirror.stop()
        if not all(self._ages.values()):
            raise Failed(f"nothing came: { {name: len(ages) for name, ages in self._ages.items()} }")
        return {name: statistics.median(ages) for name, ages in self._ages.items()}

    def _look(self) -> None:
        begin = self._mirror.status()[0].last_store_timestamp
        while not self._is_over.wait(LOOK):
            newest = {"mirror": self._mirror.status()[0].last_store_timestamp, "bare": self._newest}
            if min(newest.values()) > begin:
                for name, timestamp in newest.items():
                    self._ages[name].append(time.time() * 1000 - timestamp)

    def _read(self, address: str, begin: int) -> None:
        host, port = address.split(":")
        with socket.create_connection((host, int(port))) as connection:
            connection.settimeout(1.0)
            connection.sendall(struct.pack(">q", begin))
            stream, log = bytearray(), bytearray()
            reported = time.monotonic()
            while not self._is_over.is_set():
                if time.monotonic() > reported + REPORT_EVERY:
                    connection.sendall(NO_REPLICA)
                    reported = time.monotonic()
                try:
                    stream += connection.recv(1 << 16)
                except TimeoutError:
                    continue
                frames(stream, log)
                self._newest = newest_of(log) or self._newest


def frames(stream: bytearray, log: bytearray) -> None:
    """Moves the bytes of whole frames to the log."""
    at = 0
    while at + HEADER.size <= len(stream):
        size = HEADER.unpack_from(stream, at)[1]
        if at + HEADER.size + size > len(stream):
            break
        log += stream[at + HEADER.size : at + HEADER.size + size]
        at += HEADER.size + size
    del stream[:at]


def newest_of(log: bytearray) -> int | None:
    """Store time of the last whole record, which goes with all before it."""
    at, newest = 0, None
    while at + 4 <= len(log):
        size = int.from_bytes(log[at : at + 4])
        if size <= 0 or at + size > len(log):
            break
        newest = int.from_bytes(log[at + STORED_AT : at + STORED_AT + 8])
        at += size
    del log[:at]
    return newest


if __name__ == "__main__":
    age = Lag()
    serve({"bare": bare, "written": written, "log": log, "lists": lists, "begin_lag": age.begin, "end_lag": age.end})
