"""Verdicts that the ledger of a broker proves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rmqfast.admin.explanation import Outcome, ordinal
from rmqfast.admin.facts import CopyFacts, CopyKind, MessageFacts
from rmqfast.admin.filters import passes_broker, passes_member
from rmqfast.admin.ledger import RESET, LedgerMember, LedgerRow
from rmqfast.admin.outcome import Verdict, copy_place_text, dead_text, tag_text
from rmqfast.admin.place import HandOut, Place, Step
from rmqfast.cells import time_text
from rmqfast.client.consumer.subscription import expression_of
from rmqfast.remoting.protocol.consumer_connection import ACTIVELY
from rmqfast.remoting.protocol.subscription_data import SUB_ALL


def proven_verdict(
    group: str, place: Place, copies: Sequence[CopyFacts], places: Mapping[CopyFacts, Place | None]
) -> Verdict | None:
    """Returns what the ledger proves of a message, or None if it proves nothing.

    `places` has the ledger's place of each copy in the retry topic.
    """
    if place.is_broadcast:
        return _of_broadcast(place)
    if not copies:
        return _at(place)
    newest = max(copies, key=lambda copy: copy.store_timestamp)
    again = _handed_after(place, newest.store_timestamp)
    if again is not None:
        return again
    if newest.kind is CopyKind.DEAD and place.ledger.is_complete_since(newest.store_timestamp):
        return Verdict(Outcome.DEAD_LETTER, [f"{dead_text(newest)}; the group {group} gets it no more"])
    return _of_copy(newest, places.get(newest))


def _handed_after(place: Place, time: int) -> Verdict | None:
    """Returns the verdict of a message that was handed out again after its newest copy, as by a reset."""
    again = [each for each in place.hand_outs() if each.row.first > time and each.step is not Step.FILTERED]
    if not again:
        return None
    confirmed = [each for each in again if each.confirmed is not None and each.step is Step.GIVEN]
    if confirmed:
        return _consumed(place, confirmed[-1])
    given = [each for each in again if each.step is not Step.DROPPED]
    return _not_confirmed(place, given[-1]) if given else None


def _of_copy(copy: CopyFacts, place: Place | None) -> Verdict | None:
    if copy.kind is not CopyKind.RETRY or place is None:
        return None
    where = copy_place_text(copy)
    verdict = _at(place)
    if verdict is None:
        return None
    if verdict.outcome is Outcome.CONSUMED:
        text = f"the {ordinal(copy.reconsume_times)} retry, {where}, was {verdict.sentences[0]}"
        return Verdict(Outcome.CONSUMED, [text, *verdict.sentences[1:]], verdict.member)
    if verdict.outcome is Outcome.NOT_CONSUMED_YET:
        text = f"the {ordinal(copy.reconsume_times)} retry waits in {where}: {verdict.sentences[0]}"
        return Verdict(Outcome.IN_RETRY, [text, *verdict.sentences[1:]], verdict.member)
    return Verdict(verdict.outcome, [f"its last copy, {where}: {verdict.sentences[0]}", *verdict.sentences[1:]])


def _at(place: Place) -> Verdict | None:
    """Returns what the ledger proves of one place, without copies of the message elsewhere."""
    hand_outs = place.hand_outs()
    given = [each for each in hand_outs if each.step is Step.GIVEN]
    confirmed = [each for each in given if each.confirmed is not None]
    if confirmed:
        return _consumed(place, confirmed[-1])
    if given:
        return _not_confirmed(place, given[-1])
    if any(each.step is Step.UNKNOWN for each in hand_outs):
        return _unclear(hand_outs)
    if not place.is_complete or place.is_of_doubtful_age or place.is_passed_unseen:
        return None
    if not place.is_passed:
        return _not_passed(place, hand_outs)
    return _kept_back(place, hand_outs) if hand_outs else _skipped(place)


def _consumed(place: Place, hand_out: HandOut) -> Verdict:
    client, time = hand_out.client_id, time_text(hand_out.confirmed or 0)
    sentences = [f"handed to {client}{_by_filter(place, hand_out)} {_when(hand_out)}, which confirmed it by {time}"]
    if not place.is_passed:
        sentences.append(f"the offset is at {_offset(place)} now: the message will be delivered again")
    return Verdict(Outcome.CONSUMED, sentences, client)


def _not_confirmed(place: Place, hand_out: HandOut) -> Verdict:
    handed = f"handed to {hand_out.client_id}{_by_filter(place, hand_out)} {_when(hand_out)}"
    sentences = [f"{handed}, which has not confirmed it: {_progress(place)}"]
    sentences += _who_moved(place, behind=hand_out.row)
    return Verdict(Outcome.NOT_CONFIRMED, sentences, hand_out.client_id)


def _unclear(hand_outs: Sequence[HandOut]) -> Verdict:
    unclear = [each for each in hand_outs if each.step is Step.UNKNOWN][-1]
    text = f"pulled for {unclear.client_id} {_when(unclear)}"
    if unclear.own is None or unclear.own.subscription is None:
        return Verdict(Outcome.UNKNOWN, [f"{text}, and no heartbeat told what it wanted"])
    return Verdict(
        Outcome.UNKNOWN, [f"{text}, while it changed its subscription to {expression_of(unclear.own.subscription)}"]
    )


def _not_passed(place: Place, hand_outs: Sequence[HandOut]) -> Verdict:
    sentences = [f"{_progress(place)}, and nobody was handed it"]
    sentences += [_why_not(place, each) for each in hand_outs[-1:]]
    if place.is_expired:
        return Verdict(Outcome.EXPIRED, [f"{sentences[0]} before it was deleted", *sentences[1:]])
    return Verdict(Outcome.NOT_CONSUMED_YET, sentences)


def _kept_back(place: Place, hand_outs: Sequence[HandOut]) -> Verdict:
    """Returns the verdict of a message that pulls covered and no listener got."""
    last = hand_outs[-1]
    losers = _losers(place)
    dropped = any(each.step is Step.DROPPED and not _is_same_hash(place.message, each) for each in hand_outs)
    outcome = Outcome.LOST if losers or dropped else Outcome.FILTERED
    sentences = [f"nobody got it: {_why_not(place, last)}"]
    if losers:
        sentences.append(f"{' and '.join(losers)} wanted it")
    return Verdict(outcome, sentences, last.client_id if last.step is Step.DROPPED else None)


def _skipped(place: Place) -> Verdict:
    return Verdict(Outcome.SKIPPED, [f"nobody was handed it, and {_progress(place)}", *_who_moved(place, behind=None)])


def _of_broadcast(place: Place) -> Verdict:
    by_client: dict[str, HandOut] = {}
    for each in place.hand_outs():
        old = by_client.get(each.client_id)
        # A later pull over the same message may be by another filter.
        if old is None or old.step is not Step.GIVEN:
            by_client[each.client_id] = each
    sentences = ["broadcast: each member gets all messages, and keeps its own offsets"]
    for client, each in sorted(by_client.items()):
        if each.step is Step.GIVEN:
            sentences.append(f"handed to {client}{_by_filter(place, each)} {_when(each)}")
        elif each.step is not Step.UNKNOWN:
            sentences.append(_why_not(place, each))
    if not by_client and place.is_complete:
        sentences.append("nobody was handed it")
    return Verdict(Outcome.BROADCASTING, sentences)


def _why_not(place: Place, hand_out: HandOut) -> str:
    tag = tag_text(place.message)
    filtered = _by_filter(place, hand_out)
    if hand_out.step is Step.FILTERED:
        return f"the broker filtered it for {hand_out.client_id}{filtered} {_when(hand_out)}"
    subscription = None if hand_out.own is None else hand_out.own.subscription
    own = "of the pull" if subscription is None else expression_of(subscription)
    return (
        f"handed to {hand_out.client_id}{filtered} {_when(hand_out)}, dropped by its tag check: {tag} is not in "
        f"its own subscription {own}"
    )


def hand_out_text(place: Place, hand_out: HandOut) -> str:
    """Returns what a pull did with the message."""
    if hand_out.step is Step.UNKNOWN:
        return f"pulled for {hand_out.client_id}{_by_filter(place, hand_out)} {_when(hand_out)}"
    if hand_out.step is Step.GIVEN:
        return f"handed to {hand_out.client_id}{_by_filter(place, hand_out)} {_when(hand_out)}"
    return _why_not(place, hand_out)


def move_text(move: LedgerRow) -> str:
    """Returns who moved a group's offset, and how."""
    how = "asked the members to move the offset" if move.kind == RESET else "set the offset"
    return f"{move.client_id} {how} from {move.start} to {move.stop} at {time_text(move.last)}"


