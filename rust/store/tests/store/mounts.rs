//! Storages that are mounted one within or above the other.
use crate::directory;
use rmqfast_store::file::{MemoryFiles, Mount, place};
use std::fs;
use std::path::Path;
use std::sync::Arc;

#[test]
fn the_deepest_and_newest_mount_is_read() {
    let dir = directory();
    for (name, text) in [("outer", "outer"), ("inner", "inner"), ("newer", "newer")] {
        fs::create_dir_all(dir.path().join(name).join("a")).expect("a directory");
        fs::write(dir.path().join(name).join("a/file"), text).expect("written");
    }
    let (outer, inner) = (Path::new("/elsewhere/mounts"), Path::new("/elsewhere/mounts/a/file"));
    let mount = |name: &str, part: &str, path: &Path| {
        let files = MemoryFiles::read(&dir.path().join(name).join(part), path, 0).expect("read");
        Mount::new(path, Arc::new(files))
    };
    let text = || place::read(inner, 99).expect("read").map(|text| String::from_utf8_lossy(&text).into_owned());
    let first = mount("outer", "", outer);
    assert_eq!(text().as_deref(), Some("outer"));
    let below = mount("inner", "a", Path::new("/elsewhere/mounts/a"));
    assert_eq!(text().as_deref(), Some("inner"));
    let again = mount("newer", "", outer);
    assert_eq!(text().as_deref(), Some("inner"));
    drop(below);
    assert_eq!(text().as_deref(), Some("newer"));
    drop(again);
    assert_eq!(text().as_deref(), Some("outer"));
    drop(first);
    assert_eq!(text(), None);
}
