"""Many clients that are connected, heartbeat and have a pull held; one message, and when it came to each of them."""

from __future__ import annotations

import json
import select
import socket
import time
from contextlib import ExitStack

from broker import wire
from broker.sides import Side
from peer import Answer, Failed

TOPIC = "bench_crowd"
IN_A_GROUP = 50  # of all consumers of a group each is told of each that comes
HOLD_MS = 120_000


def heartbeat(number: int) -> bytes:
    """The heartbeat of a push consumer of its own."""
    group = f"crowd_{number // IN_A_GROUP}"
    subscription: dict[str, object] = {
        "classFilterMode": False,
        "codeSet": [],
        "expressionType": "TAG",
        "subString": "*",
        "subVersion": 1,
    }
    subscription |= {"tagsSet": [], "topic": TOPIC}
    consumer: dict[str, object] = {
        "consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET",
        "consumeType": "CONSUME_PASSIVELY",
        "groupName": group,
    }
    consumer |= {"messageModel": "BROADCASTING", "subscriptionDataSet": [subscription], "unitMode": False}
    body = {"clientID": f"crowd@{number}", "consumerDataSet": [consumer], "producerDataSet": []}
    return wire.frame(wire.HEART_BEAT, {}, json.dumps(body).encode(), opaque=1)


def pull(number: int, offset: int) -> bytes:
    """A pull at the end of the queue, to be held."""
    fields: dict[str, object] = {"consumerGroup": f"crowd_{number // IN_A_GROUP}", "topic": TOPIC, "queueId": 0}
    fields |= {"queueOffset": offset, "maxMsgNums": 32, "sysFlag": wire.SUSPENDED_WITH_SUBSCRIPTION, "commitOffset": 0}
    fields |= {"suspendTimeoutMillis": HOLD_MS, "subscription": "*", "subVersion": 0, "expressionType": "TAG"}
    return wire.frame(wire.PULL_MESSAGE, fields, opaque=2)


def crowd(side: Side, clients: int) -> dict[str, Answer]:
    """99th percentile of the delivery in ms, and the memory of the cluster while all were held in MiB."""
    wire.create_topic(side.address, TOPIC, 1)
    with ExitStack() as stack:
        connections = [stack.enter_context(socket.create_connection(side.address, 10)) for _ in range(clients)]
        for number, connection in enumerate(connections):
            connection.sendall(heartbeat(number))
            wire.answer(connection)
        for number, connection in enumerate(connections):
            connection.sendall(pull(number, 0))
        time.sleep(3)
        for number, connection in enumerate(connections):  # once more, as they do every 30 seconds
            connection.sendall(heartbeat(number))
        resident = side.resident_mib
        took = delivered(side, connections)
    if len(took) < clients:
        raise Failed(f"{side.name}: {len(took)} of {clients} held pulls were answered")
    return {
        "delivery": {"rows": clients, "seconds": took[-1], "value": took[clients * 99 // 100] * 1000},
        "memory": {"rows": clients, "seconds": took[-1], "value": resident},
    }


def delivered(side: Side, connections: list[socket.socket]) -> list[float]:
    """Seconds from just before the send until each connection had its message, in order."""
    poll = select.epoll()
    by_number = {connection.fileno(): connection for connection in connections}
    for connection in connections:
        connection.settimeout(0)
        poll.register(connection.fileno(), select.EPOLLIN)
    drain(poll, by_number, 2.0)
    begin = time.perf_counter()
    with socket.create_connection(side.address, 5) as sender:
        sender.sendall(wire.message(TOPIC, 0))
        took, waiting = [], set(by_number)
        while waiting and time.perf_counter() - begin < 20:
            for number, _ in poll.poll(0.5):
                data = by_number[number].recv(1 << 16)
                if number in waiting and b"nextBeginOffset" in data:
                    waiting.remove(number)
                    took.append(time.perf_counter() - begin)
        wire.answer(sender)
    poll.close()
    return took


def drain(poll: select.epoll, by_number: dict[int, socket.socket], seconds: float) -> None:
    """Reads away answers to heartbeats and what a broker tells of its own."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for number, _ in poll.poll(0.1):
            if b"nextBeginOffset" in by_number[number].recv(1 << 16):
                raise Failed("a pull that should be held was answered")
