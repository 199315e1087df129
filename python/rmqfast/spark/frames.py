"""Arrow batches as pandas frames that Spark turns back into Arrow without touching a row."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pandas as pd

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["arrow_frame"]


class _Given(pd.arrays.ArrowExtensionArray):
    """A column of Arrow's: Spark takes it as it is, where of objects it would look at each."""

    def map(self, mapper: Callable[..., Any], na_action: Any = None) -> _Given:  # type: ignore[override]  # noqa: ARG002
        """Spark maps each dict of a map column to the pairs that Arrow takes: these are Arrow's already.

        Source: `pyspark.sql.pandas.types._create_converter_from_pandas`.
        """
        return self


def arrow_frame(batch: pa.RecordBatch) -> pd.DataFrame:
    """The batch as a frame of Arrow-backed columns.

    Args:
        batch: Of the types that the DataFrame's schema asks for: nothing converts them later.

    Examples:
        >>> import pyarrow
        >>> arrow_frame(pyarrow.record_batch({"queue_id": [0, 1]})).dtypes.to_dict()
        {'queue_id': int64[pyarrow]}

    Source: `pandas.ArrowDtype`; `pyspark.sql.pandas.serializers` asks each series for `__arrow_array__`.
    """
    columns = zip(batch.schema.names, batch.columns, strict=True)
    return pd.DataFrame({name: _Given(column) for name, column in columns})
