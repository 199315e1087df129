"""The ledger of a broker: who was handed a message, and who moved the offset over it.

Only rmqfast's brokers keep one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rmqfast.admin.admin_client import AdminClient
from rmqfast.client.consumer.subscription import MessageSelector, build_subscription_data
from rmqfast.errors import RemotingError, ResponseError
from rmqfast.message import MessageQueue
from rmqfast.remoting import RequestCode, ResponseCode
from rmqfast.remoting.protocol.broker_data import MASTER_ID
from rmqfast.remoting.protocol.json_object import JsonObject
from rmqfast.remoting.protocol.subscription_data import SubscriptionData

PULL, COMMIT, RESET, BEGIN = "PULL", "COMMIT", "RESET", "BEGIN"
_MOST = 10_000


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """A stretch of a queue, `start` to `stop` (exclusive), that a client was handed or moved the offset over.

    Attributes:
        number: Rows are numbered in the order in which they began; a reset ends the rows of its queue.
        kind: `PULL`, `COMMIT`, `RESET` by an administrator, or `BEGIN`, the first offset of the group.
        subscription: The broker's filter of a pull; None if its expression is too long to keep.
        first: Time of the first request, in milliseconds since 1970, by the broker's clock.
        last: Time of the last request.
        is_of_slave: Whether the client pulled from a slave, whose rows have no order among those of the master.
    """

    number: int
    kind: str
    client_id: str
    subscription: SubscriptionData | None
    start: int
    stop: int
    first: int
    last: int
    is_of_slave: bool = False

    def is_behind(self, other: LedgerRow) -> bool:
        """Whether this row began behind another one. True if nobody can tell."""
        return self is not other and (self.is_of_slave or other.is_of_slave or self.number > other.number)


@dataclass(frozen=True, slots=True)
class LedgerMember:
    """A member's own subscription, as its heartbeats told it since `first`.

    `subscription` is None if its expression is too long to keep.
    """

    client_id: str
    subscription: SubscriptionData | None
    message_model: str
    consume_type: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Ledger:
    """All that a broker knows of an offset of a queue and a group.

    Attributes:
        since: Time since when the ledger is complete; None if a slave does not tell its part.
        gaps: Times of which rows are missing, as after a crash.
    """

    since: int | None
    gaps: Sequence[tuple[int, int]]
    rows: Sequence[LedgerRow]
    members: Sequence[LedgerMember]

    def is_complete_since(self, time: int) -> bool:
        """Whether no row of `time` or later is missing."""
        return self.since is not None and self.since <= time and all(stop < time for _, stop in self.gaps)

    def subscriptions_of(self, client_id: str) -> list[LedgerMember]:
        """Returns what a member wanted, oldest first."""
        return sorted((each for each in self.members if each.client_id == client_id), key=lambda each: each.first)


def ledger_of(client: AdminClient, group: str, queue: MessageQueue, offset: int) -> Ledger | None:
    """Returns what a master and its slaves know of an offset.

    None if the master keeps no ledger, is down, or has more rows of the offset than it answers.
    """
    brokers = [each for each in client.route(queue.topic).broker_datas if each.broker_name == queue.broker_name]
    addresses = {number: client.translate(address) for each in brokers for number, address in each.addresses.items()}
    if MASTER_ID not in addresses:
        return None
    ledger = _ledger_at(client, addresses.pop(MASTER_ID), group, queue, offset)
    if ledger is None:
        return None
    for address in addresses.values():
        ledger = _join(ledger, _ledger_of_slave(client, address, group, queue, offset))
    return ledger


def _ledger_of_slave(client: AdminClient, address: str, group: str, queue: MessageQueue, offset: int) -> Ledger | None:
    try:
        return _ledger_at(client, address, group, queue, offset)
    except RemotingError:
        return None  # it is down: what it handed out is not known


def _join(ledger: Ledger, slave: Ledger | None) -> Ledger:
    """Adds what a slave has handed out. Only masters keep offsets."""
    if slave is None or slave.since is None:
        return replace(ledger, since=None)
    rows = [replace(row, is_of_slave=True) for row in slave.rows if row.kind == PULL]
    since = None if ledger.since is None else max(ledger.since, slave.since)
    return replace(ledger, since=since, gaps=[*ledger.gaps, *slave.gaps], rows=[*rows, *ledger.rows])


def _ledger_at(client: AdminClient, address: str, group: str, queue: MessageQueue, offset: int) -> Ledger | None:
    fields = {"topic": queue.topic, "queueId": queue.queue_id, "offset": offset, "group": group}
    try:
        body = client.ask(address, RequestCode.GET_PULL_LEDGER, fields).body
    except ResponseError as error:
        if error.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
            return None
        raise
    answer = JsonObject.of_body(body)
    if answer.flag("isCut"):
        return None  # of a part of the rows, nothing follows
    return Ledger(
        since=answer.number("since"),
        gaps=[(gap.number("from"), gap.number("to")) for gap in answer.objects("gaps", most=_MOST)],
        rows=[_row(queue.topic, each) for each in answer.objects("stretches", most=_MOST)],
        members=[_member(queue.topic, each) for each in answer.objects("members", most=_MOST)],
    )


def _row(topic: str, members: JsonObject) -> LedgerRow:
    text = members.optional_text("filter")
    return LedgerRow(
        number=members.number("id"),
        kind=members.text("kind"),
        client_id=members.text("clientId"),
        subscription=None if text is None else _subscription(topic, text),
        start=members.number("from"),
        stop=members.number("to"),
        first=members.number("first"),
        last=members.number("last"),
    )


def _member(topic: str, members: JsonObject) -> LedgerMember:
    text = members.optional_text("filter")
    return LedgerMember(
        client_id=members.text("clientId"),
        subscription=None if text is None else _subscription(topic, text),
        message_model=members.optional_text("messageModel") or "",
        consume_type=members.optional_text("consumeType") or "",
        first=members.number("first"),
        last=members.number("last"),
    )


def _subscription(topic: str, text: str) -> SubscriptionData:
    kind, _, expression = text.partition(":")
    selector = expression if kind == "TAG" else MessageSelector(kind, expression)
    return build_subscription_data(topic, selector, now=0)
