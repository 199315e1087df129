"""HEART_BEAT, UNREGISTER_CLIENT, CHECK_CLIENT_CONFIG; connections that end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rmqfast.remoting import Response
from rmqfast.remoting.fastjson import encode
from rmqfast.store.config import SubscriptionGroupConfig

from .client_control import Control
from .client_doubles import Line, request


@pytest.fixture
def control(tmp_path: Path) -> Control:
    return Control(tmp_path)


def heartbeat(*groups: str, client_id: str = "c", producers: tuple[str, ...] = (), **members: Any) -> bytes:
    """A heartbeat of groups that want topic `t`."""
    wanted = [{"topic": "t", "subString": "*", "subVersion": 5, "expressionType": "TAG"}]
    consumers = [
        {
            "groupName": group,
            "consumeType": "CONSUME_PASSIVELY",
            "messageModel": "CLUSTERING",
            "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
            "subscriptionDataSet": wanted,
            **members,
        }
        for group in groups
    ]
    data = [{"groupName": group} for group in producers]
    return encode({"clientID": client_id, "consumerDataSet": consumers, "producerDataSet": data})


def test_a_heartbeat_registers_all_its_groups_and_notifies(control: Control) -> None:
    line = Line()
    answer = control.answer(request(34, line, heartbeat("g", "h", producers=("p", "q"))))
    assert answer == Response()
    assert line.notified() == ["g", "h"]
    assert control.consumers.client_ids("g") == control.consumers.client_ids("h") == ["c"]
    assert set(control.producers.table()) == {"p", "q"}
    assert control.created == {"%RETRY%g": (1, 0), "%RETRY%h": (1, 0)}
    assert set(control.tables.online) == {"g", "h"}


def test_a_heartbeat_of_numbers_and_texts_registers_what_java_reads_in_it(control: Control) -> None:
    """Enums as ordinals, as librocketmq writes them; numbers as texts."""
    subscription = {"topic": "t", "subString": "A", "subVersion": "5", "tagsSet": ["A"], "codeSet": ["65"]}
    wanted = heartbeat("g", consumeType=1, messageModel=1, consumeFromWhere=4, subscriptionDataSet=[subscription])
    assert control.answer(request(34, Line(), wanted)) == Response()
    group = control.consumers.group("g")
    assert group is not None
    assert (group.consume_type, group.message_model) == ("CONSUME_PASSIVELY", "CLUSTERING")
    assert group.consume_from_where == "CONSUME_FROM_FIRST_OFFSET"
    kept = control.consumers.subscription("g", "t")
    assert kept is not None
    assert (kept.sub_string, kept.sub_version, kept.code_set) == ("A", 5, (65,))


def test_the_retry_topic_has_the_groups_queues_and_the_units_flag(control: Control) -> None:
    control.groups["g"] = SubscriptionGroupConfig(group_name="g", retry_queue_nums=3)
    control.answer(request(34, Line(), heartbeat("g", unitMode=True)))
    assert control.created == {"%RETRY%g": (3, 2)}


def test_a_group_without_configuration_has_no_retry_topic_but_is_registered(control: Control) -> None:
    control.is_creating_groups = False
    line = Line()
    control.answer(request(34, line, heartbeat("g")))
    assert control.created == {}
    assert control.consumers.client_ids("g") == ["c"]
    assert line.notified() == ["g"]


def test_a_group_that_forbids_notices_gets_none_until_somebody_disconnects(control: Control) -> None:
    control.groups["g"] = SubscriptionGroupConfig(group_name="g", notify_consumer_ids_changed_enable=False)
    stays, leaves, breaks = Line("1:1"), Line("2:2"), Line("3:3")
    for number, line in enumerate((stays, leaves, breaks)):
        control.answer(request(34, line, heartbeat("g", client_id=f"c{number}")))
    control.answer(request(35, leaves, clientID="c1", consumerGroup="g"))
    assert stays.sent == []
    control.clients.on_closed(breaks)
    assert stays.notified() == ["g"]


def test_unregistering_leaves_what_is_named(control: Control) -> None:
    line, other = Line("1:1"), Line("2:2")
    control.answer(request(34, line, heartbeat("g", producers=("p",))))
    control.answer(request(34, other, heartbeat("g", client_id="d")))
    line.sent.clear()
    other.sent.clear()
    assert control.answer(request(35, line, clientID="c", producerGroup="p")) == Response(ext_fields={})
    assert control.producers.table() == {}
    assert control.consumers.client_ids("g") == ["c", "d"]
    assert control.answer(request(35, line, clientID="c", consumerGroup="g")).code == 0
    assert control.consumers.client_ids("g") == ["d"]
    assert (line.notified(), other.notified()) == ([], ["g"])
    assert control.answer(request(35, line, clientID="c", consumerGroup="nobody", producerGroup="nobody")).code == 0


def test_unregistering_need_not_say_who(control: Control) -> None:
    line = Line()
    control.answer(request(34, line, heartbeat("g", producers=("p",))))
    assert control.answer(request(35, line, consumerGroup="g", producerGroup="p")) == Response(ext_fields={})
    assert control.producers.table() == {}
    assert control.consumers.client_ids("g") == []


def test_a_connection_that_ended_while_its_heartbeat_was_read_leaves_nothing(control: Control) -> None:
    line = Line()
    line.close()
    control.answer(request(34, line, heartbeat("g", producers=("p",))))
    assert control.consumers.names() == []
    assert control.producers.table() == {}


def test_who_is_silent_for_120_seconds_is_closed(control: Control) -> None:
    silent, alive = Line("1:1"), Line("2:2")
    control.answer(request(34, silent, heartbeat("g", producers=("p",))))
    control.time += 100_000
    control.answer(request(34, alive, heartbeat("g", client_id="d")))
    alive.sent.clear()
    control.time += 20_000
    control.clients.scan()
    assert silent.is_open
    control.time += 1
    control.clients.scan()
    assert (silent.is_open, alive.is_open) == (False, True)
    assert control.consumers.client_ids("g") == ["d"]
    assert alive.sent == [], "a scan notifies nobody"


@pytest.mark.parametrize("body", [b"", b"{}", b'{"clientId":"c","subscriptionData":null}'])
def test_nothing_to_check_is_sound(control: Control, body: bytes) -> None:
    assert control.answer(request(46, body=body)) == Response()
