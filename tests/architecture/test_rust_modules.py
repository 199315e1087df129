"""No module of a Rust crate imports, by whatever way round, itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.architecture.rust_modules import Module, circles, crates, imports

#: A crate without a circle; below, what is planted into one of its files to make one.
CRATE = {
    "lib.rs": "mod pull;\nmod state;\nmod text;\npub use state::State;",
    "pull/mod.rs": "pub mod header;\nuse header::Header;\nuse crate::state::State;",
    "pull/header.rs": "use crate::text::{self, lossy};\nuse std::sync::{Arc, Mutex};\npub struct Header;",
    "state.rs": "use crate::text;\n#[cfg(test)]\nmod tests {\n    use crate::pull::header::Header;\n}",
    "text.rs": "// use crate::pull::X;\npub fn lossy<'a>(text: &'a str) -> &'a str { \"crate::state::X\" }",
}
FAULTS = {
    "text.rs": ["use crate::state::State;", "fn f() { crate::state::f::<u8>(); }", "use super::{state::{self as s}};"],
    "pull/header.rs": [
        "use super::Pull;",
        "use crate::{text::lossy as x, pull::{self, Y}};",
        "type P = super::super::pull::P;",
    ],
    "state.rs": ["use crate::{pull::header::Header, text::X};\nuse crate::pull;", "pub(super) use super::State;"],
}


def write(source: Path, files: dict[str, str]) -> Path:
    for name, code in files.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(code)
    return source


@pytest.mark.parametrize("crate", crates())
def test_no_modules_import_each_other(crate: str) -> None:
    found = [sorted("::".join(module) or "lib" for module in circle) for circle in circles(imports(crates()[crate]))]
    assert found == []


def test_a_child_that_is_declared_is_not_imported_and_tests_import_what_they_like(tmp_path: Path) -> None:
    graph: dict[Module, set[Module]] = {
        (): {("state",)},
        ("pull",): {("pull", "header"), ("state",)},
        ("pull", "header"): {("text",)},
        ("state",): {("text",)},
        ("text",): set(),
    }
    assert imports(write(tmp_path, CRATE)) == graph
    assert circles(graph) == []


@pytest.mark.parametrize(("file", "code"), [(file, code) for file, codes in FAULTS.items() for code in codes])
def test_a_planted_circle_is_found(tmp_path: Path, file: str, code: str) -> None:
    planted = CRATE | {file: f"{CRATE[file]}\n{code}"}
    assert len(circles(imports(write(tmp_path, planted)))) == 1, code
