"""How the queues of a topic are shared out among the members of a group that come and go.

Four members, each with an instance name of its own, as processes would have them. A broker tells all members as soon as
one comes or goes; each of them then asks for the topic's queues and for the members, sorts both, and takes its part:
nobody gives it out. Each row below is one change, after it has settled.
"""

from __future__ import annotations

from collections import Counter
from itertools import chain

from place import Place, chosen, until
from rmqfast import Message
from rmqfast.admin import Admin
from rmqfast.client.lite_pull import LitePullConsumer, LitePullOptions
from rmqfast.client.producer import Producer

QUEUES = 8
MEMBERS = ("a", "b", "c", "d")


class Members:
    """Those members of a group that are there, by name."""

    def __init__(self, place: Place, topic: str, group: str) -> None:
        self._place, self._topic, self._group = place, topic, group
        self.there: dict[str, LitePullConsumer] = {}
        self.sent, self.got = 0, Counter[bytes | None]()

    def come(self, name: str) -> None:
        """One more member, who has its queues when this returns."""
        consumer = LitePullConsumer(
            self._group,
            name_server=self._place.name_server,
            instance_name=name,
            options=LitePullOptions(auto_commit=False),
        )
        consumer.subscribe(self._topic)
        consumer.start()
        self.there[name] = consumer
        self.settle(f"{name} comes")

    def go(self, name: str) -> None:
        """One member less."""
        self.there.pop(name).shutdown()
        self.settle(f"{name} goes")

    def settle(self, change: str) -> None:
        """Waits until each queue has one owner, and all have their part; prints who has what."""
        until(self.is_shared_out)
        parts = (" ".join(map(str, self.queues_of(name))) or "-" for name in MEMBERS)
        print(f"{change:9}" + "".join(f" | {part:15}" for part in parts).rstrip())

    def queues_of(self, name: str) -> list[int]:
        """The queues that a member has."""
        return sorted(queue.queue_id for queue in self.there[name].assignment) if name in self.there else []

    def is_shared_out(self) -> bool:
        parts = [self.queues_of(name) for name in self.there]
        sizes = [len(part) for part in parts]
        return sorted(chain(*parts)) == list(range(QUEUES)) and max(sizes) - min(sizes) <= 1

    def poll(self) -> None:
        """Takes what was sent so far, and stores the offsets: who gets a queue begins where its last owner stored."""

        def take() -> bool:
            for consumer in self.there.values():
                self.got.update(message.body for message in consumer.poll(0.05))
            return len(self.got) == self.sent

        until(take)
        for consumer in self.there.values():
            consumer.commit(consumer.assignment, persist=True)


def main(place: Place) -> None:
    topic, group = place.named("shared"), place.named("sharing")
    with Admin(name_server=place.name_server) as admin, Producer("example", name_server=place.name_server) as producer:
        admin.create_topic(topic, queues=QUEUES)
        until(lambda: len(producer.fetch_publish_message_queues(topic)) == QUEUES)
        members = Members(place, topic, group)

        def send_and_poll() -> None:
            for _ in range(5 * QUEUES):
                producer.send(Message(topic, b"message %d" % members.sent))
                members.sent += 1
            members.poll()

        print("who has which of the 8 queues:")
        print(f"{'change':9}" + "".join(f" | {name:15}" for name in MEMBERS).rstrip())
        for name in MEMBERS:
            members.come(name)
            send_and_poll()
        for name in ("b", "d", "a"):
            members.go(name)
            send_and_poll()
        twice = members.got.total() - len(members.got)
        print(f"{len(members.got)} of {members.sent} messages consumed, {twice} twice")
        for consumer in members.there.values():
            consumer.shutdown()


if __name__ == "__main__":
    with chosen(__doc__) as place:
        main(place)
