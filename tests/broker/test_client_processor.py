"""HEART_BEAT, UNREGISTER_CLIENT, CHECK_CLIENT_CONFIG; connections that end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rmqfast.remoting import Response
from rmqfast.remoting.fastjson import encode
from rmqfast.store.config import ConsumerFilterTable, SubscriptionGroupConfig

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


def hear(control: Control, line: Line, group: str = "g", client_id: str = "c", **members: Any) -> None:
    """Hears a heartbeat of one group."""
    assert control.answer(request(34, line, heartbeat(group, client_id=client_id, **members))) == Response()


def test_all_are_told_of_a_newcomer_and_the_newcomer_too(control: Control) -> None:
    first, second = Line("1:1"), Line("2:2")
    hear(control, first, client_id="one")
    assert first.notified() == ["g"]
    for notices in (["g"], []):
        hear(control, second, client_id="two")
        assert (first.notified(), second.notified()) == (notices, notices)


def test_the_broker_may_forbid_all_notices(control: Control) -> None:
    control.is_notifying = False
    line, other = Line("1:1"), Line("2:2")
    hear(control, line)
    hear(control, other, client_id="other")
    control.clients.on_closed(line)
    assert (line.sent, other.sent) == ([], [])


def test_the_data_plane_has_the_last_model_and_the_newest_subscriptions(control: Control) -> None:
    line, newer = Line(), {"topic": "t", "subString": "B", "tagsSet": ["B"], "codeSet": [66], "subVersion": 6}
    hear(control, line)
    assert control.tables.online == {"g": "CLUSTERING"}
    hear(control, line, messageModel="BROADCASTING", subscriptionDataSet=[newer, newer | {"topic": "u"}])
    assert control.tables.online == {"g": "BROADCASTING"}
    assert {key: it.sub_string for key, it in control.tables.subscriptions.items()} == {
        ("g", "t"): "B",
        ("g", "u"): "B",
    }
    hear(control, line, messageModel="BROADCASTING", subscriptionDataSet=[newer])
    assert set(control.tables.subscriptions) == {("g", "t")}


def test_who_disconnects_leaves_all_groups_and_the_others_are_told(control: Control) -> None:
    gone, stays = Line("1:1"), Line("2:2")
    control.answer(request(34, gone, heartbeat("g", "alone", client_id="gone")))
    hear(control, stays, client_id="stays")
    before = control.consumers.group("g")
    gone.sent.clear()
    stays.sent.clear()
    control.clients.on_closed(gone)
    assert (gone.notified(), stays.notified()) == ([], ["g"])
    assert control.tables.online == {"g": "CLUSTERING"}
    # what the client brought stays with the group, and what was asked of it before does not change
    assert set(control.tables.subscriptions) == {("g", "t")}
    assert before is not None
    assert len(before.clients) == 2
    assert control.consumers.client_ids("g") == ["stays"]
    control.clients.on_closed(gone)
    assert stays.sent == []


def test_expressions_of_a_group_that_ends_are_dead_unless_it_was_only_silent(control: Control) -> None:
    sql = {"topic": "t", "expressionType": "SQL92", "subString": "a > 1", "subVersion": 1}
    for group in ("silent", "closed"):
        line = Line()
        hear(control, line, group, subscriptionDataSet=[sql])
    control.clients.on_closed(line)
    control.time += 120_001
    control.clients.scan()
    control.filters.persist(now=control.time)
    saved = control.metadata.load(ConsumerFilterTable)
    assert {group: data.dead for (_, group), data in saved.items()} == {"silent": False, "closed": True}


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
