"""A name server and a broker in one, which answer what a test says."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rmqfast.remoting import Processor, RemotingServer, Request, RequestCode, Response


@contextmanager
def hostile_broker(
    stats: str, queue_datas: list[dict[str, Any]] | None = None, more: Mapping[int, Processor] | None = None
) -> Iterator[str]:
    """Serves a topic of one queue whose statistics are such a text; the address of both.

    Args:
        stats: The members of the queue in a `TopicStatsTable`.
        queue_datas: Those of the route; one queue unless given.
        more: What answers other requests, by their codes.
    """
    addresses: list[str] = []

    def route(_: Request) -> Response:
        queues = queue_datas or [{"brokerName": "broker-a", "perm": 6, "readQueueNums": 1, "writeQueueNums": 1}]
        brokers = [{"brokerAddrs": {"0": addresses[0]}, "brokerName": "broker-a", "cluster": "c"}]
        return Response(body=json.dumps({"brokerDatas": brokers, "queueDatas": queues}).encode())

    def offsets(_: Request) -> Response:
        queue = '{"brokerName":"broker-a","queueId":0,"topic":"orders"}'
        return Response(body=f'{{"offsetTable":{{{queue}:{{{stats}}}}}}}'.encode())

    processors: dict[int, Processor] = {
        RequestCode.GET_ROUTEINFO_BY_TOPIC: route,
        RequestCode.GET_TOPIC_STATS_INFO: offsets,
        **(more or {}),
    }
    with RemotingServer(processors) as server:
        addresses.append(server.listen("127.0.0.1:0"))
        yield addresses[0]
