"""A Spark stream of a store into a table: `python -m tests.lakes.stream_job STORE DIRECTORY FORMAT`.

A process of its own, so that it can be killed at any moment.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.lakes.spark_lake import SparkLake, start_session

BYTES_PER_TRIGGER = 30_000


def main(store: Path, directory: Path, format_: str) -> None:
    lake = SparkLake(start_session(directory), directory, format_)
    rows = lake.stream_of(store, maxBytesPerTrigger=BYTES_PER_TRIGGER)
    lake.create(rows, exist_ok=True)
    lake.start(rows.writeStream)
    lake.spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
