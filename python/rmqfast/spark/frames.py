"""Arrow batches as pandas frames that Spark converts back to Arrow without touching a row.

A file of its own, because pandas is imported in Python workers only: it takes 0.4 s.

Source: `pandas.ArrowDtype`; `pyspark.sql.pandas.serializers` asks each series for `__arrow_array__`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pandas as pd

if TYPE_CHECKING:
    import pyarrow as pa


class _ArrowColumn(pd.arrays.ArrowExtensionArray):
    def map(self, mapper: Callable[..., Any], na_action: Any = None) -> _ArrowColumn:  # type: ignore[override]  # noqa: ARG002
        # Spark maps each row's dict to pairs, but Arrow's maps are pairs already.
        return self


def arrow_frame(batch: pa.RecordBatch) -> pd.DataFrame:
    """Returns a batch as a frame of Arrow-backed columns, with the types in the DataFrame's schema."""
    columns = zip(batch.schema.names, batch.columns, strict=True)
    return pd.DataFrame({name: _ArrowColumn(column) for name, column in columns})
