"""The way of a group's offset over a message, as samples show it.

Each change of queues or subscriptions, and each reset of members, gives a subscription a new version, so that what two
samples show alike was hardly different between them.

Source: `RebalancePushImpl.messageQueueChanged`, `MQClientInstance.resetOffset`, `PullRequestHoldService`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from rmqfast.admin.facts import GroupFacts, MessageFacts
from rmqfast.admin.history.stretch import Stretch

#: Milliseconds that may pass between the time of a message and the moment at which it is in its queue.
_SLACK = 20
#: Milliseconds for which members that are told of a reset have no queues: clients wait ten seconds. Then they take them
#: back, with a new version of their subscription.
_RESET_PAUSE = 10_000
#: Milliseconds for which a pull may wait at a broker.
_PARKED = 16_000
_FIRST = "CONSUME_FROM_FIRST_OFFSET"


@dataclass(frozen=True, slots=True)
class Passage:
    """The stretches from the one in which a message came to the one that shows it passed.

    Attributes:
        stored_at: Time of the message.
        stretches: These stretches, without a gap.
        is_between: Whether the offset passed the message between the last two of them.
        earlier: Stretches of the moments before, in which a pull may have begun that waited for the message.
        beyond: The stretch behind, if the offset may have passed the message while that began.
        later: The stretches from the one that shows it passed on.
    """

    stored_at: int
    stretches: Sequence[Stretch]
    is_between: bool
    earlier: Sequence[Stretch]
    beyond: Sequence[Stretch]
    later: Sequence[Stretch]

    @property
    def last(self) -> Stretch:
        return self.stretches[-1]

    @property
    def online(self) -> list[GroupFacts]:
        """The states of the group in which members may have been handed the message."""
        return [each.group for each in (*self.stretches, *self.beyond) if each.group.is_online]

    @property
    def is_steady(self) -> bool:
        """Whether nothing changed while the message was there to be handed."""
        is_stored_in_it = self.last.first + _SLACK <= self.stored_at
        return len(self.online) == 1 and not self.is_between and is_stored_in_it

    @property
    def is_seen(self) -> bool:
        """Whether members came and went one by one: where two looks differ by several, others may have gone unseen."""
        ids = [{member.client_id for member in each.group.members} for each in (*self.stretches, *self.beyond)]
        return all(len(before ^ after) <= 1 for before, after in pairwise(ids))

    @property
    def is_skip(self) -> bool:
        """Whether the offset moved while nobody was online."""
        return not self.is_between and not self.last.group.is_online

    @property
    def is_consumption(self) -> bool:
        """Whether somebody had the queue when the offset moved, and it was hardly a reset."""
        last = self.last
        if not self.is_between or not last.is_owned:
            return last.is_owned
        before = self.stretches[-2]
        if before.is_owned:
            is_short = last.first - before.last < _RESET_PAUSE
            return is_short or last.owner != before.owner or last.own(last.owner) == before.own(last.owner)
        if not before.group.is_online:
            # An offset may be moved while nobody is online, but hardly where there was none.
            return before.stop is None
        # A reset gives a queue back to its member, a rebalance gives it to another one.
        owned = [each for each in self.stretches if each.is_owned]
        return len(owned) == 1 or owned[-2].owner != last.owner

    @property
    def may_begin_behind(self) -> bool:
        """Whether the group had no offset, and may have begun at the end of the queue, behind the message."""
        offsets = [each.stop for each in self.stretches[:-1]]
        if not self.is_between:
            offsets.append(self.last.start)
        is_new = all(offset is None for offset in offsets)
        return is_new and self.stored_at < self.last.first + _SLACK and self.last.consume_from_where != _FIRST


def shows_reset(stretches: Sequence[Stretch]) -> bool:
    """Whether a member that was online gave the queue up and took it back, as members do that are told of a reset.

    The offset may have gone back, and behind the message again, between two looks.
    """
    before: Stretch | None = None
    is_free = False
    for each in stretches:
        if each.is_owned:
            if before is not None and is_free and each.owner == before.owner:
                return True
            before, is_free = each, False
        else:
            is_free = each.group.is_online
    return False


def passages_of(message: MessageFacts, stretches: Sequence[Stretch]) -> list[Passage]:
    """Returns each passage of the offset over a message, oldest first: a reset may have it passed again."""
    begin, offset = index_at(message.store_timestamp, stretches), message.queue_offset
    if begin is None or is_behind(stretches[begin].start, offset):
        return []
    passages: list[Passage] = []
    came: int | None = begin
    for number, each in enumerate(stretches[begin:], begin):
        if came is not None and number > came and each.run != stretches[number - 1].run:
            came = None  # what was in the gap is not known
        if came is None and each.start is not None and each.start <= offset:
            came = number  # the offset has gone back
        if came is not None and is_behind(each.stop, offset):
            passages.append(_passage(message, stretches, came, number))
            came = None
    return passages


def _passage(message: MessageFacts, stretches: Sequence[Stretch], came: int, passed: int) -> Passage:
    last, time = stretches[passed], message.store_timestamp
    is_between = is_behind(last.start, message.queue_offset)
    # Offsets are asked behind members: where only one look showed these, others may have come before.
    is_brief = is_between and last.last < last.first
    return Passage(
        stored_at=time,
        stretches=stretches[came : passed + 1],
        is_between=is_between,
        earlier=[each for each in stretches[:came] if each.last >= time - _PARKED],
        beyond=stretches[passed + 1 : passed + 2] if is_brief else [],
        later=stretches[passed:],
    )


def index_at(time: int, stretches: Sequence[Stretch]) -> int | None:
    """Returns the index of the stretch in which a message was stored; `None` if it is older."""
    indexes = [number for number, each in enumerate(stretches) if each.first + _SLACK <= time]
    return indexes[-1] if indexes else None


def is_behind(position: int | None, offset: int) -> bool:
    """Whether an offset of a group is behind that of a message."""
    return position is not None and position > offset
