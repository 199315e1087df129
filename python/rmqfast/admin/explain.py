"""Explains the state of a message, a queue or a group with the answers of brokers and consumers.

RocketMQ has no such command; `DefaultMQAdminExtImpl.messageTrackDetail` comes closest.

Source: RocketMQ's `SendMessageProcessor.asyncConsumerSendMsgBack`, `ScheduleMessageService`,
`ConsumerProgressSubCommand`, `ConsumerStatusSubCommand`, `DefaultMQPushConsumerImpl`, `PullMessageProcessor`,
`ClientManageProcessor.checkClientConfig`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rmqfast.admin.admin_client import RETRY_PREFIX, AdminClient, BrokerAddress, unless
from rmqfast.admin.backlog import group_sentences, queue_explanation
from rmqfast.admin.clusters import Brokers, clock_of
from rmqfast.admin.consume_stats import stats_at
from rmqfast.admin.copies import copies_of
from rmqfast.admin.explanation import Explanation, Outcome
from rmqfast.admin.facts import (
    CopyFacts,
    CopyKind,
    GroupFacts,
    MessageFacts,
    QueueFacts,
    SqlAnswer,
    names_in,
)
from rmqfast.admin.groups import Groups, configs_at
from rmqfast.admin.ledger import Ledger, ledger_of
from rmqfast.admin.members import Members, conflicts_among, online_at, owner_of, subscriptions_of
from rmqfast.admin.messages import Messages
from rmqfast.admin.next_step import give_one_subscription, is_problem, next_step
from rmqfast.admin.outcome import traced_verdict, verdict_of
from rmqfast.admin.place import Place
from rmqfast.admin.proof import proven_verdict
from rmqfast.admin.pulls import check_filter, pull
from rmqfast.admin.timeline import events_in_group
from rmqfast.errors import ArgumentError, ResponseError
from rmqfast.message import MessageQueue
from rmqfast.paths import LocalPath, local_path
from rmqfast.remoting import ResponseCode
from rmqfast.remoting.protocol.subscription_data import SubscriptionData

if TYPE_CHECKING:
    from rmqfast.admin.history.sampled import SampledVerdict

#: Milliseconds by which a clock is behind of which nothing is known: older than any message.
_NO_CLOCK = 1 << 62


class Explainer:
    """`admin.explain`: finds a message or a backlog and says why it is there."""

    def __init__(self, client: AdminClient, groups: Groups, messages: Messages) -> None:
        self._client, self._groups, self._messages = client, groups, messages

    def explain(self, what: Any, group: str | None = None, *, history: LocalPath | None = None) -> Explanation:
        """Explains the state of a message, a queue or a group. Names facts that are unknown. Changes nothing.

        Combines offsets, subscriptions of broker and members, queue owners, copies sent back, and traces. Brokers
        evaluate SQL92 expressions. If members changed after the message was stored, only the ledger of our brokers, a
        trace, or the samples of a history can decide.

        Args:
            what: A stored message, a `MessageQueue`, or the name of a group.
            group: The group to look at. Default: all groups of the topic, each with an explanation in `parts`.
            history: File of a `HistoryWatcher`, or of `rmqfast watch`: its samples decide about a message where nothing
                else does. `sampled` of the explanation tells it.

        Raises:
            ResponseError: 17, the topic does not exist, or no member of the group ever connected.
            ArgumentError: `what` has another type, or is no message and there is a history.
            StoreError: The file of the history cannot be read, or is none.

        Example:
            >>> import rmqfast
            >>> with rmqfast.EmbeddedCluster() as cluster, rmqfast.Admin(name_server=cluster.name_server) as admin:
            ...     with rmqfast.Producer("shop", name_server=cluster.name_server) as producer:
            ...         sent = producer.send(rmqfast.Message("orders", b"paid", tags="paid"))
            ...     print(admin.explain(admin.view_message(sent.offset_msg_id), "cashiers").sentence)
            the group's offset is 0, and nobody was handed it
        """
        samples = None if history is None else local_path(history, "history")
        if samples is not None and not hasattr(what, "queue_offset"):
            raise ArgumentError(f"history: expected a message, as it tells nothing of the present, got {what!r}")
        if isinstance(what, str):
            return self._explain_group(what)
        if isinstance(what, MessageQueue):
            queue = what
        elif hasattr(what, "queue_offset"):
            what = self._original(what)
            queue = MessageQueue(what.topic, what.broker_name or self._broker_with(what), what.queue_id)
        else:
            raise ArgumentError(f"explain: expected a message, a MessageQueue or a group's name, got {what!r}")
        address = self._client.broker_of(queue.topic, queue.broker_name)
        groups = self._groups.of_topic(queue.topic) if group is None else [group]
        parts = [self._explain_in(what, queue, address, each, samples) for each in groups]
        if len(parts) == 1:
            return parts[0]
        text = [f"{len(parts)} groups consume the topic {queue.topic}" if parts else f"nobody consumes {queue.topic}"]
        return Explanation(
            subject=_subject(what, queue),
            sentences=tuple(text),
            has_problem=any(part.has_problem for part in parts),
            parts=tuple(parts),
        )

    def _explain_in(
        self, what: Any, queue: MessageQueue, address: str, group: str, samples: Path | None
    ) -> Explanation:
        # Take the facts from the broker of this queue, since brokers may disagree about a group's subscription.
        members = Members(self._client, group)
        facts = members.facts(address, queue.topic)
        progress = self._queue_facts(address, queue, facts)
        subject = f"{_subject(what, queue)}, group {group}"
        if isinstance(what, MessageQueue):
            return queue_explanation(subject, progress, facts)
        ledger = ledger_of(self._client, group, queue, what.queue_offset)
        # Ask the broker: only it knows its SQL92 dialect and whether it filters by SQL92 at all.
        answer = partial(_sql_answer, self._client, what, queue, address)
        message = _with_sql(_message_facts(what, queue), _subscriptions(facts, ledger), answer)
        copies = copies_of(self._client, what, group) if what.msg_id else []
        place = None if ledger is None else Place(message, progress.consumer_offset, ledger, progress.min_offset)
        places = {} if place is None else self._places_of(message, copies, group)
        verdict = None if place is None else proven_verdict(group, place, copies, places)
        if verdict is None:
            facts = replace(
                facts,
                clock_error=self._clock_error(address, facts),
                has_offsets=self._has_offsets(BrokerAddress(queue.broker_name, address), facts),
            )
            retry_facts = members.facts(address, RETRY_PREFIX + group) if copies else None
            verdict = verdict_of(message, progress, facts, copies, retry_facts)
        if verdict.outcome is Outcome.UNKNOWN:
            # Traces are fetched last: they cost a query to all brokers, and most verdicts need no trace.
            verdict = traced_verdict(group, self._messages.traces_if_there(what.msg_id)) or verdict
        sampled = None
        if verdict.outcome is Outcome.UNKNOWN and samples is not None:
            # What is certain goes before samples.
            sampled = _verdict_by_samples(samples, group, message, progress, copies=copies, answer=answer)
            verdict = verdict if sampled is None else sampled.verdict
        return Explanation(
            subject=subject,
            sentences=tuple(verdict.sentences),
            outcome=verdict.outcome,
            next_step=next_step(verdict, message, facts),
            has_problem=is_problem(verdict.outcome, message, progress),
            member=verdict.member,
            message=message,
            queue=progress,
            group=facts,
            copies=tuple(copies),
            events=tuple(events_in_group(group, place, copies, places)),
            sampled=None if sampled is None else (sampled.first, sampled.last),
        )

    def _places_of(
        self, message: MessageFacts, copies: Sequence[CopyFacts], group: str
    ) -> dict[CopyFacts, Place | None]:
        """Returns what the ledger tells of each copy in the retry topic."""
        return {copy: self._place_of(message, copy, group) for copy in copies if copy.kind is CopyKind.RETRY}

    def _clock_error(self, address: str, group: GroupFacts) -> int:
        """Returns by how much the clock of a member may be behind the broker's, in milliseconds.

        A member pulled before it answered, so its clock is behind by at most the age of its last pull.
        """
        if not group.is_online:
            return 0
        now = clock_of(Brokers(self._client).status(address))
        pulls = [member.last_pull for member in group.members]
        return max(_NO_CLOCK if now is None or pull is None else now - pull for pull in pulls)

    def _has_offsets(self, broker: BrokerAddress, group: GroupFacts) -> bool:
        """Whether a broker has offsets of a group that is offline."""
        try:
            return not group.is_online and bool(stats_at(self._client, broker, group.group).rows)
        except ResponseError:
            return False  # brokers that have none answer with an error

    def _place_of(self, message: MessageFacts, copy: CopyFacts, group: str) -> Place | None:
        ledger = ledger_of(self._client, group, copy.queue, copy.queue_offset)
        if ledger is None:
            return None
        facts = replace(message, queue=copy.queue, queue_offset=copy.queue_offset, store_timestamp=copy.store_timestamp)
        return Place(facts, copy.consumer_offset, ledger)

    def _explain_group(self, group: str) -> Explanation:
        brokers, members = self._brokers_that_know(group), Members(self._client, group)
        infos, subscriptions = members.infos(brokers), self._subscriptions_at(brokers, group)
        conflicts = conflicts_among(group, infos)
        topics: dict[tuple[str, str], GroupFacts] = {}
        parts = []
        for queue in self._queues_of(brokers, group, subscriptions):
            address = self._client.broker_of(queue.topic, queue.broker_name)
            # Cached per broker and topic, since a member that does not answer costs a timeout.
            if (address, queue.topic) not in topics:
                topics[address, queue.topic] = members.facts(address, queue.topic)
            facts = topics[address, queue.topic]
            progress = self._queue_facts(address, queue, facts)
            parts.append(queue_explanation(_subject(queue, queue), progress, facts))
        first, retry = brokers[0].address, RETRY_PREFIX + group
        # Without any queue, the retry topic still shows the members.
        group_facts = next(iter(topics.values()), None) or members.facts(first, retry)
        sentences = tuple(
            group_sentences(group_facts, [part.queue for part in parts if part.queue is not None], conflicts)
        )
        return Explanation(
            subject=f"group {group}",
            sentences=sentences,
            next_step=give_one_subscription(group) if conflicts else None,
            has_problem=bool(conflicts) or any(part.has_problem for part in parts),
            group=group_facts,
            subscriptions=tuple(subscriptions_of(subscriptions, infos)),
            conflicts=tuple(conflicts),
            parts=tuple(parts),
        )

    def _brokers_that_know(self, group: str) -> list[BrokerAddress]:
        """Returns the brokers with the group's retry topic. Without one, returns the brokers that know the group."""
        try:
            return self._client.brokers_of_group(group)
        except ResponseError as error:
            # Brokers create the retry topic on the first heartbeat, so a group without members has none.
            brokers = [broker for broker in self._client.masters() if group in configs_at(self._client, broker.address)]
            if error.code != ResponseCode.TOPIC_NOT_EXIST or not brokers:
                raise
            return brokers

    def _subscriptions_at(self, brokers: Sequence[BrokerAddress], group: str) -> dict[str, SubscriptionData]:
        """Returns a group's stored subscriptions by topic. If brokers differ, the newest version counts."""
        newest: dict[str, SubscriptionData] = {}
        for broker in brokers:
            for topic, subscription in online_at(self._client, broker.address, group).subscriptions.items():
                # Brokers, too, keep the subscription with the highest version.
                if topic not in newest or subscription.sub_version > newest[topic].sub_version:
                    newest[topic] = subscription
        return newest

    def _queues_of(
        self, brokers: Sequence[BrokerAddress], group: str, subscriptions: Mapping[str, SubscriptionData]
    ) -> list[MessageQueue]:
        """Returns the queues in which a group has offsets, and the queues of subscribed topics in which it has none."""
        queues = [row.queue for broker in brokers for row in stats_at(self._client, broker, group)]
        topics = {queue.topic for queue in queues}
        for topic in sorted(topic for topic in subscriptions.keys() - topics if not topic.startswith(RETRY_PREFIX)):
            queues += unless(ResponseCode.TOPIC_NOT_EXIST, partial(self._queues, topic), [])
        return sorted(queues)

    def _queues(self, topic: str) -> list[MessageQueue]:
        return list(self._client.api.readable_queues(topic, timeout=self._client.timeout))

    def _queue_facts(self, address: str, queue: MessageQueue, group: GroupFacts) -> QueueFacts:
        api, timeout = self._client.api, self._client.timeout
        owner, is_assumed = owner_of(queue, group, self._queues(queue.topic))
        return QueueFacts(
            queue=queue,
            min_offset=api.min_offset(address, queue, timeout=timeout),
            max_offset=api.max_offset(address, queue, timeout=timeout),
            consumer_offset=api.query_consumer_offset(address, group.group, queue, timeout=timeout),
            owner=owner,
            owner_is_assumed=is_assumed,
        )

    def _original(self, message: Any) -> Any:
        # Consumers show a retry under its original topic, but with queue and offset of the retry topic.
        if message.reconsume_times > 0 and message.properties.get("RETRY_TOPIC") == message.topic:
            return self._messages.by_unique_key(message.topic, message.msg_id)
        return message

    def _broker_with(self, message: Any) -> str:
        for data in self._client.route(message.topic).broker_datas:
            if message.store_host in data.addresses.values():
                return data.broker_name
        raise ResponseError(
            ResponseCode.SYSTEM_ERROR, f"no broker of the topic {message.topic} has the address {message.store_host}"
        )


