"""gevent, a clock that a test stops, and a handler of `logging` that uses a client do no harm."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "python" / "rmqfast"
#: What no client and no server is made of, and the two modules that the others use.
_ELSEWHERE = {"spark", "store", "cli", "threads.py", "logs.py", "system.py"}
_OF_THREADS = {"Lock", "RLock", "Condition", "Event", "Semaphore", "BoundedSemaphore", "Thread", "Timer", "get_ident"}
_LOCKS = {"new_lock", "new_rlock", "new_condition"}
_LOG = {"_log", "_LOG"}


def modules() -> list[Path]:
    return [path for path in PACKAGE.rglob("*.py") if path.relative_to(PACKAGE).parts[0] not in _ELSEWHERE]


def own_names(tree: ast.AST) -> Iterator[str]:
    """Uses of what `threads`, `system` and `logs` have in place of the standard library."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            names = {name.name for name in node.names}
            if node.module == "threading" or (node.module == "time" and names & {"monotonic", "sleep"}):
                yield f"{node.lineno}: from {node.module} import {', '.join(sorted(names))}"
            if node.module in {"queue", "_thread"}:
                yield f"{node.lineno}: from {node.module}"
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            of, name = node.value.id, node.attr
            if (
                (of == "threading" and name in _OF_THREADS)
                or (of == "time" and name in {"monotonic", "sleep"})
                or (of == "queue" and name in {"Queue", "SimpleQueue"})
                or (of == "logging" and name == "getLogger")
            ):
                yield f"{node.lineno}: {of}.{name}"


def lines_under_locks(tree: ast.Module) -> list[int]:
    """The numbers of `with` statements over a plain lock whose block logs, itself or by functions of the module."""
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    locks = {
        target.attr if isinstance(target, ast.Attribute) else target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for targets, value in _pairs(node)
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in _LOCKS
        for target in targets
        if isinstance(target, ast.Attribute | ast.Name)
    }
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.With)
        and any(isinstance(i.context_expr, ast.Attribute) and i.context_expr.attr in locks for i in node.items)
        and any(_logs(statement, functions, set()) for statement in node.body)
    ]


def _pairs(node: ast.Assign) -> Iterator[tuple[list[ast.expr], ast.expr]]:
    """Targets and values; those of `a, b = x, y` one by one."""
    target = node.targets[0]
    if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
        yield from (([one], value) for one, value in zip(target.elts, node.value.elts, strict=True))
    else:
        yield node.targets, node.value


def _logs(node: ast.AST, functions: dict[str, ast.FunctionDef], seen: set[str]) -> bool:
    for call in ast.walk(node):
        if not isinstance(call, ast.Call):
            continue
        function = call.func
        if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
            if function.value.id in _LOG:
                return True
            name = function.attr if function.value.id == "self" else ""
        else:
            name = function.id if isinstance(function, ast.Name) else ""
        if name in functions and name not in seen:
            seen.add(name)
            if any(_logs(statement, functions, seen) for statement in functions[name].body):
                return True
    return False


def test_threads_locks_clocks_and_loggers_are_those_of_the_package() -> None:
    found = {
        f"{path.relative_to(PACKAGE)}:{place}" for path in modules() for place in own_names(ast.parse(path.read_text()))
    }
    # of the package as a whole: nobody logs by it
    assert {place.partition(":")[0] for place in found} <= {"__init__.py"}, found


def test_nothing_is_logged_under_a_plain_lock() -> None:
    found = {path.relative_to(PACKAGE).as_posix(): lines_under_locks(ast.parse(path.read_text())) for path in modules()}
    assert {name: numbers for name, numbers in found.items() if numbers} == {}


@pytest.mark.parametrize(
    "body",
    [
        "_log.info('x')",
        "self.work()",
        "if True:\n                work()",
    ],
)
def test_a_line_under_a_lock_is_found(body: str) -> None:
    code = f"""
class A:
    def __init__(self):
        self.a, self.lock = 1, new_lock()
    def begin(self):
        with self.lock:
            {body}
    def work(self):
        _log.info('x')
def work():
    _LOG.warning('x')
"""
    assert lines_under_locks(ast.parse(code)) == [6]
    assert lines_under_locks(ast.parse(code.replace("new_lock", "QuietLock"))) == []


@pytest.mark.parametrize(
    "code",
    [
        "threading.Thread(target=f)",
        "from time import monotonic",
        "time.sleep(1)",
        "logging.getLogger('x')",
        "queue.Queue()",
    ],
)
def test_a_use_of_the_standard_library_is_found(code: str) -> None:
    assert list(own_names(ast.parse(code)))
