"""What a producer and a consumer send, in the fewest words."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from rmqfast import EmbeddedCluster
from rmqfast.broker import BrokerConfig
from rmqfast.remoting import RemotingClient, RequestCode, Response
from rmqfast.remoting.fastjson import decode
from tests.disks import ROOMY
from tests.waiting import PATIENCE, until

__all__ = [
    "SMALL",
    "Clock",
    "address_of",
    "broker_config",
    "broker_threads",
    "pull",
    "pull_fields",
    "route",
    "send",
    "until",
    "update_config",
]

SUSPEND, SUBSCRIPTION = 2, 4
#: Short files, so that a store is small.
SMALL = ROOMY | {"mappedFileSizeCommitLog": "1048576", "maxHashSlotNum": "1000", "maxIndexNum": "4000"}


def broker_config(root: Path, **values: str) -> BrokerConfig:
    """A broker's with a small store, at any port."""
    own = {"storePathRootDir": str(root), "listenPort": "0", "brokerName": "broker-a"}
    return BrokerConfig(SMALL | own | values)


def send(address: str, topic: str, body: bytes, *, tries: int = 0, **properties: str) -> Response:
    """Sends a message to the first queue as clients of 4.9 do; `tries` is how often it was consumed in vain."""
    fields = {"a": "P", "b": topic, "c": "TBW102", "d": "4", "e": "0", "f": "0", "g": "1", "h": "0", "j": str(tries)}
    fields |= {"i": "\x02".join(f"{name}\x01{value}" for name, value in properties.items()), "k": "false"}
    with RemotingClient(address, timeout=PATIENCE) as client:
        return client.request(RequestCode.SEND_MESSAGE_V2, fields, body)


def pull(address: str, topic: str, *, offset: int = 0, suspend: int = 0, sql: str | None = None) -> Response:
    """Pulls up to 32 messages of the first queue; waits `suspend` milliseconds for the first."""
    with RemotingClient(address, timeout=PATIENCE) as client:
        fields = pull_fields(topic, offset=offset, suspend=suspend)
        fields |= {} if sql is None else {"subscription": sql, "expressionType": "SQL92"}
        return client.request(RequestCode.PULL_MESSAGE, fields, timeout=suspend / 1000 + PATIENCE)


def pull_fields(topic: str, *, queue_id: int = 0, offset: int = 0, suspend: int = 0) -> dict[str, str]:
    """The fields of a pull."""
    return {
        "consumerGroup": "G",
        "topic": topic,
        "queueId": str(queue_id),
        "queueOffset": str(offset),
        "maxMsgNums": "32",
        "sysFlag": str(SUBSCRIPTION | (SUSPEND if suspend else 0)),
        "commitOffset": "0",
        "suspendTimeoutMillis": str(suspend),
        "subscription": "*",
        "subVersion": "0",
        "expressionType": "TAG",
    }


def update_config(address: str, **values: str) -> Response:
    """Changes the configuration of a broker, as `mqadmin updateBrokerConfig` does."""
    with RemotingClient(address, timeout=PATIENCE) as client:
        text = "".join(f"{key}={value}\n" for key, value in values.items())
        return client.request(RequestCode.UPDATE_BROKER_CONFIG, body=text.encode())


def route(name_server: str, topic: str) -> dict[str, dict[str, int]]:
    """Queues and permission of a topic by broker, as a name server tells; nothing where it does not know the topic."""
    with RemotingClient(name_server, timeout=PATIENCE) as client:
        answer = client.request(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic})
    return {queues["brokerName"]: queues for queues in decode(answer.body)["queueDatas"]} if answer.code == 0 else {}


class Clock:
    """A broker's: the time of this machine, and so many milliseconds more."""

    def __init__(self, ahead: int = 0) -> None:
        self.ahead = ahead

    def __call__(self) -> int:
        return time.time_ns() // 1_000_000 + self.ahead


def broker_threads() -> set[threading.Thread]:
    """The threads of brokers and name servers, those of other tests among them."""
    return {thread for thread in threading.enumerate() if thread.name.startswith("rmqfast-")}


def address_of(cluster: EmbeddedCluster) -> str:
    """The address of the first broker."""
    return cluster.brokers[0].address
