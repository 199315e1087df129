"""Looks at a cluster: offsets of all groups, and the members of some."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from rmqfast.admin.admin_client import AdminClient
from rmqfast.admin.clusters import clock_of
from rmqfast.admin.history.broker_clock import BrokerClock
from rmqfast.admin.history.cluster_history import GroupLook, Offsets
from rmqfast.admin.history.stretch import text_of_facts
from rmqfast.admin.members import connections_question, running_info_question
from rmqfast.admin.questions import Answer, ask_all, body_of
from rmqfast.admin.snapshot import BUILT_IN, BrokerSnapshot
from rmqfast.admin.snapshot_taker import SnapshotTaker
from rmqfast.errors import RemotingError, ResponseError
from rmqfast.remoting import ResponseCode
from rmqfast.remoting.protocol.consumer_connection import ConsumerConnection
from rmqfast.remoting.protocol.consumer_running_info import ConsumerRunningInfo
from rmqfast.system import monotonic
from rmqfast.threads import sleep

#: Seconds between two questions for a broker's clock.
_CLOCK_PAUSE = 0.05
#: Seconds by which `clock_of` is ahead of the second that a broker told.
_AHEAD = 2


@dataclass
class BrokersLook:
    """The answers of all brokers at one time.

    Attributes:
        brokers: The brokers that told everything, by name.
        moved: Groups whose offsets have moved since the last look.
        problems: What others did not tell, and why.
    """

    brokers: dict[str, BrokerSnapshot] = field(default_factory=dict)
    moved: set[str] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)


class Looker:
    """Asks brokers, and through them the members of groups. Knows the clocks of the brokers."""

    def __init__(self, client: AdminClient, groups: Collection[str]) -> None:
        self._client, self._groups = client, groups
        self._clocks: dict[str, BrokerClock] = {}
        #: What each broker told at the last look.
        self._before: dict[str, BrokerSnapshot] = {}

    def set_clocks(self) -> None:
        """Asks all brokers again and again for a second, so that their clocks are known more exactly than that."""
        end = monotonic() + 1.0
        while monotonic() < end:
            asked = monotonic()
            for broker in SnapshotTaker(self._client).snapshot(tables=("status",)).brokers:
                self._note_clock(broker, asked, monotonic())
            sleep(_CLOCK_PAUSE)

    def look_at_brokers(self) -> BrokersLook:
        """Returns offsets and groups of all brokers. Raises `RmqError` if no name server answers."""
        look, asked = BrokersLook(), monotonic()
        snapshot = SnapshotTaker(self._client).snapshot(tables=("status", "groups", "offsets"))
        answered = monotonic()
        look.problems += snapshot.problems
        for broker in snapshot.brokers:
            name, is_steady = broker.broker_name, self._note_clock(broker, asked, answered)
            if is_steady is False:
                look.problems.append(f"{name}: its clock was set, or that of this machine")
            if is_steady and broker.offsets is not None and broker.groups is not None:
                look.brokers[name] = broker
                look.moved |= _groups_that_moved(self._before.get(name, broker), broker)
        self._before = look.brokers
        return look

    def _note_clock(self, broker: BrokerSnapshot, asked: float, answered: float) -> bool | None:
        """Notes the clock of a broker. Returns whether it goes on steadily, `None` if the broker does not tell it."""
        told = None if broker.status is None else clock_of(broker.status)
        if told is None:
            return None
        clock = self._clocks.setdefault(broker.broker_name, BrokerClock())
        return clock.note(told - _AHEAD * 1000, asked, answered)

    def groups_of(self, broker: BrokerSnapshot) -> set[str]:
        """Returns the groups of a broker that are watched."""
        names = {*(broker.groups or ()), *(group for group, _ in broker.offsets or ())} - BUILT_IN
        return names & set(self._groups) if self._groups else names

    def look_at_groups(
        self, places: Sequence[tuple[BrokerSnapshot, str]], *, seconds: float
    ) -> tuple[list[GroupLook], dict[tuple[str, str], str]]:
        """Returns what brokers and members say of groups at brokers, and why some are not known.

        All members together get so many seconds. One that does not answer in time is noted as silent.
        """
        asked = monotonic()
        questions = [connections_question(broker.address, group) for broker, group in places]
        answers = ask_all(self._client.api, questions, seconds=self._client.timeout)
        online: dict[tuple[str, str], ConsumerConnection] = {}
        problems: dict[tuple[str, str], str] = {}
        for (broker, group), answer in zip(places, answers, strict=True):
            try:
                online[broker.broker_name, group] = _online(answer)
            except RemotingError as error:
                problems[broker.broker_name, group] = f"{broker.broker_name}, members of group {group}: {error}"
        known = [(broker, group) for broker, group in places if (broker.broker_name, group) in online]
        infos = self._infos(known, online, problems, seconds)
        answered = monotonic()
        offsets = {broker.broker_name: by_group(broker.offsets or {}) for broker, _ in known}
        looks = []
        for broker, group in known:
            name, clock = broker.broker_name, self._clocks[broker.broker_name]
            before = offsets[name].get(group, {})
            facts = _texts_of_facts(name, before, online[name, group], infos.get(group, {}))
            first, members = clock.latest(answered), len(online[name, group].client_ids)
            looks.append(GroupLook(name, group, before, facts, first, clock.earliest(asked), members))
        return looks, problems

    def offsets_at(self, names: Collection[str]) -> dict[str, dict[str, Offsets]]:
        """Returns the offsets of brokers that still tell them, by name, group and topic."""
        snapshot = SnapshotTaker(self._client).snapshot(tables=("offsets",)) if names else None
        told = () if snapshot is None else snapshot.brokers
        return {
            each.broker_name: by_group(each.offsets)
            for each in told
            if each.broker_name in names and each.offsets is not None
        }

    def _infos(
        self,
        places: Sequence[tuple[BrokerSnapshot, str]],
        online: Mapping[tuple[str, str], ConsumerConnection],
        problems: dict[tuple[str, str], str],
        seconds: float,
    ) -> dict[str, dict[str, ConsumerRunningInfo | None]]:
        """Returns the members' answers by group and client id: each is asked through the first broker that knows it."""
        addresses: dict[tuple[str, str], str] = {}
        for broker, group in places:
            for client_id in online[broker.broker_name, group].client_ids:
                addresses.setdefault((group, client_id), broker.address)
        questions = [running_info_question(address, *member) for member, address in addresses.items()]
        answers = ask_all(self._client.api, questions, seconds=seconds)
        infos: dict[str, dict[str, ConsumerRunningInfo | None]] = {}
        for (group, client_id), answer in zip(addresses, answers, strict=True):
            try:
                infos.setdefault(group, {})[client_id] = ConsumerRunningInfo.of_body(body_of(answer))
            except RemotingError as error:
                infos.setdefault(group, {})[client_id] = None
                problems[group, client_id] = f"group {group}: {client_id} does not tell: {error}"
        return infos


