"""The data sources of this PySpark, and tests that an older one leaves out."""

from __future__ import annotations

import importlib.util

import pytest

from tests.spark.conftest import has_filters
from tests.spark.engines import ENGINES

collect_ignore: list[str] = []
if importlib.util.find_spec("pyspark.sql.datasource") is None:
    collect_ignore += ["test_stream_errors.py", "test_stream_reader.py"]
if not has_filters():
    collect_ignore += ["test_live_pushdown.py"]


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    """Each data source of this PySpark by name."""
    name: str = request.param
    return name
