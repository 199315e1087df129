"""The group `live`: Spark's reads, streams and writes of live topics, a cell after the other."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

from broker import wire
from broker.group import together
from broker.sides import Rmqfast, RocketMQ
from broker.sides import Side as Broker
from client import bare
from data import QUEUES, TOPIC, discard, require_disk, scratch_dir
from goals import MARKS
from groups import Plan
from live.cells import CELLS, KAFKA, RATE, READY, Cell, Side
from live.peers import KEEPS, LACKING, RAISED
from live.sized import Sized, repeated, rows_of
from live.stage import Stage
from measurement import Effort, Series, Variants, checked, interleave, unmeasured
from peer import Answer
from processes import connections
from spark_peers import TUNED

#: Messages a second, and for how many seconds.
LAG = (50_000, 12)
#: The same, and the seconds of a batch in Real-Time Mode; Spark's least are 5.
REAL_TIME, SHORT = (10_000, 100, 30), (500, 20, 5)
NUMBERS = itertools.count()
BATCH = 256  # messages of a request, as a sink's `batchSize`


def live(plan: Plan) -> list[Series]:
    """The cells that are asked for; a dataset's topics are filled once, and are gone when its cells are done."""
    cells = [cell for cell in CELLS if cell.name in plan.cells or (not plan.cells and cell.unasked)]
    found: list[Series] = []
    for dataset in plan.live:
        try:
            with ExitStack() as stack:
                stage = Stage(dataset, plan, stack)
                for cell in cells:
                    if dataset.label in cell.sizes:
                        print(f"  {cell.name}, {dataset.label}", file=sys.stderr, flush=True)
                        found += measured(cell, stage)
        finally:
            discard(dataset)
    return found


def measured(cell: Cell, stage: Stage) -> list[Series]:
    """The sides in turns; one that lacks something leaves the others their chance."""
    plan, variants = stage.plan, Variants()
    missing: list[Series] = []
    for side in cell.sides:
        name = f"live {cell.name} {side.name} {stage.dataset.label}"
        try:
            variants[name] = JOBS[side.job or cell.job](cell, side, stage)
        except LACKING as error:
            missing.append(unmeasured(name, error))
    repeat = min(plan.effort.repeat, cell.rounds)
    if cell.figures:
        return [one for name, run in variants.items() for one in several(name, cell.figures, run, repeat)] + missing
    return interleave(variants, Effort(repeat, min(plan.effort.warm_ups, cell.warm_ups)), []) + missing


def several(name: str, figures: tuple[str, ...], run: Callable[[], Answer], repeat: int) -> list[Series]:
    """A series for each of the figures that one run gives."""
    series = [Series(f"{name} {figure}") for figure in figures]

    def once() -> dict[str, Answer]:
        answer = run()
        return {figure: {**answer, "value": answer[figure]} for figure in figures}

    together(series, once, repeat)
    return series


def read(cell: Cell, side: Side, stage: Stage) -> Callable[[], Answer]:
    """A batch read by Spark."""
    peer = stage.spark(cell.spark)
    if side.place:
        stage.topic(side.place)  # now, and not while a job is timed

    def ask(reads: int, rows: int) -> Answer:
        options = options_of(cell, side, stage, rows * QUEUES if side.source == READY else rows)
        count = rows_of(reads, rows)
        answer = peer.ask("read", side.source, options, cell.query, reads)
        if cell.query == "noop":
            return {**answer, "rows": count}
        return checked(answer, rows=count, bytes=count * stage.dataset.body)

    return sized(ask, cell, side, stage)


def pull(cell: Cell, side: Side, stage: Stage) -> Callable[[], Answer]:
    """The same by the bare puller."""
    address, peer = stage.topic(side.place).address, stage.reader

    def ask(reads: int, rows: int) -> Answer:
        return checked(peer.ask("pull", address, side.batch, reads, rows), rows=rows_of(reads, rows))

    return sized(ask, cell, side, stage)


def scan(cell: Cell, side: Side, stage: Stage) -> Callable[[], Answer]:
    """The same by a scan of the cluster into Arrow, whose batches are dropped."""
    address, peer = stage.topic(side.place).address, stage.reader
    columns = "" if side.name == "all" else cell.columns

    def ask(reads: int, rows: int) -> Answer:
        return checked(peer.ask("scan", address, side.batch, reads, rows, columns), rows=rows_of(reads, rows))

    return sized(ask, cell, side, stage)


def socket(cell: Cell, side: Side, stage: Stage) -> Callable[[], Answer]:
    """The bytes of as many rows of the broker's log, over a bare socket that drops them."""
    broker, peer, record = stage.broker(side.place), stage.reader, stage.dataset.record

    def ask(reads: int, rows: int) -> Answer:
        size = rows * QUEUES * record
        answer = peer.ask("socket", f"127.0.0.1:{broker.broker_port + 1}", reads, size)
        return {**answer, "rows": rows_of(reads, rows)}

    return sized(ask, cell, side, stage)


