"""What tasks make of the partitions of a read, whichever engine runs them. No Spark is needed for this."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

import rmqfast
from rmqfast.spark.partitions import plan_partitions
from rmqfast.spark.reader import store_read
from tests import golden_stores
from tests.golden_stores import PathOf

from .conditions import ARGUMENTS
from .in_process import column, partition_rows


@pytest.mark.parametrize("name", golden_stores.NAMES)
def test_a_golden_store_gives_the_rows_that_rocketmq_gives(golden_store: PathOf, name: str) -> None:
    read = store_read(golden_store(name), None, on_damage="warn" if name.startswith("damaged") else "fail")
    wanted = golden_stores.expected_rows(name)
    assert list(golden_stores.differences(partition_rows(read), wanted)) == []
    assert wanted


@pytest.mark.parametrize("arguments", ARGUMENTS.values(), ids=ARGUMENTS)
def test_arguments_choose_what_a_scan_chooses(golden_store: PathOf, arguments: Mapping[str, Any]) -> None:
    path = golden_store("basic-4.9.4")
    with rmqfast.open_store(path) as store:
        wanted = store.scan("fx_q4", columns=["physical_offset"], **arguments).to_arrow().column(0).to_pylist()
    rows = partition_rows(store_read(path, "fx_q4", columns=["physical_offset"], **arguments))
    assert sorted(column(rows, "physical_offset")) == sorted(wanted)
    assert 0 < len(wanted) < 451


def test_small_partitions_share_no_message(golden_store: PathOf) -> None:
    whole = store_read(golden_store("basic-4.9.4"), "fx_q1", columns=["physical_offset"])
    for tags in ("*", "TagA || TagB || Aa"):
        read = replace(whole, request=replace(whole.request, tags=tags))
        small = replace(read, partition_bytes=2000)
        assert len(plan_partitions(small)) > 100
        assert sorted(column(partition_rows(small), "physical_offset")) == sorted(
            column(partition_rows(read), "physical_offset")
        )


def test_importing_the_reader_loads_neither_pyspark_nor_pandas() -> None:
    look = "import sys, rmqfast.spark; print(sorted({'pyspark', 'pandas', 'numpy', 'pyarrow'} & set(sys.modules)))"
    output = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True).stdout
    assert output.strip() == "[]"
