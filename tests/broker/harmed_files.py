"""Another process cuts off, removes or zeroes files of a server under load: what it acknowledges then is not lost."""

from __future__ import annotations

import os
import random
import shutil
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from rmqfast.errors import DamageWarning
from rmqfast.remoting.fastjson import decode
from rmqfast.store import open_store
from tests.waiting import PATIENCE, until

from .live_server import LiveServer, Wire, pull_fields, send_fields
from .pulled import body_of, records_of

TOPIC, QUEUES = "harmed", 2
FILE = 1 << 20
SERVICE_NOT_AVAILABLE = 14
#: PULL_NOT_FOUND, PULL_RETRY_IMMEDIATELY, PULL_OFFSET_MOVED
NOTHING_THERE = {19, 20, 21}


def cut_off(path: Path, dice: random.Random) -> None:
    """To nothing, to somewhere, or to where a page begins."""
    written = dice.randrange(path.stat().st_size)
    os.truncate(path, dice.choice((0, written, written // 4096 * 4096)))


def remove(path: Path, dice: random.Random) -> None:
    """The file, or all that are beside it."""
    if dice.randrange(4) == 0:
        shutil.rmtree(path.parent)
    else:
        path.unlink()


def zero(path: Path, dice: random.Random) -> None:
    """All of it, or a part, in place."""
    size = path.stat().st_size
    start, end = dice.choice(((0, size), tuple(sorted((dice.randrange(size), dice.randrange(size))))))
    with path.open("r+b") as file:
        file.seek(start)
        file.write(bytes(end - start))


FAULTS: dict[str, Callable[[Path, random.Random], None]] = {"cut off": cut_off, "removed": remove, "zeroed": zero}


@dataclass
class Outcome:
    """What came of one fault; each list is empty where all is as it should be.

    Attributes:
        what: Which fault, to which file.
        crashes: How the process ended, where it was not asked to.
        lost: Messages that were acknowledged after the fault and are not there.
        silent: Messages that a pull did not give, and that nothing tells of.
        untold: What else is missing: a remark, a line of the log.
        is_refused: The server took no more messages.
    """

    what: str
    crashes: list[str] = field(default_factory=list)
    lost: list[bytes] = field(default_factory=list)
    silent: list[str] = field(default_factory=list)
    untold: list[str] = field(default_factory=list)
    is_refused: bool = False


@dataclass
class _Load:
    """Producers, one for each queue, and who pulls; each message has its number."""

    server: LiveServer
    acknowledged: int = 0
    is_harmed: bool = False
    sent_after: list[bytes] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    producers: list[threading.Thread] = field(default_factory=list)
    is_over: bool = False

    def start(self) -> list[threading.Thread]:
        self.producers = [threading.Thread(target=self._produce, args=(queue_id,)) for queue_id in range(QUEUES)]
        threads = [*self.producers, threading.Thread(target=self._consume)]
        for thread in threads:
            thread.start()
        return threads

    def is_working(self) -> bool:
        return any(thread.is_alive() for thread in self.producers)

    def _produce(self, queue_id: int) -> None:
        number = 0
        with suppress(OSError), Wire(self.server.broker) as wire:
            while not self.is_over:
                body, is_after = b"%d:%d;" % (queue_id, number) * 40, self.is_harmed
                header, _ = wire.ask(310, send_fields(TOPIC, queue_id), body)
                if header["code"] != 0:
                    self.refusals.append(f"{header['code']} {header.get('remark')}")
                    return
                self.acknowledged += 1
                if is_after:
                    self.sent_after.append(body)
                number += 1

    def _consume(self) -> None:
        # zeroes may come between the server's look at a record and its copy: no records then
        with suppress(OSError, ValueError), Wire(self.server.broker) as wire:
            while not self.is_over:
                for queue_id in range(QUEUES):
                    pulled(wire, queue_id)


def pulled(wire: Wire, queue_id: int, topic: str = TOPIC) -> tuple[list[bytes], int]:
    """Bodies of all messages that a queue gives, and how many it should have."""
    bodies, offset, highest = [], 0, 0
    while True:
        header, body = wire.ask(11, pull_fields(topic, "g", queue_id, offset))
        if header["code"] not in {0, *NOTHING_THERE}:
            raise OSError(header)
        fields = header["extFields"]
        highest = int(fields["maxOffset"])
        if header["code"] == 0:
            bodies += [body_of(record) for record in records_of(body)]
        if offset == (offset := int(fields["nextBeginOffset"])) or offset >= highest:
            return bodies, highest


def figures(wire: Wire) -> dict[str, str]:
    """What the server says of itself."""
    return dict(decode(wire.ask(28)[1])["table"])


def passed_over(wire: Wire) -> int:
    """How many messages the server could not give, as it says."""
    return int(figures(wire).get("messagesPassedOver", "0"))


def harm(directory: Path, fault: str, seed: int, config: dict[str, str] | None = None) -> Outcome:
    """Does it to one file of a server of its own, which is started again afterwards."""
    dice = random.Random(f"{fault} {seed}")
    server = LiveServer(directory, {"mappedFileSizeCommitLog": str(FILE)} | (config or {}))
    server.start()
    try:
        load = _Load(server)
        threads = load.start()
        enough = dice.randrange(50, 3000)
        until(lambda: load.acknowledged >= enough or load.refusals, lambda: load)
        path = dice.choice((*_files(server, "commitlog"), *_files(server, "commitlog"), *_files(server, "queue")))
        outcome = Outcome(f"{fault} {seed}: {path.relative_to(server.store)}")
        FAULTS[fault](path, dice)
        load.is_harmed = True
        until(lambda: not load.is_working() or len(load.sent_after) > 1000, lambda: load)
        load.is_over = True
        for thread in threads:
            thread.join(PATIENCE)
            assert not thread.is_alive(), load
        outcome.is_refused = bool(load.refusals)
        _look(server, load, outcome)
    finally:
        code = server.stop()
    if code != 0:
        outcome.crashes.append(f"the server ended with {code}")
    found = _found_anew(server, outcome)
    outcome.lost = [body for body in load.sent_after if body not in found]
    outcome.untold += [line for line in server.defects() if "panicked" in line]
    return outcome


def _files(server: LiveServer, kind: str) -> list[Path]:
    """The last file of the log, and the one before, or those of the queues."""
    if kind == "commitlog":
        return sorted((server.store / "commitlog").iterdir())[-3:]
    return sorted((server.store / "consumequeue" / TOPIC).glob("*/*"))


def _look(server: LiveServer, load: _Load, outcome: Outcome) -> None:
    try:
        with Wire(server.broker) as wire:
            before = passed_over(wire)
            given = {queue_id: pulled(wire, queue_id) for queue_id in range(QUEUES)}
            after, is_harm_told = passed_over(wire), "storeHarm" in figures(wire)
    except OSError as error:
        outcome.crashes.append(repr(error))
        return
    missing = sum(highest - len(bodies) for bodies, highest in given.values())
    if missing != after - before:
        outcome.silent.append(f"{missing} are missing, {before} and {after} were told")
    if missing:
        until(lambda: "cannot be given to consumers" in _log(server), "a line of the log")
    if not load.refusals:
        return
    refusal = next(iter(load.refusals))
    if not (refusal.startswith(str(SERVICE_NOT_AVAILABLE)) and str(server.store) in refusal and is_harm_told):
        outcome.untold.append(refusal)
    until(lambda: "another process has changed the file" in _log(server), "a line of the log")


def _log(server: LiveServer) -> str:
    return (server.directory / "server.log").read_text(errors="replace")


def _found_anew(server: LiveServer, outcome: Outcome) -> set[bytes]:
    """Messages that the server finds on what is left, or a reader where it says that it must not change that."""
    found: set[bytes] = set()
    try:
        with server, Wire(server.broker) as wire:
            for queue_id in range(QUEUES):
                found.update(pulled(wire, queue_id)[0])
    except RuntimeError as error:
        if not any(words in str(error) for words in ("nothing is cut", "nothing was changed")):
            outcome.untold.append(str(error)[-500:])
        # that it says so is the point
        with open_store(server.store) as store, warnings.catch_warnings(action="ignore", category=DamageWarning):
            for batch in store.scan(TOPIC, columns=["body"]).to_arrow().to_batches():
                found.update(batch.column(0).to_pylist())
    return found
