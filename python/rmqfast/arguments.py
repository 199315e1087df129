"""Converts and checks arguments of users: times, durations and numbers, also those of NumPy and pandas.

Values of NumPy and pandas are accepted without importing them. Any other value raises an `ArgumentError` that names the
argument, what was expected, and what to write.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from datetime import UTC, date, datetime, timedelta
from difflib import get_close_matches
from functools import cache, wraps
from operator import index
from typing import Any, Protocol, SupportsFloat, SupportsIndex, TypeGuard, TypeVar, Unpack, cast, get_args

from rmqfast import _native
from rmqfast.errors import ArgumentError, ArgumentTypeError

__all__ = [
    "Duration",
    "Number",
    "NumpyScalar",
    "Time",
    "check_fields",
    "epoch_milliseconds",
    "integer",
    "milliseconds_of",
    "optional_seconds",
    "seconds",
    "suggests_names",
    "text",
    "unknown_argument",
    "whole",
]


F = TypeVar("F", bound=Callable[..., Any])


class NumpyScalar(Protocol):
    """A scalar of NumPy."""

    @property
    def dtype(self) -> Any: ...

    def astype(self, dtype: Any, /) -> Any: ...


Time = SupportsIndex | SupportsFloat | str | date | NumpyScalar
"""Milliseconds since 1970, an ISO 8601 text, a datetime, a date, or NumPy's or pandas' value; without a zone UTC."""

Duration = SupportsFloat | SupportsIndex | timedelta | NumpyScalar
"""Seconds, or a timedelta, also NumPy's or pandas'."""

Number = SupportsIndex
"""An integer, also NumPy's."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: A century in seconds: larger durations could overflow when added to a time.
_LONGEST = 100 * 366 * 86_400.0
#: Names of other libraries for arguments of rmqfast.
_ELSEWHERE = {
    "bootstrap_servers": "name_server",
    "bootstrap_server": "name_server",
    "brokers": "name_server",
    "namesrv_addr": "name_server",
    "namesrv": "name_server",
    "namesrvaddr": "name_server",
    "name_server_address": "name_server",
    "endpoints": "name_server",
    "group_id": "group",
    "consumer_group": "group",
    "producer_group": "group",
    "value": "body",
    "key": "keys",
    "tag": "tags",
    "headers": "properties",
    "partition": "queue_id",
    "partitions": "queue_ids",
    "timeout_ms": "timeout",
}


def milliseconds_of(name: str, when: Time) -> int:
    """Converts a time to milliseconds since 1970. A time without a zone is UTC. A date means its midnight."""
    if isinstance(when, str):
        return _native.milliseconds(when, name)
    if _is_missing(when):
        raise ArgumentError(f"{name}: expected a time, got {when!r}, which is none: leave it out, or give None")
    # before `date`, its base class
    if isinstance(when, datetime):
        return epoch_milliseconds(when)
    if isinstance(when, date):
        return epoch_milliseconds(datetime(when.year, when.month, when.day, tzinfo=UTC))
    if _is_numpy(when, "M"):
        return int(when.astype("datetime64[ms]").astype("int64"))
    number = _floor(when)
    if number is None:
        raise _wrong(name, "a time: a datetime, ISO 8601 as '2026-11-21T09:00:00', or milliseconds since 1970", when)
    # recognises numbers in other units
    return _native.milliseconds(str(number), name)