def _verdict_by_samples(
    samples: Path,
    group: str,
    message: MessageFacts,
    queue: QueueFacts,
    *,
    copies: Sequence[CopyFacts],
    answer: Callable[[SubscriptionData], SqlAnswer],
) -> SampledVerdict | None:
    """Returns what the samples of a history say of a message; None if they do not decide."""
    # Imported here, since other questions need no database.
    from rmqfast.admin.history.sampled import sampled_verdict, sampled_verdict_of_copies
    from rmqfast.admin.history.stretches import stretches_of

    stretches = stretches_of(samples, group, queue.queue)
    if copies:
        places = {copy: stretches_of(samples, group, copy.queue) for copy in copies if copy.kind is CopyKind.RETRY}
        return sampled_verdict_of_copies(message, queue, stretches, copies, places)
    own = [each for stretch in stretches for each in _subscriptions(stretch.group)]
    return sampled_verdict(_with_sql(message, own, answer), queue, stretches)


def _subscriptions(group: GroupFacts, ledger: Ledger | None = None) -> list[SubscriptionData | None]:
    """Returns the subscriptions that count or counted."""
    own = [group.subscription, *(member.subscription for member in group.members)]
    if ledger is not None:
        own += [row.subscription for row in ledger.rows]
        own += [member.subscription for member in ledger.members]
    return own


