"""Texts of options as values; what is none says what it may be."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rmqfast.errors import ArgumentError
from rmqfast.store import milliseconds, time_range

__all__ = [
    "body_bytes_of",
    "check_times",
    "flag_of",
    "io_of",
    "list_of",
    "names_a_cluster",
    "number_of",
    "one_topic_of",
    "option_name",
    "partitions_of",
    "queue_ids_of",
    "text_of",
    "time_of",
    "topic_of",
    "values_of",
]


def option_name(given: str, known: Iterable[str], refused: Mapping[str, str]) -> str:
    """The name of an option as it is documented.

    Args:
        given: As it was given, in any case.
        known: The options that there are.
        refused: Others that are known, but not here, with the reason.

    Raises:
        ArgumentError: There is no such option; says which are like it.

    Example:
        >>> option_name("STOREPATH", ["storePath"], {})
        'storePath'
    """
    names = {name.lower(): name for name in known}
    name = names.get(given.lower())
    if name is not None:
        return name
    for other, reason in refused.items():
        if other.lower() == given.lower():
            raise ArgumentError(f"option {other}: {reason}")
    near = [names[n] for n in difflib.get_close_matches(given.lower(), names, n=3)]
    hint = f"did you mean {', '.join(near)}? " if near else ""
    raise ArgumentError(f"unknown option {given}; {hint}the options are {', '.join(names.values())}")


def values_of(
    options: Mapping[str, str],
    parsers: Mapping[str, tuple[str, Callable[[str, str], Any]]],
    refused: Mapping[str, str],
) -> dict[str, Any]:
    """The values of options by attribute; names may be in any case.

    Args:
        options: As Spark gives them to a data source.
        parsers: The attribute of each option that there is, and what makes its text a value.
        refused: As in `option_name`.

    Raises:
        ArgumentError: An unknown name, a text that is no such value, an option and its alias.

    Example:
        >>> values_of({"QUEUEIDS": "0,1"}, {"queueIds": ("queue_ids", queue_ids_of)}, {})
        {'queue_ids': (0, 1)}
    """
    values: dict[str, Any] = {}
    for given, text in options.items():
        name = option_name(given, parsers, refused)
        attribute, parse = parsers[name]
        if attribute in values:
            raise ArgumentError(f"option {name}: given twice, the other time as its alias")
        values[attribute] = parse(name, text)
    return values


def check_times(values: Mapping[str, Any]) -> None:
    """Refuses times of which the last is before the first.

    Args:
        values: What `values_of` gave.

    Raises:
        ArgumentError: `endingTimestamp` is before `startingTimestamp`.

    Example:
        >>> check_times({"starting_timestamp": 1, "ending_timestamp": 1})
    """
    names = ("option startingTimestamp", "option endingTimestamp")
    time_range(values.get("starting_timestamp"), values.get("ending_timestamp"), names=names)


def names_a_cluster(options: Mapping[str, str]) -> bool:
    """Whether options are those of a live cluster, not of a store directory.

    Example:
        >>> names_a_cluster({"NAMESERVER": "10.0.0.1:9876"}), names_a_cluster({"path": "/data/store"})
        (True, False)
    """
    names = {name.lower() for name in options}
    return "nameserver" in names and not names & {"storepath", "path"}


def text_of(name: str, text: str) -> str:
    """A text that is not blank."""
    if not text.strip():
        raise ArgumentError(f"option {name}: expected a text, got {text!r}")
    return text


def topic_of(name: str, text: str) -> str:
    """The name of one topic."""
    if "," in text:
        raise ArgumentError(f"option {name}: expected one topic, or no such option for all of them, got {text!r}")
    return text_of(name, text.strip())


def one_topic_of(name: str, text: str) -> str:
    """The name of one topic, where all of them is no choice."""
    if "," in text:
        raise ArgumentError(f"option {name}: expected one topic, got {text!r}; read each alone, and take the union")
    return text_of(name, text.strip())


def flag_of(name: str, text: str) -> bool:
    """True or false, in any case."""
    values = {"true": True, "false": False}
    if text.strip().lower() not in values:
        raise ArgumentError(f"option {name}: expected true or false, got {text!r}")
    return values[text.strip().lower()]


def number_of(name: str, text: str, least: int = 1, most: int = 1 << 62) -> int:
    """A number between two others."""
    try:
        value = int(text)
    except ValueError:
        value = least - 1
    if not least <= value <= most:
        raise ArgumentError(f"option {name}: expected a number from {least} to {most}, got {text!r}")
    return value


def body_bytes_of(name: str, text: str) -> int:
    """Bytes of a body."""
    return number_of(name, text, most=1 << 30)


def partitions_of(name: str, text: str) -> int:
    """A number of partitions."""
    return number_of(name, text, most=1_000_000)


def time_of(name: str, text: str) -> int | None:
    """Milliseconds since 1970, of these or of ISO 8601."""
    try:
        return milliseconds(text.strip())
    except ArgumentError as error:
        raise ArgumentError(f"option {name}: {error}") from None


def list_of(name: str, text: str) -> tuple[str, ...]:
    """Words between commas, or a JSON array for those that hold commas."""
    if not text.lstrip().startswith("["):
        words: Any = [word.strip() for word in text.split(",")]
    else:
        try:
            words = json.loads(text)
        except json.JSONDecodeError:
            raise ArgumentError(f"option {name}: expected a JSON array, got {text!r}") from None
    if not isinstance(words, list) or not words or not all(isinstance(word, str) and word for word in words):
        raise ArgumentError(f"option {name}: expected words between commas, or a JSON array of texts, got {text!r}")
    return tuple(words)


def queue_ids_of(name: str, text: str) -> tuple[int, ...]:
    """Numbers of queues, between commas."""
    return tuple(number_of(name, word, least=0, most=(1 << 31) - 1) for word in text.strip(" []").split(","))


def io_of(name: str, text: str) -> str:
    """How files are read."""
    if text not in {"pread", "mmap"}:
        raise ArgumentError(f"option {name}: expected pread or mmap, got {text!r}")
    return text
