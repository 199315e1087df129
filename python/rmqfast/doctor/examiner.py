"""Collects the facts about a cluster by which the doctor's checks decide.

Source: `DefaultMQAdminExtImpl`, `TransactionalMessageBridge`, `MixAll.brokerVIPChannel`.
"""

from __future__ import annotations

import re
import socket
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from rmqfast.admin import BrokerRow, BrokerSnapshot, ConsumerRunningInfo, GroupSummary, MinuteStats, Snapshot
from rmqfast.admin.admin_client import DLQ_PREFIX, RETRY_PREFIX, SLOW, AdminClient
from rmqfast.admin.clusters import Clusters, rows_of, status_of_body
from rmqfast.admin.members import PATIENCE, running_info_question
from rmqfast.admin.pulls import pull_question
from rmqfast.admin.questions import Question, ask_all, is_refusal
from rmqfast.admin.snapshot_taker import SnapshotTaker, minute_stats_of_body
from rmqfast.admin.topics import topic_offsets_of_body
from rmqfast.broker.topics.topic_manager import HALF_TOPIC, OP_TOPIC
from rmqfast.broker.transactions.transaction_service import CHECK_GROUP
from rmqfast.client.instance.api import cluster_info_of_body, topics_of_body
from rmqfast.client.instance.broker_requests import decode_messages
from rmqfast.doctor.examination import (
    MOST_HALF_MESSAGES,
    OLD,
    ClosedPort,
    DeadLetterCount,
    Examination,
    HalfMessage,
    NameServerAnswer,
    NewestMessage,
    RetryRate,
)
from rmqfast.errors import RemotingError, ResponseError, RmqError
from rmqfast.message import MessageQueue
from rmqfast.remoting import RequestCode, ResponseCode, properties
from rmqfast.remoting.protocol.consumer_connection import connections_of
from rmqfast.system import monotonic
from rmqfast.threads import sleep

T = TypeVar("T")

_NO_MESSAGE = frozenset(
    {ResponseCode.PULL_NOT_FOUND, ResponseCode.PULL_RETRY_IMMEDIATELY, ResponseCode.PULL_OFFSET_MOVED}
)
#: Tables of a snapshot; brokers are asked for their status apart, also slaves.
_TABLES = ("topics", "groups", "offsets", "progress")
#: Queues of which the last message is read, at each broker.
_NEWEST = 16
#: Members that are asked for what they do; more than that are too many for one look.
_MEMBERS = 2_000
#: Distance of the second port of clients below a broker's own; a broker's HA port, unless it is configured otherwise.
_VIP_DISTANCE, _HA_PORT = 2, 10_912
_CONNECTS = 32
#: Seconds between two looks at the addresses of brokers.
_LOOK = 0.25


