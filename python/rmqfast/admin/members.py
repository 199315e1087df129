"""The members of groups with what each of them wants and has, and what of it does not fit together.

Source: `DefaultMQAdminExtImpl.examineConsumerConnectionInfo`, `getConsumerRunningInfo`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rmqfast.admin.asking import BrokerAddress
from rmqfast.admin.facts import GroupFacts, MemberFacts
from rmqfast.admin.interviews import Interviews
from rmqfast.admin.message_track import MessageTracks
from rmqfast.admin.subscriptions import Infos
from rmqfast.client.consumer.strategies.averagely import AllocateMessageQueueAveragely
from rmqfast.client.consumer.subscription_conflicts import SubscriptionConflict, conflicts_of
from rmqfast.errors import ClientError, RemotingError, ResponseError
from rmqfast.message import MessageQueue
from rmqfast.remoting import ResponseCode
from rmqfast.remoting.protocol.consumer_running_info import ConsumerRunningInfo
from rmqfast.remoting.protocol.subscription_data import SubscriptionData


class Members(MessageTracks):
    """What an administrator asks about the members of groups, all of them."""

    def subscription_conflicts(self, group: str | None = None) -> list[SubscriptionConflict]:
        """Topics of which members of one group want different things, so that messages get lost.

        Args:
            group: The group; all that have a topic of retries unless given.

        Raises:
            ResponseError: 17, the group has no topic of retries: none of its members was ever seen.
        """
        groups = self._seen_groups() if group is None else [group]
        return [conflict for each in groups for conflict in self._conflicts_of(each)]

    def topic_groups(self, topic: str) -> list[str]:
        """The groups that consume a topic: those that are online and those that have offsets, of all its brokers.

        5.3.3 names the topic in place of groups that are online and have no offsets: these are looked for among all
        groups then.

        Raises:
            ResponseError: 17, nobody has the topic.

        Source: `DefaultMQAdminExtImpl.queryTopicConsumeByWho`, which asks the first broker only.
        """
        found = {group for broker in self._brokers_of(topic) for group in self._groups_at(broker.address, topic)}
        if topic not in found:
            return sorted(found)
        seen = self._seen_groups()
        online = {group for group in seen if self._subscribes(group, topic)}
        return sorted((found - {topic}) | online | (found & set(seen)))

    def _subscribes(self, group: str, topic: str) -> bool:
        try:
            return topic in self.consumer_connections(group).subscriptions
        except (ResponseError, ClientError):
            return False  # nobody is online

    def _seen_groups(self) -> list[str]:
        prefix = "%RETRY%"
        return sorted(topic.removeprefix(prefix) for topic in self.topics() if topic.startswith(prefix))

    def _conflicts_of(self, group: str) -> list[SubscriptionConflict]:
        return conflicts_among(group, self._infos(self._brokers_of_group(group), group, self._interviews(group)))

    def _infos(self, brokers: Iterable[BrokerAddress], group: str, interviews: Interviews) -> Infos:
        """What the members say that brokers know; one that is connected to several of them tells by the first one."""
        found: dict[str, ConsumerRunningInfo | RemotingError] = {}
        for broker in brokers:
            for client_id in self._known_members(broker.address, group):
                if not isinstance(found.get(client_id), ConsumerRunningInfo):
                    found[client_id] = interviews.of(broker.address, client_id)
        return found

    def _kept_at(self, address: str, group: str) -> Mapping[str, SubscriptionData]:
        """What a broker takes a group to want, by topic; nothing where nobody is online."""
        try:
            return self._members_at(address, group).subscriptions
        except ResponseError as error:
            if error.code == ResponseCode.CONSUMER_NOT_ONLINE:
                return {}
            raise

    def _group_facts(self, address: str, group: str, topic: str, interviews: Interviews | None = None) -> GroupFacts:
        """A group as one broker knows it, and what its members say themselves."""
        interviews = interviews or self._interviews(group)
        try:
            known = self._members_at(address, group)
        except ResponseError as error:
            if error.code != ResponseCode.CONSUMER_NOT_ONLINE:
                raise
            return GroupFacts(group=group)
        return GroupFacts(
            group=group,
            members=[
                _member_facts(client_id, topic, interviews.of(address, client_id)) for client_id in known.client_ids
            ],
            subscription=known.subscriptions.get(topic),
            consume_type=known.consume_type,
            message_model=known.message_model,
        )

    def _interviews(self, group: str) -> Interviews:
        return Interviews(lambda address, client_id: self._try_running_info(address, group, client_id))

    def _try_running_info(self, address: str, group: str, client_id: str) -> ConsumerRunningInfo | RemotingError:
        try:
            return self._running_info_at(address, group, client_id)
        except RemotingError as error:
            return error


def _member_facts(client_id: str, topic: str, info: ConsumerRunningInfo | RemotingError) -> MemberFacts:
    if isinstance(info, RemotingError):
        return MemberFacts(client_id=client_id, problem=str(info))
    return MemberFacts(client_id=client_id, subscription=info.subscriptions.get(topic), queues=info.queues_of(topic))


def conflicts_among(group: str, infos: Infos) -> list[SubscriptionConflict]:
    """The topics of which members want different things, as far as they tell.

    Args:
        group: The group.
        infos: What each member says.
    """
    told = {name: info.subscriptions for name, info in infos.items() if isinstance(info, ConsumerRunningInfo)}
    return conflicts_of(group, told)


def owner_of(queue: MessageQueue, group: GroupFacts, queues: Sequence[MessageQueue]) -> tuple[str | None, bool]:
    """The member that has a queue, and whether that is only worked out.

    Args:
        queue: The queue.
        group: The group.
        queues: All queues of its topic that may be read.

    Example:
        >>> queues = [MessageQueue("t", "b", number) for number in range(4)]
        >>> tells = MemberFacts(client_id="c1", queues=queues[:1])
        >>> owner_of(queues[0], GroupFacts(group="g", members=[tells]), queues)
        ('c1', False)
        >>> silent = [MemberFacts(client_id=name) for name in ("c1", "c2")]
        >>> owner_of(queues[3], GroupFacts(group="g", members=silent), queues)
        ('c2', True)
    """
    for member in group.members:
        if member.queues is not None and queue in member.queues:
            return member.client_id, False
    if group.is_broadcasting or all(member.queues is not None for member in group.members):
        return None, False
    # without the others' queues it cannot be worked out who has what
    if any(member.queues is not None for member in group.members) or queue not in queues:
        return None, False
    ids, share = sorted(member.client_id for member in group.members), AllocateMessageQueueAveragely().allocate
    return next(name for name in ids if queue in share(group.group, name, sorted(queues), ids)), True
