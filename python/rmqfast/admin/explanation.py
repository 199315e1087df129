"""The answer of `admin.explain`: sentences, and the facts that they are made of."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from rmqfast.admin.facts import CopyFacts, GroupFacts, MessageFacts, QueueFacts, SubscriptionFacts
from rmqfast.client.consumer.subscription import SubscriptionConflict
from rmqfast.html import table


class Outcome(StrEnum):
    """What became of a message in a group.

    `LOST` is a message that a member wants, or got, and nobody processed; `FILTERED` is one that nobody wants.

    Example:
        >>> from rmqfast import Admin, EmbeddedCluster, Message, Producer
        >>> from rmqfast.admin import Outcome
        >>> problems = {Outcome.LOST, Outcome.DEAD_LETTER, Outcome.EXPIRED, Outcome.UNKNOWN}
        >>> with EmbeddedCluster() as cluster, Admin(name_server=cluster.name_server) as admin:
        ...     with Producer("shop", name_server=cluster.name_server) as producer:
        ...         sent = producer.send(Message("orders", b"paid"))
        ...     outcome = admin.explain(admin.view_message(sent.offset_msg_id), "billing").outcome
        >>> outcome.value, outcome in problems
        ('NOT_CONSUMED_YET', False)
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
    """What happened, and the facts that say so.

    Attributes:
        subject: What is explained.
        sentences: What happened, the outcome first.
        outcome: Of a message in one group.
        message: What is known of the message.
        queue: What is known of its queue, or the queue itself.
        group: What is known of the group.
        copies: What members sent back.
        subscriptions: Of a group: what is kept for it, and what each member wants.
        conflicts: Of a group: the topics of which its members want different things.
        parts: An explanation of each group, or of each queue, where it is about several.

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
        """What happened, in one sentence."""
        return self.sentences[0] if self.sentences else ""

    def _repr_html_(self) -> str:
        rows = [[each.subject, sentence] for each in (self, *self.parts) for sentence in each.sentences]
        return table(("subject", "sentence"), rows, caption=self.subject)

    def __str__(self) -> str:
        lines = [self.subject, *(f"  {sentence}" for sentence in self.sentences)]
        lines += [f"  {line}" for part in self.parts for line in str(part).splitlines()]
        return "\n".join(lines)


def ordinal(number: int) -> str:
    """How often, for people.

    Example:
        >>> [ordinal(number) for number in (1, 2, 3, 11, 22)]
        ['first', 'second', 'third', '11th', '22nd']
    """
    words = {1: "first", 2: "second", 3: "third"}
    if number in words:
        return words[number]
    ending = "th" if number % 100 in {11, 12, 13} else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
