"""What `tests/counts.py` counts, on a small tree."""

from __future__ import annotations

from pathlib import Path

from tests.counts import count

SIX = "\n".join(f"    value{number} = call{number}()" for number in range(6))
CLASSES = "class A(Base): ...\nclass B(A): ...\nclass Wrong(B): ...\nclass FineError(B): ..."
FILES = {
    "python/rmqfast/store/reader.py": f'"""Reads."""\n\n# why\nclass Base:\n    """A base."""\n\ndef one():\n{SIX}\n',
    "python/rmqfast/store/writer.py": f"from rmqfast.store import Base\ndef two():\n{SIX}\n{CLASSES}\n",
    "rust/store/src/lib.rs": "//! A crate.\nmod a;\nmod b;\n",
    "rust/store/src/a.rs": "use crate::b::B;\n// why\npub struct A;\n#[cfg(test)]\nmod tests {\n    fn t() {}\n}\n",
    "rust/store/src/b.rs": "use crate::a::A;\npub struct B { verify_crc: bool }\n",
}


def test_what_is_planted_is_counted(tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    counts = count(tmp_path)
    store, rust = counts.python["store"], counts.rust["store"]
    assert (store.files, store.lines, store.comments, store.docs) == (2, 25, 1, 2)
    assert (rust.files, rust.lines, rust.comments, rust.docs) == (3, 8, 1, 1)
    assert counts.repeated == {"python": 1, "rust": 0}
    assert counts.deep == {"store.writer.B": 3, "store.writer.Wrong": 4}
    assert counts.circles == [["store::a", "store::b"]]
    assert counts.options["verify_crc"] == 1
