"""The fuzz targets: built as cargo-fuzz builds them, run on the corpus of found bugs and a short while on new input."""

from __future__ import annotations

import os
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.effort import effort

ROOT = Path(__file__).parent.parent
FUZZ = ROOT / "rust/fuzz"
TARGETS = [target["name"] for target in tomllib.loads((FUZZ / "Cargo.toml").read_text())["bin"]]
SECONDS = effort("SECONDS_EACH", 8, 20)
# What cargo-fuzz gives rustc: edges counted for libFuzzer. The compiler's unstable flags need RUSTC_BOOTSTRAP.
COVERAGE = (
    "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 "
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table "
    "-Cllvm-args=-sanitizer-coverage-trace-compares -Zsanitizer=address -Ccodegen-units=1"
)
TRIPLE = "x86_64-unknown-linux-gnu" if os.uname().machine == "x86_64" else "aarch64-unknown-linux-gnu"


@pytest.fixture(scope="module")
def built() -> Path:
    """The directory of the targets."""
    environment = os.environ | {"RUSTC_BOOTSTRAP": "1", "RUSTFLAGS": COVERAGE, "CARGO_TARGET_DIR": str(FUZZ / "target")}
    command = [
        "cargo",
        "build",
        "--release",
        "--locked",
        "--target",
        TRIPLE,
        "--manifest-path",
        str(FUZZ / "Cargo.toml"),
    ]
    subprocess.run(command, check=True, env=environment, timeout=900, cwd=FUZZ)
    return FUZZ / "target" / TRIPLE / "release"


@pytest.mark.long
@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("target", TARGETS)
def test_a_fuzz_target_finds_nothing(target: str, built: Path, tmp_path: Path) -> None:
    found = ROOT / "tests/corpus" / target
    corpora = [tmp_path, *([found] if found.is_dir() else [])]
    limits = [f"-max_total_time={SECONDS}", "-max_len=4096", "-timeout=10", "-rss_limit_mb=2048"]
    command = [str(built / target), *limits, f"-artifact_prefix={tmp_path}/crash-", *map(str, corpora)]
    # on Linux a program begins with the peak of memory of who started it, which libFuzzer takes for its own
    through_shell = ["sh", "-c", '"$@"; exit $?', "sh", *command]
    done = subprocess.run(through_shell, check=False, capture_output=True, text=True, timeout=SECONDS * 6, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]


def test_each_target_has_its_file_and_each_file_its_target() -> None:
    assert sorted(TARGETS) == sorted(path.stem for path in (FUZZ / "fuzz_targets").glob("*.rs"))
