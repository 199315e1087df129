"""Runs clients and suites of others against our cluster and RocketMQ's, and tells in one table what they find.

python -m tests.interop.compatibility [--only NAME ...] [--write]     (from the root of the project)

Each outsider plays its scenarios on a fresh cluster of each kind, on the loopback. A scenario passes where the rows are
those that the outsider tells of the oldest real broker on which it does not fail. The exit code is 1 if something is
different on our broker that `differences.py` does not explain, or an outsider could not be installed.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rmqfast.remoting import ResponseCode
from tests.broker.interop.cluster import SCENARIO, cluster_of
from tests.marked import with_part

from .differences import explanation
from .outsiders import OUTSIDERS, NotInstallableError, Outsider, Rows

OURS, REAL = "ours", ("4.9.4", "5.3.3", "5.5.0")
CLUSTERS = (OURS, *REAL)
#: Clusters at the same time: most of a scenario is waiting.
TOGETHER = 3
#: A real broker refuses what waited for 200 ms before its threads: on a busy machine that is anything.
PATIENT = ("waitTimeMillsInSendQueue=60000",)
PAGE = Path(__file__).parents[2] / "docs/compatibility.md"
KEPT = Path(__file__).parent / "target/compatibility"
BEGIN, END = "<!-- table: make compatibility -->\n\n", "\n<!-- end of table -->"


@dataclass(frozen=True)
class Difference:
    """Scenarios that tell on a cluster something else than on the oldest real one that can do them."""

    cluster: str
    scenarios: tuple[str, ...]
    why: str | None


@dataclass(frozen=True)
class Result:
    """The rows of one client by cluster, or the reason why it could not be installed."""

    outsider: Outsider
    rows: dict[str, Rows]
    missing: str = ""

    @property
    def scenarios(self) -> list[str]:
        """All that it does."""
        return list(dict.fromkeys(name for rows in self.rows.values() for name in rows))

    def passes(self, cluster: str, scenario: str) -> bool:
        """Whether a scenario tells on a cluster what it tells on the oldest real one on which it does not fail."""
        told = self.told(cluster, scenario)
        return told == self.expected(scenario) and not failed(told)

    def differences(self) -> Iterator[Difference]:
        """The differences and their clusters, by explanation."""
        for cluster in self.rows:
            reasons: dict[str | None, list[str]] = {}
            for scenario in self.scenarios:
                if not self.passes(cluster, scenario):
                    reasons.setdefault(explanation(self.outsider.name, cluster, scenario), []).append(scenario)
            for why, scenarios in reasons.items():
                yield Difference(cluster, tuple(scenarios), why)

    def told(self, cluster: str, scenario: str) -> Any:
        """The masked rows of a scenario on a cluster."""
        return self.outsider.comparable(scenario, self.rows[cluster].get(scenario, [{"failed": "was not run"}]))

    def expected(self, scenario: str) -> Any:
        """The rows on the oldest RocketMQ cluster that can do it; None if there is none."""
        told = [self.told(cluster, scenario) for cluster in REAL if cluster in self.rows]
        return next((rows for rows in told if not failed(rows)), None)


def failed(rows: Sequence[Any]) -> bool:
    """Whether a scenario could not be done: an exception is a row, a count of nothing, a request that is not known."""
    for row in rows:
        if isinstance(row, dict):
            nothing_came = row.get("kind") == "count" and 0 in (
                row.get("first"),
                row.get("polled"),
                row.get("consumed"),
            )
            unknown = row.get("kind") == "refused" and row.get("code") == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
            if "failed" in row or nothing_came or unknown:
                return True
    return False


def examine(outsiders: Sequence[Outsider], clusters: Sequence[str] = CLUSTERS) -> list[Result]:
    """The results of clients on clusters; each pair has its own cluster."""
    with ThreadPoolExecutor(TOGETHER) as pool:
        begun = [_begin(outsider, clusters, pool) for outsider in outsiders]
        return [Result(one, {name: rows.result() for name, rows in found.items()}, why) for one, found, why in begun]


def _begin(
    outsider: Outsider, clusters: Sequence[str], pool: ThreadPoolExecutor
) -> tuple[Outsider, dict[str, Future[Rows]], str]:
    """Installs an outsider, and lets it play; or says why it cannot be installed."""
    try:
        outsider.install()
    except NotInstallableError as error:
        return outsider, {}, str(error)
    return outsider, {name: pool.submit(played, outsider, name) for name in clusters}, ""


def played(outsider: Outsider, cluster: str) -> Rows:
    """The rows of one outsider on one cluster; where it breaks off, that is all there is to tell."""
    properties = (*SCENARIO, *PATIENT)
    with tempfile.TemporaryDirectory() as directory, cluster_of(cluster, Path(directory) / "mq", properties) as running:
        sys.stderr.write(f"{outsider.name} on {cluster}\n")
        try:
            return outsider.play(running)
        except (RuntimeError, AssertionError, OSError) as error:
            return {"all": [{"failed": f"{type(error).__name__}: {str(error)[-500:]}"}]}


def table(results: Sequence[Result]) -> str:
    """The table, what is different, and what explains it, as Markdown."""
    heads = ("client or suite", "version", "what it runs", "ours", *(f"RocketMQ {version}" for version in REAL))
    lines = ["| " + " | ".join(heads) + " |", "| --- " * len(heads) + "|"]
    for result in results:
        cells = [f"{len(_passed(result, name))} of {len(result.scenarios)}" for name in CLUSTERS if name in result.rows]
        cells = cells or [f"not installable: {result.missing}"]
        lines.append(
            "| "
            + " | ".join((f"`{result.outsider.name}`", result.outsider.version, result.outsider.runs, *cells))
            + " |"
        )
    lines += ["", "## What is different", ""]
    lines += [line for result in results for line in _told(result)]
    if lines[-1] == "":
        lines.append("Nothing.")
    return "\n".join(lines) + "\n"


def _told(result: Result) -> Iterator[str]:
    """The differences, a line for each reason with its scenarios."""
    where: dict[tuple[tuple[str, ...], str | None], list[str]] = {}
    for one in result.differences():
        name = "our broker" if one.cluster == OURS else f"RocketMQ {one.cluster}"
        where.setdefault((one.scenarios, one.why), []).append(name)
    for (scenarios, why), clusters in where.items():
        names = ", ".join(f"`{name}`" for name in scenarios)
        yield f"- `{result.outsider.name}` on {' and '.join(clusters)}, {names}: {why or 'not explained yet'}."


def _passed(result: Result, cluster: str) -> list[str]:
    return [name for name in result.scenarios if result.passes(cluster, name)]


def main() -> int:
    """Prints the table, or writes it into the page; the rows go to `target/compatibility`."""
    names = [outsider.name for outsider in OUTSIDERS]
    parser = argparse.ArgumentParser(prog="python -m tests.interop.compatibility")
    parser.add_argument("--only", action="append", choices=names, help="this one, and others that are named so")
    parser.add_argument("--write", action="store_true", help=f"into {PAGE.name}; without it the table is printed")
    options = parser.parse_args()
    if options.write and options.only:
        parser.error("--write takes all outsiders: leave --only out")
    results = examine([one for one in OUTSIDERS if one.name in (options.only or names)])
    for result in results:
        KEPT.mkdir(parents=True, exist_ok=True)
        (KEPT / f"{result.outsider.name}.json").write_text(json.dumps(result.rows, indent=1, ensure_ascii=False))
    if options.write:
        PAGE.write_text(with_part(PAGE.read_text(), BEGIN, END, table(results)))
    else:
        sys.stdout.write(table(results))
    strange = [one for result in results for one in result.differences() if one.cluster == OURS and one.why is None]
    return 1 if strange or any(result.missing for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
