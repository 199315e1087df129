"""A misconfiguration or fault that the doctor found, with its evidence and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from rmqfast.cells import one_line
from rmqfast.html import table


class Level(StrEnum):
    """The weight of a finding.

    Attributes:
        PROBLEM: Messages are lost or late, or will be.
        ADVICE: It works, but a careful operator would change it.
    """

    PROBLEM = "problem"
    ADVICE = "advice"


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """A misconfiguration or a fault.

    Attributes:
        name: Name of the check, as `subscription-conflict`; `docs/doctor.md` lists them.
        subject: The group, topic, broker, store or machine.
        evidence: The facts by which it was found.
        next_step: Mends it, or tells more.
        level: Whether messages are at risk.

    Example:
        >>> from rmqfast.doctor import Finding
        >>> print(Finding(name="disk-full", subject="broker-a", evidence="96 % used", next_step="free 20 GiB"))
        problem disk-full: broker-a
          96 % used
          next: free 20 GiB
    """

    name: str
    subject: str
    evidence: str
    next_step: str
    level: Level = Level.PROBLEM

    def __str__(self) -> str:
        # Names of topics and clients may hold anything.
        subject, evidence, step = (one_line(text) for text in (self.subject, self.evidence, self.next_step))
        return f"{self.level.value} {self.name}: {subject}\n  {evidence}\n  next: {step}"


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """The findings of an examination.

    Attributes:
        subject: The cluster, store or Spark that was examined.
        findings: Problems first, then advice.
        unknown: What could not be examined, and why.
    """

    subject: str
    findings: tuple[Finding, ...] = ()
    unknown: tuple[str, ...] = ()

    @classmethod
    def of(cls, subject: str, findings: list[Finding], unknown: list[str] | tuple[str, ...] = ()) -> Diagnosis:
        """Returns the findings in order: problems first, each level by name and subject."""
        order = sorted(findings, key=lambda each: (each.level is Level.ADVICE, each.name, each.subject, each.evidence))
        return cls(subject=subject, findings=tuple(order), unknown=tuple(unknown))

    @property
    def has_problem(self) -> bool:
        """Whether there is a problem, or something could not be examined."""
        return bool(self.unknown) or any(each.level is Level.PROBLEM for each in self.findings)

    def _repr_html_(self) -> str:
        columns = ("level", "name", "subject", "evidence", "next_step")
        rows = [[getattr(each, column) for column in columns] for each in self.findings]
        return table(columns, rows, caption=self._summary())

    def __str__(self) -> str:
        unknown = [f"not examined: {one_line(each)}" for each in self.unknown]
        return "\n".join([*map(str, self.findings), *unknown, self._summary()])

    def _summary(self) -> str:
        problems = sum(each.level is Level.PROBLEM for each in self.findings)
        counts = [(problems, "problem"), (len(self.findings) - problems, "piece of advice"), (len(self.unknown), "gap")]
        plurals = {"piece of advice": "pieces of advice"}
        told = [f"{n} {word if n == 1 else plurals.get(word, word + 's')}" for n, word in counts if n]
        return f"{self.subject}: {', '.join(told) or 'nothing found'}"