def _losers(place: Place) -> list[str]:
    """Returns the members that wanted the message while it was there to be pulled."""
    end = max((each.row.last for each in place.hand_outs()), default=place.message.store_timestamp)

    def wanted(member: LedgerMember) -> bool:
        own = member.subscription
        # The heartbeat of a pull consumer says `*`, whatever it pulls by.
        if own is None or (member.consume_type == ACTIVELY and own.sub_string == SUB_ALL):
            return False
        is_there = member.first <= end and member.last >= place.message.store_timestamp
        return is_there and passes_broker(own, place.message) and passes_member(own, place.message)

    pulling = [member for member in place.ledger.members if wanted(member)]
    return sorted({member.client_id for member in pulling})


def _is_same_hash(message: MessageFacts, hand_out: HandOut) -> bool:
    subscription = hand_out.row.subscription
    return subscription is not None and bool(subscription.tags_set) and message.tags not in subscription.tags_set


def _when(hand_out: HandOut) -> str:
    """Returns the time of the pull, or the times between which it was: a row has those of its stretch only."""
    first, last = _seconds_text(hand_out.first), _seconds_text(hand_out.row.last)
    return f"at {last}" if hand_out.row.last - hand_out.first < 1000 else f"between {first} and {last}"


def _seconds_text(milliseconds: int) -> str:
    return f"{time_text(milliseconds).partition('.')[0]}Z"


def _by_filter(place: Place, hand_out: HandOut) -> str:
    subscription = hand_out.row.subscription
    if subscription is None:
        return ""
    answer = place.message.sql.get(subscription.sub_string)
    values = "" if subscription.is_tag_type or answer is None else f" ({answer.values_text})"
    return f" by {expression_of(subscription)}{values}"


def _progress(place: Place) -> str:
    return f"the group's offset is {_offset(place)}"


def _offset(place: Place) -> str:
    return "none" if place.consumer_offset is None else str(place.consumer_offset)


def _who_moved(place: Place, behind: LedgerRow | None) -> list[str]:
    moves = [each for each in place.moves() if behind is None or each.is_behind(behind)]
    if not moves:
        return []
    return [move_text(moves[0])]
