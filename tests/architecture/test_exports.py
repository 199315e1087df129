"""`import rmqfast`: its names, and the absence of side effects."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys

import rmqfast

LOOK = """
import json, os, sys, threading
before = set(sys.modules)
import rmqfast
loaded = {name.partition(".")[0] for name in set(sys.modules) - before}
print(json.dumps({
    "foreign": sorted(loaded - sys.stdlib_module_names - {"rmqfast"}),
    "threads": threading.active_count(),
    "tasks": len(os.listdir("/proc/self/task")),
}))
"""


def test_all_is_exactly_what_is_public() -> None:
    listed = {name for name in rmqfast.__all__ if getattr(rmqfast, name) is not None}
    own = {n for n, v in vars(rmqfast).items() if str(getattr(v, "__module__", "")).startswith("rmqfast")}
    assert {name for name in own if not name.startswith("_")} <= listed
    assert len(rmqfast.__all__) == len(listed)


def test_public_names_are_listed_by_dir() -> None:
    assert set(rmqfast.__all__) <= set(dir(rmqfast))


def test_importing_loads_no_third_party_package_and_starts_no_thread() -> None:
    output = subprocess.run([sys.executable, "-c", LOOK], capture_output=True, text=True, check=True).stdout
    assert json.loads(output) == {"foreign": [], "threads": 1, "tasks": 1}


def test_what_is_not_used_is_not_imported() -> None:
    look = "import sys, rmqfast; print(sorted(n for n in sys.modules if n.startswith('rmqfast')))"
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    own = ["rmqfast", "rmqfast._native", "rmqfast._native._rmqfast", "rmqfast.errors", "rmqfast.version"]
    assert done.stdout == f"{own}\n"


def test_packages_are_attributes_without_an_import_of_their_own() -> None:
    same = "rmqfast.store.open_store is rmqfast.open_store, rmqfast.message.Message is rmqfast.Message"
    look = f"import rmqfast; print({same})"
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert done.stdout == "True True\n"


def test_what_users_import_has_docstrings() -> None:
    classes = {name: value for name in rmqfast.__all__ if isinstance(value := getattr(rmqfast, name), type)}
    members = {
        f"{name}.{member}": getattr(value, member)
        for name, value in classes.items()
        for member, own in vars(value).items()
        if not member.startswith("_") and (callable(own) or isinstance(own, property))
        if not value.__module__.startswith("rmqfast._native")  # the stub documents these
    }
    documented = classes | {name: getattr(rmqfast, name) for name in rmqfast.__all__ if name not in classes} | members
    callables = {name: value for name, value in documented.items() if callable(value) or isinstance(value, property)}
    assert [name for name, value in callables.items() if not inspect.getdoc(value)] == []
