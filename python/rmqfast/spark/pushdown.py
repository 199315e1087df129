"""Whether Spark hands filters to a reader."""

from __future__ import annotations

import logging
import sys

__all__ = ["gets_filters"]

_LOG = logging.getLogger("rmqfast.spark")
_WORKER = "pyspark.sql.worker.data_source_pushdown_filters"


def gets_filters(*, is_wanted: bool) -> bool:
    """Whether a reader of this process shall have `pushFilters`: to have it fails the query where Spark pushes none.

    Args:
        is_wanted: What the option `pushdown` says.

    Example:
        >>> gets_filters(is_wanted=False)
        False

    Source: `data_source_pushdown_filters` of PySpark 4.1 and newer.
    """
    # PySpark starts a process of its own to push filters: only there the setting is known to be on
    if not is_wanted or _WORKER in sys.orig_argv:
        return is_wanted
    # a reader that takes filters fails the query where the configuration is off, and here nobody says whether it is
    _LOG.warning("pushdown: no filter came; is spark.sql.python.filterPushdown.enabled on (PySpark 4.1 or newer)?")
    return False
