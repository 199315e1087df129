"""The answer of `admin.explain`: sentences, and the facts that support them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from rmqfast.admin.facts import CopyFacts, GroupFacts, MessageFacts, QueueFacts, SubscriptionFacts
from rmqfast.client.consumer.subscription import SubscriptionConflict
from rmqfast.html import table


class Outcome(StrEnum):
    """The fate of a message in a group.

    `LOST`: a member subscribes to the message or received it, but no member processed it. `FILTERED`: no member
    subscribes to the message.

    Example:
        >>> from rmqfast import Admin, EmbeddedCluster, Message, Producer
        >>> with EmbeddedCluster() as cluster, Admin(name_server=cluster.name_server) as admin:
        ...     with Producer("shop", name_server=cluster.name_server) as producer:
        ...         sent = producer.send(Message("orders", b"paid"))
        ...     admin.explain(admin.view_message(sent.offset_msg_id), "billing").outcome.value
        'NOT_CONSUMED_YET'
    """

    CONSUMED = "CONSUMED"
    LOST = "LOST"
    FILTERED = "FILTERED"
    NOT_CONSUMED_YET = "NOT_CONSUMED_YET"
    IN_RETRY = "IN_RETRY"
    DEAD_LETTER = "DEAD_LETTER"
    EXPIRED = "EXPIRED"
    BROADCASTING = "BROADCASTING"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, kw_only=True, slots=True)
class Explanation:
    """An explanation in sentences, with the facts that support it.

    Attributes:
        subject: The message, queue or group.
        sentences: The explanation; the first sentence is the outcome.
        outcome: Fate of a message in one group; `None` for queues and groups.
        message: Facts of the message.
        queue: Facts of the queue, or of the message's queue.
        group: Facts of the group.
        copies: Copies of the message that members sent back.
        subscriptions: For a group: the stored subscriptions and those of each member.
        conflicts: For a group: topics to which its members subscribe differently.
        parts: One explanation per group, or per queue of a group, if there are several.

    Example:
        >>> from rmqfast import Admin, EmbeddedCluster, MessageQueue
        >>> with EmbeddedCluster() as cluster, Admin(name_server=cluster.name_server) as admin:
        ...     admin.create_topic("orders", 1)
        ...     print(admin.explain(MessageQueue("orders", "broker-a", 0)))  # doctest: +ELLIPSIS
        orders queue 0 of broker-a...
    """

    subject: str
    sentences: tuple[str, ...] = ()
    outcome: Outcome | None = None
    message: MessageFacts | None = None
    queue: QueueFacts | None = None
    group: GroupFacts | None = None
    copies: tuple[CopyFacts, ...] = ()
    subscriptions: tuple[SubscriptionFacts, ...] = ()
    conflicts: tuple[SubscriptionConflict, ...] = ()
    parts: tuple[Explanation, ...] = ()

    @property
    def sentence(self) -> str:
        """The first sentence, which states the outcome."""
        return self.sentences[0] if self.sentences else ""

    def _repr_html_(self) -> str:
        rows = [[each.subject, sentence] for each in (self, *self.parts) for sentence in each.sentences]
        return table(("subject", "sentence"), rows, caption=self.subject)

    def __str__(self) -> str:
        lines = [self.subject, *(f"  {sentence}" for sentence in self.sentences)]
        lines += [f"  {line}" for part in self.parts for line in str(part).splitlines()]
        return "\n".join(lines)


def ordinal(number: int) -> str:
    """Formats a number as in "first", "second", "third", "4th", "11th" or "22nd"."""
    words = {1: "first", 2: "second", 3: "third"}
    if number in words:
        return words[number]
    # 11th, 12th and 13th are exceptions in English.
    ending = "th" if number % 100 in {11, 12, 13} else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
