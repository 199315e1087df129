"""The truth of a history: what the members noted, and which verdicts contradict it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rmqfast.admin import Explanation, Outcome

from .member import BEGIN, END, FAIL


@dataclass(frozen=True)
class Deliveries:
    """Calls of listeners for one message in one group, oldest first for each member.

    Attributes:
        given_to: Members whose listener was called.
        processed_by: Members whose listener ended well.
        failed_at: Members whose listener failed.
        last: The newest note; of several members, any of them.
    """

    given_to: frozenset[str] = frozenset()
    processed_by: frozenset[str] = frozenset()
    failed_at: frozenset[str] = frozenset()
    last: frozenset[str] = frozenset()


@dataclass
class Truth:
    """All deliveries, by group and number of the message."""

    of: Mapping[tuple[str, int], Deliveries] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> Truth:
        """Reads the notes of all members of a history."""
        lines = path.read_text().splitlines() if path.exists() else []
        return cls.of_lines(lines)

    @classmethod
    def of_lines(cls, lines: Iterable[str]) -> Truth:
        notes: dict[tuple[str, int], list[tuple[str, str]]] = defaultdict(list)
        for line in lines:
            group, member, what, number = line.split()
            notes[group, int(number)].append((member, what))
        return cls({key: _deliveries(each) for key, each in notes.items()})

    def contradicts(self, group: str, number: int, told: Explanation, *, is_broadcast: bool) -> bool:
        """Tells whether an explanation says what is not so."""
        delivered = self.of.get((group, number), Deliveries())
        was_given, was_processed = bool(delivered.given_to), bool(delivered.processed_by)
        says_nobody = any("nobody was handed it" in sentence for sentence in told.sentences)
        false = {
            Outcome.CONSUMED: not was_processed,
            Outcome.LOST: was_given,
            Outcome.FILTERED: was_given,
            Outcome.SKIPPED: was_processed if told.copies else was_given,
            Outcome.EXPIRED: was_given,
            Outcome.IN_RETRY: not delivered.failed_at,
            Outcome.DEAD_LETTER: delivered.last == {END},
            # The offset tells nothing of a broadcast, and otherwise only where the group is.
            Outcome.NOT_CONSUMED_YET: was_given and (is_broadcast or says_nobody),
            Outcome.BROADCASTING: was_given and says_nobody,
        }
        return told.outcome is not None and false.get(told.outcome, False)

    def misnames(self, group: str, number: int, member: str) -> bool:
        """Tells whether an explanation names a member that did not process the message."""
        return member not in self.of.get((group, number), Deliveries()).processed_by


def _deliveries(notes: list[tuple[str, str]]) -> Deliveries:
    return Deliveries(
        frozenset(member for member, what in notes if what == BEGIN),
        frozenset(member for member, what in notes if what == END),
        frozenset(member for member, what in notes if what == FAIL),
        frozenset({notes[-1][1]}),
    )
