"""Keeps the ledger of a broker: takes the rows of the data plane, adds what members want, saves and answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from rmqfast._native import DataPlane
from rmqfast.broker.ledger.database import LedgerDatabase, MemberSubscription, Stretch
from rmqfast.errors import StoreIOError
from rmqfast.logs import QuietLock, logger_of
from rmqfast.remoting.protocol.heartbeat_data import ConsumerData
from rmqfast.remoting.protocol.subscription_data import SubscriptionData

_log = logger_of(__name__)

#: Milliseconds without growth after which a row leaves memory.
_IDLE_MS = 60_000
#: Longest filter that is kept; of a longer one, nobody can say what it did.
_MAX_FILTER = 4_000
#: Subscriptions that wait to be saved; more are dropped, which is a gap.
_MOST_UNSAVED = 50_000
KINDS = ("PULL", "COMMIT", "RESET", "BEGIN")


class PullLedger:
    """Remembers who was handed which message by which filter, who moved offsets, and what each member wanted.

    Thread-safe. Subscriptions are those of each member, while brokers keep one a group.
    """

    def __init__(
        self,
        root: Path,
        data_plane: DataPlane,
        *,
        most_rows: int,
        hours: int,
        now: Callable[[], int],
        file_permission: int = 0o600,
    ) -> None:
        self._data_plane = data_plane
        self._most_rows, self._hours = most_rows, hours
        self._now = now
        self._database = LedgerDatabase(root / "config" / "ledger.db", file_permission)
        self._lock = QuietLock()
        self._saving = QuietLock()
        #: What members want, and whether it must be saved, by group, client and topic.
        self._subscriptions: dict[tuple[str, str, str], MemberSubscription] = {}
        self._unsaved: dict[tuple[str, str, str, int], MemberSubscription] = {}
        #: Time of the last save, and since when rows are missing as saves failed.
        self._saved: int = now()
        self._lost_since: int | None = None

    def open(self) -> None:
        """Continues the ledger of the store."""
        self._data_plane.continue_ledger(self._database.open(self._now()))

    def note_heartbeat(self, client_id: str, data: ConsumerData) -> None:
        """Notes what a member wants; a member that wants something else begins new rows."""
        now, changed = self._now(), False
        with self._lock:
            for subscription in data.subscriptions:
                changed |= self._note(client_id, data, subscription, now)
        if changed:
            # A pull of before and one behind the change are in rows of their own.
            self._data_plane.end_ledger_pulls(data.group_name)

    def note_leave(self, group: str, client_id: str) -> None:
        """Notes that a member has left its group."""
        now = self._now()
        with self._lock:
            for key in [key for key in self._subscriptions if key[:2] == (group, client_id)]:
                self._add_unsaved(self._subscriptions.pop(key)._replace(last_ms=now))

    def remove_topic(self, topic: str) -> None:
        """Forgets the rows of a topic that was deleted."""
        try:
            with self._saving:
                self._database.remove_topic(topic)
        except StoreIOError:
            # Rows that are older than a message prove nothing of it, so the topic may be made anew.
            _log.exception("rows of the deleted topic %s stay in the ledger", topic)

    def save(self) -> None:
        """Saves what is new, and removes what is too old or too much."""
        self._save_new()
        with self._saving:
            oldest_ms = self._now() - self._hours * 3_600_000
            self._database.trim(most_rows=self._most_rows, oldest_ms=oldest_ms)

    def _save_new(self) -> None:
        now = self._now()
        with self._saving:
            rows, gap = self._data_plane.take_ledger(now - _IDLE_MS)
            with self._lock:
                members, self._unsaved = self._unsaved, {}
                starts = [start for start in (gap, self._lost_since) if start is not None]
                self._lost_since = None
            lost = (min(starts), now) if starts else None
            try:
                self._database.save(map(_stretch, rows), members.values(), lost, now)
            except StoreIOError:
                # The disk may have room again at the next save, which then tells that rows are missing.
                with self._lock:
                    self._lost_since = min([*starts, self._saved])
                    self._unsaved = members | self._unsaved
                raise
            self._saved = now

    def answer(self, topic: str, queue_id: int, offset: int, group: str | None) -> dict[str, Any]:
        """Returns all that is known of an offset, in the form in which administrators get it.

        `isCut` tells that there are more rows than an answer has.
        """
        try:
            self._save_new()
        except StoreIOError:
            _log.exception("an answer of the ledger lacks the newest rows")
        since, gaps = self._database.reach()
        with self._lock:
            if self._lost_since is not None:
                gaps = [*gaps, (self._lost_since, self._now())]
        stretches, more_stretches = self._database.stretches(topic, queue_id, group, offset)
        members, more_members = self._database.subscriptions(topic, group)
        names = ("id", "kind", "group", "clientId", "filter", "from", "to", "first", "last")
        of_member = ("group", "clientId", "filter", "messageModel", "consumeType", "first", "last")
        return {
            "now": self._now(),
            "since": since,
            "gaps": [{"from": start, "to": stop} for start, stop in gaps],
            "isCut": more_stretches or more_members,
            "stretches": [dict(zip(names, (row[0], KINDS[row[1]], *row[2:]), strict=True)) for row in stretches],
            "members": [dict(zip(of_member, self._with_present(topic, row), strict=True)) for row in members],
        }

    def _with_present(self, topic: str, row: Sequence[Any]) -> Sequence[Any]:
        """Returns what a member wants with the time until which it did: a member that is online does so now."""
        group, client, *_, first_ms, _ = row
        with self._lock:
            online = self._subscriptions.get((group, client, topic))
        return row if online is None or online.first_ms != first_ms else (*row[:-1], self._now())

    def close(self) -> None:
        """Saves everything, and closes the database. A ledger that cannot be saved has a gap at the next start."""
        now = self._now()
        with self._lock:
            for member in self._subscriptions.values():
                self._add_unsaved(member._replace(last_ms=now))
        is_whole = False
        try:
            self._save_new()
            is_whole = True
        except StoreIOError:
            _log.exception("the ledger lacks its newest rows")
        self._database.close(is_whole=is_whole)

    def _note(self, client_id: str, data: ConsumerData, subscription: SubscriptionData, now: int) -> bool:
        key = (data.group_name, client_id, subscription.topic)
        member = MemberSubscription(
            *key,
            filter=filter_text(subscription.expression_type, subscription.sub_string),
            model=data.message_model or "",
            consume_type=data.consume_type or "",
            first_ms=now,
            last_ms=now,
        )
        old = self._subscriptions.get(key)
        if old is not None and old[3:6] == member[3:6]:
            member = old._replace(last_ms=now)
        elif old is not None:
            self._add_unsaved(old._replace(last_ms=now))
        self._subscriptions[key] = member
        self._add_unsaved(member)
        return old is not None and old.filter != member.filter

    def _add_unsaved(self, member: MemberSubscription) -> None:
        key = (member.group, member.client, member.topic, member.first_ms)
        if key in self._unsaved or len(self._unsaved) < _MOST_UNSAVED:
            self._unsaved[key] = member
        elif self._lost_since is None:
            self._lost_since = member.last_ms


def filter_text(expression_type: str | None, expression: str) -> str | None:
    """Returns type and expression of a filter as one text; None for an expression that is too long to keep."""
    return f"{expression_type or 'TAG'}:{expression}" if len(expression) <= _MAX_FILTER else None


def _stretch(row: Iterable[Any]) -> Stretch:
    number, kind, group, topic, queue_id, client, filter_type, expression, *rest = row
    text = None if expression is None else filter_text(filter_type, expression)
    return Stretch(number, kind, group, topic, queue_id, client, text, *rest)
