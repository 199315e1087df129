"""Asks RocketMQ's brokers, little by little, for what they tell of one topic, group or member at a time.

Our brokers tell the same in a snapshot, except what members say of themselves.

Source: RocketMQ Exporter's `MetricsCollectTask`, `ClientMetricTaskRunnable`; `AdminBrokerProcessor`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from rmqfast.admin import BrokerSnapshot, ConsumerConnection, ConsumerRunningInfo, ConsumeStats, MinuteStats, Snapshot
from rmqfast.admin.admin_client import DLQ_PREFIX, RETRY_PREFIX, AdminClient
from rmqfast.admin.consume_stats import time_span_question, unread_of_body
from rmqfast.admin.members import connections_question, running_info_question
from rmqfast.admin.questions import Question, ask_all, body_of, is_refusal
from rmqfast.admin.snapshot_taker import minute_stats_of_body
from rmqfast.admin.topics import topic_offsets_of_body
from rmqfast.errors import RemotingError, ResponseError
from rmqfast.logs import logger_of
from rmqfast.remoting import RequestCode, properties
from rmqfast.remoting.protocol.consumer_connection import producers_of_body
from rmqfast.remoting.rate_limit import limited
from rmqfast.system import monotonic

_log = limited(logger_of(__name__))
_MOST_QUEUES = 1 << 20


@dataclass(slots=True)
class BrokerAnswers:
    """The answers of a broker. The attributes are those of `BrokerSnapshot`.

    `unread` is the store time of the oldest unread message by group and topic, 0 for none.
    """

    consumers: dict[str, ConsumerConnection] = field(default_factory=dict)
    producers: dict[str, int] = field(default_factory=dict)
    ends: dict[str, int] = field(default_factory=dict)
    stats: dict[str, dict[str, MinuteStats]] = field(default_factory=dict)
    unread: dict[tuple[str, str], int] = field(default_factory=dict)
    reserved_hours: int | None = None


class _Task(NamedTuple):
    """A question, what takes the body of its answer, and what is done if the broker has no answer."""

    question: Question
    take: Callable[[bytes], object]
    drop: Callable[[], object]


class SingleQuestions:
    """Asks brokers in turns for what they tell one at a time, at most so many questions per second and broker."""

    def __init__(self, client: AdminClient, *, per_second: int) -> None:
        self._client, self._per_second = client, per_second
        self._snapshot: Snapshot | None = None
        self._answers: dict[str, BrokerAnswers] = {}
        self._open: dict[str, deque[_Task]] = {}
        self.members: dict[tuple[str, str], ConsumerRunningInfo] = {}
        #: Questions asked, and questions without an answer.
        self.asked: int = 0
        self.failed: int = 0
        #: Time of the last round through all questions of a broker, in seconds, by address.
        self.round_seconds: dict[str, float] = {}
        self._began: dict[str, float] = {}

    def ask_some(self, snapshot: Snapshot) -> None:
        """Asks each broker its next questions. A broker that was asked all of them is asked from the start."""
        if snapshot is not self._snapshot:
            self._snapshot = snapshot
            self._forget_gone(snapshot)
        # Whoever does not answer must not delay the others.
        tasks: list[_Task] = []
        for broker in (broker for broker in snapshot.brokers if broker.topics is not None):
            waiting = self._open.get(broker.address) or self._begin_round(broker)
            tasks += [waiting.popleft() for _ in range(min(self._per_second, len(waiting)))]
        answers = ask_all(self._client.api, [task.question for task in tasks], seconds=self._client.timeout)
        self.asked += len(tasks)
        for task, answer in zip(tasks, answers, strict=True):
            try:
                task.take(body_of(answer))
            except ResponseError as error:
                # Otherwise there is no such statistic, nobody is online, or the topic is gone.
                if is_refusal(error):
                    self.failed += 1
                    _log.warning(
                        "metrics are missing, as the account has no right to request %d: %s", task.question.code, error
                    )
                task.drop()
            except RemotingError:
                self.failed += 1

    def complete(self, snapshot: Snapshot) -> Snapshot:
        """Returns a snapshot with what brokers told besides."""
        return replace(snapshot, brokers=tuple(self._complete(broker) for broker in snapshot.brokers))

    def reserved_hours(self) -> dict[str, int]:
        """Returns after how many hours messages may be deleted, by the broker's address."""
        return {
            address: each.reserved_hours for address, each in self._answers.items() if each.reserved_hours is not None
        }

    def _complete(self, broker: BrokerSnapshot) -> BrokerSnapshot:
        answers = self._answers.get(broker.address)
        if answers is None or _tells_all(broker):
            return broker
        progress = {
            group: tuple(_with_unread(stats, answers.unread, group) for stats in topics)
            for group, topics in (broker.progress or {}).items()
        }
        return replace(
            broker,
            progress=progress if broker.progress is not None else None,
            consumers=dict(answers.consumers) if broker.address in self.round_seconds else None,
            producers=dict(answers.producers),
            ends=dict(answers.ends),
            stats={name: dict(table) for name, table in answers.stats.items()},
        )

    def _begin_round(self, broker: BrokerSnapshot) -> deque[_Task]:
        now = monotonic()
        if broker.address in self._began:
            self.round_seconds[broker.address] = now - self._began[broker.address]
        self._began[broker.address] = now
        self._open[broker.address] = deque(self._tasks(broker))
        return self._open[broker.address]

    def _tasks(self, broker: BrokerSnapshot) -> Iterator[_Task]:
        answers, address = self._answers.setdefault(broker.address, BrokerAnswers()), broker.address
        yield _Task(
            Question(address, RequestCode.GET_BROKER_CONFIG), lambda body: _take_config(answers, body), _nothing
        )
        if not _tells_all(broker):
            yield from _tasks_of_broker(broker, answers)
        for group in sorted(broker.consumers or answers.consumers):
            for client_id in (broker.consumers or answers.consumers)[group].client_ids:
                yield self._member_task(address, group, client_id)

    def _member_task(self, address: str, group: str, client_id: str) -> _Task:
        def take(body: bytes) -> None:
            self.members[group, client_id] = ConsumerRunningInfo.of_body(body)

        def drop() -> None:
            self.members.pop((group, client_id), None)

        return _Task(running_info_question(address, group, client_id), take, drop)

    def _forget_gone(self, snapshot: Snapshot) -> None:
        """Forgets brokers, topics, groups and members that the snapshot has no more."""
        addresses = {broker.address for broker in snapshot.brokers}
        for known in (self._answers, self._open, self.round_seconds, self._began):
            for address in known.keys() - addresses:
                del known[address]
        for broker in snapshot.brokers:
            answers = self._answers.get(broker.address)
            if answers is not None and broker.topics is not None:
                _keep(answers.ends, broker.topics)
                subjects = {*broker.topics, broker.cluster}
                for table in answers.stats.values():
                    _keep(table, {key for key in table if key.split("@")[0] in subjects})
                groups = {topic.removeprefix(RETRY_PREFIX) for topic in broker.topics if topic.startswith(RETRY_PREFIX)}
                _keep(answers.consumers, groups)
                _keep(answers.unread, {key for key in answers.unread if key[0] in groups and key[1] in broker.topics})
        online = {
            (group, client_id)
            for broker in self.complete(snapshot).brokers
            for group, known in (broker.consumers or {}).items()
            for client_id in known.client_ids
        }
        _keep(self.members, online)