def mirror(cell: Cell, side: Side, stage: Stage) -> Callable[[], Answer]:
    """A copy of the log, from nothing to its end with queues and index, then the sum over it.

    A round's answer is what the whole log takes more than the last of its files, as often as that fills its seconds.
    """
    broker, dataset, peer = stage.broker(side.place), stage.dataset, stage.spark(cell.spark)
    scratch = scratch_dir() / "mirror"

    def once(begin: int) -> Answer:
        shutil.rmtree(scratch, ignore_errors=True)
        os.sync()  # nobody's dirty pages are left to be written
        try:
            copied = stage.follower.ask("lists", f"127.0.0.1:{broker.broker_port + 1}", begin, dataset.log_end, scratch)
            options = json.dumps({"storePath": str(scratch), "topic": TOPIC, "columns": cell.columns})
            summed = peer.ask("read", side.source, options, cell.query, 1)
            if begin == 0:
                checked(summed, rows=dataset.rows)
            return {name: copied[name] + summed[name] for name in ("seconds", "cpu_seconds")} | {"rows": summed["rows"]}
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    part = partial(once, dataset.last_file) if dataset.last_file > 0 else None
    return lambda: repeated(partial(once, 0), part, stage.plan.live_seconds)


def sized(ask: Callable[[int, int], Answer], cell: Cell, side: Side, stage: Stage) -> Sized:
    """A job at two sizes, of which it finds out the larger one while runs do not count."""
    queue_rows = stage.dataset.rows // QUEUES if side.place and cell.job != "write" else None
    tries = min(stage.plan.effort.warm_ups, cell.warm_ups)
    return Sized(ask, stage.plan.live_seconds * side.share, queue_rows, tries)


