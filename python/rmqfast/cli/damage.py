"""Reports damaged bytes on standard error, and ends a command because of them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict

import typer

from rmqfast.cli.output import Form, print_json, say, write, write_facts
from rmqfast.errors import DamageWarning
from rmqfast.message import BadBody, Damage
from rmqfast.store import Scan, VerifyReport
from rmqfast.store.report import Ingested

# A damaged disk may give thousands of places.
MOST_SHOWN = 5
# A scan keeps no more entries than this.
MOST_SAMPLED = 100


def end_with_damage(damage: Sequence[Damage]) -> None:
    """Reports damage, and ends the command with exit code 1. Does nothing without damage."""
    if not damage:
        return
    places = "1 place" if len(damage) == 1 else f"{len(damage):,} places"
    say(f"damage in {places}, {sum(d.length for d in damage):,} bytes not read")
    for place in damage[:MOST_SHOWN]:
        say(f"  {place.file} offset {place.offset}, {place.length} bytes: {place.reason}")
    if len(damage) > MOST_SHOWN:
        say(f"  and {len(damage) - MOST_SHOWN:,} more; `rmqfast store verify DIR` lists all")
    raise typer.Exit(1)


def end_with_bad_bodies(scan: Scan) -> None:
    """Reports bodies that a scan could not decode, and ends the command with exit code 1 unless damage will do so."""
    bad = scan.decode_errors
    most = "at least " if len(bad) == MOST_SAMPLED else ""
    if say_bad_bodies(f"{most}{len(bad):,}", bad) and not (scan.damage or scan.losses):
        raise typer.Exit(1)


def end_with_bad_bodies_of_ingest(report: Ingested) -> None:
    """Reports bodies that an ingest could not decode, and ends the command with code 1 unless damage will do so."""
    if report.bad_bodies == 0:
        return
    say_bad_bodies(f"{report.bad_bodies:,}", report.decode_errors)
    if not (report.damage or report.losses):
        raise typer.Exit(1)


def say_bad_bodies(count: str, bad: Sequence[BadBody]) -> bool:
    """Reports bodies that could not be decoded. Returns whether there is any in the sample."""
    if bad or count != "0":
        say(f"{count} bodies could not be decoded")
    for body in bad[:MOST_SHOWN]:
        broker = "" if body.broker_name is None else f"broker {body.broker_name} "
        say(f"  {broker}topic {body.topic} queue {body.queue_id} offset {body.queue_offset}: {body.reason}")
    return bool(bad)


def end_with_losses(losses: Sequence[str]) -> None:
    """Reports messages that a cluster no longer has, and ends the command with exit code 1. Does nothing without."""
    if not losses:
        return
    for loss in losses[:MOST_SHOWN]:
        say(f"damage: {loss}")
    if len(losses) > MOST_SHOWN:
        say(f"  and {len(losses) - MOST_SHOWN:,} more")
    raise typer.Exit(1)


@contextmanager
def damage_reported() -> Iterator[Sequence[object]]:
    """Collects the damage warnings of the block, and reports them when the block ends."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DamageWarning)
        try:
            yield caught
        finally:
            for warning in caught:
                say(f"damage: {warning.message}")


def write_report(form: Form, report: VerifyReport) -> None:
    """Writes the result of a check: counts and damage. JSON lines and CSV contain only the damage."""
    facts = {"ok": report.ok} | {name: v for name, v in asdict(report).items() if name != "damage"}
    damage = [place._asdict() for place in report.damage]
    if form is Form.JSON:
        print_json(facts | {"damage": damage})
        return
    if form is Form.TABLE:
        write_facts(form, facts)
        print()
    if damage or form is not Form.TABLE:
        write(form, Damage._fields, [report.damage])
