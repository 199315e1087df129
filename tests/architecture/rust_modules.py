"""Reads which modules of a Rust crate import which, and finds the circles among them.

A module is a file. It imports another where a `use` or a path in its code leads there: from `crate`, `self`, `super`
or a child. `mod child;` is no import, and what stands under `#[cfg(test)]` does not count. A name that a `mod.rs`
re-exports is imported from that `mod.rs`: whoever asks a parent for what it takes from a child depends on both.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]

#: The names from the crate's root to a module; the root itself has none.
Module = tuple[str, ...]
Imports = dict[Module, set[Module]]

# Comments, texts, characters: no import stands in them, but what looks like one may. A lifetime is no character.
_QUIET = re.compile(
    r"""//[^\n]*|/\*.*?\*/|\bb?r(\#*)".*?"\1|b?"(?:\\.|[^"\\])*"|b?'(?:\\u\{\w+\}|\\x\w\w|\\.|[^'\\])'""", re.DOTALL
)
_TEST = re.compile(r"#\[cfg\(test\)\]\s*")
_TEST_MODULE = re.compile(_TEST.pattern + r"(?:pub )?mod (\w+);")
_USE = re.compile(r"\buse\s+([^;]+);")
_PATH = re.compile(r"(?<![\w:$])\w+(?:::\w+)+")


def crates() -> dict[str, Path]:
    """The crates below `rust/`, by name, each with the directory of its sources."""
    return {path.parent.name: path for path in sorted((ROOT / "rust").glob("*/src"))}


def imports(source: Path) -> Imports:
    """The modules of a crate, each with those of the crate that it imports."""
    code = {
        _module(file.relative_to(source)): _QUIET.sub('""', file.read_text(encoding="utf-8"))
        for file in sorted(source.rglob("*.rs"))
    }
    tests = [(*module, child) for module, text in code.items() for child in _TEST_MODULE.findall(text)]
    modules = [module for module in code if not any(module[: len(test)] == test for test in tests)]
    return {module: set(_imported(module, _without_tests(code[module]), set(modules))) for module in modules}


def circles(graph: Imports) -> list[set[Module]]:
    """Sets of modules of which each imports, by way of others, all of the set; the largest first."""
    reached = {module: _reached(module, graph) for module in graph}
    found: list[set[Module]] = []
    for module in sorted(graph):
        circle = {other for other in reached[module] if module in reached[other]}
        if circle and circle not in found:
            found.append(circle)
    return sorted(found, key=len, reverse=True)


def count() -> int:
    return sum(len(circles(imports(source))) for source in crates().values())


def _module(file: Path) -> Module:
    parts = file.with_suffix("").parts
    return parts[:-1] if parts[-1] in {"mod", "lib", "main"} else parts


def _without_tests(code: str) -> str:
    """The code without the items that only tests have."""
    while test := _TEST.search(code):
        code = code[: test.start()] + code[_item_end(code, test.end()) :]
    return code


def _item_end(code: str, start: int) -> int:
    depth = 0
    for at in range(start, len(code)):
        depth += (code[at] == "{") - (code[at] == "}")
        if depth == 0 and code[at] in ";}":
            return at + 1
    return len(code)


def _imported(module: Module, code: str, modules: set[Module]) -> Iterator[Module]:
    """The modules that a module's code leads to; a path into a module leads to it, whatever it names there."""
    trees = (path for use in _USE.findall(code) for path in _paths(use))
    inline = (path.split("::") for path in _PATH.findall(_USE.sub("", code)))
    for path in [*trees, *inline]:
        target = _absolute(module, path, modules)
        while target is not None and target not in modules:
            target = target[:-1] or (() if () in modules else None)
        if target is not None and target != module:
            yield target


def _paths(tree: str) -> Iterator[list[str]]:
    """The paths of what stands between `use` and `;`: `a::{b, c::d}` has two."""
    head, brace, rest = tree.partition("{")
    start = [name.strip() for name in re.sub(r"\s+as\s+\w+", "", head).split("::") if name.strip()]
    if not brace:
        yield start
        return
    for part in _parts(rest[: rest.rindex("}")]):
        for path in _paths(part):
            yield [*start, *path]


def _parts(text: str) -> Iterable[str]:
    depth, parts = 0, [""]
    for letter in text:
        depth += (letter == "{") - (letter == "}")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return (part for part in parts if part.strip())


def _absolute(module: Module, path: list[str], modules: set[Module]) -> Module | None:
    """A path from the crate's root; `None` if it leaves the crate."""
    start, *rest = [name for name in path if name != "self"] if path[0] != "self" else path
    match start:
        case "crate":
            return tuple(rest)
        case "self":
            return (*module, *rest)
        case "super":
            above = module[:-1]
            while rest[:1] == ["super"]:
                above, rest = above[:-1], rest[1:]
            return (*above, *rest)
        case _:
            return (*module, *path) if (*module, start) in modules else None


def _reached(module: Module, graph: Imports) -> set[Module]:
    reached: set[Module] = set()
    ahead = list(graph[module])
    while ahead:
        other = ahead.pop()
        if other not in reached:
            reached.add(other)
            ahead.extend(graph[other])
    return reached
