"""Arrow batches as pandas frames that Spark turns back into Arrow without touching a row.

Source: `pandas.ArrowDtype`; `pyspark.sql.pandas.serializers` asks each series for `__arrow_array__`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pandas as pd

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["arrow_frame"]


class _ArrowColumn(pd.arrays.ArrowExtensionArray):
    def map(self, mapper: Callable[..., Any], na_action: Any = None) -> _ArrowColumn:  # type: ignore[override]  # noqa: ARG002
        # Spark would make pairs of each row's dict; these are Arrow's pairs already
        return self


def arrow_frame(batch: pa.RecordBatch) -> pd.DataFrame:
    """The batch as a frame of Arrow-backed columns, of the types that the DataFrame's schema has.

    Example:
        >>> import pyarrow
        >>> arrow_frame(pyarrow.record_batch({"queue_id": [0, 1]})).dtypes.to_dict()
        {'queue_id': int64[pyarrow]}
    """
    columns = zip(batch.schema.names, batch.columns, strict=True)
    return pd.DataFrame({name: _ArrowColumn(column) for name, column in columns})
