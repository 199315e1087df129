"""The worked scenarios of RocketMQ's behaviour, with rmqfast's clients."""

from __future__ import annotations

from contextlib import ExitStack

from rmqfast import MessageQueue
from rmqfast._native import MessageView
from rmqfast.admin import Outcome, TrackType
from rmqfast.client.pull import PullConsumer, PullStatus
from rmqfast.client.push import PushConsumer
from rmqfast.errors import ClientError
from tests.admin.members import online_members

from .scene import Scene, Seen, until

_STARTS = ("CONSUME_FROM_LAST_OFFSET", "CONSUME_FROM_FIRST_OFFSET", "CONSUME_FROM_TIMESTAMP")


def _until_tag_b_is_kept(scene: Scene, group: str, topic: str, member: PushConsumer) -> None:
    """The newest subscription is that of the whole group: whoever told its own last has the say."""
    until(lambda: len(scene.admin.groups.subscription_conflicts(group)) == 1, "both are known to want different tags")

    def is_kept() -> bool:
        kept = scene.admin.groups.connections(group).subscriptions[topic].sub_string
        if kept != "TagB":
            member.subscribe(topic, "TagB")
        return kept == "TagB"

    until(is_kept, "the broker filters by TagB", every=1)


def of_eight_messages_of_a_tag_those_on_the_queues_of_the_other_member_are_lost(scene: Scene) -> None:
    """Article 004: two members of a group, one that wants TagA and one that wants TagB."""
    topic, group = "article", "inconsistent"
    queues = scene.topic(topic)
    wants_a, wants_b = Seen(), Seen()
    one = scene.push(group, topic, wants_a, "TagA", instance_name="1-wants-a")
    other = scene.push(group, topic, wants_b, "TagB", instance_name="2-wants-b")
    with one, other:
        shares = {one.client_id: [0, 1], other.client_id: [2, 3]}
        until(lambda: scene.owned(group, topic) == shares, f"{shares}")
        _until_tag_b_is_kept(scene, group, topic, other)
        sent = scene.send(queues, [b"B%d" % number for number in range(8)], tags="TagB")
        assert [result.queue.queue_id for result in sent] == [0, 1, 2, 3, 0, 1, 2, 3]
        until(lambda: scene.offsets(group, topic) == [2, 2, 2, 2], "the long polls have ended, and told the offsets")

        assert sorted(wants_b.bodies) == [b"B2", b"B3", b"B6", b"B7"]
        assert wants_a.bodies == []
        messages = [scene.admin.view_message(result.offset_msg_id) for result in sent]
        told = {message.body: scene.admin.explain(message, group) for message in messages}
        lost = {body for body, each in told.items() if each.outcome is Outcome.LOST}
        assert lost == {b"B0", b"B1", b"B4", b"B5"}
        assert {each.outcome for body, each in told.items() if body not in lost} == {Outcome.CONSUMED}
        for body in lost:
            assert one.client_id in told[body].sentence
            assert "tag check" in told[body].sentence
        for message in messages:
            tracks = {track.group: track.track_type for track in scene.admin.messages.track(message)}
            assert tracks[group] is TrackType.CONSUMED, "as it is of those that nobody processed"


def tracks_of_two_tags_say_what_the_offset_passed_and_not_what_was_processed(scene: Scene) -> None:
    """Article 004: as above, with messages of both tags by turns, while the broker filters by TagB."""
    topic, group = "tracked", "tracked_group"
    queues = scene.topic(topic)
    wants_a, wants_b = Seen(), Seen()
    one = scene.push(group, topic, wants_a, "TagA", instance_name="1-tracks-a")
    other = scene.push(group, topic, wants_b, "TagB", instance_name="2-tracks-b")
    messages: dict[str, MessageView] = {}

    def tracks() -> dict[str, TrackType]:
        found = {name: scene.admin.messages.track(message) for name, message in messages.items()}
        return {name: next(each.track_type for each in all_of if each.group == group) for name, all_of in found.items()}

    with one, other:
        shares = {one.client_id: [0, 1], other.client_id: [2, 3]}
        until(lambda: scene.owned(group, topic) == shares, f"{shares}")
        _until_tag_b_is_kept(scene, group, topic, other)
        for number in range(8):
            tag = "AB"[number % 2]
            (result,) = scene.send([queues[number % 4]], [b"%s%d" % (tag.encode(), number)], tags=f"Tag{tag}")
            messages[f"{tag}{number}"] = scene.admin.view_message(result.offset_msg_id)
        # what only a member drops is passed by the offset once the pull that waits has ended
        at_once = tracks()
        assert at_once["B1"] is TrackType.NOT_CONSUME_YET
        until(lambda: scene.offsets(group, topic) == [2, 2, 2, 2], "the long polls have ended, and told the offsets")
        passed = tracks()
    assert sorted(wants_b.bodies) == [b"B3", b"B7"]
    assert wants_a.bodies == []
    assert passed == {
        name: TrackType.CONSUMED_BUT_FILTERED if name.startswith("A") else TrackType.CONSUMED for name in messages
    }
    until(lambda: set(tracks().values()) == {TrackType.NOT_ONLINE}, "both have left")


