"""The wheel alone, without its extras and without this source tree, reads a store."""

from __future__ import annotations

import json
import subprocess
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.long
ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden" / "basic-4.9.4.tar.gz"

# Without pyarrow there is nobody to take the Arrow stream: this reads it through the C stream interface itself.
READ = """
import ctypes, json, pathlib, sys
import rmqfast

class Array(ctypes.Structure):
    pass
Release = ctypes.CFUNCTYPE(None, ctypes.POINTER(Array))
Array._fields_ = [("length", ctypes.c_int64), ("numbers", ctypes.c_int64 * 4), ("pointers", ctypes.c_void_p * 3),
                  ("release", Release), ("private", ctypes.c_void_p)]
class Stream(ctypes.Structure):
    _fields_ = [("get_schema", ctypes.c_void_p),
                ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(Array))),
                ("get_last_error", ctypes.c_void_p), ("release", ctypes.c_void_p), ("private", ctypes.c_void_p)]

pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]

def rows(scan):
    capsule = scan.__arrow_c_stream__()
    address = pointer_of(capsule, b"arrow_array_stream")
    stream, array, total = Stream.from_address(address), Array(), 0
    while True:
        assert stream.get_next(address, ctypes.byref(array)) == 0
        if not array.release:
            return total
        total += array.length
        array.release(array)

store = rmqfast.open_store(sys.argv[1])
topics = store.topics()
print(json.dumps({
    "module": rmqfast.__file__,
    "rows": {topic: rows(store.scan(topic)) for topic in topics},
    "expected": {topic: sum(high - low for low, high in queues.values()) for topic, queues in topics.items()},
}))
store.close()
"""


@pytest.fixture(scope="module")
def wheel() -> Path:
    wheels = list((ROOT / "dist").glob("rmqfast-*.whl"))
    assert len(wheels) == 1, f"one wheel expected in dist/, found {wheels}: make wheel"
    return wheels[0]


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment that has this wheel and nothing else."""
    home = tmp_path_factory.mktemp("venv")
    venv.create(home, with_pip=True)
    python = home / "bin" / "python"
    command: list[str | Path] = [python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", wheel]
    subprocess.run(command, check=True)
    return python


def test_an_empty_environment_reads_a_store_of_a_real_broker(python: Path, tmp_path: Path) -> None:
    with tarfile.open(GOLDEN) as archive:
        archive.extractall(tmp_path, filter="data")
    command: list[str | Path] = [python, "-I", "-c", READ, tmp_path / "store"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert Path(found["module"]).is_relative_to(python.parents[1])
    assert sum(found["rows"].values()) > 0
    assert found["rows"] == found["expected"]


def test_the_command_line_without_its_extra_says_the_one_command_to_type(python: Path, tmp_path: Path) -> None:
    command: list[str | Path] = [python.with_name("rmqfast"), "store", "info", tmp_path]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode != 0
    assert (result.stdout + result.stderr).count("\n") == 1
    assert "pip install 'rmqfast[cli]'" in result.stdout + result.stderr


def test_the_command_line_without_its_extra_has_what_serves(python: Path, tmp_path: Path) -> None:
    for words, expected in ((["--version"], "rmqfast "), (["server", "-p"], "\nlistenPort=")):
        command: list[str | Path] = [python.with_name("rmqfast"), *words]
        result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        assert expected in result.stdout


def test_the_wheel_is_one_for_every_python_and_carries_its_types(wheel: Path) -> None:
    assert "-cp311-abi3-" in wheel.name
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        metadata = archive.read(next(n for n in names if n.endswith(".dist-info/METADATA"))).decode()
        with zipfile.ZipFile(archive.open("rmqfast/spark/jars/rmqfast-columnar.jar")) as jar:
            inside = set(jar.namelist())
    bills = {name.rpartition("/")[2] for name in names if "/sboms/" in name}
    assert bills == {"rmqfast-python.cdx.json", "rmqfast-columnar.cdx.json"}
    notices = {"LICENSE", "THIRD-PARTY-NOTICES.txt"}
    assert {name.rpartition("/")[2] for name in names if ".dist-info/licenses/" in name} == notices
    assert {f"META-INF/{notice}" for notice in notices} <= inside
    libraries = [name for name in inside if name.endswith("/librmqfast_jvm.so.xz")]
    assert [name.startswith("org/rmqfast/spark/linux-") for name in libraries] == [True]
    assert {"rmqfast/py.typed", "rmqfast/_native/_rmqfast.pyi", "rmqfast/_native/_rmqfast.abi3.so"} <= names
    assert not [n for n in names if n.endswith((".pyc", ".rs"))]
    assert not [line for line in metadata.splitlines() if line.startswith("Requires-Dist") and "extra ==" not in line]
