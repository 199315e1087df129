"""Findings that begin and end while a cluster is watched."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from rmqfast.cells import one_line
from rmqfast.doctor.finding import Finding


@dataclass(frozen=True, kw_only=True, slots=True)
class Alarm:
    """A finding that lasts.

    Attributes:
        finding: Its newest evidence.
        since: Time at which it was first seen, in milliseconds since 1970.
    """

    finding: Finding
    since: int


@dataclass(frozen=True, kw_only=True, slots=True)
class AlarmChange:
    """An alarm that was raised, or cleared.

    Attributes:
        alarm: The alarm, with its last evidence.
        is_raised: Whether it was raised.
        at: Time of the look that showed it, in milliseconds since 1970.
    """

    alarm: Alarm
    is_raised: bool
    at: int

    def __str__(self) -> str:
        finding = self.alarm.finding
        text = f"{'raised' if self.is_raised else 'cleared'} {finding.name}: {finding.subject}: {finding.evidence}"
        # Names of topics and clients may hold anything.
        return one_line(text)


class AlarmBoard:
    """The alarms that last, by what each look at a cluster found."""

    def __init__(self) -> None:
        self._alarms: dict[tuple[str, str], Alarm] = {}

    @property
    def alarms(self) -> tuple[Alarm, ...]:
        """The alarms that last, oldest first."""
        return tuple(sorted(self._alarms.values(), key=lambda alarm: (alarm.since, alarm.finding.name)))

    def update(self, findings: Iterable[Finding], *, now: int, is_complete: bool) -> list[AlarmChange]:
        """Takes the findings of a look, and returns what changed.

        Args:
            findings: All that was found.
            now: Time of the look, in milliseconds since 1970.
            is_complete: Whether everything could be looked at. Otherwise no alarm is cleared.
        """
        seen: dict[tuple[str, str], Finding] = {}
        for finding in findings:
            key = (finding.name, finding.subject)
            before = seen.get(key)
            # As in several topics, or at several brokers: one alarm tells them all.
            together = finding.evidence if before is None else f"{before.evidence}; {finding.evidence}"
            seen[key] = replace(finding, evidence=together)
        changes = list(self._raise(seen, now))
        if is_complete:
            changes += [
                AlarmChange(alarm=self._alarms.pop(key), is_raised=False, at=now)
                for key in [key for key in self._alarms if key not in seen]
            ]
        return changes

    def _raise(self, seen: dict[tuple[str, str], Finding], now: int) -> Iterator[AlarmChange]:
        for key, finding in seen.items():
            before = self._alarms.get(key)
            alarm = Alarm(finding=finding, since=now if before is None else before.since)
            self._alarms[key] = alarm
            if before is None:
                yield AlarmChange(alarm=alarm, is_raised=True, at=now)
