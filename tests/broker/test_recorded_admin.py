"""What administrators asked a real broker of 4.9.4, and what it answered: the same, but for what is masked."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import pytest

import rmqfast
from rmqfast.broker.configuration.config_keys import UNUSED_KEYS
from rmqfast.remoting import RequestCode, Response
from rmqfast.remoting.fastjson import decode
from tests.broker.control_plane import ControlPlane
from tests.broker.pulled import records_of
from tests.wire_traffic import Exchange, exchanges

ANSWERED = {12, 17, 28, 26, 29, 33, 200, 202, 207, 208, 215, 300}
#: Of the header: the index of the recorded broker covers topics of which there is no record.
MASKED_FIELDS = {12: {"indexLastUpdateTimestamp", "indexLastUpdatePhyoffset"}, 26: {"version"}}
#: Where that broker ran, and values that follow from its machine.
MASKED_KEYS = {
    "storePathRootDir",
    "storePathCommitLog",
    "rocketmqHome",
    "namesrvAddr",
    "bitMapLengthConsumeQueueExt",
    *(f"{pool}ThreadPoolNums" for pool in ("sendMessage", "putMessageFuture", "pullMessage", "processReplyMessage")),
    *(f"{pool}ThreadPoolNums" for pool in ("queryMessage", "heartbeat", "endTransaction")),
}
#: The file that the recorded broker was started with.
BROKER_CONF = {
    "diskMaxUsedSpaceRatio": "95",
    "enablePropertyFilter": "true",
    "fileReservedTime": "87600",
    "mappedFileSizeCommitLog": "4194304",
    "mappedFileSizeConsumeQueue": "20000",
    "maxHashSlotNum": "1000",
    "maxIndexNum": "4000",
    "transactionCheckInterval": "3000",
    "transactionTimeOut": "1000",
}
#: The broker's own, and of each round of a consumer the last one, which the recorder did not see.
UNRECORDED_OFFSETS = [
    ("CID_RMQ_SYS_TRANS", "RMQ_SYS_TRANS_HALF_TOPIC", 0, 1),
    ("wire_live", "wire", 3, 1),
    ("wire_orderly", "wire", 3, 1),
]


def records() -> dict[int, bytes]:
    """The records of the topic `wire` that clients were given, by their offset in the log."""
    found: dict[int, bytes] = {}
    for exchange in exchanges("4.9.4"):
        if exchange.code in {11, 12, 33} and (exchange.response_header or {}).get("code") == 0:
            for record in records_of(exchange.response_body):
                found[int.from_bytes(record[28:36], "big")] = record
    return dict(sorted(found.items()))


def append(plane: ControlPlane, record: bytes) -> None:
    """Stores what a record says, at the time that it says."""
    queue_id, flag, _, _, sys_flag, born = struct.unpack_from(">iiqqiq", record, 12)
    host, port, stored = struct.unpack_from(">4siq", record, 48)
    times, prepared, size = struct.unpack_from(">iqi", record, 72)
    body, rest = record[88 : 88 + size], record[88 + size :]
    topic, properties = rest[1 : 1 + rest[0]].decode(), rest[3 + rest[0] :].decode()
    pairs = dict(pair.split("\x01") for pair in properties.split("\x02") if pair)
    pairs.pop("DELAY", None)  # it was delivered: to delay it once more would hide it
    plane.now = stored
    plane.store.append(
        rmqfast.Message(topic, body, properties=pairs, queue_id=queue_id, flag=flag, born_timestamp=born),
        born_host=f"{'.'.join(map(str, host))}:{port}",
        sys_flag=sys_flag,
        reconsume_times=times,
        prepared_transaction_offset=prepared,
    )


def prepare(plane: ControlPlane, exchange: Exchange) -> None:
    """What the requests of clients change, as far as administrators see it."""
    header = exchange.request_header.get("extFields") or {}
    if exchange.code == RequestCode.HEART_BEAT:
        plane.heartbeat(exchange.request_body)
    elif exchange.code == RequestCode.UNREGISTER_CLIENT:
        plane.leave(header)
    elif exchange.code == RequestCode.UPDATE_CONSUMER_OFFSET:
        queue, offset = int(header["queueId"]), int(header["commitOffset"])
        plane.tables.commit_offset(header["consumerGroup"], header["topic"], queue, offset)


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[int, Response]]:
    """Our answers to all that administrators asked, by row of the recording."""
    plane = ControlPlane(tmp_path_factory.mktemp("recorded") / "store", BROKER_CONF)
    left = [record for offset, record in records().items() if offset < 13_653]  # those behind it were sent at the end
    for group, topic, queue_id, offset in UNRECORDED_OFFSETS:
        plane.tables.commit_offset(group, topic, queue_id, offset)
    plane.topics.create_for_send_back("%RETRY%wire_live", 1)
    answers: dict[int, Response] = {}
    for exchange in exchanges("4.9.4"):
        if exchange.server != "broker" or (exchange.response_header is None and exchange.code not in {15, 35}):
            continue
        prepare(plane, exchange)
        if exchange.step == "pull" and left:
            for record in left:
                append(plane, record)
            left = []
        if exchange.code in ANSWERED:
            header = exchange.request_header.get("extFields") or {}
            answers[exchange.row] = plane.answer(exchange.code, header, exchange.request_body)
    yield answers
    plane.close()


ASKED = [exchange for exchange in exchanges("4.9.4") if exchange.code in ANSWERED and exchange.server == "broker"]


@pytest.mark.parametrize("exchange", ASKED, ids=str)
def test_an_answer_is_the_recorded_one(exchange: Exchange, replayed: dict[int, Response]) -> None:
    ours, theirs = replayed[exchange.row], exchange.response_header
    assert theirs is not None
    assert (ours.code, ours.remark) == (theirs["code"], theirs.get("remark"))
    assert shown_fields(exchange.code, ours.ext_fields) == shown_fields(exchange.code, theirs.get("extFields"))
    assert shown_body(exchange.code, ours.body) == shown_body(exchange.code, exchange.response_body)


def test_every_family_of_requests_was_recorded() -> None:
    assert {exchange.code for exchange in ASKED} == ANSWERED


def shown_fields(code: int, fields: Any) -> Any:
    masked = MASKED_FIELDS.get(code, set())
    return fields and {name: "masked" if name in masked else value for name, value in fields.items()}


def shown_body(code: int, body: bytes) -> Any:
    if code == RequestCode.GET_BROKER_CONFIG:
        values = dict(line.split("=", 1) for line in body.decode().splitlines())
        return {key: value for key, value in values.items() if key not in MASKED_KEYS | UNUSED_KEYS}
    if code == RequestCode.GET_BROKER_RUNTIME_INFO:  # figures of a machine and of times: the names count
        return {name.split("/")[0] for name in decode(body)["table"] if "scheduleMessageOffset" not in name}
    if code == RequestCode.GET_CONSUME_STATS:  # rates are of the seconds in which they are asked for
        return decode(body)["offsetTable"]
    if code == RequestCode.QUERY_TOPIC_CONSUME_BY_WHO:  # those of one bucket stand as they came
        return sorted(decode(body)["groupList"])
    return body