def stream(cell: Cell, side: Side, stage: Stage) -> Callable[[], Answer]:
    """A stream of batches of so many rows, as fast as they go."""
    rows = min(cell.rows, stage.dataset.rows // 4)  # of a quick run
    batches = min(cell.batches, stage.dataset.rows // rows)
    options = options_of(cell, side, stage, rows)
    ask = partial(stage.spark(cell.spark).ask, "stream", side.source, options, batches, side.manager)
    return lambda: checked(ask(), rows=(batches - 1) * rows)


def few(cell: Cell, side: Side, stage: Stage) -> Callable[[], Answer]:
    """A stream of batches that have next to nothing in them, of two queues: the value is ms from trigger to trigger."""
    topic = "" if side.source == RATE else stage.small_topic(2, cell.rows * (cell.batches + 8))
    options = options_of(cell, side, stage, cell.rows, topic=topic)
    return partial(stage.spark(cell.spark).ask, "stream", side.source, options, cell.batches, side.manager)


def lag(cell: Cell, side: Side, stage: Stage) -> Callable[[], Answer]:
    """The largest lag of a stream with a trigger a second while messages arrive, as a share of a trigger."""
    rate, seconds = int(LAG[0] * stage.plan.scale), LAG[1]
    broker, peer, sender = stage.broker(side.place), stage.spark(cell.spark), stage.sender

    def once() -> Answer:
        topic = new_topic(stage, 4)
        sender.ask("connect", broker.name_server)
        wire.call(broker.address, wire.message(topic, 0))
        peer.ask("follow", side.source, options_of(cell, side, stage, 0, topic=topic), 1, side.manager)
        try:
            sent = sender.ask("paced", topic, stage.dataset.body, rate * seconds, rate)
            found = checked(peer.ask("followed", sent["rows"] + 1, sent["began"], rate), rows=sent["rows"] + 1)
        finally:
            peer.ask("end")
        return {**found, "value": found["lag"] / rate}

    return once


def real_time(cell: Cell, side: Side, stage: Stage) -> Callable[[], Answer]:
    """Age of rows in Spark's Real-Time Mode, in ms."""
    rate, seconds, each = REAL_TIME if stage.plan.scale == 1 else SHORT
    peer, queues = stage.spark(cell.spark), 2  # a task each, as all of them must run at once

    def sent() -> tuple[str, Callable[[], Answer]]:
        """The source's options, and what is to be done while it is read."""
        if not side.place:
            return json.dumps({"rate": rate // queues, "tasks": queues}), partial(waited, seconds)
        topic, sender = new_topic(stage, queues), stage.sender
        sender.ask("connect", stage.broker(side.place).name_server)
        send = partial(sender.ask, "stamped", topic, stage.dataset.body, rate * seconds, rate)
        return options_of(cell, side, stage, 0, topic=topic), send

    def once() -> Answer:
        options, work = sent()
        peer.ask("real_time", side.source, options, each, side.manager)
        try:
            seconds_taken = work()["seconds"]
            found = peer.ask("real_time_ages", rate * each)
        finally:
            peer.ask("end")
        return {"seconds": seconds_taken, **found}

    return once


def waited(seconds: float) -> Answer:
    """Time goes by."""
    time.sleep(seconds)
    return {"seconds": seconds}


def endurance(cell: Cell, side: Side, stage: Stage) -> Callable[[], Answer]:
    """Memory, threads and connections of a stream's JVM after thousands of batches."""
    peer, scale = stage.spark(cell.spark), stage.plan.scale
    last = int(MARKS[-1] * scale)
    topic = "" if side.source == RATE else stage.small_topic(2, cell.rows * (last + 100))

    def once() -> Answer:
        peer.ask("follow", side.source, options_of(cell, side, stage, cell.rows, topic=topic), 0, side.manager)
        found: Answer = {}
        begin = time.perf_counter()
        try:
            for mark in MARKS:
                held = peer.ask("batches", int(mark * scale))
                held["connections"] = connections(stage.broker(side.place).broker_port) if side.place else 0
                found |= {f"{what}-{mark}": value for what, value in held.items()}
        finally:
            peer.ask("end")
        return {"rows": last, "seconds": time.perf_counter() - begin, **found}

    return once


def write(cell: Cell, side: Side, stage: Stage) -> Callable[[], Answer]:
    """A DataFrame into a topic of a broker that has nothing yet: what is written is gone after each run."""
    kind, limits = (RocketMQ, KEEPS) if side.place == "RocketMQ" else (Rmqfast, RAISED)
    peer, body = stage.spark(cell.spark), stage.dataset.body

    def sent(broker: Broker, count: int) -> Answer:
        """Sends by the side's sink; without a sink, ready requests of the same size, four in flight."""
        if side.source:
            options = json.dumps({"nameServer": broker.name_server, "topic": "written"})
            return peer.ask("write", side.source, options, body, count)
        batch = min(BATCH, count)
        return bare.ask(broker, "columns", "written", body, count // batch * batch, batch)

    def once(timed: Sized) -> Answer:
        with kind(limits) as broker:
            wire.create_topic(broker.address, "written", QUEUES)

            def stored(least: int) -> int:
                return int(stage.reader.ask("stored", broker.name_server, "written", least)["rows"])

            def ask(_reads: int, rows: int) -> Answer:
                require_disk(rows * QUEUES * (body + 300))
                before, count = stored(0), rows * QUEUES
                answer = sent(broker, count)
                count = answer["rows"]
                return checked({**answer, "stored": stored(before + count) - before}, stored=count)

            timed.ask = ask
            return timed()

    return partial(once, sized(lambda _reads, _rows: {}, cell, side, stage))


def options_of(cell: Cell, side: Side, stage: Stage, rows: int, *, topic: str = TOPIC) -> str:
    """A source's options as JSON; `rows` are those of a queue that a batch reads, or those of a batch of a stream."""
    streams = (side.job or cell.job) != "read"
    if side.source == READY:
        return json.dumps({"body": stage.dataset.body, "rows": rows, "tasks": QUEUES})
    if side.source == RATE:
        return json.dumps({"rowsPerBatch": rows, "numPartitions": 2})
    place = stage.topic(side.place)
    if side.source == KAFKA:
        until = json.dumps({place.name: {str(queue): rows for queue in range(QUEUES)}})
        return json.dumps(
            {"kafka.bootstrap.servers": place.address, "subscribe": place.name, "endingOffsets": until} | TUNED
        )
    options: dict[str, str | int] = {"topic": topic, "startingOffsets": "earliest"}
    if side.via == "store":
        options["storePath"] = str(place.files)
    else:
        options |= {"nameServer": place.address, "pullBatchSize": side.batch}
        options |= {"via": side.via} if side.via else {}
    options |= {"columns": cell.columns} if cell.columns else {}
    if not streams:
        options["endingOffsets"] = json.dumps({topic: {"*": {str(queue): rows for queue in range(QUEUES)}}})
    elif rows:
        options |= {"maxOffsetsPerTrigger": rows, "minPartitions": 2}
    return json.dumps(options)


def new_topic(stage: Stage, queues: int) -> str:
    """A topic of our broker that nobody had before."""
    topic = f"load_{next(NUMBERS)}"
    wire.create_topic(stage.broker("rmqfast").address, topic, queues)
    return topic


JOBS: dict[str, Callable[[Cell, Side, Stage], Callable[[], Answer]]] = {
    "read": read,
    "pull": pull,
    "scan": scan,
    "socket": socket,
    "mirror": mirror,
    "stream": stream,
    "few": few,
    "lag": lag,
    "real-time": real_time,
    "endurance": endurance,
    "write": write,
}
