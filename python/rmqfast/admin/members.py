"""The consumers of a group: what a broker knows of them, their own answers, and how the two differ.

Source: `DefaultMQAdminExtImpl.examineConsumerConnectionInfo`, `DefaultMQAdminExtImpl.getConsumerRunningInfo`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rmqfast.admin.admin_client import AdminClient, BrokerAddress, unless
from rmqfast.admin.facts import GroupFacts, MemberFacts, SubscriptionFacts
from rmqfast.admin.questions import Answer, Question, ask_all, body_of
from rmqfast.client.consumer.strategies import AllocateMessageQueueAveragely
from rmqfast.client.consumer.subscription import SubscriptionConflict, conflicts_of
from rmqfast.client.instance.namespaces import RETRY_PREFIX
from rmqfast.errors import RemotingError
from rmqfast.message import MessageQueue
from rmqfast.remoting import RequestCode, ResponseCode
from rmqfast.remoting.protocol.consumer_connection import ConsumerConnection
from rmqfast.remoting.protocol.consumer_running_info import ConsumerRunningInfo
from rmqfast.remoting.protocol.subscription_data import SubscriptionData, meaning_of
from rmqfast.system import monotonic

#: Part of a request's timeout in which all members have to answer: 2.5 seconds, unless the caller waits longer.
PATIENCE = 0.5
#: Answer of each member by client id, or the error that it gave instead.
Infos = Mapping[str, ConsumerRunningInfo | RemotingError]


class Members:
    """Asks the consumers of a group, all at the same time, and each once per query."""

    def __init__(self, client: AdminClient, group: str, *, jstack: bool = False) -> None:
        self._client, self._group, self._jstack = client, group, jstack
        self._answers: dict[str, ConsumerRunningInfo] = {}
        # Keyed by broker, too: a member that one broker cannot reach may be connected to another broker.
        self._silent: dict[tuple[str, str], RemotingError] = {}

    def infos(self, brokers: Iterable[BrokerAddress]) -> Infos:
        """Returns the answer of each online consumer by client id, through the first broker that can reach it."""
        online = {each.address: online_at(self._client, each.address, self._group).client_ids for each in brokers}
        self._ask(online)
        infos: dict[str, ConsumerRunningInfo | RemotingError] = {}
        for address, client_ids in online.items():
            infos |= {client_id: self._answer(address, client_id) for client_id in client_ids}
        return infos

    def facts(self, address: str, topic: str) -> GroupFacts:
        """Returns facts about the group, collected from one broker and from the group's consumers."""
        connections = online_at(self._client, address, self._group)
        self._ask({address: connections.client_ids})
        return GroupFacts(
            group=self._group,
            members=[_member_facts(each, topic, self._answer(address, each)) for each in connections.client_ids],
            subscription=connections.subscriptions.get(topic),
            consume_type=connections.consume_type,
            message_model=connections.message_model,
        )

    def _answer(self, address: str, client_id: str) -> ConsumerRunningInfo | RemotingError:
        return self._answers.get(client_id) or self._silent[address, client_id]

    def _ask(self, online: Mapping[str, Sequence[str]]) -> None:
        """Asks the consumers that each broker knows, through the first broker that can reach them."""
        deadline = monotonic() + self._client.timeout * PATIENCE
        for others, (address, client_ids) in zip(reversed(range(len(online))), online.items(), strict=True):
            unasked = [each for each in client_ids if each not in self._answers and (address, each) not in self._silent]
            # The next broker needs time, too.
            seconds = (deadline - monotonic()) / (2 if others else 1)
            questions = [running_info_question(address, self._group, each, jstack=self._jstack) for each in unasked]
            for client_id, answer in zip(unasked, ask_all(self._client.api, questions, seconds=seconds), strict=True):
                self._note(address, client_id, answer)

    def _note(self, address: str, client_id: str, answer: Answer) -> None:
        try:
            self._answers[client_id] = ConsumerRunningInfo.of_body(body_of(answer))
        except RemotingError as error:
            self._silent[address, client_id] = error


def members_at(client: AdminClient, address: str, group: str) -> ConsumerConnection:
    """Returns the consumers that one broker knows. Raises `ResponseError` 206 if no consumer is online."""
    return ConsumerConnection.of_body(client.ask(*connections_question(address, group)).body)


