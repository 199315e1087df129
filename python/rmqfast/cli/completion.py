"""Completes names of topics and groups in a shell, from the command's store directory or its cluster."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, MutableMapping
from contextlib import redirect_stderr, suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rmqfast.admin import Admin

#: Seconds to wait for a connection and for an answer; short, since a person waits at the prompt.
PATIENCE = 1.0
#: Characters at which bash splits words besides blanks, and the separator in its variable of words.
SPLITTERS, BETWEEN = (":", "="), "\n"


def complete_topic(context: typer.Context, incomplete: str) -> list[str]:
    """Returns the topics that begin with `incomplete`. If it is empty, leaves out names that begin with `%`."""
    of_store = any(parameter.name == "directory" for parameter in context.command.params)
    names = _topics_of_store(context) if of_store else _answer(context, _topics)
    return [name for name in names if name.startswith(incomplete) and (incomplete or not name.startswith("%"))]


def complete_group(context: typer.Context, incomplete: str) -> list[str]:
    """Returns consumer groups that begin with `incomplete`."""
    return [name for name in _answer(context, _groups) if name.startswith(incomplete)]


def join_split_words(environment: MutableMapping[str, str]) -> None:
    r"""Joins words that bash has split. It makes three words of `127.0.0.1:9876` and of `--topic=orders`.

    Example:
        >>> words = {"COMP_WORDS": "rmqfast\n-n\nhost\n:\n9876\n", "COMP_CWORD": "5"}
        >>> join_split_words(words)
        >>> words
        {'COMP_WORDS': 'rmqfast\n-n\nhost:9876\n', 'COMP_CWORD': '3'}
    """
    words = environment.get("COMP_WORDS", "").split(BETWEEN)
    if len(words) < 2 or not environment.get("COMP_CWORD", "").isdecimal():
        return
    current = int(environment["COMP_CWORD"])
    joined, position = [words[0]], 0
    for index, (before, word) in enumerate(pairwise(words), 1):
        # Otherwise it is a word of its own, after a blank.
        if word and (word in SPLITTERS or before in SPLITTERS):
            joined[-1] += word
        else:
            joined.append(word)
        if index == current:
            position = len(joined) - 1
    environment.update(COMP_WORDS=BETWEEN.join(joined), COMP_CWORD=str(position))


def _answer(context: typer.Context, ask: Callable[[Admin], Iterable[str]]) -> list[str]:
    from rmqfast.admin import Admin
    from rmqfast.cli.cluster_access import OPTIONS, Access, AccessOptions

    # At the prompt, there is no place to show an error.
    with redirect_stderr(io.StringIO()), suppress(Exception):
        options = AccessOptions(**{name: context.params.get(name) for name in OPTIONS})
        config = replace(Access.of(context, options).config(), connect_timeout=PATIENCE, request_timeout=PATIENCE)
        with Admin(config=config, timeout=PATIENCE) as admin:
            return list(ask(admin))
    return []


def _topics(admin: Admin) -> list[str]:
    return admin.topics.all()


def _groups(admin: Admin) -> list[str]:
    return [group.group for group in admin.snapshot(tables=("topics", "groups")).groups]


def _topics_of_store(context: typer.Context) -> list[str]:
    from rmqfast.store.message_stores import open_one_or_several

    # If the line ends with an option without value, the arguments are still unparsed.
    directory = context.params.get("directory") or next(iter(context.args), None)
    directories = (directory, *(context.params.get("commit_log_dir") or ()))
    with redirect_stderr(io.StringIO()), suppress(Exception):
        # During completion, the shell has not expanded `~` yet.
        path, *log_directories = (Path(str(each)).expanduser() for each in directories)
        with open_one_or_several(path, commit_log_dirs=log_directories) as store:
            return sorted(store.topics())
    return []
