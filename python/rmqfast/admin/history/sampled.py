"""Verdicts that follow from the samples of a history: no proofs, as anything may happen between two samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from rmqfast.admin.explanation import Outcome
from rmqfast.admin.facts import CopyFacts, CopyKind, GroupFacts, MemberFacts, MessageFacts, QueueFacts
from rmqfast.admin.filters import passes_broker, passes_member
from rmqfast.admin.history.passage import Passage, index_at, is_behind, passages_of, shows_reset
from rmqfast.admin.history.stretch import Stretch
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
from rmqfast.remoting.protocol.subscription_data import SUB_ALL


class SampledVerdict(NamedTuple):
    """A verdict, and the times between which the samples support it."""

    verdict: Verdict
    first: int
    last: int


def sampled_verdict(message: MessageFacts, queue: QueueFacts, stretches: Sequence[Stretch]) -> SampledVerdict | None:
    """Returns what the samples say of a message at its place; None if they do not decide."""
    online = [each for each in stretches if each.group.is_online]
    if online and online[-1].group.is_broadcasting:
        return _make_verdict(Verdict(Outcome.BROADCASTING, [BROADCAST]), stretches)
    if online and not is_behind(queue.consumer_offset, message.queue_offset):
        # Whether the group broadcasts, which has no offsets, was all that was not known.
        return _make_verdict(Verdict(Outcome.NOT_CONSUMED_YET, [not_passed_text(queue, "nobody")]), stretches)
    passages = passages_of(message, stretches)
    verdicts = [_verdict(message, queue, passage) for passage in passages]
    consumed = [each for each in verdicts if each is not None and each.verdict.outcome is Outcome.CONSUMED]
    if consumed:
        return consumed[-1]
    # What a reset has had handed out again may have been consumed since.
    return None if None in verdicts or not passages or shows_reset(passages[-1].later) else verdicts[-1]


def sampled_verdict_of_copies(
    message: MessageFacts,
    queue: QueueFacts,
    stretches: Sequence[Stretch],
    copies: Sequence[CopyFacts],
    places: Mapping[CopyFacts, Sequence[Stretch]],
) -> SampledVerdict | None:
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
    place = replace(queue, queue=newest.queue, consumer_offset=newest.consumer_offset)
    sampled = sampled_verdict(copied, place, places[newest])
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
) -> SampledVerdict | None:
    """Returns that a dead letter is one, if no sample shows that an offset was set back since."""
    since = copy.store_timestamp
    begin = index_at(since, stretches)
    if begin is None or _is_set_back(message.queue_offset, since, stretches[begin:]):
        return None
    if any(_is_set_back(retry.queue_offset, since, place) for retry, place in places.items()):
        return None
    return _make_verdict(
        Verdict(Outcome.DEAD_LETTER, [f"{dead_text(copy)}; no offset was set back since"]), stretches[begin:]
    )


def _is_set_back(offset: int, since: int, stretches: Sequence[Stretch]) -> bool:
    """Whether samples after a time show an offset that has not passed, or a reset, or have a gap."""
    after = [each for each in stretches if each.last >= since]
    has_gap = len({each.run for each in after}) > 1
    is_seen = any(each.start is not None and each.start <= offset for each in after if each.first > since)
    return has_gap or is_seen or shows_reset(after)


def _verdict(message: MessageFacts, queue: QueueFacts, passage: Passage) -> SampledVerdict | None:
    if passage.is_skip:
        return _skip_verdict(passage)
    if not passage.is_consumption or passage.may_begin_behind:
        return None
    if passage.is_steady:
        place = replace(queue, owner=passage.last.owner, owner_is_assumed=False)
        delivery = _delivery(message, place, passage.last.group)
        # The broker filters anew when a pull that waited ends, the member by what it wanted before.
        if delivery.way is not Way.FILTERED and _may_keep_otherwise(message, passage):
            return None
    elif not passage.is_seen:
        return None
    else:
        # While it changed, any member may have had the queue, and any subscription may have been the kept one.
        place, delivery = replace(queue, owner=None), _delivery_in_change(message, passage.online)
    return None if delivery.way is Way.UNKNOWN else _make_verdict(decide(delivery, place), passage.stretches)


def _delivery(message: MessageFacts, queue: QueueFacts, group: GroupFacts) -> Delivery:
    return _delivery_in_change(message, [group]) if group.pulls else delivery_of(message, queue, group)


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


def _skip_verdict(passage: Passage) -> SampledVerdict | None:
    if any(each.group.is_online for each in passage.stretches):
        return None  # a member may have been handed it, and gone before its offset was stored
    text = f"the offset was moved over it from {passage.last.start} while nobody was online"
    return _make_verdict(Verdict(Outcome.SKIPPED, [f"nobody was handed it: {text}"]), passage.stretches)


def _is_pull_consumer(member: MemberFacts) -> bool:
    """Whether a member pulls by expressions that nobody sees: its heartbeat says `*`, and no version."""
    own = member.subscription
    return own is None or (own.sub_string == SUB_ALL and own.sub_version == 0)


def _may_keep_otherwise(message: MessageFacts, passage: Passage) -> bool:
    """Whether the owner wanted something else when it began a pull that may have waited for the message."""
    owner = passage.last.owner
    own = [own for each in (passage.last, *passage.earlier) if (own := each.own(owner)) is not None]
    return len({passes_member(each, message) for each in own}) > 1


def _make_verdict(verdict: Verdict, stretches: Sequence[Stretch]) -> SampledVerdict:
    first, last = stretches[0].first, stretches[-1].last
    text = f"as sampled between {time_text(first)} and {time_text(last)}: {verdict.sentences[0]}"
    return SampledVerdict(verdict._replace(sentences=[text, *verdict.sentences[1:]]), first, last)
