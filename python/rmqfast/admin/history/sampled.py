"""Verdicts that follow from the samples of a history.

They are no proofs: between two samples anything may have happened. Each change of members, queues or subscriptions, and
each reset of members, gives a subscription a new version, so that what two samples show alike was hardly different
between them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from rmqfast.admin.explanation import Outcome
from rmqfast.admin.facts import CopyFacts, CopyKind, GroupFacts, MemberFacts, MessageFacts, QueueFacts
from rmqfast.admin.filters import passes_broker, passes_member
from rmqfast.admin.history.stretch import Stretch
from rmqfast.admin.members import owner_of
from rmqfast.admin.outcome import (
    BROADCAST,
    Delivery,
    Verdict,
    Way,
    copy_place_text,
    dead_text,
    decide,
    delivery_of,
    newest_of,
    not_passed_text,
)
from rmqfast.cells import time_text
from rmqfast.client.consumer.subscription import expression_of
from rmqfast.remoting.protocol.subscription_data import SUB_ALL, SubscriptionData, meaning_of

#: Milliseconds in which a change may not have come to all: members, broker, and pulls under way.
_SLACK = 100
#: Milliseconds for which a pull may wait at a broker; the member filters its answer by the subscription of before.
_PARKED = 16_000
_FIRST = "CONSUME_FROM_FIRST_OFFSET"


class Sampled(NamedTuple):
    """A verdict, and the times between which the samples support it."""

    verdict: Verdict
    first: int
    last: int


def sampled_verdict(message: MessageFacts, queue: QueueFacts, stretches: Sequence[Stretch]) -> Sampled | None:
    """Returns what the samples say of a message at its place; None if they do not decide."""
    online = [each for each in stretches if each.group.is_online]
    if online and online[-1].group.is_broadcasting:
        return _told(Verdict(Outcome.BROADCASTING, [BROADCAST]), stretches)
    if online and not _is_behind(queue.consumer_offset, message.queue_offset):
        # Whether the group broadcasts, which has no offsets, was all that was not known.
        return _told(Verdict(Outcome.NOT_CONSUMED_YET, [not_passed_text(queue, "nobody")]), stretches)
    begin = _index_at(message, stretches)
    if begin is None:
        return None
    passages = _passages(message, stretches, begin)
    verdicts = [_verdict(message, queue, passage) for passage in passages]
    consumed = [each for each in verdicts if each is not None and each.verdict.outcome is Outcome.CONSUMED]
    if consumed:
        return consumed[-1]
    return verdicts[-1] if verdicts and None not in verdicts else None


def sampled_verdict_of_copies(
    message: MessageFacts,
    queue: QueueFacts,
    stretches: Sequence[Stretch],
    copies: Sequence[CopyFacts],
    places: Mapping[CopyFacts, Sequence[Stretch]],
) -> Sampled | None:
    """Returns what the samples say of a message that was sent back; `places` has those of its copies' queues."""
    newest = newest_of(copies)
    if newest.kind is CopyKind.DEAD:
        return _of_dead_letter(message, newest, stretches, places)
    if newest.kind is not CopyKind.RETRY:
        return None
    copied = replace(
        message,
        queue=newest.queue,
        queue_offset=newest.queue_offset,
        store_timestamp=newest.store_timestamp,
    )
    sampled = sampled_verdict(copied, replace(queue, queue=newest.queue), places[newest])
    if sampled is None:
        return None
    text = f"{sampled.verdict.sentences[0]}; that is its last copy, {copy_place_text(newest)}"
    verdict = sampled.verdict._replace(sentences=[text, *sampled.verdict.sentences[1:]])
    return sampled._replace(verdict=verdict)


def _of_dead_letter(
    message: MessageFacts,
    copy: CopyFacts,
    stretches: Sequence[Stretch],
    places: Mapping[CopyFacts, Sequence[Stretch]],
) -> Sampled | None:
    """Returns that a dead letter is one, if no sample shows that an offset was set back since."""
    since = copy.store_timestamp
    begin = _index_at(replace(message, store_timestamp=since), stretches)
    if begin is None or _is_set_back(message.queue_offset, since, stretches[begin:]):
        return None
    if any(_is_set_back(retry.queue_offset, since, place) for retry, place in places.items()):
        return None
    return _told(Verdict(Outcome.DEAD_LETTER, [f"{dead_text(copy)}; no offset was set back since"]), stretches[begin:])


