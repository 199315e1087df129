"""The events of a message's life, in the order of their times: sent, stored, handed out, sent back, dead.

RocketMQ has no such list: `messageTrackDetail` tells a state, and traces what clients report.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rmqfast.admin.explanation import Explanation, ordinal
from rmqfast.admin.facts import CopyFacts, CopyKind
from rmqfast.admin.message_event import EventKind, MessageEvent
from rmqfast.admin.place import Place, Step
from rmqfast.admin.proof import hand_out_text, move_text
from rmqfast.cells import duration_text, time_text
from rmqfast.client.trace import TraceType, TraceView

_STEPS = {
    Step.GIVEN: EventKind.HANDED_OUT,
    Step.DROPPED: EventKind.DROPPED,
    Step.FILTERED: EventKind.FILTERED,
    Step.UNKNOWN: EventKind.PULLED,
}
_COPIES = {CopyKind.DELAYED: EventKind.SENT_BACK, CopyKind.RETRY: EventKind.RETRIED, CopyKind.DEAD: EventKind.DEAD}


def timeline_of(message: Any, explanation: Explanation, traces: Iterable[TraceView]) -> list[MessageEvent]:
    """Returns what happened to a message, in the order of the times that are told."""
    parts = [explanation, *explanation.parts]
    events = [*_own_events(message), *(event for part in parts for event in part.events), *map(_event_of_trace, traces)]
    return sorted(events, key=lambda event: event.timestamp)


def events_in_group(
    group: str, place: Place | None, copies: Sequence[CopyFacts], places: Mapping[CopyFacts, Place | None]
) -> list[MessageEvent]:
    """Returns what brokers tell of a message in a group.

    `place` and `places` are what the ledger tells of the message, and of its copies in the retry topic.
    """
    events = [] if place is None else list(_events_at(group, place))
    for copy in copies:
        events.append(
            MessageEvent(timestamp=copy.store_timestamp, kind=_COPIES[copy.kind], text=_copy_text(copy), group=group)
        )
        if (retry := places.get(copy)) is not None:
            events += _events_at(group, retry)
    return events


def _own_events(message: Any) -> Iterator[MessageEvent]:
    born, host = message.born_timestamp, message.born_host
    yield MessageEvent(timestamp=born, kind=EventKind.SENT, text=f"sent by {host}", client=host)
    place = f"{message.topic} queue {message.queue_id} of {message.broker_name}, offset {message.queue_offset}"
    yield MessageEvent(timestamp=message.store_timestamp, kind=EventKind.STORED, text=f"stored in {place}")


def _events_at(group: str, place: Place) -> Iterator[MessageEvent]:
    for each in place.hand_outs():
        client, text = each.client_id, hand_out_text(place, each)
        yield MessageEvent(timestamp=each.first, kind=_STEPS[each.step], text=text, group=group, client=client)
        if each.step is Step.GIVEN and each.confirmed is not None:
            text = f"{client} confirmed it: its offset had passed it"
            yield MessageEvent(
                timestamp=each.confirmed, kind=EventKind.CONFIRMED, text=text, group=group, client=client
            )
    seen = {each.client_id for each in place.hand_outs()}
    for move in place.moves():
        # The commits of those that were handed it confirm it.
        if move.client_id not in seen:
            yield MessageEvent(
                timestamp=move.last, kind=EventKind.MOVED, text=move_text(move), group=group, client=move.client_id
            )


def _copy_text(copy: CopyFacts) -> str:
    place = f"{copy.queue.topic} queue {copy.queue.queue_id} offset {copy.queue_offset}"
    attempt = f"after the {ordinal(copy.reconsume_times)} attempt"
    if copy.kind is CopyKind.RETRY:
        return f"the {ordinal(copy.reconsume_times)} retry: stored in {place}"
    if copy.kind is CopyKind.DEAD:
        return f"a dead letter {attempt}: stored in {place}"
    due = "a time that is not known" if copy.due_timestamp is None else time_text(copy.due_timestamp)
    return f"sent back {attempt}: it comes again at {due}"


def _event_of_trace(step: TraceView) -> MessageEvent:
    took = "" if step.cost_time is None else f", which took {duration_text(step.cost_time)}"
    kind, text = _trace_text(step)
    return MessageEvent(
        timestamp=step.timestamp,
        kind=kind,
        text=f"by its trace, {step.client_host} {text}{took}",
        group=None if step.trace_type in {TraceType.PUB, TraceType.END_TRANSACTION} else step.group,
        client=step.client_host,
    )


def _trace_text(step: TraceView) -> tuple[EventKind, str]:
    result = "" if step.return_type is None else f" ({step.return_type.value})"
    if step.trace_type is TraceType.SUB_BEFORE:
        return EventKind.BEGUN, f"called its listener, after {step.retry_times or 0} earlier calls"
    if step.trace_type is TraceType.END_TRANSACTION:
        return EventKind.ENDED, f"ended its transaction: {step.transaction_state}"
    if step.trace_type is TraceType.PUB:
        return (EventKind.SENT, "sent it") if step.is_success else (EventKind.FAILED, "failed to send it")
    if step.is_success:
        return EventKind.PROCESSED, f"processed it{result}"
    return EventKind.FAILED, f"did not process it{result}"
