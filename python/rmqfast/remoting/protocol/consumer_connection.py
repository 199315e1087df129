"""The clients of a group, as a broker knows them: the answers to requests 203 and 204.

Source: `ConsumerConnection`, `ProducerConnection`, `ProducerTableInfo`, `Connection`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rmqfast.html import table
from rmqfast.remoting.protocol.json_object import JsonObject
from rmqfast.remoting.protocol.subscription_data import SubscriptionData

_MOST_CLIENTS = 100_000
_MOST_TOPICS = 100_000
_MOST_BYTES = 64 << 20
ACTIVELY, PASSIVELY = "CONSUME_ACTIVELY", "CONSUME_PASSIVELY"
BROADCASTING = "BROADCASTING"


@dataclass(frozen=True, slots=True)
class Connection:
    """A client that a broker knows."""

    client_id: str
    client_addr: str
    language: str
    version: int


@dataclass(frozen=True, slots=True)
class ConsumerConnection:
    """The consumers of a group, as one broker knows them.

    Attributes:
        connections: The members, by client id.
        subscriptions: By topic, the newest subscription of all members.
        consume_type: `CONSUME_PASSIVELY` for push, `CONSUME_ACTIVELY` for pull and lite pull; 5.x has further types.
        message_model: `CLUSTERING` or `BROADCASTING`.
        consume_from_where: Position at which a new group starts.
        member_subscriptions: Each member's own subscriptions, by client id and topic. `None` if the broker does not
            tell: those of RocketMQ do not.
    """

    connections: tuple[Connection, ...]
    subscriptions: Mapping[str, SubscriptionData] = field(default_factory=dict)
    consume_type: str = PASSIVELY
    message_model: str = "CLUSTERING"
    consume_from_where: str = "CONSUME_FROM_LAST_OFFSET"
    member_subscriptions: Mapping[str, Mapping[str, SubscriptionData]] | None = None

    def _repr_html_(self) -> str:
        columns = Connection.__slots__
        rows = [[getattr(each, column) for column in columns] for each in self.connections]
        return table(columns, rows, caption=f"{self.consume_type} {self.message_model}".strip())

    @property
    def client_ids(self) -> list[str]:
        """The client ids of the consumers."""
        return [connection.client_id for connection in self.connections]

    @classmethod
    def of_body(cls, body: bytes) -> ConsumerConnection:
        """Parses an answer. Raises `ResponseError` if it is malformed."""
        return cls.of_json(JsonObject.of_body(body, most=_MOST_BYTES))

    @classmethod
    def of_json(cls, members: JsonObject) -> ConsumerConnection:
        """Parses one group. Raises `ResponseError` if it is malformed."""
        table = members.object("subscriptionTable")
        return cls(
            connections=_connections_of(members),
            subscriptions={} if table is None else {name: _subscription(table.member(name)) for name in table.names()},
            consume_type=members.optional_text("consumeType") or "",
            message_model=members.optional_text("messageModel") or "",
            consume_from_where=members.optional_text("consumeFromWhere") or "",
            member_subscriptions=_member_subscriptions(members),
        )


def _member_subscriptions(members: JsonObject) -> dict[str, dict[str, SubscriptionData]] | None:
    if "memberSubscriptions" not in members.names():
        return None
    rows = members.objects("memberSubscriptions", most=_MOST_CLIENTS)
    return {
        row.text("clientId"): {
            each.topic: each for each in map(_subscription, row.objects("subscriptions", most=_MOST_TOPICS))
        }
        for row in rows
    }


def _subscription(members: JsonObject) -> SubscriptionData:
    # A subscription without a version counts as the oldest.
    return SubscriptionData.from_json(members, now=0)


def connections_of(body: bytes) -> tuple[Connection, ...]:
    """Parses the clients of an answer, sorted by client id. Raises `ResponseError` if the answer is malformed."""
    return _connections_of(JsonObject.of_body(body, most=_MOST_BYTES))


def _connections_of(members: JsonObject) -> tuple[Connection, ...]:
    listed = [
        Connection(
            client_id=item.optional_text("clientId") or "",
            client_addr=item.optional_text("clientAddr") or "",
            language=item.optional_text("language") or "",
            version=item.number("version", 0),
        )
        for item in members.objects("connectionSet", most=_MOST_CLIENTS)
    ]
    return tuple(sorted(listed, key=lambda connection: connection.client_id))


def producers_of_body(body: bytes) -> dict[str, list[Connection]]:
    """Parses the producers of a broker by group (`ProducerTableInfo`). Raises `ResponseError` if it is malformed."""
    data = JsonObject.of_body(body, most=_MOST_BYTES).object("data")
    if data is None:
        return {}
    return {group: [_producer_of(item) for item in data.objects(group, most=_MOST_CLIENTS)] for group in data.names()}


def _producer_of(item: JsonObject) -> Connection:
    return Connection(
        client_id=item.optional_text("clientId") or "",
        # Java writes a name, which may be empty, a slash and the address.
        client_addr=(item.optional_text("remoteIP") or "").rpartition("/")[2],
        language=item.optional_text("language") or "",
        version=item.number("version", 0),
    )