def _with_sql(
    message: MessageFacts,
    subscriptions: Iterable[SubscriptionData | None],
    answer: Callable[[SubscriptionData], SqlAnswer],
) -> MessageFacts:
    """Returns the message with the broker's answers to the subscriptions by SQL92."""
    wanted = {each.sub_string: each for each in subscriptions if each is not None and not each.is_tag_type}
    more = {text: answer(each) for text, each in wanted.items() if text not in message.sql}
    return replace(message, sql={**message.sql, **more})


def _sql_answer(
    client: AdminClient, message: Any, queue: MessageQueue, address: str, subscription: SubscriptionData
) -> SqlAnswer:
    """Asks the broker whether a message matches an SQL92 expression, by pulling it with this expression."""
    values = {name: message.property(name) for name in names_in(subscription.sub_string)}
    try:
        check_filter(client, address, subscription)
        pulled = pull(client, address, queue, message.queue_offset, subscription)
    except ResponseError as error:
        return SqlAnswer(values=values, problem=str(error))
    return SqlAnswer(is_passed=pulled.at(message.queue_offset) is not None, values=values)


def _message_facts(message: Any, queue: MessageQueue) -> MessageFacts:
    return MessageFacts(
        queue=queue,
        queue_offset=message.queue_offset,
        msg_id=message.msg_id or "",
        tags=message.tags,
        store_timestamp=message.store_timestamp,
    )


def _subject(what: Any, queue: MessageQueue) -> str:
    place = f"{queue.topic} queue {queue.queue_id} of {queue.broker_name}"
    if isinstance(what, MessageQueue):
        return place
    return (
        f"message {what.msg_id or what.offset_msg_id}, {place}, offset {what.queue_offset}, tag {what.tags or 'none'}"
    )
