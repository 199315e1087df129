"""The step that a person takes next, after an explanation."""

from __future__ import annotations

from shlex import quote

from rmqfast.admin.explanation import Outcome
from rmqfast.admin.facts import GroupFacts, MessageFacts, QueueFacts
from rmqfast.admin.outcome import Verdict
from rmqfast.cells import time_text

_PROBLEMS = {Outcome.LOST, Outcome.SKIPPED, Outcome.DEAD_LETTER, Outcome.EXPIRED, Outcome.UNKNOWN}


def is_problem(outcome: Outcome, message: MessageFacts, queue: QueueFacts) -> bool:
    """Whether nobody processes the message, or nobody knows it."""
    if outcome is Outcome.NOT_CONFIRMED:
        # As long as the offset has not passed it, the member may be at it, and the next owner gets it again.
        return queue.consumer_offset is not None and message.queue_offset < queue.consumer_offset
    return outcome in _PROBLEMS


def next_step(verdict: Verdict, message: MessageFacts, group: GroupFacts) -> str | None:
    """Returns a step that mends what is wrong, or decides what is unknown. None if there is nothing to do."""
    name = group.group
    start = None if group.is_online else f"start a member of the group {name}"
    return {
        Outcome.LOST: f"{give_one_subscription(name)}; then have it consumed again: {_reset(message, name)}",
        Outcome.SKIPPED: f"to have it consumed with all that follows: {_reset(message, name)}",
        Outcome.DEAD_LETTER: f"mend what fails, then: rmqfast group resend {quote(name)} --id {quote(message.msg_id)}",
        Outcome.EXPIRED: "keep messages longer (fileReservedTime), or add members to the group",
        Outcome.NOT_CONSUMED_YET: start,
        Outcome.NOT_CONFIRMED: f"look into the log of {verdict.member}",
        Outcome.UNKNOWN: (
            f"a trace of the group {name} would decide it, and there is none: members write it where tracing is on"
        ),
    }.get(verdict.outcome)


def give_one_subscription(group: str) -> str:
    return f"give all members of the group {group} the same subscription, or each its own group"


def _reset(message: MessageFacts, group: str) -> str:
    second = time_text(message.store_timestamp).partition(".")[0].replace(" ", "T")
    return f"rmqfast group reset {quote(group)} {quote(message.queue.topic)} --to {second}"
