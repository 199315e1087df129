"""What members note of the messages that they are given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from .member import GROUPS
from .processes import Place


class Noted(NamedTuple):
    """That a member began with a message, or was done with it.

    Attributes:
        group: In which group.
        what: `begin` or `end`.
        place: Queue and offset.
        time: When, in nanoseconds, by a clock of the whole machine.
        member: Who.
    """

    group: str
    what: str
    place: Place
    time: int
    member: str


class Notes:
    """What stands in files of members that may still write; a file is read on from where it was read to.

    Args:
        group: Whose notes are kept one by one.

    Attributes:
        begun: How many messages each group has begun with, those that came again included.
        done: Those that each group is done with.
    """

    def __init__(self, group: str = "in_order") -> None:
        self.begun: Counter[str] = Counter()
        self.done: dict[str, set[Place]] = {name: set() for name in GROUPS}
        self._group, self._kept, self._ends = group, list[Noted](), dict[Path, int]()

    @property
    def kept(self) -> list[Noted]:
        """All notes of the group, in the order of time."""
        return sorted(self._kept, key=lambda each: each.time)

    def read(self, files: Sequence[Path]) -> Notes:
        """Takes what is new; a last line that is not finished is not yet."""
        for path in filter(Path.exists, files):
            with path.open("rb") as file:
                file.seek(self._ends.get(path, 0))
                for line in file:
                    if line.endswith(b"\n"):
                        self._take(line.decode().split(), path.name)
                        self._ends[path] = self._ends.get(path, 0) + len(line)
        return self

    def _take(self, words: Sequence[str], member: str) -> None:
        group, what, queue, offset, at = words
        place = (int(queue), int(offset))
        if what == "end":
            self.done[group].add(place)
        else:
            self.begun[group] += 1
        if group == self._group:
            self._kept.append(Noted(group, what, place, int(at), member))
