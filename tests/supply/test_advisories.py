"""`make audit` fails for known vulnerabilities; unavailable data is reported and never counts as sound."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

pytestmark = pytest.mark.long
ROOT = Path(__file__).parents[2]
RUSTSEC = "https://github.com/RustSec/advisory-db"
#: Nobody listens there.
NOWHERE = "http://127.0.0.1:9/"
ADVISORY = """```toml
[advisory]
id = "RUSTSEC-2099-NUMBER"
package = "CRATE"
date = "2026-01-02"
url = "https://example.org"

[versions]
patched = [">= 99.0.0"]
```

# Made up
"""


class Osv(BaseHTTPRequestHandler):
    """Answers as OSV does; knows one weakness, of the package that the server names."""

    def do_POST(self) -> None:
        question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        weakness = {"id": "PYSEC-2099-1", "summary": "made up", "details": "", "affected": [], "aliases": []}
        assert isinstance(self.server, OsvServer)
        known = [weakness] if question["package"]["name"] == self.server.weak else []
        body = json.dumps({"vulns": known} if known else {}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


class OsvServer(ThreadingHTTPServer):
    weak = ""


@pytest.fixture
def osv() -> Iterator[OsvServer]:
    with OsvServer(("127.0.0.1", 0), Osv) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def rustsec(tmp_path: Path) -> Path:
    """A database of advisories with one against a crate that nobody takes."""
    home = tmp_path / "advisory-db"
    home.mkdir()
    git(home, "init", "--quiet", "--initial-branch", "main")
    warn(home, "taken-by-nobody")
    return home


def warn(home: Path, crate: str) -> None:
    number = f"{1 + len([*home.glob('crates/*/*')]):04}"
    (home / "crates" / crate).mkdir(parents=True)
    path = home / "crates" / crate / f"RUSTSEC-2099-{number}.md"
    path.write_text(ADVISORY.replace("CRATE", crate).replace("NUMBER", number))
    git(home, "add", ".")
    git(home, "commit", "--quiet", "--message", crate)


def git(home: Path, *words: str) -> None:
    subprocess.run(("git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-C", home, *words), check=True)


def audit(tmp_path: Path, rustsec: Path, osv: str) -> subprocess.CompletedProcess[str]:
    """Runs it with that database in place of RustSec's, and that server in place of PyPI."""
    config, cargo = tmp_path / "gitconfig", tmp_path / "cargo"
    config.write_text(f'[url "{rustsec.as_uri()}"]\n\tinsteadOf = {RUSTSEC}\n')
    cargo.mkdir(exist_ok=True)
    registry = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo")) / "registry"
    if not (cargo / "registry").exists():
        (cargo / "registry").symlink_to(registry)
    environment = os.environ | {
        "CARGO_HOME": str(cargo),
        "GIT_CONFIG_GLOBAL": str(config),
        "PIP_AUDIT_VULNERABILITY_SERVICE": "osv",
        "PIP_AUDIT_OSV_URL": osv,
    }
    command = (sys.executable, "-m", "tests.supply.advisories", "--required")
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def test_nothing_known_is_zero(tmp_path: Path, rustsec: Path, osv: OsvServer) -> None:
    done = audit(tmp_path, rustsec, f"http://127.0.0.1:{osv.server_port}/")
    assert done.stdout.splitlines() == [
        "advisories: Cargo.toml: checked, 0 known",
        "advisories: rust/fuzz/Cargo.toml: checked, 0 known",
        *(
            f"advisories: requirements/{name}.txt: checked, 0 known"
            for name in ("dev", "image", "recipes", "release", "spark35", "spark40")
        ),
    ], done
    assert done.returncode == 0


def test_what_is_known_is_told_with_its_crate_and_its_package(tmp_path: Path, rustsec: Path, osv: OsvServer) -> None:
    warn(rustsec, "memchr")
    osv.weak = "pyarrow"
    done = audit(tmp_path, rustsec, f"http://127.0.0.1:{osv.server_port}/")
    assert re.search(r"^  RUSTSEC-2099-0002: memchr 2\.\S+: Made up$", done.stdout, re.MULTILINE), done
    assert re.search(r"^  PYSEC-2099-1: pyarrow \d\S+: ", done.stdout, re.MULTILINE), done
    assert done.returncode == 1


def test_data_that_cannot_be_had_is_told_and_is_an_error_where_it_is_required(tmp_path: Path) -> None:
    done = audit(tmp_path, tmp_path / "nowhere", NOWHERE)
    lines = done.stdout.splitlines()
    assert [re.match(r"advisories: \S.*: not checked: \S", line) is not None for line in lines] == [True] * 3, done
    assert done.returncode == 1