def _is_set_back(offset: int, since: int, stretches: Sequence[Stretch]) -> bool:
    """Whether samples after a time show an offset that has not passed, or have a gap."""
    after = [each for each in stretches if each.last >= since]
    has_gap = len({each.run for each in after}) > 1
    return has_gap or any(each.start is not None and each.start <= offset for each in after if each.first > since)


class _Passage(NamedTuple):
    """The stretches from the one in which a message came to the one that shows it passed.

    Attributes:
        is_between: Whether the offset passed it between the last two of them.
        earlier: Stretches of the moments before.
    """

    stretches: Sequence[Stretch]
    is_between: bool
    earlier: Sequence[Stretch]


def _index_at(message: MessageFacts, stretches: Sequence[Stretch]) -> int | None:
    """Returns the index of the stretch in which a message was stored."""
    indexes = [number for number, each in enumerate(stretches) if each.first + _SLACK <= message.store_timestamp]
    return indexes[-1] if indexes else None


def _passages(message: MessageFacts, stretches: Sequence[Stretch], begin: int) -> list[_Passage]:
    passages: list[_Passage] = []
    offset, came = message.queue_offset, begin
    earlier = [each for each in stretches[:begin] if each.last >= message.store_timestamp - _PARKED]
    is_waiting = not _is_behind(stretches[begin].start, offset)
    if not is_waiting:
        return []
    for number in range(begin, len(stretches)):
        each = stretches[number]
        if number > came and each.run != stretches[number - 1].run:
            is_waiting = False  # what was in the gap is not known
        if not is_waiting and each.start is not None and each.start <= offset:
            is_waiting, came = True, number  # the offset has gone back
        if is_waiting and _is_behind(each.stop, offset):
            is_between = _is_behind(each.start, offset)
            passages.append(_Passage(stretches[came : number + 1], is_between, earlier if came == begin else []))
            is_waiting = False
    return passages


def _is_behind(position: int | None, offset: int) -> bool:
    return position is not None and position > offset


def _verdict(message: MessageFacts, queue: QueueFacts, passage: _Passage) -> Sampled | None:
    last = passage.stretches[-1]
    if not passage.is_between and not last.group.is_online:
        return _skipped(passage)
    handing = _handing(queue, passage)
    if not handing or _may_begin_behind(message, passage):
        return None
    if any(_holds_older_pull(queue, each, passage.earlier) for each in handing):
        return None
    delivery = _delivery(message, queue, handing[-1])
    is_changed = len([each for each in passage.stretches if each.group.is_online]) > 1
    if is_changed or message.store_timestamp < handing[-1].first + _SLACK:
        # While it changed, any member may have had the queue, and any subscription may have been the kept one.
        delivery = _delivery_in_change(message, [each.group for each in passage.stretches if each.group.is_online])
    if delivery.way is Way.UNKNOWN:
        return None
    verdict = decide(delivery, _queue_at(queue, handing[-1]))
    if is_changed and len({name for each in handing for name in _names(each)}) > 1:
        verdict = verdict._replace(member=None)
    return _told(verdict, passage.stretches)


def _delivery_in_change(message: MessageFacts, groups: Sequence[GroupFacts]) -> Delivery:
    """Returns the way to a group whose members came, went or changed: known if all subscriptions agree."""
    if any(_is_pull_consumer(each) for group in groups if group.pulls for each in group.members):
        return Delivery(Way.UNKNOWN, "a member filters each pull of its own")
    # Of pullers, brokers keep a subscription that filters nothing.
    kept = [group.subscription for group in groups if not group.pulls]
    own = [*kept, *(each.subscription for group in groups for each in group.members)]
    passing = {None if each is None else passes_broker(each, message) and passes_member(each, message) for each in own}
    if len(passing) != 1 or None in passing:
        return Delivery(Way.UNKNOWN, "members came, went or changed, and want different things")
    expressions = " or ".join(sorted({expression_of(each) for each in own}))
    if passing.pop():
        return Delivery(Way.DELIVERED, f"as all members wanted {expressions}")
    return Delivery(Way.FILTERED, f"no member wanted it, but {expressions}")


