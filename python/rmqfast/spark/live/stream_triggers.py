"""What PySpark 4.2 and newer know of triggers, and older ones do not."""

from __future__ import annotations

from typing import Any, Final

__all__ = ["AvailableNow", "bytes_limit", "is_unlimited", "offsets_limit"]

try:
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow as AvailableNow
except ImportError:  # before 4.2: Spark takes all there is in one batch
    AvailableNow: Final = object  # type: ignore[misc,assignment]


def offsets_limit(most: int | None, least: int | None) -> Any:
    """What a batch is limited to in messages as PySpark has it; it has no limit of both kinds.

    Source: `ReadLimit` of PySpark.
    """
    from pyspark.sql.streaming import datasource

    # Spark is told one of them; the stream holds both
    if most is not None:
        return datasource.ReadMaxRows(most)
    return datasource.ReadAllAvailable() if least is None else datasource.ReadMinRows(least)


def bytes_limit(most: int | None) -> Any:
    """What a batch is limited to in bytes as PySpark has it.

    Source: `ReadLimit` of PySpark.
    """
    from pyspark.sql.streaming import datasource

    return datasource.ReadAllAvailable() if most is None else datasource.ReadMaxBytes(most)


def is_unlimited(limit: Any) -> bool:
    """Whether a trigger wants all there is, whatever the options say.

    Source: `ReadAllAvailable` of PySpark.
    """
    # by name: PySpark before 4.2 has no such class to compare with
    return type(limit).__name__ == "ReadAllAvailable"
