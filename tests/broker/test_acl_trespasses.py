"""Rights on all that a request touches, at a broker with accounts; beside it a real 4.9.4, which looks at less."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rmqfast.broker import Broker
from rmqfast.remoting import RequestCode, ResponseCode
from tests.broker.acl_trespasses import (
    ACCOUNTS,
    ADMIN,
    BATCH,
    REFUSED,
    REPLY,
    SEND,
    SEND_V2,
    STRANGER,
    House,
    batch,
    dispatched,
    pulled,
    sent,
)
from tests.embedded.client import broker_config
from tests.interop.rocketmq import RocketMQ


@contextmanager
def house_of(root: Path, mode: str) -> Iterator[House]:
    """A broker of ours with the accounts."""
    (root / "home" / "conf").mkdir(parents=True)
    (root / "home" / "conf" / "plain_acl.yml").write_text(ACCOUNTS)
    values = {"aclEnable": "true", "aclMode": mode, "rocketmqHome": str(root / "home")}
    config = broker_config(root / "store", **values, enableMultiDispatch="true", enableLmq="true")
    with Broker(config) as broker, House(broker.address) as house:
        yield house


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    with house_of(tmp_path, "strict") as house:
        yield house


def test_who_has_no_right_to_what_a_request_touches_is_refused(house: House) -> None:
    before = house.counts()
    for asked in house.trespasses():
        answer = house.ask(STRANGER, asked.code, asked.fields, asked.body)
        assert (answer.code, REFUSED in str(answer.remark)) == (ResponseCode.SYSTEM_ERROR, True), (asked, answer)
    assert house.counts() == before


def test_a_broker_that_is_to_check_as_java_does_lets_all_of_it_pass(tmp_path: Path) -> None:
    with house_of(tmp_path, "java") as house:
        answers = [house.ask(STRANGER, asked.code, asked.fields, asked.body) for asked in house.trespasses()]
    assert not any(REFUSED in str(answer.remark) for answer in answers)


ALLOWED = [
    (SEND_V2, sent(SEND_V2, "%RETRY%own"), b"x"),
    (SEND_V2, sent(SEND_V2, "%RETRY%own", times=99), b"x"),
    (SEND, sent(SEND, "%DLQ%own"), b"x"),
    (SEND_V2, sent(SEND_V2, "mine", dispatched("%LMQ%own")), b"x"),
    (BATCH, sent(BATCH, "mine"), batch(dispatched("%LMQ%own"))),
    (SEND_V2, sent(SEND_V2, "RMQ_SYS_TRACE_TOPIC"), b"x"),
    (RequestCode.PULL_MESSAGE, pulled("mine"), b""),
    (RequestCode.PULL_MESSAGE, pulled("%RETRY%own"), b""),
    (RequestCode.PULL_MESSAGE, pulled("%DLQ%own"), b""),
]


def test_what_belongs_to_an_account_stays_allowed(house: House) -> None:
    for code, fields, body in ALLOWED:
        answer = house.ask(STRANGER, code, fields, body)
        assert answer.code == ResponseCode.SUCCESS, (fields, answer.remark)
    # nobody waits for the reply, which is another refusal
    answer = house.ask(STRANGER, REPLY, sent(REPLY, "DefaultCluster_REPLY_TOPIC"), b"x")
    assert "REPLY_TO_CLIENT" in str(answer.remark)


def test_an_offset_is_committed_and_read_by_who_may(house: House) -> None:
    place = {"consumerGroup": "own", "topic": "mine", "queueId": "0"}
    committed = house.ask(STRANGER, RequestCode.UPDATE_CONSUMER_OFFSET, place | {"commitOffset": "7"})
    assert committed.code == ResponseCode.SUCCESS, committed
    assert house.ask(STRANGER, RequestCode.QUERY_CONSUMER_OFFSET, place).ext_fields == {"offset": "7"}
    refused = house.ask(STRANGER, RequestCode.UPDATE_CONSUMER_OFFSET, place | {"topic": "secret", "commitOffset": "7"})
    assert REFUSED in str(refused.remark)


def test_a_message_is_sent_back_and_a_transaction_ended_by_who_may(house: House) -> None:
    got = house.offset_of(house.ask(STRANGER, SEND_V2, sent(SEND_V2, "mine"), b"x"))
    again = house.offset_of(house.ask(STRANGER, SEND_V2, sent(SEND_V2, "%RETRY%own"), b"x"))
    for offset in (got, again):
        fields = {"group": "own", "delayLevel": "1", "offset": str(offset), "unitMode": "false", "originTopic": "mine"}
        assert house.ask(STRANGER, RequestCode.CONSUMER_SEND_MSG_BACK, fields).code == ResponseCode.SUCCESS
    half = house.ask(STRANGER, SEND_V2, sent(SEND_V2, "mine", "TRAN_MSG\1true\2PGROUP\1own\2"), b"x")
    fields = {"producerGroup": "own", "tranStateTableOffset": (half.ext_fields or {})["queueOffset"]}
    fields |= {"commitOrRollback": "8", "commitLogOffset": str(house.offset_of(half)), "fromTransactionCheck": "false"}
    answer = house.ask(STRANGER, RequestCode.END_TRANSACTION, fields | {"msgId": "x", "transactionId": "x"})
    assert answer.code == ResponseCode.SUCCESS


@pytest.mark.parametrize("times", ["0", "99"])
def test_a_long_name_beside_a_short_one_is_not_the_topic(house: House, times: str) -> None:
    before = house.counts()
    for topic in ("secret", "%RETRY%other"):
        for target in ("mine", "%RETRY%own"):
            fields = sent(SEND_V2, target) | {"j": times, "topic": topic, "reconsumeTimes": times}
            assert house.ask(STRANGER, SEND_V2, fields, b"x").code == ResponseCode.SUCCESS
    assert house.counts() == before


def java_hash_twin(text: str) -> str:
    """Another text of the same length with the hash that Java gives it."""
    return text.replace("Aa", "BB")


def test_a_key_of_the_same_hash_finds_no_message_of_another_topic(house: House) -> None:
    for topic in ("AaBB", java_hash_twin("AaBB")):
        house.make_topic(topic)
    house.ask(ADMIN, SEND_V2, sent(SEND_V2, "AaBB", "KEYS\1k\2"), b"top secret")
    query = {"key": "k", "maxNum": "9", "beginTimestamp": "0", "endTimestamp": str(1 << 60)}

    def found(topic: str) -> bytes:
        return house.ask(ADMIN, RequestCode.QUERY_MESSAGE, query | {"topic": topic}).body

    assert b"top secret" in found("AaBB")
    assert found(java_hash_twin("AaBB")) == b""


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_real_broker_lets_most_of_it_pass(tmp_path: Path) -> None:
    (tmp_path / "mq" / "home" / "conf").mkdir(parents=True)
    (tmp_path / "mq" / "home" / "conf" / "plain_acl.yml").write_text(ACCOUNTS)
    settings = ("aclEnable=true", "enableMultiDispatch=true", "enableLmq=true", "mappedFileSizeCommitLog=1048576")
    with RocketMQ("4.9.4", tmp_path / "mq", *settings, clean=False) as cluster, House(cluster.broker) as house:
        before = house.counts()
        answers = {
            asked.name: house.ask(STRANGER, asked.code, asked.fields, asked.body) for asked in house.trespasses()
        }
        after = house.counts()
    assert not [name for name, answer in answers.items() if REFUSED in str(answer.remark)]
    assert all(int(after[topic]) > int(before[topic]) for topic in before), (before, after)
