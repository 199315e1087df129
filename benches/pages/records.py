"""The records of `benches/record`, the newest first."""

from __future__ import annotations

import functools
import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from goals import FIRST, LABELS
from machine import ROOT
from measurement import Sample, Series
from report import RECORD

GIB = 2**30
#: Groups whose data are those of `--live-gib`, and whose jobs take `--live-seconds`.
LIVE = frozenset({"live", "cluster", "mirror", "slaves"})


@dataclass(frozen=True, eq=False)
class Record:
    """One run: its name, its conditions, its series."""

    name: str
    about: dict[str, Any]
    series: dict[str, Series]

    def age(self) -> int | None:
        """The number of commits since. None where git does not know the commit, as in a shallow clone."""
        command = ["git", "rev-list", "--count", f"{self.about['commit']}..HEAD"]
        counted = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        return int(counted.stdout) if counted.returncode == 0 else None

    def row(self, names: Sequence[str], kind: str) -> dict[str, Any] | None:
        """The goal of a series and its peer in this run. A value has no peer, or is that of a time."""
        rows = {(row["ours"], row["peer"], row["kind"]): row for row in self.about["rows"].values()}
        ours, peer = names[0], names[1] if len(names) > 1 else None
        found = rows.get((ours, peer, kind))
        if kind == "value" and found is None:
            return rows.get((ours, peer, "time"), rows.get((ours, None, kind)))
        return found

    def has(self, names: Sequence[str]) -> bool:
        """Whether all these series were measured."""
        return all(name in self.series and self.series[name].samples for name in names)

    def groups(self, names: Sequence[str]) -> set[str]:
        """The groups of rows that have one of these series."""
        return {row["group"] for row in self.about["rows"].values() if row["ours"] in names or row["peer"] in names}

    def command(self, names: Sequence[str]) -> str:
        """The command that measures these series as this run did."""
        groups = self.groups(names)
        words = ["--only", ",".join(sorted(groups))]
        if "live" in groups and "live_seconds" in self.about:
            words += ["--cell", ",".join(sorted({name.split()[1] for name in names}))]
        if self.about["repeat"] != 5:
            words += ["--repeat", str(self.about["repeat"])]
        if groups <= LIVE:
            words += option("--live-gib", self.gib(FIRST, "live"), 4.0)
            words += option("--live-seconds", self.about.get("live_seconds", 10.0), 10.0)
        else:
            words += option("--size-gib", self.gib(FIRST, "datasets"), 2.0)
        return f'make bench ARGS="{" ".join(words)}"'

    def gib(self, label: str, data: str) -> float:
        """GiB of bodies of a size."""
        (one,) = (one for one in self.about[data] if one["label"] == label)
        return float(one["rows"] * one["body"] / GIB)

    def conditions(self, names: Sequence[str]) -> str:
        """The number of timings and the machine."""
        counts = sorted({len(self.series[name].samples) for name in names})
        machine = self.about["machine"]
        times = "one run" if counts == [1] else f"medians of {' or '.join(map(str, counts))}"
        return f"{times}, {machine['cores']} cores, {machine['cpu']}"

    def sizes(self, names: Sequence[str]) -> str:
        """Of how much."""
        data = "live" if self.groups(names) <= LIVE and "live" in self.about else "datasets"
        return " and ".join(
            f"{self.gib(label, data):.3g} GiB of {size} bodies"
            for label, size in zip(LABELS, ("1 KiB", "128 B"), strict=True)
        )


def option(name: str, value: float, default: float) -> list[str]:
    """An option where it is not the default."""
    return [] if value == default else [name, f"{value:g}"]


@functools.cache
def records(directory: Path = RECORD) -> tuple[Record, ...]:
    """All, the newest first: by day, then by the age of the commit that was measured."""
    found = [of_file(path) for path in directory.glob("*.json")]
    return tuple(sorted(found, key=age, reverse=True))


def age(record: Record) -> tuple[str, datetime, str]:
    """The sort key of records."""
    return record.name[:10], datetime.fromisoformat(record.about["commit_time"]), record.name


def of_file(path: Path) -> Record:
    """A record as it was written."""
    about = json.loads(path.read_text(encoding="utf-8"))
    series = {
        name: Series(**{**one, "samples": [Sample(**sample) for sample in one["samples"]]})
        for name, one in about["series"].items()
    }
    return Record(path.stem, about, series)


def newest(*wanted: Sequence[str]) -> Record:
    """The newest record that has all of the first series; of the second where none has, and so on."""
    for names in wanted:
        for record in records():
            if record.has(names):
                return record
    raise LookupError(f"no record has {wanted[0]}")
