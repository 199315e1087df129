"""Two consumers of one group that want other tags: whose subscription the broker keeps, heartbeat by heartbeat."""

from __future__ import annotations

from pathlib import Path

from rmqfast.remoting.fastjson import decode, encode

from .client_control import Control
from .client_doubles import Line, request

GROUP, TOPIC = "conflict", "orders"


class Consumer:
    """A push consumer: the version of its subscription is the time of its last rebalance that changed something."""

    def __init__(self, control: Control, name: str, tag: str) -> None:
        self.control = control
        self.line = Line(f"192.0.2.7:{name}")
        self.name = name
        self.tag = tag
        self.version = 0

    def heartbeat(self, version: int | None = None) -> None:
        self.version = self.version if version is None else version
        wanted = {
            "topic": TOPIC,
            "subString": self.tag,
            "tagsSet": [self.tag],
            "codeSet": [ord(self.tag)],
            "subVersion": self.version,
            "expressionType": "TAG",
        }
        retry = {"topic": f"%RETRY%{GROUP}", "subString": "*", "subVersion": 1, "expressionType": "TAG"}
        consumer = {
            "groupName": GROUP,
            "consumeType": "CONSUME_PASSIVELY",
            "messageModel": "CLUSTERING",
            "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
            "subscriptionDataSet": [wanted, retry],
        }
        body = encode({"clientID": self.name, "consumerDataSet": [consumer], "producerDataSet": []})
        assert self.control.answer(request(34, self.line, body)).code == 0


def test_the_newest_subscription_is_everybodys(tmp_path: Path) -> None:
    control = Control(tmp_path)
    one, two = Consumer(control, "1", "A"), Consumer(control, "2", "B")

    def kept() -> tuple[str, int]:
        expression_type, sub_string, version, codes = control.tables.subscriptions[GROUP, TOPIC]
        assert expression_type == "TAG"
        assert codes == [ord(sub_string)]
        return sub_string, version

    one.heartbeat(100)
    assert kept() == ("A", 100)
    assert one.line.notified() == [GROUP]

    two.heartbeat(200)
    assert kept() == ("B", 200)
    assert one.line.notified() == two.line.notified() == [GROUP], "a channel more: both share the queues out anew"

    one.heartbeat(300)  # it has fewer queues now: its subscription is newer
    assert kept() == ("A", 300)
    two.heartbeat(301)  # and so is that of the other one, which has queues now
    assert kept() == ("B", 301)
    assert one.line.sent == two.line.sent == [], "of other tags nobody is told"

    for _ in range(3):  # every 30 seconds
        one.heartbeat()
        two.heartbeat()
        assert kept() == ("B", 301), "an older one does not come back"

    answer = control.answer(request(203, consumerGroup=GROUP))
    told = decode(answer.body)
    assert told["subscriptionTable"][TOPIC]["tagsSet"] == ["B"]
    assert [connection["clientId"] for connection in told["connectionSet"]] == ["1", "2"]

    control.clients.closed(two.line)
    assert one.line.notified() == [GROUP]
    one.heartbeat()
    assert kept() == ("B", 301), "even when only the loser is left"
    one.heartbeat(400)  # it has all queues again
    assert kept() == ("A", 400)
