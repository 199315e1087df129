"""A time in which every look at a group showed the same, and its form in the file of a history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rmqfast.admin.facts import GroupFacts, MemberFacts
from rmqfast.admin.members import owner_of
from rmqfast.message import MessageQueue
from rmqfast.remoting.fastjson import encode
from rmqfast.remoting.protocol.consumer_connection import ConsumerConnection
from rmqfast.remoting.protocol.consumer_running_info import ConsumerRunningInfo
from rmqfast.remoting.protocol.json_object import JsonObject
from rmqfast.remoting.protocol.subscription_data import SubscriptionData

_MOST = 100_000
_MOST_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Stretch:
    """A time in which the looks at a group, a topic and a queue showed the same members with the same subscriptions.

    Times are milliseconds since 1970 by the broker's clock.

    Attributes:
        queue: The queue.
        run: Stretches of one run follow each other without a gap.
        group: Members with subscriptions and queues, and the subscription that the broker kept for the group.
        consume_from_where: Position at which a new group starts, as the members say; empty if nobody was online.
        first: Latest time of the first look that showed it.
        last: Earliest time of the last look that showed it.
        start: The group's offset at the first look; None if there was none.
        stop: The group's offset at the last look; not less than `start`.
    """

    queue: MessageQueue
    run: int
    group: GroupFacts
    consume_from_where: str
    first: int
    last: int
    start: int | None
    stop: int | None

    @property
    def owner(self) -> str | None:
        """The member that had the queue; `None` if nobody had it, or if it is not known."""
        return owner_of(self.queue, self.group, [])[0]

    @property
    def is_owned(self) -> bool:
        """Whether a member had the queue, or may have had it: pullers and silent members do not tell."""
        is_told = all(member.queues is not None for member in self.group.members)
        return self.group.is_online and (not is_told or self.owner is not None)

    def own(self, client_id: str | None) -> SubscriptionData | None:
        """Returns what a member wanted itself."""
        member = self.group.member(client_id)
        return None if member is None else member.subscription


def text_of_facts(
    topic: str, broker_name: str, online: ConsumerConnection, infos: Mapping[str, ConsumerRunningInfo | None]
) -> str:
    """Returns what a look showed of a group and a topic as JSON; the same text is the same state.

    `infos` has the members' own answers by client id, `None` for a member that does not answer.
    """
    members = [_json_of_member(topic, broker_name, name, infos.get(name)) for name in sorted(set(online.client_ids))]
    return encode(
        {
            "consumeFromWhere": online.consume_from_where if members else "",
            "consumeType": online.consume_type,
            "kept": _json_of(online.subscriptions.get(topic)),
            "members": members,
            "messageModel": online.message_model,
        }
    ).decode()


def _json_of_member(
    topic: str, broker_name: str, client_id: str, info: ConsumerRunningInfo | None
) -> dict[str, object]:
    if info is None:
        return {"clientId": client_id, "isSilent": True}
    queues = info.queues_of(topic)
    member: dict[str, object] = {"clientId": client_id, "own": _json_of(info.subscriptions.get(topic))}
    if queues is None:
        return member
    return member | {"queues": [each.queue_id for each in queues if each.broker_name == broker_name]}


def _json_of(subscription: SubscriptionData | None) -> dict[str, object] | None:
    if subscription is None:
        return None
    # Clients list tags in the order of a hash set, which may differ from answer to answer.
    sets = {"tagsSet": sorted(subscription.tags_set), "codeSet": sorted(subscription.code_set)}
    return subscription.to_json() | sets


def facts_of_text(text: str, group: str, queue: MessageQueue) -> tuple[GroupFacts, str]:
    """Parses a text of `text_of_facts`: the group's facts, and where its members start.

    Raises:
        ResponseError: The text is malformed.
    """
    members = JsonObject.of_body(text.encode(), most=_MOST_BYTES)
    facts = GroupFacts(
        group=group,
        members=[_member(each, queue) for each in members.objects("members", most=_MOST)],
        subscription=_subscription(members.object("kept")),
        consume_type=members.optional_text("consumeType") or "",
        message_model=members.optional_text("messageModel") or "",
    )
    return facts, members.optional_text("consumeFromWhere") or ""


def _member(members: JsonObject, queue: MessageQueue) -> MemberFacts:
    client_id = members.text("clientId")
    if members.flag("isSilent"):
        return MemberFacts(client_id=client_id, problem="it did not answer the look")
    queues = [MessageQueue(queue.topic, queue.broker_name, number) for number in members.integers("queues", most=_MOST)]
    return MemberFacts(
        client_id=client_id,
        subscription=_subscription(members.object("own")),
        queues=queues if "queues" in members.names() else None,
    )


def _subscription(members: JsonObject | None) -> SubscriptionData | None:
    return None if members is None else SubscriptionData.from_json(members, now=0)
