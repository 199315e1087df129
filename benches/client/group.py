"""Which requests are timed, and how the clients take turns on the two brokers."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import broker.group
from broker import wire
from broker.sides import Rmqfast, RocketMQ, Side, raise_open_files
from client import bare, go
from data import Dataset, scratch_dir
from groups import Plan
from machine import ROOT
from measurement import Effort, Series, Variants, checked, interleave, take, unmeasured
from peer import Answer, Failed, Missing, Peer

STORED = 200_000
WAITING, WAITED_SECONDS = 1_000_000, 5
FILLED_AT_ONCE = 100_000
BENCHES = Path(__file__).parent.parent
BINDING = Path(os.environ.get("RMQFAST_BINDING_PYTHON") or ROOT / ".venv-binding/bin/python")
#: Name of the row, its request, messages of a run, threads or messages on their way.
SENDS = (("sync 1", "sync", 8_000, 1), ("sync 4", "sync", 24_000, 4), ("async", "async", 60_000, 256))
ROWS = {
    "Java": ("sync 1", "sync 4", "async", "pull 32"),
    "Go": ("sync 1", "sync 4", "async"),
    "binding": ("sync 1", "sync 4"),
    "bare": ("sync 1", "async", "batch", "columns"),
    "rmqfast": ("sync 1", "sync 4", "async", "batch", "columns", "pull 32", "push 32", "push 1"),
    "own": ("async", "columns", "pull 1024", "push 32", "push 1"),
}


@dataclass(frozen=True)
class Asker:
    """One client: what is asked of it, and why it is not there, if so."""

    name: str
    ask: Callable[..., Answer] | None
    missing: Exception | None = None


def client(plan: Plan) -> list[Series]:
    """All rows of both sizes: sends, pulls, pushes, and the memory of a consumer whose listener is slow."""
    raise_open_files()
    scale = 1.0 if plan.memory_gib >= 5 else 0.05
    return [series for dataset in plan.datasets for series in of_size(dataset, plan.effort, scale)]


def of_size(dataset: Dataset, effort: Effort, scale: float) -> list[Series]:
    """The rows of one size, in turns; then the memory, each time of a new process."""
    at, size = dataset.label, dataset.body
    with ExitStack() as stack:
        theirs = entered(stack, RocketMQ)
        own = entered(stack, Rmqfast)
        askers = [*of_rocketmq(stack, theirs), rmqfast_clients(stack, "own", own)]
        variants: Variants = {}
        missing: list[Series] = []
        for asker in askers:
            names = [(row, f"client {asker.name} {row} {at}") for row in ROWS[asker.name]]
            if asker.ask is None:
                missing += [unmeasured(name, asker.missing or Missing("not there")) for _, name in names]
            else:
                variants |= {name: requests(asker.ask, size, scale)[row] for row, name in names}
        fill(askers, size, scale)
        series = interleave(by_row(variants), effort, []) + missing
        return [*series, memory(own, askers[-1], dataset, effort, scale)]


def by_row(variants: Variants) -> Variants:
    """Rows of the same name next to each other, so that a slow second hits all who are compared."""
    order = [row for rows in ROWS.values() for row in rows]
    return dict(sorted(variants.items(), key=lambda item: order.index(item[0].split(" ", 2)[2].rsplit(" ", 1)[0])))


def requests(ask: Callable[..., Answer], size: int, scale: float) -> Variants:
    made: Variants = {name: partial(ask, word, "sent", size, int(n * scale), extra) for name, word, n, extra in SENDS}
    made["batch"] = partial(ask, "batch", "sent", size, int(128_000 * scale), 64)
    made["columns"] = partial(ask, "columns", "sent", size, int(128_000 * scale), 64)
    stored = int(STORED * scale)

    def whole(*request: object) -> Callable[[], Answer]:
        return lambda: checked(ask(*request), rows=stored)

    made["pull 32"], made["pull 1024"] = whole("pull", "stored", 32, 8), whole("pull", "stored", 1024, 4)
    made["push 32"], made["push 1"] = whole("push", "stored", 32), whole("push", "stored", 1)
    return made


def entered(stack: ExitStack, kind: type[Side]) -> Side | Exception:
    """A cluster with the topics, or why there is none."""
    try:
        side = stack.enter_context(kind())
        for topic in ("sent", "stored", "waiting"):
            wire.create_topic(side.address, topic, 4)
    except (Missing, Failed, OSError) as error:
        return error
    return side


def of_rocketmq(stack: ExitStack, side: Side | Exception) -> list[Asker]:
    """All clients of RocketMQ's broker."""
    if isinstance(side, Exception):
        return [Asker(name, None, side) for name in ("Java", "Go", "binding", "bare", "rmqfast")]
    return [
        asker(stack, side, "Java", lambda: broker.group.clients(side)),
        go_client(side),
        asker(stack, side, "binding", binding),
        Asker("bare", partial(bare.ask, side)),
        rmqfast_clients(stack, "rmqfast", side),
    ]


