"""Counts what the code base is made of: python -m tests.counts [DIRECTORY] [-o json]

Works on any checkout of the project, so that two commits can be compared:

    git worktree add /tmp/before REVISION && python -m tests.counts /tmp/before
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import re
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.architecture.rust_modules import circles, imports

ROOT = Path(__file__).parent.parent
#: Equal lines in a row that make a pair of repeated code.
RUN = 6
_DOCSTRING = re.compile(r'"""(?:.|\n)*?"""')
#: Bases that are no implementation that a class inherits.
INTERFACES = {"Protocol", "ABC", "NamedTuple", "TypedDict", "Enum", "IntEnum", "StrEnum", "IntFlag"}


@dataclass
class Sources:
    """The files of one language, or of one part of them.

    Attributes:
        files: How many.
        lines: Their lines.
        comments: Lines that are a comment and nothing else.
        docs: Lines of docstrings, or of documentation comments.
    """

    files: int = 0
    lines: int = 0
    comments: int = 0
    docs: int = 0

    def add(self, other: Sources) -> None:
        """Takes in others."""
        self.files += other.files
        self.lines += other.lines
        self.comments += other.comments
        self.docs += other.docs


@dataclass
class Counts:
    """All that is counted.

    Attributes:
        python: By package below `python/rmqfast`, and `all`.
        rust: By crate, without tests, and `all`.
        repeated: Pairs of places that share lines, within a language.
        deep: Classes with more than two own classes above them, and how many.
        circles: Modules of Rust crates that import each other in a circle.
        options: Of some read options, how many source files name them.
    """

    python: dict[str, Sources] = field(default_factory=dict)
    rust: dict[str, Sources] = field(default_factory=dict)
    repeated: dict[str, int] = field(default_factory=dict)
    deep: dict[str, int] = field(default_factory=dict)
    circles: list[list[str]] = field(default_factory=list)
    options: dict[str, int] = field(default_factory=dict)


def count(root: Path) -> Counts:
    """Counts a checkout.

    Args:
        root: Its directory.
    """
    python = {path: path.read_text() for path in sorted((root / "python").rglob("*.py"))}
    rust = {path: path.read_text() for path in rust_files(root)}
    counts = Counts()
    counts.python = by_part(python, root / "python/rmqfast", python_source)
    counts.rust = by_part(rust, root / "rust", rust_source)
    counts.repeated = {"python": repeated(python), "rust": repeated(rust)}
    counts.deep = deep_classes(python)
    counts.circles = rust_circles(root)
    java = {path: path.read_text() for path in sorted((root / "jvm").rglob("*.java"))}
    counts.options = {name: naming(name, {**python, **rust, **java}) for name in ("verify_crc", "keys_prefix")}
    return counts


def rust_files(root: Path) -> list[Path]:
    """The sources of all crates, without their tests."""
    files = (root / "rust").glob("*/src/**/*.rs")
    return sorted(
        path for path in files if "target" not in path.parts and path.stem != "tests" and "tests" not in path.parts
    )


def by_part(texts: dict[Path, str], top: Path, of: Any) -> dict[str, Sources]:
    """What `of` counts of each file, summed up by the part that it is of."""
    parts: dict[str, Sources] = defaultdict(Sources)
    for path, text in texts.items():
        place = path.relative_to(top).parts if path.is_relative_to(top) else path.parts
        source = of(text)
        for name in ("all", place[0] if len(place) > 1 else "."):
            parts[name].add(source)
    return dict(parts)


def python_source(text: str) -> Sources:
    """One file of Python."""
    comments = sum(
        token.type == tokenize.COMMENT and token.line.lstrip().startswith("#")
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
    )
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    documented = [node for node in ast.walk(ast.parse(text)) if isinstance(node, kinds) and ast.get_docstring(node)]
    docs = sum((node.body[0].end_lineno or 0) - node.body[0].lineno + 1 for node in documented)
    return Sources(1, text.count("\n"), comments, docs)


def rust_source(text: str) -> Sources:
    """One file of Rust, up to the tests at its end."""
    lines = text.partition("\n#[cfg(test)]\nmod tests {")[0].splitlines()
    stripped = [line.lstrip() for line in lines]
    docs = sum(line.startswith(("///", "//!")) for line in stripped)
    return Sources(1, len(lines), sum(line.startswith("//") for line in stripped) - docs, docs)


def repeated(texts: dict[Path, str]) -> int:
    """Pairs of places that share `RUN` lines or more; lines of punctuation, imports and documentation do not count."""
    places: dict[tuple[str, ...], list[tuple[Path, int]]] = defaultdict(list)
    for path, text in texts.items():
        lines = [line for line in map(str.strip, _DOCSTRING.sub("", text).splitlines()) if is_code(line)]
        for index in range(len(lines) - RUN + 1):
            places[tuple(lines[index : index + RUN])].append((path, index))
    pairs: set[tuple[Path, int, Path, int]] = set()
    for found in places.values():
        for first, (one, at) in enumerate(found):
            pairs.update((one, at, other, there) for other, there in found[first + 1 :])
    # a run that is longer than `RUN` is one pair, which its first lines stand for
    return sum((one, at - 1, other, there - 1) not in pairs for one, at, other, there in pairs)


def is_code(line: str) -> bool:
    """Whether a line says something that could be said once."""
    is_prose = line.startswith(("#", "//", '"""', "import ", "from ", "use ", "pub use ", "@", ">>>"))
    return bool(re.search(r"[A-Za-z]{2}", line)) and not is_prose