class Examiner:
    """Asks the servers of a cluster. What they do not tell is in `unknown`."""

    def __init__(self, client: AdminClient, name_servers: Sequence[str], *, watch: float = 0) -> None:
        self._client, self._name_servers, self._watch = client, name_servers, watch
        self.unknown: list[str] = []

    def examine(self) -> Examination:
        """Returns the facts. Raises `RemotingError` if no name server answers."""
        known = Clusters(self._client).brokers()
        named, silent_name_servers = self._ask_name_servers()
        # Another name server may know more.
        brokers = _sort({*known, *(row for answer in named for row in rows_of(answer.brokers))})
        snapshot = SnapshotTaker(self._client).snapshot(tables=_TABLES, members=True, unread=True)
        asked_at = time.time_ns() // 1_000_000
        statuses, configs, unreachable = self._brokers(brokers)
        answered_at = time.time_ns() // 1_000_000
        self._note_problems(snapshot, unreachable)
        half_messages = tuple(self._half_messages(snapshot))
        return Examination(
            snapshot=snapshot,
            brokers=tuple(brokers),
            statuses=statuses,
            configs=configs,
            unreachable=unreachable,
            name_servers=tuple(named),
            silent_name_servers=silent_name_servers,
            closed_ports=tuple(self._closed_ports(statuses, configs)),
            members=self._members(snapshot),
            dead_letters=tuple(self._dead_letters(snapshot)),
            retries=tuple(self._retries(snapshot)),
            half_messages=half_messages,
            producers=self._online_producers(snapshot, half_messages),
            newest=tuple(self._newest(snapshot)),
            later_brokers=self._watch_brokers(),
            asked_at=asked_at,
            answered_at=answered_at,
        )

    def look(self, *, is_whole: bool) -> Examination:
        """Returns the facts that tell a change for the worse, for alarms.

        Args:
            is_whole: Whether to ask RocketMQ's brokers for what they tell of one group or topic at a time: members,
                unread times, dead letters. Ours tell it anyway.
        """
        self.unknown = []
        brokers = Clusters(self._client).brokers()
        snapshot = SnapshotTaker(self._client).snapshot(tables=_TABLES, members=is_whole, unread=is_whole)
        statuses, configs, unreachable = self._brokers(brokers)
        self._note_problems(snapshot, unreachable)
        return Examination(
            snapshot=snapshot,
            brokers=tuple(brokers),
            statuses=statuses,
            configs=configs,
            unreachable=unreachable,
            dead_letters=tuple(self._dead_letters(snapshot)) if is_whole else (),
        )

    def _note_problems(self, snapshot: Snapshot, unreachable: Iterable[BrokerRow]) -> None:
        # A broker that does not answer is a finding, not a gap of each table.
        silent = {row.broker_name for row in unreachable}
        answering = [broker for broker in snapshot.brokers if broker.broker_name not in silent]
        self.unknown += [problem for broker in answering for problem in broker.problems]
        if not snapshot.brokers:
            self.unknown += snapshot.problems

    def _ask(self, questions: Sequence[Question], *, times: float = 1) -> list[bytes | RemotingError]:
        answers = ask_all(self._client.api, questions, seconds=self._client.timeout * times)
        return [answer if isinstance(answer, RemotingError) else answer.body for answer in answers]

    def _brokers(
        self, brokers: Sequence[BrokerRow]
    ) -> tuple[dict[BrokerRow, dict[str, str]], dict[BrokerRow, dict[str, str]], dict[BrokerRow, str]]:
        """Returns status and configuration of each broker, and the errors of those that do not answer."""
        codes = (RequestCode.GET_BROKER_RUNTIME_INFO, RequestCode.GET_BROKER_CONFIG)
        questions = [Question(self._client.translate(row.address), code) for code in codes for row in brokers]
        answers = self._ask(questions)
        unreachable: dict[BrokerRow, str] = {}
        tables: list[dict[BrokerRow, dict[str, str]]] = [{}, {}]
        parse: tuple[Callable[[bytes], dict[str, str]], ...] = (status_of_body, _config_of_body)
        for index, answer in enumerate(answers):
            row, what = brokers[index % len(brokers)], index // len(brokers)
            try:
                tables[what][row] = parse[what](_body(answer))
            except ResponseError as error:
                words = ("status", "configuration")[what]
                self.unknown.append(f"{words} of {row.broker_name} at {row.address}: {error}")
            except RemotingError as error:
                unreachable[row] = str(error)
        return tables[0], tables[1], unreachable

    def _ask_name_servers(self) -> tuple[list[NameServerAnswer], dict[str, str]]:
        codes = (RequestCode.GET_BROKER_CLUSTER_INFO, RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)
        questions = [Question(address, code) for address in self._name_servers for code in codes]
        answers = iter(self._ask(questions))
        told: list[NameServerAnswer] = []
        silent: dict[str, str] = {}
        for address in self._name_servers:
            brokers, topics = next(answers), next(answers)
            try:
                known = cluster_info_of_body(_body(brokers)), frozenset(topics_of_body(_body(topics)))
                told.append(NameServerAnswer(address=address, brokers=known[0], topics=known[1]))
            except RemotingError as error:
                silent[address] = str(error)
        return told, silent

    def _closed_ports(
        self, statuses: Iterable[BrokerRow], configs: dict[BrokerRow, dict[str, str]]
    ) -> Iterator[ClosedPort]:
        """Yields ports that accept no connection, of brokers that answer."""
        answering = list(statuses)
        with_slaves = {row.broker_name for row in answering if not row.is_master}
        ports: list[tuple[BrokerRow, str, str]] = []
        for row in answering:
            host, _, port = self._client.translate(row.address).rpartition(":")
            ports.append((row, f"{host}:{int(port) - _VIP_DISTANCE}", "vip"))
            if row.is_master and row.broker_name in with_slaves:
                ports.append((row, f"{host}:{configs.get(row, {}).get('haListenPort', _HA_PORT)}", "ha"))
        with ThreadPoolExecutor(_CONNECTS, thread_name_prefix="rmqfast-connect") as threads:
            reasons = threads.map(lambda each: _refusal(each[1], self._client.timeout * PATIENCE), ports)
        for (row, address, purpose), reason in zip(ports, reasons, strict=True):
            if reason is not None:
                yield ClosedPort(broker=row, address=address, purpose=purpose, reason=reason)

    def _members(self, snapshot: Snapshot) -> dict[tuple[str, str], ConsumerRunningInfo]:
        """Returns what members say of themselves: those of groups with several, and of groups with an old backlog."""
        known_at = {
            (group, client_id): broker.address
            for broker in snapshot.brokers
            for group, known in (broker.consumers or {}).items()
            for client_id in known.client_ids
        }
        names = {group.group for group in snapshot.groups if _is_interesting(group, snapshot.taken_at)}
        places = [(address, *member) for member, address in sorted(known_at.items()) if member[0] in names]
        if len(places) > _MEMBERS:
            self.unknown.append(f"{len(places) - _MEMBERS} of {len(places)} members: the first {_MEMBERS} were asked")
        asked = places[:_MEMBERS]
        answers = self._ask([running_info_question(*place) for place in asked], times=PATIENCE)
        infos: dict[tuple[str, str], ConsumerRunningInfo] = {}
        for (_, group, client_id), answer in zip(asked, answers, strict=True):
            try:
                infos[group, client_id] = ConsumerRunningInfo.of_body(_body(answer))
            except RemotingError as error:
                self.unknown.append(f"member {client_id} of group {group} does not answer: {error}")
        return infos

    def _dead_letters(self, snapshot: Snapshot) -> Iterator[DeadLetterCount]:
        places = [
            (broker, topic)
            for broker in snapshot.brokers
            for topic in sorted(broker.topics or ())
            if topic.startswith(DLQ_PREFIX)
        ]
        code = RequestCode.GET_TOPIC_STATS_INFO
        questions = [Question(broker.address, code, {"topic": topic}) for broker, topic in places]
        for (broker, topic), answer in zip(places, self._ask(questions, times=SLOW), strict=True):
            rows = self._parse(answer, topic_offsets_of_body, f"{topic} at {broker.broker_name}")
            if rows is None:
                continue
            count = sum(row.max_offset - row.min_offset for row in rows)
            if count:
                yield DeadLetterCount(
                    broker_name=broker.broker_name,
                    group=topic.removeprefix(DLQ_PREFIX),
                    count=count,
                    last_timestamp=max(row.last_update_timestamp for row in rows),
                )

    def _half_messages(self, snapshot: Snapshot) -> Iterator[HalfMessage]:
        """Yields messages that wait to be committed. Operation messages tell which of them no longer do."""
        places = [
            (broker, topic, broker.offsets[CHECK_GROUP, topic].get(0, 0))
            for broker in snapshot.brokers
            if broker.offsets is not None and (CHECK_GROUP, HALF_TOPIC) in broker.offsets
            for topic in (HALF_TOPIC, OP_TOPIC)
            if (CHECK_GROUP, topic) in broker.offsets
        ]
        questions = [
            pull_question(
                broker.address, MessageQueue(topic, broker.broker_name, 0), offset, max_messages=MOST_HALF_MESSAGES
            )
            for broker, topic, offset in places
        ]
        ended: dict[str, set[int]] = defaultdict(set)
        waiting: list[tuple[BrokerSnapshot, Any]] = []
        for (broker, topic, _), answer in zip(places, self._ask(questions), strict=True):
            for message in self._messages_of(answer, broker.broker_name, f"{topic} at {broker.broker_name}"):
                if topic == OP_TOPIC:
                    ended[broker.address].update(map(int, re.findall(rb"\d+", message.body)))
                else:
                    waiting.append((broker, message))
        for broker, message in waiting:
            checks = message.properties.get("TRANSACTION_CHECK_TIMES", "0")
            if message.queue_offset not in ended[broker.address] and checks.isdecimal():
                yield HalfMessage(
                    broker_name=broker.broker_name,
                    topic=message.properties.get("REAL_TOPIC", ""),
                    producer_group=message.properties.get("PGROUP", ""),
                    born_timestamp=message.born_timestamp,
                    checks=int(checks),
                )

    def _online_producers(self, snapshot: Snapshot, half_messages: Sequence[HalfMessage]) -> frozenset[str]:
        """Returns which of the groups that sent half messages are online."""
        addresses = {broker.broker_name: broker.address for broker in snapshot.brokers}
        places = sorted({(each.broker_name, each.producer_group) for each in half_messages})
        code = RequestCode.GET_PRODUCER_CONNECTION_LIST
        answers = self._ask([Question(addresses[name], code, {"producerGroup": group}) for name, group in places])
        online: set[str] = set()
        for (broker_name, group), answer in zip(places, answers, strict=True):
            # A broker has an error for a group without a producer.
            if isinstance(answer, ResponseError) and not is_refusal(answer):
                continue
            told = self._parse(answer, connections_of, f"producers of {group} at {broker_name}")
            if told is None or told:
                online.add(group)
        return frozenset(online)

    def _retries(self, snapshot: Snapshot) -> Iterator[RetryRate]:
        """Yields the rates of groups that have sent messages back. RocketMQ's brokers are asked for each."""
        places: list[tuple[BrokerSnapshot, str, str]] = []
        for broker in snapshot.brokers:
            for group, topics in (broker.progress or {}).items():
                retried = {row.topic: row.broker_offset for stats in topics for row in stats}
                if retried.get(RETRY_PREFIX + group):
                    places += [
                        (broker, topic, group) for topic in sorted(retried) if not topic.startswith(RETRY_PREFIX)
                    ]
        code, names = RequestCode.VIEW_BROKER_STATS_DATA, ("GROUP_GET_NUMS", "SNDBCK_PUT_NUMS")
        foreign = [place for place in places if place[0].stats is None]
        answers = iter(
            self._ask(
                [
                    Question(broker.address, code, {"statsName": name, "statsKey": f"{topic}@{group}"})
                    for broker, topic, group in foreign
                    for name in names
                ]
            )
        )
        for broker, topic, group in places:
            if broker.stats is None:
                sums = [self._minute_sum(next(answers), f"statistics of {topic}@{group}") for _ in names]
            else:
                nothing = MinuteStats(0, 0)
                sums = [broker.stats.get(name, {}).get(f"{topic}@{group}", nothing).sum for name in names]
            yield RetryRate(broker_name=broker.broker_name, topic=topic, group=group, handed=sums[0], sent_back=sums[1])

    def _minute_sum(self, answer: bytes | RemotingError, what: str) -> float:
        # A broker has an error for a statistic that never counted.
        if isinstance(answer, ResponseError) and not is_refusal(answer):
            return 0
        return self._parse(answer, lambda body: minute_stats_of_body(body).sum, what) or 0

    def _watch_brokers(self) -> tuple[BrokerRow, ...]:
        """Returns all addresses that the name servers tell for brokers, as long as the examination should watch."""
        end, seen = monotonic() + self._watch, set(Clusters(self._client).brokers())
        while monotonic() < end:
            sleep(min(_LOOK, max(0.0, end - monotonic())))
            seen.update(Clusters(self._client).brokers())
        return tuple(_sort(seen))

    def _newest(self, snapshot: Snapshot) -> Iterator[NewestMessage]:
        """Yields the last message of the longest queue of some topics that groups read."""
        places: list[tuple[str, MessageQueue, int]] = []
        for broker in snapshot.brokers:
            rows = [row for topics in (broker.progress or {}).values() for stats in topics for row in stats]
            longest = {row.topic: row for row in sorted(rows, key=lambda row: row.broker_offset) if row.broker_offset}
            chosen = sorted(longest.values(), key=lambda row: row.broker_offset, reverse=True)[:_NEWEST]
            places += [(broker.address, row.queue, row.broker_offset - 1) for row in chosen]
        answers = self._ask([pull_question(*place) for place in places])
        for (_, queue, _), answer in zip(places, answers, strict=True):
            for message in self._messages_of(answer, queue.broker_name, f"the last message of {queue.topic}"):
                yield NewestMessage(
                    topic=queue.topic,
                    broker_name=queue.broker_name,
                    born_host=message.born_host,
                    born_timestamp=message.born_timestamp,
                    store_timestamp=message.store_timestamp,
                )

    def _messages_of(self, answer: bytes | RemotingError, broker_name: str, what: str) -> list[Any]:
        if isinstance(answer, ResponseError) and answer.code in _NO_MESSAGE:
            return []
        return self._parse(answer, lambda body: decode_messages(body, broker_name), what) or []

    def _parse(self, answer: bytes | RemotingError, parse: Callable[[bytes], T], what: str) -> T | None:
        try:
            return parse(_body(answer))
        except RmqError as error:
            self.unknown.append(f"{what}: {error}")
            return None


def _sort(rows: Iterable[BrokerRow]) -> list[BrokerRow]:
    return sorted(rows, key=lambda row: (row.cluster, row.broker_name, row.broker_id, row.address))


def _body(answer: bytes | RemotingError) -> bytes:
    if isinstance(answer, RemotingError):
        raise answer
    return answer


def _config_of_body(body: bytes) -> dict[str, str]:
    return dict(properties.loads(body.decode("utf-8", "replace")))


def _is_interesting(group: GroupSummary, now: int) -> bool:
    """Whether members should say what they do: there are several, or they are late."""
    unread = group.progress.unread_timestamp if group.progress else None
    is_late = unread is not None and 0 < unread < now - OLD
    return len(group.members or ()) > 1 or (bool(group.members) and is_late)


def _refusal(address: str, timeout: float) -> str | None:
    """Returns why a port accepts no connection, or `None` if it does."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout).close()
    # A configuration may tell a port that is none.
    except (OSError, OverflowError, ValueError) as error:
        return str(error)
    return None
