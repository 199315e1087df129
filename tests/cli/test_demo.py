"""`rmqfast demo`: runs from what is installed, shows what is there, leaves nothing behind."""

from __future__ import annotations

import json
import re
import sys
import tarfile
from collections import Counter
from datetime import UTC, datetime, timedelta
from importlib import resources
from pathlib import Path

import pyarrow as pa
import pytest

from rmqfast.cli import demo
from rmqfast.cli.demo import tables
from rmqfast.errors import ArgumentError, StoreIOError
from rmqfast.store import open_store
from tests import golden_stores
from tests.cli.command_line import run, run_process
from tests.golden_stores import PathOf


def test_the_store_that_the_demo_ships_is_the_golden_one() -> None:
    shipped = resources.files("rmqfast.cli") / "data" / f"{demo.BROKERS_STORE}.tar.gz"
    assert shipped.read_bytes() == (golden_stores.DIRECTORY / f"{demo.BROKERS_STORE}.tar.gz").read_bytes()


@pytest.mark.spark
def test_the_demo_shows_both_stores_and_cleans_up(tmp_path: Path) -> None:
    result = run_process("demo", "--size-mib", "4", "--dir", tmp_path / "demo")
    assert result.returncode == 0, result.stderr
    assert not (tmp_path / "demo").exists()
    tags = Counter((r["topic"], r["tags"] or "-") for r in golden_stores.expected_rows(demo.BROKERS_STORE))
    words = [line.split() for line in result.stdout.splitlines()]
    shown = {(w[0], w[1]): int(w[2]) for w in words if len(w) > 3 and w[2].isdigit()}
    assert {place: shown[place] for place in tags} == tags
    made_up = (4 << 20) // demo.RECORD_BYTES
    assert sum(n for (topic, _), n in shown.items() if topic in {"clicks", "orders", "payments"}) == made_up
    assert words.count(["rows", str(made_up)]) == 2
    hours = [w for w in words if len(w) > 2 and w[0].count("-") == 2 and w[1].endswith(":00")]
    assert sum(int(w[2].replace(",", "")) for w in hours) == made_up
    assert max(len(w[3]) for w in hours if len(w) > 3) == demo.BAR_WIDTH
    assert "what to try next" in result.stdout
    assert [line for line in result.stderr.splitlines() if "incubator modules" not in line] == ["starting Spark"]


def test_made_up_messages_span_a_day_in_order_and_are_the_same_each_time() -> None:
    end = datetime(2026, 1, 2, tzinfo=UTC)
    made = pa.concat_tables(tables(50_000, ends_at=end))
    born = made["born_timestamp"].to_pylist()
    assert made.num_rows == 50_000
    assert born == sorted(born)
    assert end - timedelta(days=1) <= born[0] < born[-1] <= end
    assert made.equals(pa.concat_tables(tables(50_000, ends_at=end)))
    assert set(made["topic"].to_pylist()) == {"clicks", "orders", "payments"}


def test_the_made_up_store_is_sound_and_of_the_size_that_was_asked_for(tmp_path: Path) -> None:
    demo.make_store(tmp_path / "shop", 8)
    with open_store(tmp_path / "shop") as store:
        report = store.verify()
        assert (report.ok, report.messages, report.unlisted) == (True, (8 << 20) // demo.RECORD_BYTES, 0)
        assert report.log_bytes == pytest.approx(8 << 20, rel=0.1)


def test_the_expression_of_the_readme_finds_something_in_the_made_up_store(tmp_path: Path) -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    (expression,) = re.findall(r'store\.scan\("orders", sql="(.*?)"', readme)
    demo.make_store(tmp_path / "shop", 1)
    with open_store(tmp_path / "shop") as store:
        orders = store.scan("orders", columns=["body", "properties"]).to_arrow().to_pylist()
        wanted = [m for m in map(json.loads, (m["body"] for m in orders)) if m["amount"] > 1000 and m["region"] != "ap"]
        assert store.scan("orders", sql=expression).to_arrow().num_rows == len(wanted) > 0


def test_without_pyspark_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    result = run("demo", "--dir", tmp_path / "demo")
    assert (result.exit_code, result.stdout) == (3, "")
    assert "pip install 'rmqfast[spark]'" in result.stderr
    assert not (tmp_path / "demo").exists()


def test_a_directory_that_somebody_else_made_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").touch()
    result = run("demo", "--size-mib", "1", "--dir", tmp_path / "mine")
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert (tmp_path / "mine" / "file").exists()


def work_and_fail(directory: Path, keep: bool) -> None:
    """A demo that does not end well."""
    with demo.workplace(directory, keep=keep):
        (directory / "file").touch()
        raise InterruptedError


def test_the_directory_goes_also_when_the_demo_fails_and_stays_when_it_shall(tmp_path: Path) -> None:
    for keep in (False, True):
        with pytest.raises(InterruptedError):
            work_and_fail(tmp_path / "demo", keep)
        assert (tmp_path / "demo" / "file").exists() == keep
    with demo.workplace(tmp_path / "demo", keep=False):
        assert not (tmp_path / "demo" / "file").exists()
    (tmp_path / "other").mkdir()
    with pytest.raises(ArgumentError, match="does not exist"), demo.workplace(tmp_path / "other", keep=False):
        pass


def test_a_full_disk_is_found_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(StoreIOError, match=r"expected .* TiB of free disk, got .*--size-mib"):
        demo.check_space(tmp_path / "demo", 1 << 30)
    assert run("demo", "--size-mib", str(1 << 30), "--dir", tmp_path / "demo").exit_code == 3
    assert not (tmp_path / "demo").exists()


def test_the_broker_store_reads_as_the_golden_one(tmp_path: Path, golden_store: PathOf) -> None:
    demo.unpack_brokers_store(tmp_path)
    with open_store(tmp_path / "store") as mine, open_store(golden_store(demo.BROKERS_STORE)) as theirs:
        assert mine.scan().to_arrow().equals(theirs.scan().to_arrow())
    with tarfile.open(golden_stores.DIRECTORY / f"{demo.BROKERS_STORE}.tar.gz") as archive:
        assert "store/commitlog" in {name.removeprefix("./") for name in archive.getnames()}
