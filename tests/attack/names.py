"""Names by the ten thousand: groups, topics, offsets of groups."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial

from rmqfast.errors import RmqError
from rmqfast.remoting import RemotingClient, RequestCode
from rmqfast.remoting.fastjson import encode
from tests.attack.figures import Figure, Scale, median_ms, memory, milliseconds
from tests.broker.interop.cluster import Cluster
from tests.broker.live_server import Wire
from tests.broker.mutations import json_frame

_TIMEOUT = 120.0
_SAMPLES = 200
#: Groups in one heartbeat of those that are only to be there: a real broker ends the connection of one with many.
_OF_A_CLIENT = 100


def heartbeat(client: RemotingClient, client_id: str, groups: list[str]) -> int:
    """The code that answers a heartbeat of a consumer in these groups."""
    wanted = [{"topic": "t", "subString": "*", "subVersion": 1, "expressionType": "TAG"}]
    kinds = {"consumeType": "CONSUME_PASSIVELY", "messageModel": "CLUSTERING", "unitMode": False}
    kinds["consumeFromWhere"] = "CONSUME_FROM_LAST_OFFSET"
    consumers = [{"groupName": group, "subscriptionDataSet": wanted} | kinds for group in groups]
    body = encode({"clientID": client_id, "consumerDataSet": consumers, "producerDataSet": []})
    return client.request(RequestCode.HEART_BEAT, body=body, timeout=_TIMEOUT).code


def create(client: RemotingClient, topic: str) -> None:
    """Makes a topic as an administrator does."""
    made = {"topic": topic, "defaultTopic": "TBW102", "readQueueNums": "4", "writeQueueNums": "4", "perm": "6"}
    kinds = {"topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "order": "false"}
    answer = client.request(RequestCode.UPDATE_AND_CREATE_TOPIC, made | kinds, timeout=_TIMEOUT)
    assert answer.code == 0, answer


def new_groups(cluster: Cluster, scale: Scale) -> list[Figure]:
    """First heartbeats of groups, in an empty broker and beside many groups."""
    with RemotingClient(cluster.broker) as client:
        first = median_ms(lambda number: heartbeat(client, "one", [f"first-{number}"]), _SAMPLES)
        fill_groups(cluster.broker, scale.groups)
        later = median_ms(lambda number: heartbeat(client, "one", [f"later-{number}"]), _SAMPLES)
    return [
        Figure("first heartbeat of a group, none there, p50", first, "ms", 2),
        Figure(f"first heartbeat of a group, {scale.groups:,} there, p50", later, "ms", 2),
    ]


def fill_groups(address: str, count: int) -> None:
    """Makes so many groups, by heartbeats of clients that come and go."""
    for start in range(0, count, _OF_A_CLIENT):
        with RemotingClient(address) as client:
            heartbeat(client, f"c{start}", [f"g-{start + number}" for number in range(_OF_A_CLIENT)])


def new_topics(cluster: Cluster, scale: Scale) -> list[Figure]:
    """Topics that an administrator makes, in an empty broker and beside many topics."""
    with RemotingClient(cluster.broker) as client:
        first = median_ms(lambda number: create(client, f"first-{number}"), _SAMPLES)
        for number in range(scale.topics):
            create(client, f"many-{number}")
        later = median_ms(lambda number: create(client, f"later-{number}"), _SAMPLES)
    return [
        Figure("creation of a topic, none there, p50", first, "ms", 3),
        Figure(f"creation of a topic, {scale.topics:,} there, p50", later, "ms", 3),
    ]


def many_groups_at_once(cluster: Cluster, scale: Scale) -> list[Figure]:
    """Ten heartbeats with a thousand new groups each, and somebody who makes topics meanwhile."""
    clients, is_over, longest = 10, threading.Event(), [0.0]

    def bystander() -> None:
        with RemotingClient(cluster.broker) as client:
            number = 0
            while not is_over.is_set():
                longest.append(milliseconds(partial(create, client, f"bystander-{number}")))
                number += 1

    def attacker(number: int) -> None:
        with RemotingClient(cluster.broker) as client, suppress(RmqError):
            heartbeat(client, f"a{number}", [f"a-{number}-{group}" for group in range(scale.groups // clients)])

    with ThreadPoolExecutor(clients + 1) as threads:
        watching = threads.submit(bystander)
        list(threads.map(attacker, range(clients)))
        is_over.set()
        watching.result()
    what = f"{clients} heartbeats with {scale.groups // clients:,} new groups: a bystander's new topic, longest"
    return [Figure(what, max(longest), "ms", 100)]


def many_offsets(cluster: Cluster, scale: Scale) -> list[Figure]:
    """One connection that commits offsets for more and more groups, a bystander's offset, and a restart."""
    mine = {"consumerGroup": "bystander", "topic": "t", "queueId": "0"}
    with RemotingClient(cluster.broker) as client:
        client.ask(RequestCode.UPDATE_CONSUMER_OFFSET, mine | {"commitOffset": "999"})
        before = memory(cluster)
        _commit_for_many(cluster.broker, scale.offsets)
        after = memory(cluster)
    begun = time.perf_counter()
    cluster.stop()
    stopped = time.perf_counter() - begun
    cluster.start()
    with RemotingClient(cluster.broker) as client:
        answer = client.request(RequestCode.QUERY_CONSUMER_OFFSET, mine)
    lost = 999 - int((answer.ext_fields or {}).get("offset", "0"))
    what = f"offsets of {scale.offsets:,} groups from one connection"
    return [
        Figure(f"{what}: a bystander's offset is short by, after a restart", lost, "", 0, is_time=False),
        Figure(f"{what}: memory", after - before, "MiB", 64, is_time=False),
        Figure(f"{what}: the broker ends within", stopped, "s", 5),
    ]


def _commit_for_many(address: str, count: int) -> None:
    """One-way requests as fast as they are taken; a last one that is answered tells that all were."""
    name = "x" * 60
    with Wire(address) as wire:
        for start in range(0, count, 1_000):
            frames = []
            for number in range(start, start + 1_000):
                fields = {"consumerGroup": f"{name}{number}", "topic": "t", "queueId": "0", "commitOffset": "5"}
                frames.append(json_frame(RequestCode.UPDATE_CONSUMER_OFFSET, fields, b"", flag=2))
            wire.socket.sendall(b"".join(frames))
        wire.ask(RequestCode.GET_MAX_OFFSET, {"topic": "t", "queueId": "0"})
