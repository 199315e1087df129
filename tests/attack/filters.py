"""SQL92 filters of a mebibyte, which match nothing: what their pulls cost, and what other clients notice of them."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from functools import partial
from itertools import count
from pathlib import Path

from rmqfast.errors import RemotingTimeoutError, RmqError
from rmqfast.remoting import RemotingClient, RequestCode
from rmqfast.remoting.fastjson import encode
from tests.attack.figures import Figure, Scale, milliseconds
from tests.attack.names import create
from tests.broker.interop.cluster import Cluster

_MESSAGES = 800
_CONSUMERS = 12
_SECONDS = 6.0
_TIMEOUT = 120.0
_OF_A_SEND = 30.0


def filter_of(size: int) -> str:
    """An expression of so many bytes that looks at a property in each of its conditions, and matches no message."""
    parts, length = [], 0
    for number in count():
        parts.append(f"a = '{number}'")
        length += len(parts[-1]) + len(" OR ")
        if length > size - 20:
            return " OR ".join(parts)
    raise AssertionError


def subscribe(client: RemotingClient, group: str, expression: str) -> int:
    """The code that answers a heartbeat of a consumer with an expression."""
    wanted = {"topic": "filtered", "subString": expression, "subVersion": 1, "expressionType": "SQL92"}
    kinds = {"consumeType": "CONSUME_PASSIVELY", "messageModel": "CLUSTERING", "unitMode": False}
    kinds["consumeFromWhere"] = "CONSUME_FROM_LAST_OFFSET"
    consumer = {"groupName": group, "subscriptionDataSet": [wanted]} | kinds
    body = encode({"clientID": group, "consumerDataSet": [consumer], "producerDataSet": []})
    return client.request(RequestCode.HEART_BEAT, body=body, timeout=_TIMEOUT).code


def pull(client: RemotingClient, group: str, offset: int) -> Mapping[str, str]:
    """The fields that answer a pull."""
    fields = {
        "consumerGroup": group, "topic": "filtered", "queueId": "0", "queueOffset": str(offset), "maxMsgNums": "32",
        "sysFlag": "0", "commitOffset": "0", "suspendTimeoutMillis": "0", "subscription": "", "subVersion": "1",
        "expressionType": "SQL92",
    }  # fmt: skip
    return client.request(RequestCode.PULL_MESSAGE, fields, timeout=_TIMEOUT).ext_fields or {}


def send(client: RemotingClient, topic: str) -> None:
    """Sends a message with a property that the filters look at."""
    fields = {"a": "g", "b": topic, "c": "TBW102", "d": "4", "e": "0", "f": "0", "g": "0", "h": "0", "i": "a\1none\2"}
    answer = client.request(RequestCode.SEND_MESSAGE_V2, fields | {"j": "0", "k": "false"}, b"x", timeout=_OF_A_SEND)
    assert answer.code == 0, answer


def try_to_send(client: RemotingClient, topic: str) -> None:
    """Like `send`, but a missing answer is None after the timeout."""
    with suppress(RemotingTimeoutError):
        send(client, topic)


def processor_seconds(cluster: Cluster) -> float:
    fields = Path(f"/proc/{cluster.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def large_filters(cluster: Cluster, _scale: Scale) -> list[Figure]:
    """One pull, then consumers that pull without end beside a producer, then the end of the broker beside them."""
    expression = filter_of(1 << 20)
    with RemotingClient(cluster.broker) as client:
        create(client, "filtered")
        create(client, "other")
        for _ in range(_MESSAGES):
            send(client, "filtered")
        assert subscribe(client, "g", expression) == 0
        before = processor_seconds(cluster)
        fields = pull(client, "g", 0)
        figures = [Figure("one pull by a filter of 1 MiB", processor_seconds(cluster) - before, "CPU s", 0.5)]
        assert int(fields["nextBeginOffset"]) > 0
        with ExitStack() as stack:
            stopping = threading.Event()
            threads = [threading.Thread(target=pull_on, args=(cluster, f"g{n}", stopping)) for n in range(_CONSUMERS)]
            for thread in threads:
                thread.start()
                stack.callback(thread.join)
            stack.callback(stopping.set)
            end = time.monotonic() + _SECONDS
            slowest = 0.0
            while time.monotonic() < end:
                for topic in ("other", "filtered"):
                    slowest = max(slowest, milliseconds(partial(try_to_send, client, topic)))
            figures.append(Figure(f"slowest send beside {_CONSUMERS} consumers with such a filter", slowest, "ms", 500))
            figures.append(Figure("clean end of the broker beside them", milliseconds(cluster.stop), "ms", 5_000))
    return figures


def pull_on(cluster: Cluster, group: str, stopping: threading.Event) -> None:
    """Pulls as a consumer does, until it is to stop or the broker ends."""
    offset = 0
    with suppress(RmqError), RemotingClient(cluster.broker) as client:
        subscribe(client, group, filter_of(1 << 20))
        while not stopping.is_set():
            found = int(pull(client, group, offset).get("nextBeginOffset", 0))
            offset = found if found < _MESSAGES else 0
