"""Collects the damage that tasks find: a Spark accumulator (`AccumulatorV2`) sends it to the driver."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.accumulators import Accumulator, AccumulatorParam

from rmqfast.message import Damage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MOST_KEPT = 10_000  # as of one scan


class _Places(AccumulatorParam[frozenset[Damage]]):
    """A set of damaged places. A set, because two tasks may report the same place."""

    def zero(self, _: frozenset[Damage]) -> frozenset[Damage]:
        return frozenset()

    def addInPlace(self, value1: frozenset[Damage], value2: frozenset[Damage]) -> frozenset[Damage]:  # noqa: N802
        # The driver holds all places in memory, and a store may be damaged everywhere.
        return value1 if len(value1) >= _MOST_KEPT else value1 | value2


def damage_accumulator(spark: SparkSession) -> Accumulator[frozenset[Damage]]:
    """Creates an accumulator for the argument `damage` of `read_store`.

    Args:
        spark: The session; Spark Connect has no accumulators.

    Returns:
        An accumulator of the damaged places, complete after an action that read to the end; at most about 10,000.

    Example:
        >>> from rmqfast.spark import read_store
        >>> spark = getfixture("spark")
        >>> damage = damage_accumulator(spark)
        >>> path = getfixture("golden_store")("damaged-4.9.4")
        >>> read_store(spark, path, None, columns=["tags"], on_damage="warn", damage=damage).count()
        1645
        >>> [(place.offset, place.length) for place in damage.value]
        [(1508364, 24117)]
    """
    return spark.sparkContext.accumulator(frozenset(), _Places())
