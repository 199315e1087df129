"""What PySpark's workers do behind each task: a garbage collection that goes through all that the imports made.

A worker that is used again looks through all its objects before it takes the next task: with pyarrow, pandas and this
package there are 80,000, which takes 20 to 40 ms, as long as reading 10,000 messages of a live topic does.

Source: `manager` of `pyspark.daemon`.
"""

from __future__ import annotations

import gc

__all__ = ["freeze_imports_once"]

_is_frozen = False


def freeze_imports_once() -> None:
    """In a worker of Spark: what is there now is looked through no more; what comes later is collected as ever.

    Example:
        >>> import gc
        >>> before = gc.get_freeze_count()
        >>> freeze_imports_once()  # no worker
        >>> gc.get_freeze_count() == before
        True

    Source: as above.
    """
    from pyspark import TaskContext

    global _is_frozen  # noqa: PLW0603  # once in a process
    # not in a driver, whose objects are the user's
    if not _is_frozen and TaskContext.get() is not None:
        _is_frozen = True
        # first, as what is garbage now would be kept for ever
        gc.collect()
        gc.freeze()
