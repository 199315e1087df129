"""The two data sources that read topics: `rocketmq` of PySpark, and `rocketmq-columnar` of Spark's JVM."""

from __future__ import annotations

import importlib.util
import re

import pyspark
import pytest

from rmqfast.errors import RmqError
from rmqfast.spark.columnar import plain_error

PYTHON, JVM = "rocketmq", "rocketmq-columnar"
HAS_PYTHON_SOURCES = importlib.util.find_spec("pyspark.sql.datasource") is not None
#: Those that this PySpark has: 3.5 has no sources in Python.
ENGINES = (PYTHON, JVM) if HAS_PYTHON_SOURCES else (JVM,)
#: Those whose batches have a size: PySpark before 4.2 does not tell a source in Python where the stream is.
SIZED_ENGINES = ENGINES if pyspark.__version__ >= "4.2" else (JVM,)

python_source = pytest.mark.skipif(not HAS_PYTHON_SOURCES, reason="PySpark 3.5 has no data sources in Python")

#: In the traceback of a worker, which PySpark puts into its own error: as far as an empty line or what Spark adds.
_OF_PYTHON = re.compile(r"^rmqfast\.errors\.(\w+): (.*?)(?=\n\s*\n|\n\s+at |\n SQLSTATE|\Z)", re.MULTILINE | re.DOTALL)


def said(error: BaseException) -> str:
    """`Class: text` of the error of this package that an engine raised, as Spark passed it on."""
    plain = error if isinstance(error, RmqError) else plain_error(error)
    if plain is not None:
        return f"{type(plain).__name__}: {plain}"
    found = _OF_PYTHON.search(str(error))
    assert found is not None, error
    return f"{found[1]}: {found[2].rstrip()}"