def deep_classes(texts: dict[Path, str]) -> dict[str, int]:
    """Classes that inherit more than two deep from classes of our own; exceptions and interfaces do not count."""
    bases: dict[str, list[str]] = {}
    for path, text in texts.items():
        module = ".".join(path.with_suffix("").parts[path.parts.index("rmqfast") + 1 :])
        tree = ast.parse(text)
        names = {node.name: f"{module}.{node.name}" for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("rmqfast."):
                place = node.module.removeprefix("rmqfast.")
                names |= {alias.asname or alias.name: f"{place}.{alias.name}" for alias in node.names}
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                found = [name for base in node.bases if (name := base_name(base))]
                bases[f"{module}.{node.name}"] = [names.get(name, name) for name in found]
    by_name = {name.rpartition(".")[2]: name for name in bases}

    def own(name: str) -> str | None:
        """The class of a name; one that a package exports is found by its last part."""
        return name if name in bases else by_name.get(name.rpartition(".")[2]) if "." in name else None

    def above(name: str) -> list[str]:
        return [base for base in map(own, bases[name]) if base not in {None, name} and base is not None]

    def is_interface(name: str) -> bool:
        return bool(INTERFACES.intersection(bases[name])) or any(map(is_interface, above(name)))

    def depth(name: str) -> int:
        return 1 + max(map(depth, above(name)), default=0)

    counted = [name for name in bases if not name.endswith(("Error", "Warning")) and not is_interface(name)]
    deep = {name: depth(name) for name in counted}
    return {name: levels for name, levels in sorted(deep.items()) if levels > 2}


def base_name(base: ast.expr) -> str | None:
    """The name of a base class."""
    if isinstance(base, ast.Subscript):
        return base_name(base.value)
    return base.attr if isinstance(base, ast.Attribute) else base.id if isinstance(base, ast.Name) else None


def naming(option: str, texts: dict[Path, str]) -> int:
    """How many files name an option, in Python's spelling or Spark's."""
    first, *others = option.split("_")
    words = re.compile(rf"\b({option}|{first}{''.join(word.capitalize() for word in others)})\b")
    return sum(bool(words.search(text)) for text in texts.values())


def rust_circles(root: Path) -> list[list[str]]:
    """Modules of each crate that import each other in a circle."""
    return [
        sorted("::".join((source.parent.name, *module)) for module in circle)
        for source in sorted((root / "rust").glob("*/src"))
        for circle in circles(imports(source))
    ]


def table(counts: Counts) -> Iterator[str]:
    """The lines of a person's table."""
    for language, parts in (("Python", counts.python), ("Rust", counts.rust)):
        yield f"{language:<22} {'files':>6} {'lines':>7} {'comments':>9} {'docs':>6}"
        for name, part in sorted(parts.items(), key=lambda item: -item[1].lines):
            comments, docs = (100 * lines / max(part.lines, 1) for lines in (part.comments, part.docs))
            yield f"  {name:<20} {part.files:>6} {part.lines:>7} {comments:>7.1f} % {docs:>4.0f} %"
    yield f"pairs of repeated code  {counts.repeated}"
    yield f"more than 2 deep        {counts.deep or 'none'}"
    yield f"circles of Rust         {len(counts.circles)}"
    yield from (f"  {' '.join(circle)}" for circle in counts.circles)
    yield f"files that name         {counts.options}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", nargs="?", type=Path, default=ROOT)
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    options = parser.parse_args()
    counts = count(options.directory)
    sys.stdout.write(json.dumps(asdict(counts), indent=2) if options.output == "json" else "\n".join(table(counts)))
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