def _tells_all(broker: BrokerSnapshot) -> bool:
    """Whether a broker is ours, which tells all but what members say."""
    return broker.stats is not None


def _tasks_of_broker(broker: BrokerSnapshot, answers: BrokerAnswers) -> Iterator[_Task]:
    address, topics = broker.address, sorted(broker.topics or ())
    producers = Question(address, RequestCode.GET_ALL_PRODUCER_INFO)
    yield _Task(producers, lambda body: _take_producers(answers, body), _nothing)
    yield from _stat_tasks(address, answers, ("BROKER_PUT_NUMS", "BROKER_GET_NUMS"), broker.cluster)
    for topic in topics:
        if topic.startswith(RETRY_PREFIX):
            yield _connections_task(address, answers, topic.removeprefix(RETRY_PREFIX))
    for group, stats in (broker.progress or {}).items():
        yield from _group_tasks(address, answers, group, sorted({row.topic for each in stats for row in each}))
    for topic in topics:
        yield _end_task(address, answers, topic)
        if not topic.startswith((RETRY_PREFIX, DLQ_PREFIX)):
            yield from _stat_tasks(address, answers, ("TOPIC_PUT_NUMS", "TOPIC_PUT_SIZE"), topic)


def _group_tasks(address: str, answers: BrokerAnswers, group: str, topics: Sequence[str]) -> Iterator[_Task]:
    for topic in topics:
        if not topic.startswith(RETRY_PREFIX):
            yield from _stat_tasks(address, answers, ("GROUP_GET_SIZE", "SNDBCK_PUT_NUMS"), f"{topic}@{group}")
        yield _unread_task(address, answers, group, topic)


def _stat_tasks(address: str, answers: BrokerAnswers, names: Sequence[str], key: str) -> Iterator[_Task]:
    for name in names:
        yield _stat_task(address, answers, name, key)


def _stat_task(address: str, answers: BrokerAnswers, name: str, key: str) -> _Task:
    table = answers.stats.setdefault(name, {})

    def take(body: bytes) -> None:
        table[key] = minute_stats_of_body(body)

    fields = {"statsName": name, "statsKey": key}
    return _Task(Question(address, RequestCode.VIEW_BROKER_STATS_DATA, fields), take, lambda: table.pop(key, None))


def _end_task(address: str, answers: BrokerAnswers, topic: str) -> _Task:
    def take(body: bytes) -> None:
        answers.ends[topic] = sum(row.max_offset for row in topic_offsets_of_body(body))

    question = Question(address, RequestCode.GET_TOPIC_STATS_INFO, {"topic": topic})
    return _Task(question, take, lambda: answers.ends.pop(topic, None))


def _connections_task(address: str, answers: BrokerAnswers, group: str) -> _Task:
    def take(body: bytes) -> None:
        answers.consumers[group] = ConsumerConnection.of_body(body)

    return _Task(connections_question(address, group), take, lambda: answers.consumers.pop(group, None))


def _unread_task(address: str, answers: BrokerAnswers, group: str, topic: str) -> _Task:
    def take(body: bytes) -> None:
        answers.unread[group, topic] = unread_of_body(body)

    return _Task(time_span_question(address, group, topic), take, lambda: answers.unread.pop((group, topic), None))


def _take_config(answers: BrokerAnswers, body: bytes) -> None:
    hours = properties.loads(body.decode("utf-8", "replace")).get("fileReservedTime", "")
    answers.reserved_hours = int(hours) if hours.isdecimal() else None


def _take_producers(answers: BrokerAnswers, body: bytes) -> None:
    answers.producers = {name: len(producers) for name, producers in producers_of_body(body).items()}


def _with_unread(stats: ConsumeStats, unread: Mapping[tuple[str, str], int], group: str) -> ConsumeStats:
    told = unread.get((group, stats.rows[0].topic)) if stats.rows else None
    return stats if told is None else stats.with_unread(told)


def _keep(table: dict[Any, Any], keys: Any) -> None:
    for key in table.keys() - set(keys):
        del table[key]


def _nothing() -> None:
    pass
