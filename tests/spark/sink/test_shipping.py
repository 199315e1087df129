"""Executors that have never heard of this package get it with the job, in the ways that `docs/spark-sink.md` shows."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import rmqfast
from tests.spark.cluster import Cluster

from .scene import Scene

pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.soak, pytest.mark.timeout(900)]

ROWS = 20_000
ROOT = Path(__file__).parents[3]
PACKAGE = Path(rmqfast.__file__).parent
# what Spark itself wants of an executor's Python for Arrow
NEEDED = ("pyarrow", "numpy", "pandas", "python-dateutil", "pytz", "tzdata", "six")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A master and two workers whose environment does not lead to this package."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PYTHONPATH", raising=False)
        with Cluster(tmp_path_factory.mktemp("cluster")) as running:
            yield running


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with what Spark needs, as administrators set it up."""
    path = tmp_path_factory.mktemp("venvs") / "bare"
    venv.create(path)
    _install(path, NEEDED)
    asked = subprocess.run([_python(path), "-c", "import rmqfast"], capture_output=True, check=False, cwd="/")
    assert b"ModuleNotFoundError" in asked.stderr
    return path


def test_a_wheel_travels_as_an_archive_that_executors_unpack(
    cluster: Cluster, bare: Path, own_scene: Scene, tmp_path: Path
) -> None:
    wheel = tmp_path / "rmqfast.zip"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for file in PACKAGE.rglob("*"):
            if "__pycache__" not in file.parts:
                archive.write(file, file.relative_to(PACKAGE.parent))
    settings = {"spark.archives": f"{wheel}#rmqfast-wheel", "spark.executorEnv.PYTHONPATH": "rmqfast-wheel"}
    answer = run(cluster, own_scene, settings, _python(bare))
    assert len(answer["places"]) == 2
    for row in answer["places"]:
        assert row["place"] == f"{row['directory']}/rmqfast-wheel/rmqfast/__init__.py"
        assert row["python"] == _python(bare)


def test_an_environment_travels_as_an_archive_and_brings_its_python(
    cluster: Cluster, own_scene: Scene, tmp_path: Path
) -> None:
    path = tmp_path / "environment"
    venv.create(path)
    _install(path, NEEDED)
    shutil.copytree(PACKAGE, _site(path) / "rmqfast", ignore=shutil.ignore_patterns("__pycache__"))
    packed = tmp_path / "environment.tar.gz"
    with tarfile.open(packed, "w:gz", compresslevel=1) as archive:
        archive.add(path, ".")
    settings = {"spark.archives": f"{packed}#environment"}
    answer = run(cluster, own_scene, settings, "./environment/bin/python", tmp_path)
    assert len(answer["places"]) == 2
    for row in answer["places"]:
        assert row["place"].startswith(f"{row['directory']}/environment/lib/")
        assert row["python"] == f"{row['directory']}/environment/bin/python"


def run(
    cluster: Cluster, scene: Scene, settings: Mapping[str, str], python: str, directory: Path = ROOT
) -> dict[str, Any]:
    """The answer of a driver that is started in a directory; all rows are in both topics."""
    words = [cluster.master, scene.name_server, "shipped", str(ROWS), *(f"{k}={v}" for k, v in settings.items())]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(PACKAGE.parent), str(ROOT)]),
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }
    command = [sys.executable, "-m", "tests.spark.sink.shipped_job", *words]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=600, cwd=directory, env=environment
    )
    assert done.returncode == 0, done.stderr[-6000:]
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert answer["written"][0] == ROWS
    has_source = importlib.util.find_spec("pyspark.sql.datasource") is not None
    for topic in ["shipped", "shipped-again"] if has_source else ["shipped"]:
        assert sorted(int(row["body"]) for row in scene.stored(topic)) == list(range(ROWS))
    return answer


def _install(environment: Path, names: tuple[str, ...]) -> None:
    """Puts packages of this Python into another environment; `pip install` would ask a registry."""
    for found in importlib.metadata.distributions():
        if found.metadata["Name"].lower() not in names:
            continue
        tops = {file.parts[0] for file in found.files or () if not file.parts[0].startswith((".", "__pycache__"))}
        for top in tops:
            source, target = Path(str(found.locate_file(top))), _site(environment) / top
            if source.is_dir():
                ignore = shutil.ignore_patterns("__pycache__", "tests")
                shutil.copytree(source, target, ignore=ignore, dirs_exist_ok=True)
            elif not target.exists():
                shutil.copy(source, target)


def _site(environment: Path) -> Path:
    (found,) = environment.glob("lib/python3*/site-packages")
    return found


def _python(environment: Path) -> str:
    return str(environment / "bin" / "python")
