"""Measures rmqfast against its peers and the machine's limits; prints one table and keeps a dated record.

python benches/run.py --quick
python benches/run.py --only scan,append --repeat 7
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from typing import Any

from rich.console import Console

import broker
import client
import engine_groups
import groups
import lake_groups
import live
import live.cells
import mirror
import report
import spark_groups
from data import Dataset, scratch_dir
from goals import FIRST, SECOND, Goal, all_goals
from groups import Plan
from machine import ROOT, commit, commit_time, facts
from measurement import Effort, Series, unmeasured
from peer import Failed, Missing

GROUPS = {
    "scan": groups.scan,
    "tag": groups.tag,
    "query": groups.query,
    "append": groups.append,
    "spark": spark_groups.spark,
    "kafka": spark_groups.kafka,
    "columnar": spark_groups.columnar,
    "decode": spark_groups.decode,
    "ingest": lake_groups.ingest,
    "recovery": engine_groups.recovery,
    "sync": engine_groups.sync,
    "broker": broker.broker,
    "ledger": broker.ledger,
    "operate": broker.operate,
    "client": client.client,
    "live": live.live,
    "cluster": live.cluster,
    "mirror": mirror.mirror,
    "slaves": mirror.slaves,
    "memory": groups.memory,
    "growth": groups.growth,
    "import": groups.imports,
}
WIDTH = 170  # where the output is no terminal


def main() -> int:
    """Runs the chosen groups; 1 when something that is there could not be measured."""
    options = parse()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, leave)  # so that what was started is ended
    plan, about, at = plan_of(options), facts(), commit()
    found: dict[str, Series] = {}
    for name in options.only:
        print(f"measuring {name}", file=sys.stderr, flush=True)
        found |= measured(name, plan)
    goals = [goal for goal in all_goals() if goal.group in options.only and is_asked(goal, options.cell)]
    made = report.rows(goals, found, judge=not options.quick)
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    report.show(console, made, found, title(options, at), caption(about))
    how: dict[str, Any] = {"commit": at, "commit_time": commit_time(), "machine": about}
    how |= {"quick": options.quick, "repeat": plan.effort.repeat, "datasets": [vars(one) for one in plan.datasets]}
    how |= {
        "live": [vars(one) for one in plan.live],
        "live_seconds": plan.live_seconds,
        "memory_gib": plan.memory_gib,
        "growth_gib": plan.growth_gib,
    }
    # a quick run is no record of the project
    directory = scratch_dir() / "record" if options.quick else report.RECORD
    print(f"record: {report.write(made, found, how, directory)}")
    return 1 if any(one.failed for one in found.values()) else 0


def is_asked(goal: Goal, cells: tuple[str, ...]) -> bool:
    """Whether it is of no cell, or of one that runs."""
    asked = cells or tuple(name for name, cell in live.cells.BY_NAME.items() if cell.unasked)
    return goal.group != "live" or goal.ours.split()[1] in asked


def leave(number: int, _frame: object) -> None:
    """Ends the run as an exception does, through every `with`."""
    sys.exit(128 + number)


def measured(name: str, plan: Plan) -> dict[str, Series]:
    """The series of a group; a group that cannot start says so under its own name, and the others go on."""
    try:
        return {series.name: series for series in GROUPS[name](plan)}
    except (Missing, Failed, OSError) as error:
        return {name: unmeasured(name, error)}


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small data, one repetition: judges nothing")
    parser.add_argument("--only", type=chosen, default=list(GROUPS), help=f"some of {','.join(GROUPS)}")
    parser.add_argument("--repeat", type=int, default=5, help="timings per engine, of which the median counts")
    parser.add_argument("--size-gib", type=float, default=2.0, help="GiB of bodies of 1 KiB")
    parser.add_argument("--live-gib", type=float, default=4.0, help="the same of the groups live and cluster")
    parser.add_argument("--live-seconds", type=float, default=10.0, help="what the larger jobs of live take, at least")
    parser.add_argument("--cell", type=chosen_cells, default=(), help=f"some of live: {','.join(live.cells.BY_NAME)}")
    parser.add_argument("--spark-python", default=sys.executable, help="interpreter with rmqfast and pyspark")
    kafka_python = os.environ.get("RMQFAST_SPARK40_PYTHON") or str(ROOT / ".venv-spark40/bin/python")
    parser.add_argument("--kafka-python", default=kafka_python, help="interpreter with rmqfast and pyspark 4.0")
    return parser.parse_args()


def chosen(text: str) -> list[str]:
    """Names of groups, separated by commas."""
    names = text.split(",")
    if unknown := sorted(set(names) - set(GROUPS)):
        raise argparse.ArgumentTypeError(f"unknown group {unknown[0]!r}: expected some of {','.join(GROUPS)}")
    return names


def chosen_cells(text: str) -> tuple[str, ...]:
    """Names of cells of the group live, separated by commas."""
    names = tuple(text.split(","))
    if unknown := sorted(set(names) - set(live.cells.BY_NAME)):
        raise argparse.ArgumentTypeError(
            f"unknown cell {unknown[0]!r}: expected some of {','.join(live.cells.BY_NAME)}"
        )
    return names


def plan_of(options: argparse.Namespace) -> Plan:
    """Sizes and repetitions; there are 2.5 small bodies for each large one, and a quick run takes a twentieth."""
    scale = 0.05 if options.quick else 1.0
    many, live_many = (  # Spark's four tasks share them evenly
        int(gib * scale * 2**20) // 8 * 8 for gib in (options.size_gib, options.live_gib)
    )
    return Plan(
        datasets=(Dataset(FIRST, 1024, many), Dataset(SECOND, 128, many // 2 * 5)),
        live=(Dataset(FIRST, 1024, live_many), Dataset(SECOND, 128, 2 * live_many)),
        live_seconds=options.live_seconds * max(scale, 0.2),  # less is not told from the start of a job
        cells=options.cell,
        effort=Effort(1, 1) if options.quick else Effort(options.repeat, 2),
        memory_gib=10 * scale,
        growth_gib=(1 * scale, 8 * scale),
        spark_python=options.spark_python,
        kafka_python=options.kafka_python,
    )


def title(options: argparse.Namespace, at: str) -> str:
    """The table's heading."""
    gib = options.live_gib if set(options.only) <= {"live", "cluster", "mirror"} else options.size_gib
    size = f"{gib:g} GiB of 1 KiB bodies, medians of {options.repeat}"
    return f"rmqfast at {at}: " + ("quick run, sizes too small to judge" if options.quick else size)


def caption(about: dict[str, str | int | float]) -> str:
    """The machine, under the table."""
    named = ("cpu", "cores", "memory_gib", "kernel", "python", "java", "pyspark", "pyarrow", "load_average")
    return ", ".join(f"{name} {about[name]}" for name in named) + f"; data in {scratch_dir()}"


if __name__ == "__main__":
    sys.exit(main())