def rmqfast_clients(stack: ExitStack, name: str, side: Side | Exception) -> Asker:
    """Our clients of a broker."""
    return Asker(name, None, side) if isinstance(side, Exception) else asker(stack, side, name, rmqfast_process)


def asker(stack: ExitStack, side: Side, name: str, start: Callable[[], Peer]) -> Asker:
    """A client in a process of its own, connected."""
    try:
        peer = stack.enter_context(start())
        peer.ask("connect", side.name_server)
    except (Missing, Failed, OSError) as error:
        return Asker(name, None, error)
    return Asker(name, peer.ask)


def rmqfast_process() -> Peer:
    """A process with our clients."""
    path = os.pathsep.join([str(BENCHES), *filter(None, [os.environ.get("PYTHONPATH")])])
    if importlib.util.find_spec("rmqfast.client") is None:
        raise Missing("rmqfast has no clients")
    return Peer([sys.executable, "-m", "client.ours"], log("client"), {"PYTHONPATH": path})


def binding() -> Peer:
    """A process with librocketmq's Python binding, in an environment of its own."""
    if not BINDING.exists():
        raise Missing(
            f"{BINDING} is not there: python -m venv .venv-binding; .venv-binding/bin/pip install rocketmq==0.4.4"
        )
    return Peer(
        [str(BINDING), str(BENCHES / "client/binding.py")],
        log("binding"),
        {"PYTHONPATH": "", "HOME": str(scratch_dir())},
    )


def go_client(side: Side) -> Asker:
    """The Go client: a process for each run."""
    try:
        program = go.build()
    except (Missing, Failed) as error:
        return Asker("Go", None, error)
    return Asker("Go", partial(go.ask, program, side.name_server))


def log(name: str) -> Path:
    """The log file of a child process."""
    return scratch_dir() / "logs" / f"{name}.log"


def fill(askers: list[Asker], size: int, scale: float) -> None:
    """The messages that are read: by the first client of each broker that is there, ours last."""
    brokers = [[each for each in askers[:-1] if each.name in ("Java", "rmqfast")], askers[-1:]]
    for clients in brokers:
        if there := [each.ask for each in clients if each.ask is not None]:
            there[0]("async", "stored", size, int(STORED * scale), 256)


def memory(side: Side | Exception, filler: Asker, dataset: Dataset, effort: Effort, scale: float) -> Series:
    """MiB of a new process whose listener is slow, with a million messages before it."""
    series = Series(f"client rmqfast waiting {dataset.label}")
    if isinstance(side, Exception) or filler.ask is None:
        return unmeasured(series.name, side if isinstance(side, Exception) else filler.missing or Missing("not there"))
    total = int(WAITING * scale)
    for _ in range(total // int(FILLED_AT_ONCE * scale)):
        filler.ask("columns", "waiting", dataset.body, int(FILLED_AT_ONCE * scale), 64)

    def once() -> Answer:
        with rmqfast_process() as peer:
            peer.ask("connect", side.name_server)
            return checked(peer.ask("waiting", "waiting", WAITED_SECONDS), rows=total)

    for _ in range(effort.repeat):
        if series.missing is None:
            take(series, once)
    return series
