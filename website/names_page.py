"""The page of the names that `import rmqfast` gives."""

from __future__ import annotations

import importlib
import inspect
import re
from functools import cache
from pathlib import Path

import rmqfast

ROOT = Path(__file__).parents[1]
#: How a page of the reference shows a module.
SHOWN = re.compile(r"^::: ([\w.]+)$", re.MULTILINE)
#: Where it shows some names of it only.
_MEMBER = re.compile(r"^        - (\w+)$", re.MULTILINE)

_HEAD = """# rmqfast

Names in `rmqfast`. Importing it loads no third-party package and starts no thread. Each name links to its description.

| name | from | description |
| --- | --- | --- |
"""


def all_names() -> str:
    """A table of the names, each with the page that describes it."""
    rows = "".join(_row(name) for name in sorted(rmqfast.__all__, key=str.lower) if name != "__version__")
    return _HEAD + rows


def _row(name: str) -> str:
    value = getattr(rmqfast, name)
    line = (inspect.getdoc(value) or "").partition("\n")[0].replace("|", "\\|")
    if inspect.ismodule(value):
        page = next(page for module, page, _ in _shown() if module == value.__name__)
        return f"| [`{name}`]({page}) | a module | {line} |\n"
    module, page = next((module, page) for module, page, names in _shown() if name in names)
    return f"| [`{name}`]({page}#{module}.{name}) | `{module}` | {line} |\n"


@cache
def _shown() -> list[tuple[str, str, list[str]]]:
    """Each module that a page of the reference shows, the page, and the names that it has there."""
    shown = []
    for page in sorted((ROOT / "docs/reference").glob("*.md")):
        text = page.read_text(encoding="utf-8")
        chosen = _MEMBER.findall(text)
        shown += [(module, page.name, chosen or public_names(module)) for module in SHOWN.findall(text)]
    return shown


def public_names(module: str) -> list[str]:
    """The public names of a module."""
    loaded = importlib.import_module(module)
    own = [name for name, value in vars(loaded).items() if getattr(value, "__module__", "") == module]
    return getattr(loaded, "__all__", None) or [name for name in own if not name.startswith("_")]