def epoch_milliseconds(when: datetime) -> int:
    """Converts a datetime to milliseconds since 1970. A datetime without a zone is UTC."""
    aware = when if when.tzinfo else when.replace(tzinfo=UTC)
    # not `timestamp()`, a float, which is a little too small for some times
    return int((aware - _EPOCH) // timedelta(milliseconds=1))


def seconds(name: str, duration: Duration) -> float:
    """Converts a duration to seconds. Raises if it is negative."""
    value = _in_seconds(name, duration)
    if not 0 <= value <= _LONGEST:
        raise ArgumentError(f"{name}: expected seconds from 0 on, or a timedelta, got {duration!r}")
    return value


def optional_seconds(name: str, duration: Duration | None) -> float | None:
    """Converts a duration to seconds, as `seconds` does. None stays None."""
    return None if duration is None else seconds(name, duration)


def integer(name: str, number: Number, least: int | None = None, most: int | None = None) -> int:
    """Converts a number to an integer. Raises if it has a fraction or is out of range."""
    value = whole(number)
    if value is None:
        raise _wrong(name, "an integer", number)
    if (least is not None and value < least) or (most is not None and value > most):
        span = f"{least} or more" if most is None else f"{least} to {most}"
        raise ArgumentError(f"{name}: expected {span}, got {value}")
    return value


def whole(number: object) -> int | None:
    """Returns an integer of Python or NumPy. Returns None for any other value, even for a boolean."""
    # True is an int in Python, but surely a mistake
    if isinstance(number, bool) or not isinstance(number, SupportsIndex):
        return None
    try:
        return index(number)
    except TypeError:
        # an array of several values
        return None


def text(name: str, value: object) -> str:
    """Returns a string unchanged. Raises for any other value."""
    if isinstance(value, str):
        return value
    raise _wrong(name, "a text", value)


def unknown_argument(name: str, known: Iterable[str], *, of: str = "") -> ArgumentTypeError:
    """Returns the error for an unknown keyword argument. It suggests a similar name."""
    names = list(known)
    elsewhere = _ELSEWHERE.get(name.lower())
    near = [elsewhere] if elsewhere in names else get_close_matches(name, names, n=1, cutoff=0.6)
    hint = f"did you mean {near[0]}?" if near else f"expected {', '.join(names)}"
    return ArgumentTypeError(f"{of + ': ' if of else ''}unexpected keyword argument {name!r}: {hint}")


def check_fields(options: Any) -> None:
    """Converts the fields of a frozen dataclass to their types, for example integers of NumPy and timedeltas.

    A field of type `float` is a duration in seconds.
    """
    for field, kind in _kinds(options.__class__).items():
        value = getattr(options, field)
        # the usual case, without a conversion
        if value is None or value.__class__ is _PLAIN[kind]:
            continue
        object.__setattr__(options, field, _as_kind(kind, field, value))


_PLAIN = {"int": int, "float": float, "bool": bool, "str": str}


@cache
def _kinds(options: Any) -> Mapping[str, str]:
    """Returns the types of the fields to check: numbers, durations, booleans and strings, or None."""
    kinds = {field.name: str(field.type).removesuffix(" | None") for field in fields(options)}
    return {name: kind for name, kind in kinds.items() if kind in _PLAIN}


def _as_kind(kind: str, name: str, value: Any) -> Any:
    if kind == "int":
        return integer(name, value)
    if kind == "float":
        # the dataclass checks the range itself
        return _in_seconds(name, value)
    if kind == "bool":
        if _is_numpy(value, "b"):
            return bool(value)
        raise _wrong(name, "True or False", value)
    return text(name, value)


def _is_missing(value: object) -> bool:
    """Whether a value is NaN, NaT or NA. These values are not equal to themselves."""
    try:
        return bool(value != value)  # noqa: PLR0124
    except (TypeError, ArithmeticError):
        # NA has no truth value
        return True
    except ValueError:
        # an array compares item by item
        return False


def _is_numpy(value: object, kind: str) -> TypeGuard[NumpyScalar]:
    dtype = getattr(value, "dtype", None)
    # a scalar only: arrays have a shape
    return getattr(dtype, "kind", None) == kind and getattr(value, "shape", ()) == ()


def _in_seconds(name: str, duration: Duration) -> float:
    if isinstance(duration, float):
        return float(duration)
    if isinstance(duration, timedelta) and not _is_missing(duration):
        return duration.total_seconds()
    if _is_numpy(duration, "m"):
        return _seconds_of_numpy(duration)
    if isinstance(duration, bool) or not isinstance(duration, SupportsFloat | SupportsIndex):
        raise _wrong(name, "seconds or a timedelta", duration)
    try:
        return float(duration)
    except TypeError:
        # an array of several values
        raise _wrong(name, "seconds or a timedelta", duration) from None


def _seconds_of_numpy(duration: NumpyScalar) -> float:
    if _is_missing(duration):
        return math.nan
    return int(duration.astype("timedelta64[us]").astype("int64")) / 1_000_000


def _floor(number: object) -> int | None:
    """Returns a number without its fraction. Returns None if it is not a finite number."""
    if (integral := whole(number)) is not None or isinstance(number, bool):
        return integral
    if not isinstance(number, SupportsFloat) or _is_numpy(number, "m"):
        return None
    try:
        # not `float`, which would round a Decimal of nanoseconds
        return math.floor(number)
    except (TypeError, OverflowError):
        # an array of several values; infinite
        return None


def _wrong(name: str, expected: str, got: object) -> ArgumentTypeError:
    return ArgumentTypeError(f"{name}: expected {expected}, got {got!r} ({type(got).__name__})")


def suggests_names(function: F) -> F:
    """Makes a function or constructor suggest a similar name when it gets an unknown argument.

    Its signature lists the keys of the `TypedDict` of `**arguments: Unpack[...]`, for `help` and notebooks.
    """
    # for a class, the constructor is wrapped
    if inspect.isclass(function):
        setattr(function, "__init__", suggests_names(function.__init__))  # noqa: B010 - type checkers reject the assignment
        return function

    @wraps(function)
    def call(*positional: Any, **named: Any) -> Any:
        try:
            return function(*positional, **named)
        except TypeError:
            # only after a failure, so that a correct call costs nothing
            known = inspect.signature(call).parameters
            unknown = [name for name in named if name not in known]
            if not unknown or any(each.kind is each.VAR_KEYWORD for each in known.values()):
                raise
            of = function.__qualname__.removesuffix(".__init__")
            raise unknown_argument(unknown[0], [name for name in known if name != "self"], of=of) from None

    setattr(call, "__signature__", _signature_with_keys(function))  # noqa: B010 - of a function, checkers do not know it
    return cast("F", call)


class _Ellipsis:
    """The default of an optional argument. It is shown as `...`, as in stubs."""

    def __repr__(self) -> str:
        return "..."


_OMITTED = _Ellipsis()


def _signature_with_keys(function: Callable[..., Any]) -> inspect.Signature:
    signature = inspect.signature(function)
    last = [each for each in signature.parameters.values() if each.kind is each.VAR_KEYWORD]
    if not last or not str(last[0].annotation).startswith("Unpack["):
        return signature
    code = inspect.unwrap(function)
    (keys,) = get_args(eval(last[0].annotation, {"Unpack": Unpack, **code.__globals__}))  # noqa: S307 - an annotation of this package
    named = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=_OMITTED, annotation=getattr(key, "__forward_arg__", key)
        )
        for name, key in keys.__annotations__.items()
    ]
    return signature.replace(parameters=[*list(signature.parameters.values())[:-1], *named])
