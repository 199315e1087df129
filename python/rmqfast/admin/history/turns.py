"""The order in which groups are looked at, if there are too many for one look."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping

#: Questions about idle groups for each one about the others, so that it is seen when one has members again.
_FOR_IDLE = 0.25


class Turns:
    """Chooses groups for each look: those that were looked at longest ago, first of those that are at work.

    Groups are at work that had members at their last look, or whose offsets have moved.

    Args:
        most: Number of questions that a look may ask, on average; a group takes one for each of its brokers and
            each of its members.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        #: Questions that are left; negative after a group that took more than there were.
        self._left = 0
        #: Questions that idle groups may ask before others.
        self._for_idle = 0.0
        self._asked_at: dict[str, float] = {}
        self._members: dict[str, int] = {}

    def next(self, groups: Mapping[str, int], moved: Collection[str], now: float) -> list[str]:
        """Returns the groups of the next look, of all with the numbers of their brokers.

        The offsets of those in `moved` have moved since the last one.
        """
        oldest = sorted(groups, key=lambda group: (self._asked_at.get(group, 0.0), group))
        # A group that was never looked at may have members.
        is_idle = {group: not self._members.get(group, 1) and group not in moved for group in oldest}
        idle, at_work = (deque(group for group in oldest if is_idle[group] is each) for each in (True, False))
        self._left = min(self._most, self._left + self._most)
        chosen: list[str] = []
        while self._left > 0 and (idle or at_work):
            takes_idle = bool(idle) and (not at_work or self._for_idle >= 1)
            chosen.append((idle if takes_idle else at_work).popleft())
            cost = groups[chosen[-1]] + self._members.get(chosen[-1], 0)
            self._left -= cost
            share = -cost if takes_idle else cost * _FOR_IDLE
            self._for_idle = min(max(0.0, self._for_idle + share), 1.0)
        # Groups that are no more are forgotten.
        self._asked_at = {group: self._asked_at.get(group, 0.0) for group in oldest} | dict.fromkeys(chosen, now)
        self._members = {group: members for group, members in self._members.items() if group in self._asked_at}
        return chosen

    def note(self, members: Mapping[str, int]) -> None:
        """Notes how many members groups have."""
        self._members |= members