def _skipped(passage: _Passage) -> Sampled | None:
    if any(each.group.is_online for each in passage.stretches):
        return None  # a member may have been handed it, and gone before its offset was stored
    text = f"the offset was moved over it from {passage.stretches[-1].start} while nobody was online"
    return _told(Verdict(Outcome.SKIPPED, [f"nobody was handed it: {text}"]), passage.stretches)


def _handing(queue: QueueFacts, passage: _Passage) -> list[Stretch]:
    """Returns the stretches in which the message may have been handed to a member; empty if that is not known."""
    stretches = passage.stretches
    # Between a look at a member and one at nobody, it may have stored its last offset, or a reset may have come.
    if not _is_owned(queue, stretches[-1]) or (passage.is_between and _may_be_reset(queue, stretches)):
        return []
    return [each for each in stretches if _is_owned(queue, each)]


def _may_be_reset(queue: QueueFacts, stretches: Sequence[Stretch]) -> bool:
    """Whether the step to the last stretch may be a reset: it takes queues from members, and gives them back."""
    last, before = stretches[-1], [each for each in stretches[:-1] if each.group.is_online]
    if not stretches[-2].group.is_online:
        # A group that had no offset until then has hardly been reset.
        return stretches[-2].stop is not None
    owned = [each for each in before if _is_owned(queue, each)]
    if not owned or _owner(queue, owned[-1]) != _owner(queue, last):
        return False
    if owned[-1] is not stretches[-2]:
        return True  # nobody had the queue, and then the same member again
    owner = _owner(queue, last)
    is_renewed = _own(last, owner) != _own(owned[-1], owner)
    return is_renewed and _shares(last) == _shares(owned[-1])


def _names(stretch: Stretch) -> list[str]:
    return [each.client_id for each in stretch.group.members]


def _shares(stretch: Stretch) -> object:
    """Returns which member has which queues: a rebalance changes it, and renews subscriptions as a reset does."""
    return {each.client_id: each.queues for each in stretch.group.members}


def _is_owned(queue: QueueFacts, stretch: Stretch) -> bool:
    group = stretch.group
    # Of pullers, and of members that do not answer, it is not known which one has the queue.
    return group.is_online and (
        _owner(queue, stretch) is not None or any(each.queues is None for each in group.members)
    )


def _owner(queue: QueueFacts, stretch: Stretch) -> str | None:
    return owner_of(queue.queue, stretch.group, [])[0]


def _may_begin_behind(message: MessageFacts, passage: _Passage) -> bool:
    """Whether the group may have begun at the end of the queue, behind the message."""
    last = passage.stretches[-1]
    is_new = last.start is None and message.store_timestamp < last.first + _SLACK
    return is_new and last.consume_from_where != _FIRST


def _delivery(message: MessageFacts, queue: QueueFacts, stretch: Stretch) -> Delivery:
    if stretch.group.pulls:
        return _delivery_in_change(message, [stretch.group])
    return delivery_of(message, _queue_at(queue, stretch), stretch.group)


def _is_pull_consumer(member: MemberFacts) -> bool:
    """Whether a member pulls by expressions that nobody sees: its heartbeat says `*`, and no version."""
    own = member.subscription
    return own is None or (own.sub_string == SUB_ALL and own.sub_version == 0)


def _holds_older_pull(queue: QueueFacts, stretch: Stretch, earlier: Sequence[Stretch]) -> bool:
    """Whether the owner may have got the message by a pull that waited since before it changed its subscription."""
    owner = _owner(queue, stretch)
    own = {meaning_of(_own(each, owner)) for each in (stretch, *earlier) if each.group.member(owner) is not None}
    return len(own) > 1


def _own(stretch: Stretch, client_id: str | None) -> SubscriptionData | None:
    member = stretch.group.member(client_id)
    return None if member is None else member.subscription


def _queue_at(queue: QueueFacts, stretch: Stretch) -> QueueFacts:
    return QueueFacts(
        queue=queue.queue,
        min_offset=queue.min_offset,
        max_offset=queue.max_offset,
        consumer_offset=stretch.stop,
        owner=_owner(queue, stretch),
    )


def _told(verdict: Verdict, stretches: Sequence[Stretch]) -> Sampled:
    first, last = stretches[0].first, stretches[-1].last
    text = f"as sampled between {time_text(first)} and {time_text(last)}: {verdict.sentences[0]}"
    return Sampled(verdict._replace(sentences=[text, *verdict.sentences[1:]]), first, last)
