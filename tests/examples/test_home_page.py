"""The code of the site's home page runs as it stands; that of Spark has a test in `tests/spark`."""

from __future__ import annotations

from pathlib import Path

import pytest

from rmqfast import Admin
from tests.readme.readers import readers_things

from .documents import blocks_of, check_code

pytestmark = pytest.mark.slow
PAGE = "index.md"


def test_the_blocks_of_stores_and_clusters_run(tmp_path: Path) -> None:
    with readers_things(tmp_path) as things:
        names = check_code(PAGE, readers=things, chosen=lambda code: "pyspark" not in code)
        with Admin(name_server=things["10.0.0.1:9876"]) as admin:
            assert len(admin.messages.by_key("orders", "42")) == 1
    assert len(names["frame"]) > 0


def test_each_block_runs_in_one_of_the_tests() -> None:
    codes = [block.code for block in blocks_of(PAGE)]
    assert len(codes) == 4
    assert sum("pyspark" in code for code in codes) == 1
