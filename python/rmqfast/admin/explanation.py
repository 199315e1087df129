"""The answer of `admin.explain`: sentences, and the facts that support them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from rmqfast.admin.facts import CopyFacts, GroupFacts, MessageFacts, QueueFacts, SubscriptionFacts
from rmqfast.admin.message_event import MessageEvent
from rmqfast.client.consumer.subscription import SubscriptionConflict
from rmqfast.html import table


class Outcome(StrEnum):
    """The fate of a message in a group.

    Attributes:
        CONSUMED: A member processed the message.
        LOST: A member subscribes to the message or received it, but no member processed it.
        FILTERED: No member subscribes to the message.
        NOT_CONSUMED_YET: The group's offset has not passed the message. A member may be at it, or may have processed
            it before the offset was set back.
        NOT_CONFIRMED: A member was handed the message, and has not told that it processed it.
        SKIPPED: The offset was moved over the message, and nobody was handed it.
        IN_RETRY: A member sent the message back; the group gets it again.
        DEAD_LETTER: Consumed in vain as often as the group allows.
        EXPIRED: Deleted before the group had passed it.
        BROADCASTING: Each member gets all messages, and keeps its own offsets.
        UNKNOWN: Nothing that brokers, members and traces know decides it.

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
    NOT_CONFIRMED = "NOT_CONFIRMED"
    SKIPPED = "SKIPPED"
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
        next_step: A step that mends what is wrong, or decides what is unknown; `None` if there is none.
        has_problem: Whether something is wrong or unknown, also in a part.
        member: Member that was handed the message; `None` if nobody was, or if it is not known.
        message: Facts of the message.
        queue: Facts of the queue, or of the message's queue.
        group: Facts of the group.
        copies: Copies of the message that members sent back.
        events: What brokers tell of a message in one group; `admin.messages.timeline` adds the rest.
        sampled: Times in milliseconds since 1970 between which the samples of a history support the outcome, which is
            no proof; `None` if it follows from what brokers, members and traces say.
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
    next_step: str | None = None
    has_problem: bool = False
    member: str | None = None
    message: MessageFacts | None = None
    queue: QueueFacts | None = None
    group: GroupFacts | None = None
    copies: tuple[CopyFacts, ...] = ()
    events: tuple[MessageEvent, ...] = ()
    sampled: tuple[int, int] | None = None
    subscriptions: tuple[SubscriptionFacts, ...] = ()
    conflicts: tuple[SubscriptionConflict, ...] = ()
    parts: tuple[Explanation, ...] = ()

    @property
    def sentence(self) -> str:
        """The first sentence, which states the outcome."""
        return self.sentences[0] if self.sentences else ""

    def _repr_html_(self) -> str:
        rows = [[each.subject, line] for each in (self, *self.parts) for line in _statements(each)]
        return table(("subject", "sentence"), rows, caption=self.subject)

    def __str__(self) -> str:
        lines = [self.subject, *(f"  {line}" for line in _statements(self))]
        for part in self.parts:
            # The message is named once, above the groups.
            name = part.subject if part.message is None or part.group is None else f"group {part.group.group}"
            lines += [f"  {name}", *(f"    {line}" for line in _statements(part))]
        return "\n".join(lines)


def _statements(explanation: Explanation) -> list[str]:
    """Returns the outcome and the first sentence, the other sentences, and the next step."""
    lines = list(explanation.sentences)
    if explanation.outcome is not None:
        lines[:1] = [f"{explanation.outcome.value}: {explanation.sentence}"]
    return lines if explanation.next_step is None else [*lines, f"next: {explanation.next_step}"]


def ordinal(number: int) -> str:
    """Formats a number as in "first", "second", "third", "4th", "11th" or "22nd"."""
    words = {1: "first", 2: "second", 3: "third"}
    if number in words:
        return words[number]
    # 11th, 12th and 13th are exceptions in English.
    ending = "th" if number % 100 in {11, 12, 13} else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
