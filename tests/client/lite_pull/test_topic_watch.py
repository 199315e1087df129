"""Who is told when a topic has got other queues."""

from __future__ import annotations

from rmqfast import MessageQueue
from rmqfast.client.lite_pull.lite_pull_member import TopicWatch
from rmqfast.errors import ClientError

A, B = MessageQueue("t", "broker-a", 0), MessageQueue("t", "broker-b", 1)


def test_listeners_hear_of_other_queues_and_of_none() -> None:
    there: dict[str, frozenset[MessageQueue]] = {"t": frozenset({A}), "u": frozenset()}

    def fetch(topic: str) -> frozenset[MessageQueue]:
        if topic not in there:
            raise ClientError("nobody has the topic")
        return there[topic]

    heard: list[tuple[str, int]] = []
    watch = TopicWatch(fetch)
    watch.register("t", lambda topic, queues: heard.append((topic, len(queues))))
    watch.register("u", lambda topic, queues: heard.append((topic, len(queues))))
    watch.register("none", lambda *_: heard.append(("none", 0)))
    watch.fetch_all()
    watch.compare()
    assert heard == [("u", 0)], "a topic without queues counts as changed"
    there["t"] = frozenset({A, B})
    watch.register("u", lambda *_: 1 / 0)
    watch.compare()
    assert heard[1:] == [("t", 2)]