def where_a_group_begins_depends_on_what_it_stored_and_where_it_wants_to(scene: Scene) -> None:
    """Article 001: three beginnings, of new groups and of one that has an offset."""
    topic = "beginnings"
    (queue,) = scene.topic(topic, 1)
    scene.topic("elsewhere", 1)
    scene.send([queue], [b"%d" % number for number in range(100)])
    with ExitStack() as stack:
        found: dict[str, tuple[Seen, int]] = {}
        for start in _STARTS:
            for stored in (None, 70):
                group = f"{start[13:]}-{stored}"
                if stored is not None:
                    _store(scene, group, queue, stored)
                found[group] = Seen(), 0 if stored is None else stored
                stack.enter_context(scene.push(group, topic, found[group][0], consume_from_where=start))
        for group, (seen, begin) in found.items():
            seen.wait(100 - begin)
            assert sorted(seen.places) == [(0, offset) for offset in range(begin, 100)], group


def _store(scene: Scene, group: str, queue: MessageQueue, offset: int) -> None:
    """Gives a group an offset; to 5.x, it is a group once it was seen."""
    with scene.push(group, "elsewhere", Seen()):
        until(lambda: scene.admin.groups.connections(group).client_ids, f"{group} is known")
    until(lambda: not online_members(scene.admin, group), f"{group} is gone")
    scene.admin.offsets.reset(group, queue, offset, force=True)


def pulling_by_hand_goes_on_where_each_answer_says(scene: Scene) -> None:
    """Article 003: a loop over the queues."""
    topic, group = "by_hand", "pulling"
    queues = scene.topic(topic)
    scene.send(queues, [b"%d" % number for number in range(160)], tags="wanted")
    scene.send(queues, [b"x"] * 8, tags="unwanted")
    with PullConsumer(group, name_server=scene.name_server) as consumer:
        assert sorted(consumer.fetch_subscribe_message_queues(topic)) == queues
        for queue in queues:
            assert consumer.fetch_consume_offset(queue, from_store=False) in {-1, 0}
            got, statuses, offset = _walk(consumer, queue)
            assert got == list(range(40))
            assert offset == 42
            assert statuses == [PullStatus.FOUND] * 2
            nothing = consumer.pull(queue, "nobody's", 0, 32)
            assert (nothing.status, nothing.next_begin_offset) == (PullStatus.NO_MATCHED_MSG, 42)
        beyond = consumer.pull(queues[0], "wanted", 1000, 32)
        assert (beyond.status, beyond.next_begin_offset) == (PullStatus.OFFSET_ILLEGAL, 42)
        ended = consumer.pull(queues[0], "wanted", 42, 32)
        assert (ended.status, ended.next_begin_offset) == (PullStatus.NO_NEW_MSG, 42)
        nowhere = MessageQueue(topic, "no-such-broker", 0)
        for nobody_knows in (-1, -2):
            assert consumer.fetch_consume_offset(nowhere, from_store=True) == -2
            try:
                consumer.pull(queues[0], "*", nobody_knows, 32)
            except ClientError as error:
                assert "offset < 0" in str(error)  # noqa: PT017 - a play is no test function
            else:
                raise AssertionError("it is pulled at a negative offset")


def _walk(consumer: PullConsumer, queue: MessageQueue) -> tuple[list[int], list[PullStatus], int]:
    """Pulls a queue to its end: the offsets, the statuses, and where the next pull would be."""
    offset, got, statuses = 0, [], []
    while offset < consumer.max_offset(queue):
        result = consumer.pull_block_if_not_found(queue, "wanted", offset, 32)
        got += [message.queue_offset for message in result.messages]
        statuses.append(result.status)
        offset = result.next_begin_offset
    return got, statuses, offset


PLAYS = (
    of_eight_messages_of_a_tag_those_on_the_queues_of_the_other_member_are_lost,
    tracks_of_two_tags_say_what_the_offset_passed_and_not_what_was_processed,
    where_a_group_begins_depends_on_what_it_stored_and_where_it_wants_to,
    pulling_by_hand_goes_on_where_each_answer_says,
)