def _groups_that_moved(before: BrokerSnapshot, after: BrokerSnapshot) -> set[str]:
    """Returns the groups whose offsets have moved."""
    old = before.offsets or {}
    return {place[0] for place, offsets in (after.offsets or {}).items() if old.get(place) != offsets}


def _texts_of_facts(
    broker_name: str, offsets: Offsets, online: ConsumerConnection, own: Mapping[str, ConsumerRunningInfo | None]
) -> dict[str, str]:
    """Returns the facts of a group by topic: of topics with offsets, and of those that a member wants."""
    wanted = {topic for info in own.values() if info is not None for topic in info.subscriptions}
    topics = sorted({*offsets, *online.subscriptions, *wanted})
    return {topic: text_of_facts(topic, broker_name, online, own) for topic in topics}


def by_group(table: Mapping[tuple[str, str], Mapping[int, int]]) -> dict[str, Offsets]:
    """Returns the offsets of each group by topic."""
    groups: dict[str, dict[str, Mapping[int, int]]] = {}
    for (group, topic), offsets in table.items():
        groups.setdefault(group, {})[topic] = offsets
    return dict(groups)


def _online(answer: Answer) -> ConsumerConnection:
    try:
        return ConsumerConnection.of_body(body_of(answer))
    except ResponseError as error:
        if error.code != ResponseCode.CONSUMER_NOT_ONLINE:
            raise
        return ConsumerConnection(connections=(), consume_from_where="")
