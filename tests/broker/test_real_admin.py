"""The same requests to a real broker of 4.9.4 and to the control plane, over sockets: the same answers."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import closing
from typing import Any, NamedTuple

import pytest

from rmqfast.remoting import RemotingClient, RemotingServer, Response
from rmqfast.remoting.fastjson import decode
from tests.broker.control_plane import ControlPlane
from tests.broker.recorded_messages import append
from tests.broker.test_recorded_admin import shown_body
from tests.interop.rocketmq import RocketMQ
from tests.waiting import until

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]
ANY_TIME = {"beginTimestamp": "0", "endTimestamp": str((1 << 63) - 1)}
TOPIC = {
    "topic": "tt",
    "defaultTopic": "TBW102",
    "readQueueNums": "3",
    "writeQueueNums": "2",
    "perm": "6",
    "topicFilterType": "SINGLE_TAG",
    "topicSysFlag": "0",
    "order": "false",
}
QUEUE = {"topic": "tt", "queueId": "0", "timestamp": "0", "index": "0", "count": "2"}
GROUP = b'{"groupName":"gg","retryMaxTimes":3,"consumeBroadcastEnable":false}'


class Asked(NamedTuple):
    """A request; `why` says what is meant to differ: then the codes tell, ours is 1."""

    code: int
    fields: Mapping[str, str] = {}
    body: bytes = b""
    why: str = ""


_ASKED = [
    Asked(17, TOPIC),
    *(Asked(17, TOPIC | {"topic": name}) for name in ("", "../x", "a" * 128, "TBW102", "broker-a", "DefaultCluster")),
    *(Asked(17, TOPIC | {"topic": name}) for name in ("SCHEDULE_TOPIC_XXXX", "rmq_sys_abc", "%RETRY%x", "gone")),
    Asked(17, TOPIC | {"topicFilterType": "X"}, why="a stack trace"),
    Asked(17, TOPIC | {"perm": "x"}, why="a stack trace"),
    Asked(17, TOPIC | {"topic": "x", "readQueueNums": "-1"}, why="a topic without queues is none"),
    Asked(17, TOPIC | {"topic": "x", "perm": "99"}, why="there is no such permission"),
    Asked(21),
    Asked(200, body=GROUP),
    Asked(200, body=b"xx", why="a stack trace"),
    Asked(200, body=b'{"groupName":"../x"}', why="no consumer could use it"),
    Asked(207, {"groupName": "../x"}),
    Asked(201),
    Asked(202, {"topic": "tt"}),
    Asked(202, {"topic": "nope"}),
    Asked(208, {"consumerGroup": "gg"}),
    Asked(208, {"consumerGroup": "gg", "topic": "tt"}),
    Asked(208, {"consumerGroup": "nope"}),
    Asked(300, {"topic": "tt"}),
    Asked(300, {"topic": "nope"}),
    Asked(303, {"topic": "tt", "group": "gg"}),
    Asked(303, {"topic": "nope", "group": "gg"}),
    Asked(305),
    Asked(317, {"isOrder": "false"}),
    Asked(317, {"isOrder": "true"}),
    Asked(321, QUEUE),
    Asked(321, QUEUE | {"consumerGroup": "gg"}),
    *(Asked(321, QUEUE | {"index": index}) for index in ("3", "99", "-1")),
    *(Asked(321, QUEUE | {"count": count}) for count in ("0", "-1", "99")),
    *(Asked(321, QUEUE | changed) for changed in ({"topic": "nope"}, {"queueId": "-1"})),
    *(Asked(code, QUEUE) for code in (29, 30, 31, 32)),
    *(Asked(code, QUEUE | {"topic": "nope"}) for code in (29, 30, 31, 32)),
    *(Asked(code, QUEUE | {"topic": "../y", "queueId": "-1"}) for code in (29, 30, 31, 32)),
    *(Asked(code, QUEUE | {"queueId": "99999999999"}, why="a stack trace") for code in (29, 30, 31, 32)),
    *(Asked(29, QUEUE | {"timestamp": when}) for when in ("9999999999999", "-1", "1795232100000")),
    *(Asked(12, {"topic": "tt", "key": key, "maxNum": "32"} | ANY_TIME) for key in ("all", "k1", "u2", "nope")),
    Asked(12, {"topic": "tt", "key": "all", "maxNum": "2"} | ANY_TIME),
    Asked(12, {"topic": "tt", "key": "u1", "maxNum": "0", "_UNIQUE_KEY_QUERY": "true"} | ANY_TIME),
    Asked(12, {"topic": "tt", "key": "u1", "maxNum": "0"} | ANY_TIME),
    Asked(12, {"topic": "tt", "key": "u1", "maxNum": "-1"} | ANY_TIME, why="a stack trace"),
    *(Asked(33, {"offset": offset}) for offset in ("0", "1", "-5", "99999999")),
    Asked(33, why="a stack trace"),
    Asked(45),
    Asked(315, {"statsName": "TOPIC_PUT_NUMS", "statsKey": "nope"}),
    Asked(315, {"statsName": "X", "statsKey": "nope"}),
    Asked(26),
    Asked(28),
    *(Asked(25, body=body) for body in (b"", b"xx=y\n", b"\\u00zz", b"defaultQueryMaxNum=31\n")),
    Asked(26),
    *(Asked(code) for code in (306, 316, 329)),
    *(Asked(215, {"topic": name}) for name in ("gone", "nope", "../x", "", "TBW102", "SELF_TEST_TOPIC")),
    Asked(207, {"groupName": "gg", "removeOffset": "true"}),
    Asked(207, {"groupName": "nope"}),
    Asked(208, {"consumerGroup": "gg"}),
    Asked(21),
    Asked(201),
    Asked(301, why="there are no filter servers here"),
    Asked(4242),
]
#: What is meant to differ comes last, so that it changes nothing that is compared.
ASKED = sorted(_ASKED, key=lambda asked: bool(asked.why))


def sent(client: RemotingClient) -> list[bytes]:
    """Sends messages, and fetches them as they were stored."""
    for number in range(5):
        properties = f"KEYS\x01k{number} all\x02TAGS\x01a\x02UNIQ_KEY\x01u{number}"
        header = {
            "producerGroup": "pg",
            "topic": "tt",
            "defaultTopic": "TBW102",
            "defaultTopicQueueNums": "4",
            "queueId": str(number % 2),
            "sysFlag": "0",
            "bornTimestamp": str(int(time.time() * 1000)),
            "flag": "0",
            "properties": properties,
            "reconsumeTimes": "0",
        }
        client.ask(10, header, b"x" * 10)
        stored = time.time_ns()
        until(lambda stored=stored: time.time_ns() > stored + 1_000_000, "each has a time of its own")  # type: ignore[misc]
    # a message is in the index after it is in its queue, and after those before it
    last = {"topic": "tt", "key": "k4", "maxNum": "1"} | ANY_TIME
    until(lambda: client.request(12, last).code == 0, "the last message is listed")
    records: list[bytes] = []
    for _ in range(5):
        records.append(client.ask(33, {"offset": str(sum(map(len, records)))}).body)
    return records


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Response, Response]]:
    """What we and a real broker answered to each request."""
    with RocketMQ("4.9.4", tmp_path_factory.mktemp("real"), clean=False) as cluster:
        values = {"listenPort": str(cluster.broker_port), "enablePropertyFilter": "true"}
        values |= {"diskMaxUsedSpaceRatio": "95", "fileReservedTime": "87600"}
        with (
            closing(ControlPlane(tmp_path_factory.mktemp("ours") / "store", values)) as plane,
            RemotingServer(plane.processors) as server,
            RemotingClient(cluster.broker) as real,
        ):
            ours = RemotingClient(server.listen("127.0.0.1:0"))
            for client in (real, ours):
                client.ask(17, TOPIC)
            for record in sent(real):
                append(plane, record)
            real.ask(15, {"consumerGroup": "gg", "topic": "tt", "queueId": "0", "commitOffset": "1"})
            plane.tables.commit_offset("gg", "tt", 0, 1)
            # before that 28 is answered by a NoSuchElementException: StoreStatsService asks for the last of no counts
            until(lambda: real.request(28).code == 0, "the broker has counted what it stores")
            return [tuple(client.request(*asked[:3]) for client in (ours, real)) for asked in ASKED]  # type: ignore[misc]


@pytest.mark.parametrize("row", range(len(ASKED)), ids=[f"{row} {asked.code}" for row, asked in enumerate(ASKED)])
def test_the_answer_is_a_real_broker_s(row: int, answers: list[tuple[Response, Response]]) -> None:
    asked, (ours, theirs) = ASKED[row], answers[row]
    if asked.why:
        assert ours.code in {1, 3}
        assert theirs.code in {0, 1}
        return
    assert (ours.code, ours.remark) == (theirs.code, theirs.remark)
    assert shown_fields(ours) == shown_fields(theirs)
    assert shown(asked.code, ours.body) == shown(asked.code, theirs.body)


def shown_fields(answer: Response) -> Any:
    """The header, without the time of the version of the configuration."""
    fields = dict(answer.ext_fields or {})
    return fields | ({"version": decode(fields["version"].encode())["counter"]} if "version" in fields else {})


def shown(code: int, body: bytes) -> Any:
    """The body, without times that are those of the asking."""
    if code in {21, 201} and body:
        table = decode(body)
        return table | {"dataVersion": table["dataVersion"]["counter"]}, list(table)
    if code == 303 and body:
        return [span | {"delayTime": 0} for span in decode(body)["consumeTimeSpanSet"]]
    return shown_body(code, body)
