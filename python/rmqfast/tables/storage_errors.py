"""Errors of operating systems, object stores and table libraries, as errors of rmqfast with the next step."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from rmqfast.errors import RmqError, StoreIOError

#: Packages whose errors are no `OSError`, though they tell of a storage or a catalog. `_internal` is deltalake's.
_LIBRARIES = frozenset({"_internal", "deltalake", "pyiceberg", "sqlalchemy"})
#: Options that nobody may read.
_SECRET = re.compile(r"secret|token|password|credential|access.?key|account.?key|sas", re.IGNORECASE)
_COLOUR = re.compile(r"\x1b\[\d*m")
#: Words of a refusal, and what its reader does then. The first match counts.
_REFUSED = r"access.?denied|invalid.?access.?key|invalid.?client.?token|signature|expired.?token|\b40[13]\b|forbidden"
_STEPS = (
    (_REFUSED, "check the keys and their rights: those in options, or in the environment"),
    (r"no.?such.?bucket|bucket does not exist", "create the bucket, or check the URL and the endpoint"),
    (r"\bhttps?://|curl|AWS error|S3 error", "check the endpoint; the next run continues the table"),
)


@contextmanager
def errors_name_storage(out: str | os.PathLike[str], options: Mapping[str, str]) -> Iterator[None]:
    """Raises `StoreIOError` where the operating system, an object store or a catalog refuses. It has no secrets."""
    try:
        yield
    except RmqError:
        raise
    except OSError as error:
        if error.errno:
            place = str(error.filename or os.fspath(out))
            raise StoreIOError(error.errno, os.strerror(error.errno).lower(), place) from None
        raise _refusal(out, error, options) from None
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in _LIBRARIES:
            raise
        raise _refusal(out, error, options) from None


def _refusal(out: str | os.PathLike[str], error: Exception, options: Mapping[str, str]) -> StoreIOError:
    text = _line(error, options)
    refusal = StoreIOError(f"{os.fspath(out)}: {text}")
    step = next((step for pattern, step in _STEPS if re.search(pattern, text, re.IGNORECASE)), None)
    if step is not None:
        refusal.add_note(step)
    return refusal


def _line(error: Exception, options: Mapping[str, str]) -> str:
    """Returns the text of an error as one line, without secrets."""
    text = " ".join(_COLOUR.sub("", str(error)).split())
    for name, value in options.items():
        if value and _SECRET.search(name):
            text = text.replace(value, "***")
    return text or type(error).__name__
