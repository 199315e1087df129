"""Writes a store with the reference writer and lets RocketMQ's own classes judge it.

    python -m tests.interop.check_writer [VERSION] [MESSAGES]

Exit status 0 when DumpStore finds the store sound and reads the rows, units, blanks and index entries that the
reference reads.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests import golden_stores
from tests.interop.rocketmq import SCRIPT
from tests.reference import random_store
from tests.reference.index_file import keys_of
from tests.reference.record import Blank
from tests.reference.store import Store
from tests.reference.writer import Message, Options, write_store

MIN_MESSAGES_PER_SECOND = 3


def main(version: str, count: int) -> int:
    """Prints what differs, and 1 where something does."""
    options = Options(
        first_file=2,
        first_queue_offsets={("T", 0): 3, ("Aa", 1): 250},
        v2=version.startswith("5."),
        property_crc=version.startswith("5."),
        trailing_separator=version.startswith("5."),
        dirty_blanks=True,
    )
    with TemporaryDirectory() as directory:
        written = write_store(Path(directory) / "store", think_up(count, version), options)
        store = Store.open(written.path, geometry=options.index_geometry)
        command = [str(SCRIPT), "java", version, "DumpStore", str(written.path)]
        dump = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        found = differences(store, golden_stores.by_kind(dump.stdout.strip("\n").split("\n")), version)
    title = f"RocketMQ {version}: exit {dump.returncode}, {len(written.records)} messages, "
    title += f"{len(store.log.files)} commit-log files, {len(store.index.files)} index files, {len(found)} differences"
    sys.stdout.write("\n".join([title, *found[:20], ""]))
    return 1 if found or dump.returncode else 0


def think_up(count: int, version: str) -> list[Message]:
    """Messages of the strategies of `random_store`, the same in every run, their store times rising."""
    topics = random_store.TOPICS + (random_store.LONG_TOPICS if version.startswith("5.") else ())
    found: list[Message] = []

    @seed(1)
    @settings(max_examples=count, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(random_store.messages(topics))
    def collect(message: Message) -> None:
        found.append(message)

    collect()
    times = [random_store.START_MILLIS + 1000 * number // MIN_MESSAGES_PER_SECOND for number in range(len(found))]
    return [_plain(replace(message, store_timestamp=time)) for message, time in zip(found, times, strict=True)]


def _plain(message: Message) -> Message:
    """Leaves out what DumpStore cannot print: NUL in keys separates its own; Java takes ::ffff:1.2.3.4 for IPv4.

    Bodies are made larger, so that there are several commit-log files.
    """
    born_host, store_host = (
        replace(host, ip="fd00::3") if host.ip.startswith("::ffff:") else host
        for host in (message.born_host, message.store_host)
    )
    pairs = tuple((name.replace("\0", "0"), value.replace("\0", "0")) for name, value in message.properties)
    bigger = replace(message, properties=pairs, body=message.body * 20)
    return replace(bigger, born_host=born_host, store_host=store_host)


def differences(store: Store, lines: dict[str, list[golden_stores.Line]], version: str) -> list[str]:
    """Says where RocketMQ reads something else than the reference."""
    found = list(golden_stores.differences(store.rows(), golden_stores.rows_of(lines.get("msg", []), version)))
    units = {
        (topic, queue_id, offset, *unit)
        for (topic, queue_id), queue in store.rebuilt_queues().items()
        for offset, unit in queue.items()
    }
    theirs = {
        (c["topic"], c["queueId"], c["cqOffset"], c["commitLogOffset"], c["size"], c["tagsCode"])
        for c in lines.get("cq", [])
    }
    found += [f"unit {unit}" for unit in sorted(units ^ theirs)]
    blanks = [[item.physical_offset, item.store_size] for item in store.walk() if isinstance(item, Blank)]
    if blanks != [[line["commitLogOffset"], line["size"]] for line in lines.get("blank", [])]:
        found.append(f"blanks {blanks}")
    keys = {(record.topic, key) for record in store.records() for key in keys_of(record)}
    missing = keys - {(line["topic"], line["key"]) for line in lines.get("index", [])}
    found += [f"key {key} was not looked up" for key in sorted(missing)]
    for line in lines.get("index", []):
        ours = sorted(store.index.query(line["topic"], line["key"]))
        if ours != line["commitLogOffsets"]:
            found.append(f"key {line['topic']} {line['key']!r}: {line['commitLogOffsets']}, expected {ours}")
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version", nargs="?", default="4.9.4")
    parser.add_argument("messages", nargs="?", type=int, default=4000)
    arguments = parser.parse_args()
    sys.exit(main(arguments.version, arguments.messages))
