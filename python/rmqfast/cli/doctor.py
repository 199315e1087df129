"""`rmqfast doctor`: what is wrong with a cluster, a store or Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rmqfast.cli.cluster_access import Access, reaches_cluster
from rmqfast.cli.output import Form, bar, print_json, say, write
from rmqfast.cli.shared_options import PATH, Output
from rmqfast.errors import ArgumentError

if TYPE_CHECKING:
    from rmqfast.doctor import Diagnosis

COLUMNS = ("level", "name", "subject", "evidence", "next_step")


@reaches_cluster
def doctor(
    store: Annotated[
        Path | None, typer.Argument(metavar="[STORE]", help="Examine this store instead.", parser=PATH)
    ] = None,
    *,
    spark: Annotated[bool, typer.Option("--spark", help="Examine Spark on this machine instead.")] = False,
    seconds: Annotated[
        float, typer.Option(min=0, help="Watch the brokers' addresses for so long; 35 finds two brokers of one name.")
    ] = 0.0,
    access: Access,
    output: Output = Form.TABLE,
) -> None:
    """Finds misconfigurations and faults of a cluster, each with its evidence and what to do. Changes nothing.

    With a directory, examines that store; with --spark, whether Spark on this machine can read RocketMQ. Exit code 1: a
    problem was found, or something could not be examined. Advice alone is no problem.
    """
    if spark and store is not None:
        raise ArgumentError("expected STORE or --spark, got both")
    diagnosis = _diagnosis(store, access, is_spark=spark, seconds=seconds)
    if output is Form.TABLE:
        print(diagnosis)
    elif output is Form.JSON:
        print_json(
            {
                "subject": diagnosis.subject,
                "has_problem": diagnosis.has_problem,
                "findings": [{name: getattr(each, name) for name in COLUMNS} for each in diagnosis.findings],
                "unknown": list(diagnosis.unknown),
            }
        )
    else:
        write(output, COLUMNS, [[[getattr(each, name) for name in COLUMNS] for each in diagnosis.findings]])
        for each in diagnosis.unknown:
            say(f"not examined: {each}")
    if diagnosis.has_problem:
        raise typer.Exit(1)


def _diagnosis(store: Path | None, access: Access, *, is_spark: bool, seconds: float) -> Diagnosis:
    # A whole broker, which slows down the start of other commands.
    from rmqfast.doctor import examine_cluster, examine_store

    if is_spark:
        from rmqfast.spark import examine_spark  # other examinations need no Spark

        return examine_spark()
    if store is None:
        return examine_cluster(config=access.config(), watch=seconds)
    with bar("checking") as progress:
        return examine_store(store, progress=progress)
