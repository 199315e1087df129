"""Warns if consumers of a group subscribe differently, since messages are then lost without an error."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from rmqfast.client.consumer.subscription import SOMEBODY, SubscriptionConflict, subscription_conflicts
from rmqfast.client.instance import ClientInstance
from rmqfast.client.instance.scheduler import Handle, Scheduler
from rmqfast.errors import ResponseError, RmqError
from rmqfast.logs import logger_of
from rmqfast.remoting import RequestCode, ResponseCode
from rmqfast.remoting.protocol.consumer_connection import ConsumerConnection
from rmqfast.remoting.protocol.consumer_running_info import ConsumerRunningInfo
from rmqfast.remoting.protocol.subscription_data import SubscriptionData, meaning_of
from rmqfast.threads import new_lock, new_thread

_log = logger_of(__name__)

#: Timeout in seconds for an answer of the broker, or of a member through it.
TIMEOUT = 3.0
#: Seconds until the first check, after the client's first heartbeat.
LATER = 1.5
#: Number of further questions to a silent member while nothing changes.
ATTEMPTS = 3
#: Maximum number of members asked per check; larger groups take several checks.
MOST_ASKED = 32


class SubscriptionWatcher:
    """Compares the subscriptions of this consumer with those of the group's other consumers.

    A check asks a broker for the group (request 203). If members, versions or subscriptions changed, it asks the other
    members for theirs (request 307, which Java's clients also answer). A member that does not answer is asked twice
    more.

    Attributes:
        conflicts: The conflicts of the last check.
        warnings: Number of new conflicts so far.
    """

    def __init__(
        self,
        instance: ClientInstance,
        group: str,
        subscriptions: Callable[[], Iterable[SubscriptionData]],
        on_conflict: Callable[[SubscriptionConflict], None] | None = None,
    ) -> None:
        self._instance, self._group, self._subscriptions = instance, group, subscriptions
        self._on_conflict = on_conflict
        self.conflicts: tuple[SubscriptionConflict, ...] = ()
        self.warnings: int = 0
        self._lock = new_lock()
        self._seen: object = None
        #: By client id; None for a member that did not answer.
        self._said: dict[str, Mapping[str, SubscriptionData] | None] = {}
        self._stale: set[str] = set()
        self._attempts: dict[str, int] = {}
        self._handle: Handle | None = None
        self._is_looking = self._is_stopped = False

    def start(self, scheduler: Scheduler, interval: float) -> None:
        if self._handle is None:
            self._handle = scheduler.every(min(LATER, interval), interval, self.look_soon)

    def stop(self) -> None:
        self._is_stopped = True
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def look_soon(self) -> None:
        """Starts a check on another thread, since it may wait for consumers. Does nothing if a check is running."""
        if not self._is_looking:
            new_thread(self.look, name="rmqfast-subscriptions").start()

    def look(self) -> tuple[SubscriptionConflict, ...]:
        """Checks now and returns the conflicts. An error is logged, and the previous conflicts are returned."""
        # another thread is checking
        if not self._lock.acquire(blocking=False):
            return self.conflicts
        self._is_looking = True
        try:
            new = self._look()
        except RmqError as error:
            new = []
            _log.info("group %s: what its members subscribe to is not known: %s", self._group, error)
        finally:
            self._is_looking = False
            self._lock.release()
        for conflict in new:
            self._tell(conflict)
        return self.conflicts

    def _look(self) -> list[SubscriptionConflict]:
        mine = list(self._subscriptions())
        address = next(filter(None, (self._instance.routes.any_address(each.topic) for each in mine)), None)
        group = None if address is None else self._fetch_group(address)
        if address is None or group is None:
            return []
        if self._instance.client_id not in group.client_ids:
            # the broker has not received this member's first heartbeat yet
            return []
        others = frozenset(group.client_ids) - {self._instance.client_id}
        self._note_changes(group, mine, others)
        self._ask(address, others)
        # not all members were asked yet: a later check continues
        if not others <= self._said.keys():
            return []
        own, table = self._instance.client_id, group.subscriptions
        conflicts = subscription_conflicts(self._group, own, mine, table, self._said)
        return self._note(
            sorted([*conflicts, *self._given_away_before(conflicts)], key=lambda conflict: conflict.topic)
        )

    def _fetch_group(self, address: str) -> ConsumerConnection | None:
        fields: dict[str, object] = {"consumerGroup": self._group}
        code = RequestCode.GET_CONSUMER_CONNECTION_LIST
        try:
            answer = self._instance.api.ask(address, code, fields, timeout=TIMEOUT)
        except ResponseError as error:
            # the broker knows no member yet
            if error.code == ResponseCode.CONSUMER_NOT_ONLINE:
                return None
            raise
        return ConsumerConnection.of_body(answer.body)

    def _note_changes(
        self, group: ConsumerConnection, mine: Iterable[SubscriptionData], others: frozenset[str]
    ) -> None:
        """Forgets the answers of consumers that left. If the group has changed, marks all answers as outdated."""
        table = frozenset((topic, each.sub_version, meaning_of(each)) for topic, each in group.subscriptions.items())
        seen = frozenset(group.client_ids), table, frozenset((each.topic, meaning_of(each)) for each in mine)
        self._said = {client_id: said for client_id, said in self._said.items() if client_id in others}
        if seen != self._seen:
            # something changed: every answer is outdated
            self._seen, self._stale = seen, set(others)
            self._attempts.clear()

    def _ask(self, address: str, others: frozenset[str]) -> None:
        # members that were never asked come first
        in_turn = [*sorted(others - self._said.keys()), *self._said]
        due = [name for name in in_turn if name in self._stale and self._attempts.get(name, 0) < ATTEMPTS]
        for client_id in sorted(due, key=lambda client_id: self._attempts.get(client_id, 0))[:MOST_ASKED]:
            self._attempts[client_id] = self._attempts.get(client_id, 0) + 1
            # removed first, so that the dict is in the order of questions
            self._said.pop(client_id, None)
            self._said[client_id] = said = self._wishes(address, client_id)
            if said is not None:
                self._stale.discard(client_id)

    def _wishes(self, address: str, client_id: str) -> Mapping[str, SubscriptionData] | None:
        fields: dict[str, object] = {"consumerGroup": self._group, "clientId": client_id, "jstackEnable": False}
        try:
            answer = self._instance.api.ask(address, RequestCode.GET_CONSUMER_RUNNING_INFO, fields, timeout=TIMEOUT)
            return ConsumerRunningInfo.of_body(answer.body).subscriptions
        except RmqError as error:
            _log.info("group %s: %s does not say what it subscribes to: %s", self._group, client_id, error)
            return None

    def _given_away_before(self, conflicts: Iterable[SubscriptionConflict]) -> list[SubscriptionConflict]:
        """Returns conflicts of earlier checks that this check cannot detect, since a consumer does not answer."""
        if None not in self._said.values():
            return []
        topics, present = {conflict.topic for conflict in conflicts}, {*self._said, self._instance.client_id, SOMEBODY}
        return [
            conflict
            for conflict in self.conflicts
            if SOMEBODY in conflict.expressions
            and conflict.topic not in topics
            and present >= set(conflict.expressions)
        ]

    def _note(self, conflicts: list[SubscriptionConflict]) -> list[SubscriptionConflict]:
        before, self.conflicts = self.conflicts, tuple(conflicts)
        for conflict in before:
            if conflict.topic not in {other.topic for other in conflicts}:
                _log.info("group %s: its members subscribe alike to %s again", self._group, conflict.topic)
        # each conflict is reported once
        return [conflict for conflict in conflicts if conflict not in before]

    def _tell(self, conflict: SubscriptionConflict) -> None:
        if self._is_stopped:
            return
        self.warnings += 1
        _log.warning("%s; messages get lost: give each expression a group of its own", conflict)
        if self._on_conflict is not None:
            self._tell_application(self._on_conflict, conflict)

    def _tell_application(
        self, on_conflict: Callable[[SubscriptionConflict], None], conflict: SubscriptionConflict
    ) -> None:
        try:
            on_conflict(conflict)
        except Exception:  # noqa: BLE001 - application code may raise anything
            _log.exception("group %s: who is told of conflicts fails", self._group)
