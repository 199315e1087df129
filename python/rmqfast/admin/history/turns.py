"""The order in which groups are looked at, if there are too many for one look."""

from __future__ import annotations

from collections.abc import Iterable

#: Part of a look that groups without members get, so that it is seen when one has members again.
_FOR_OFFLINE = 0.25


class Turns:
    """Chooses groups for each look: those that were looked at longest ago, groups with members first.

    Args:
        most: Number of questions that a look may ask; a group takes one, and one for each member.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._asked_at: dict[str, float] = {}
        self._members: dict[str, int] = {}

    def next(self, groups: Iterable[str], now: float) -> list[str]:
        """Returns the groups of the next look."""
        # A group that was never looked at may have members.
        oldest = sorted(groups, key=lambda group: (self._asked_at.get(group, 0.0), group))
        online = [group for group in oldest if self._members.get(group, 1)]
        offline = [group for group in oldest if not self._members.get(group, 1)]
        first = self._within(offline, max(1, round(self._most * _FOR_OFFLINE)))
        chosen = first + self._within(online, self._most - len(first))
        chosen += self._within(offline[len(first) :], self._most - sum(map(self._cost, chosen)))
        self._asked_at = {group: self._asked_at.get(group, 0.0) for group in oldest} | dict.fromkeys(chosen, now)
        return chosen

    def note(self, group: str, members: int) -> None:
        """Notes how many members a group has."""
        self._members[group] = members

    def _cost(self, group: str) -> int:
        return 1 + self._members.get(group, 0)

    def _within(self, groups: list[str], left: int) -> list[str]:
        """Returns the first groups that may be asked with so many questions; one that takes more comes alone."""
        chosen: list[str] = []
        for group in groups:
            if left < self._cost(group) and (chosen or left < self._most):
                break
            left -= self._cost(group)
            chosen.append(group)
        return chosen