def connections_question(address: str, group: str) -> Question:
    return Question(address, RequestCode.GET_CONSUMER_CONNECTION_LIST, {"consumerGroup": group})


def online_at(client: AdminClient, address: str, group: str) -> ConsumerConnection:
    """Returns the consumers that one broker knows. The answer is empty if no consumer is online."""
    nobody = ConsumerConnection(connections=())
    return unless(ResponseCode.CONSUMER_NOT_ONLINE, lambda: members_at(client, address, group), nobody)


def running_info_at(
    client: AdminClient, address: str, group: str, client_id: str, *, jstack: bool = False
) -> ConsumerRunningInfo:
    """Returns a consumer's answer, through one broker. Raises `ResponseError`: 1 if offline, 207 without an answer."""
    question = running_info_question(address, group, client_id, jstack=jstack)
    return ConsumerRunningInfo.of_body(client.ask(*question, slow=True).body)


def running_info_question(address: str, group: str, client_id: str, *, jstack: bool = False) -> Question:
    fields = {"consumerGroup": group, "clientId": client_id, "jstackEnable": jstack}
    return Question(address, RequestCode.GET_CONSUMER_RUNNING_INFO, fields)


def _member_facts(client_id: str, topic: str, info: ConsumerRunningInfo | RemotingError) -> MemberFacts:
    if isinstance(info, RemotingError):
        return MemberFacts(client_id=client_id, problem=str(info))
    # Of all queues: the retry queue of a member is pulled, too.
    last_pull = max((each.last_pull_timestamp for each in info.queues.values()), default=None)
    return MemberFacts(
        client_id=client_id,
        subscription=info.subscriptions.get(topic),
        queues=info.queues_of(topic),
        last_pull=last_pull,
    )


def conflicts_among(group: str, infos: Infos) -> list[SubscriptionConflict]:
    """Returns the topics to which consumers of a group subscribe differently. Only knows consumers that answered."""
    subscriptions = {name: info.subscriptions for name, info in infos.items() if isinstance(info, ConsumerRunningInfo)}
    return conflicts_of(group, subscriptions)


def owner_of(queue: MessageQueue, group: GroupFacts, queues: Sequence[MessageQueue]) -> tuple[str | None, bool]:
    """Returns the owner of a queue, None if unknown, and whether it was computed because no consumer reported it."""
    for member in group.members:
        if member.queues is not None and queue in member.queues:
            return member.client_id, False
    # In broadcasting, every member has all queues. If all members reported their queues, nobody owns this one.
    if group.is_broadcasting or all(member.queues is not None for member in group.members):
        return None, False
    # With only some members' queues known, the shares of the others cannot be computed.
    if any(member.queues is not None for member in group.members) or queue not in queues:
        return None, False
    # Pull consumers do not report their queues, so assume the default allocation.
    ids, share = sorted(member.client_id for member in group.members), AllocateMessageQueueAveragely().allocate
    return next(name for name in ids if queue in share(group.group, name, sorted(queues), ids)), True


def subscriptions_of(subscriptions: Mapping[str, SubscriptionData], members: Infos) -> list[SubscriptionFacts]:
    """Returns subscriptions by topic, without retry topics. The broker's comes first, then the consumers'."""
    own = [info.subscriptions for info in members.values() if isinstance(info, ConsumerRunningInfo)]
    # Every member subscribes to the group's retry topic by itself.
    topics = sorted({topic for each in (subscriptions, *own) for topic in each if not topic.startswith(RETRY_PREFIX)})
    rows = []
    for topic in topics:
        rows.append(SubscriptionFacts(topic=topic, subscription=subscriptions.get(topic)))
        rows += [_of_member(topic, name, members[name], subscriptions.get(topic)) for name in sorted(members)]
    return rows


def _of_member(
    topic: str, client_id: str, info: ConsumerRunningInfo | RemotingError, subscription: SubscriptionData | None
) -> SubscriptionFacts:
    if isinstance(info, RemotingError):
        return SubscriptionFacts(topic=topic, client_id=client_id, problem=str(info))
    own = info.subscriptions.get(topic)
    return SubscriptionFacts(
        topic=topic,
        client_id=client_id,
        subscription=own,
        queues=info.queues_of(topic),
        differs=meaning_of(own) != meaning_of(subscription),
    )
