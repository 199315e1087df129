"""Decides from the ledger of a broker what became of an offset of a queue: no guess, and no fact of today.

Source: RocketMQ's `PullMessageProcessor`, `PullAPIWrapper.processPullResult`, `ProcessQueue.removeMessage`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

from rmqfast.admin.facts import MessageFacts
from rmqfast.admin.filters import passes_broker, passes_member
from rmqfast.admin.ledger import BEGIN, COMMIT, PULL, RESET, Ledger, LedgerMember, LedgerRow
from rmqfast.remoting.protocol.consumer_connection import ACTIVELY

#: Milliseconds before a heartbeat in which a member may have changed its subscription already.
_SLACK = 1000
#: Milliseconds in which clients that are told of a reset have obeyed it.
_OBEYED = 5000
#: Milliseconds by which the times of rows are late: the broker notes the time of the last tick of its clock.
_TICK = 20


class Step(Enum):
    """The place that a pull brought the message to.

    Attributes:
        GIVEN: The listener of the member.
        DROPPED: The member, whose own subscription it did not pass.
        FILTERED: None: the broker filtered it.
        UNKNOWN: One of these.
    """

    GIVEN = auto()
    DROPPED = auto()
    FILTERED = auto()
    UNKNOWN = auto()


@dataclass(frozen=True, slots=True)
class HandOut:
    """A pull that covered the message.

    Attributes:
        row: The row of the ledger; its times are those of the stretch, of which the message is a part.
        first: Earliest time of the pull: the row's, or the message's own if that is later.
        step: How far it brought the message.
        own: What the member itself wanted; None if no heartbeat told it.
        confirmed: Time at which the member's commit had passed the message; None if it did not, or if a reset may have
            moved the offset.
    """

    row: LedgerRow
    first: int
    step: Step
    own: LedgerMember | None
    confirmed: int | None = None

    @property
    def client_id(self) -> str:
        return self.row.client_id


@dataclass(frozen=True, slots=True)
class Place:
    """A message, or a copy of it, in a queue, and all that the broker's ledger knows of it.

    Attributes:
        message: The message with its tag, and the answers of the broker's SQL92 filter.
        consumer_offset: Next offset of the group; None if there is none.
        ledger: The rows that cover the message.
        min_offset: Offset of the first message that is still stored.
    """

    message: MessageFacts
    consumer_offset: int | None
    ledger: Ledger
    min_offset: int = 0

    @property
    def is_passed(self) -> bool:
        """Whether the group's offset is behind the message."""
        return self.consumer_offset is not None and self.message.queue_offset < self.consumer_offset

    @property
    def is_expired(self) -> bool:
        """Whether the message is gone from the queue."""
        return self.message.queue_offset < self.min_offset

    @property
    def is_complete(self) -> bool:
        """Whether the ledger has all rows of the message."""
        return self.ledger.is_complete_since(self.message.store_timestamp)

    @property
    def is_broadcast(self) -> bool:
        """Whether each member of the group gets all messages, as the newest subscription says."""
        models = [each.message_model for each in self.ledger.members]
        return bool(models) and models[-1] == "BROADCASTING"

    @property
    def is_of_doubtful_age(self) -> bool:
        """Whether rows end before the message was stored.

        They are of another message that a crash took from its offset, or the broker's clock was set back.
        """
        return not all(map(self._is_of_message, self.ledger.rows))

    @property
    def is_passed_unseen(self) -> bool:
        """Whether a member moved the offset over the message, and this broker handed it nothing: a slave did."""
        seen = {row.client_id for row in self.ledger.rows if row.kind == PULL}
        resets = [row.number for row in self.ledger.rows if row.kind == RESET]
        return any(
            move.client_id not in seen and not any(number < move.number for number in resets)
            for move in self.moves()
            if self._is_of_member(move)
        )

    def _is_of_member(self, move: LedgerRow) -> bool:
        if move.kind == RESET:
            return False
        joined = min((each.first for each in self.ledger.subscriptions_of(move.client_id)), default=None)
        # A group may begin behind the messages that are older than it.
        return joined is not None and (move.kind == COMMIT or joined <= self.message.store_timestamp)

    def hand_outs(self) -> list[HandOut]:
        """Returns the pulls that covered the message, oldest first."""
        rows = self._rows()
        return [self._hand_out(row, rows) for row in rows if row.kind == PULL]

    def moves(self) -> list[LedgerRow]:
        """Returns the moves of the offset over the message, oldest first."""
        return [row for row in self._rows() if row.kind != PULL and row.start < row.stop]

    def _rows(self) -> list[LedgerRow]:
        """Returns the rows of the message, and none of another one that was at its offset before."""
        return [row for row in self.ledger.rows if self._is_of_message(row)]

    def _is_of_message(self, row: LedgerRow) -> bool:
        return row.last >= self.message.store_timestamp - _TICK

    def _hand_out(self, row: LedgerRow, rows: Sequence[LedgerRow]) -> HandOut:
        step, own = self._step(row)
        # A reset ends the rows of its queue, so that each row is of before or of behind it.
        resets = [each.number for each in rows if each.kind == RESET and each.is_behind(row) and each.start < each.stop]
        limit = min(resets, default=None)
        first = max(row.first, self.message.store_timestamp)
        if self._is_pulled_again(row, rows, limit) or self._is_reset_before(row, rows):
            return HandOut(row, first, step, own)
        confirmed = [
            each.last
            for each in rows
            if each.kind in {COMMIT, BEGIN}
            and each.client_id == row.client_id
            and each.start < each.stop
            and each.last >= row.first
            and (limit is None or each.number < limit)
        ]
        return HandOut(row, first, step, own, max(confirmed, default=None))

    @staticmethod
    def _is_reset_before(row: LedgerRow, rows: Sequence[LedgerRow]) -> bool:
        """Whether a reset had moved the offset over the message just before the pull.

        The client had not obeyed it yet: then it gives up what it was handed, and commits the offset of the reset.
        """
        resets = [each for each in rows if each.kind == RESET and each.start < each.stop and row.is_behind(each)]
        return any(-_TICK <= row.first - each.last < _OBEYED for each in resets)

    def _is_pulled_again(self, row: LedgerRow, rows: Sequence[LedgerRow], limit: int | None) -> bool:
        """Whether the client pulled the message again: it gave up the first one, so a commit says nothing of it."""
        return any(
            each.kind == PULL
            and each.client_id == row.client_id
            and each.is_behind(row)
            and (limit is None or each.is_of_slave or each.number < limit)
            for each in rows
        )

    def _step(self, row: LedgerRow) -> tuple[Step, LedgerMember | None]:
        passes = self._passes_broker(row)
        candidates = self._subscriptions_at(row)
        own = candidates[-1] if candidates else None
        if passes is None:
            return Step.UNKNOWN, own
        if not passes:
            return Step.FILTERED, own
        # A pull consumer's heartbeat says nothing: its filter comes with each pull.
        if own is not None and own.consume_type == ACTIVELY:
            filters = [row.subscription]
        else:
            filters = [each.subscription for each in candidates]
        keeps = {None if each is None else passes_member(each, self.message) for each in filters}
        if len(keeps) != 1 or None in keeps:
            return Step.UNKNOWN, own
        return (Step.GIVEN if keeps.pop() else Step.DROPPED), own

    def _passes_broker(self, row: LedgerRow) -> bool | None:
        subscription = row.subscription
        if subscription is None:
            return None
        if not subscription.is_tag_type:
            answer = self.message.sql.get(subscription.sub_string)
            return None if answer is None else answer.is_passed
        return passes_broker(subscription, self.message)

    def _subscriptions_at(self, row: LedgerRow) -> list[LedgerMember]:
        """Returns what the client wanted while the row grew; more than one where it changed at about that time."""
        told = self.ledger.subscriptions_of(row.client_id)
        from_time = max(row.first, self.message.store_timestamp)
        active = []
        for number, want in enumerate(told):
            end = told[number + 1].first if number + 1 < len(told) else None
            if want.first - _SLACK <= row.last and (end is None or from_time <= end):
                active.append(want)
        return active
