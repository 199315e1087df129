"""Two members of one group that want different tags: messages that count as consumed, and that nobody saw.

Four queues; the first member wants TagA and has queues 0 and 1, the second wants TagB and has queues 2 and 3. A broker
keeps one subscription of a group: the newest, here TagB. Eight messages with TagB, B0 to B7, go to the queues in turn.
The broker lets all of them through; but those of queues 0 and 1 come to the first member, which compares their tag with
its own subscription and drops them. The offsets pass over them as soon as a pull has ended without messages, which is
after the 15 seconds for which a broker holds it; it takes half a minute in all.

Then the second member stops. The first takes its queues over, and the broker keeps the first one's subscription, which
is newer than the messages: neither what members want now nor who has a queue now tells what became of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from place import Place, chosen, until
from rmqfast import Message, MessageQueue
from rmqfast.admin import Admin, Explanation
from rmqfast.client.producer import Producer
from rmqfast.client.push import ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, PushConsumer


class Member:
    """A member of the group, and what it consumed."""

    def __init__(self, place: Place, name: str, tag: str) -> None:
        self.name, self.tag, self.consumed = name, tag, list[str]()
        self.topic = place.named("inconsistent")
        group = place.named("subscribers")
        self.consumer = PushConsumer(group, name_server=place.name_server, instance_name=name)
        self.consumer.subscribe(self.topic, tag)
        self.consumer.register_message_listener(self.listen)

    def listen(self, messages: Sequence[Any], _context: ConsumeConcurrentlyContext) -> ConsumeConcurrentlyStatus:
        self.consumed += [message.body.decode() for message in messages]
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    def queues(self) -> list[int]:
        return sorted(q.queue_id for q in self.consumer.running_info()["mqTable"] if q.topic == self.topic)


def main(place: Place) -> None:
    topic, group = place.named("inconsistent"), place.named("subscribers")
    with ExitStack() as stack:
        admin = stack.enter_context(Admin(name_server=place.name_server))
        producer = stack.enter_context(Producer("example", name_server=place.name_server))
        admin.create_topic(topic, queues=4)
        until(lambda: len(producer.fetch_publish_message_queues(topic)) == 4)
        members = start(place, stack)
        second = members[1]
        # The newest subscription counts; which member's rebalance was the last one is up to chance.
        second.consumer.subscribe(topic, second.tag)
        until(lambda: kept(admin, group, topic) == second.tag)
        for member in members:
            print(f"{member.name} wants {member.tag}, has queues {member.queues()}")
        print(f"the broker takes the whole group to want {kept(admin, group, topic)}")
        for conflict in admin.groups.subscription_conflicts(group):
            print(f"conflict: {plain(str(conflict))}")

        queues = sorted(producer.fetch_publish_message_queues(topic))
        sent = [producer.send(Message(topic, b"B%d" % n, tags="TagB"), queues[n % 4]) for n in range(8)]
        until(lambda: len(second.consumed) == 4)
        until(lambda: offsets(admin, group, queues) == [2, 2, 2, 2])
        for member in members:
            print(f"{member.name} consumed {sorted(member.consumed)}")
        print(f"offsets of queues 0 to 3: {offsets(admin, group, queues)}")
        messages = [admin.view_message(result.offset_msg_id) for result in sent]
        for message in messages:
            track = next(each for each in admin.messages.track(message) if each.group == group)
            told = admin.explain(message, group)
            print(f"{message.body.decode()}: {track.track_type}; {told.outcome}: {why(told)}")
        print("B0, B1, B4, B5: offsets passed them, message_track says CONSUMED, and no listener saw them")

        second.consumer.shutdown()
        until(lambda: kept(admin, group, topic) == members[0].tag)
        print(f"{second.name} stops: the broker takes the whole group to want {kept(admin, group, topic)}")
        for message in messages[:3:2]:
            print(f"{message.body.decode()}: {admin.explain(message, group).outcome}")
    print("B0 was lost and B2 consumed: what members want and have now does not tell any more, a trace would")


def start(place: Place, stack: ExitStack) -> tuple[Member, Member]:
    """Two members; the queues go to them in the order of their names."""
    members = Member(place, "wants_A", "TagA"), Member(place, "wants_B", "TagB")
    for member in members:
        stack.enter_context(member.consumer)
    until(lambda: [member.queues() for member in members] == [[0, 1], [2, 3]])
    return members


def kept(admin: Admin, group: str, topic: str) -> str:
    """The expression that the broker has of the group."""
    return admin.groups.connections(group).subscriptions[topic].sub_string


def offsets(admin: Admin, group: str, queues: list[MessageQueue]) -> list[int]:
    """How far the group is in each queue, as the broker knows it."""
    stats = admin.groups.progress(group, queues[0].topic)
    return [max(row.consumer_offset, 0) if (row := stats.of_queue(queue)) else 0 for queue in queues]


def why(told: Explanation) -> str:
    return plain("; ".join(told.sentences))


def plain(text: str) -> str:
    """A text with the members' instance names for their client ids."""
    return " ".join(word.rpartition("@")[2] for word in text.split(" "))


if __name__ == "__main__":
    with chosen(__doc__) as place:
        main(place)
