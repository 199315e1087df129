//! `unsafe` has one place in this crate: the values that Java holds.
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn unsafe_stands_only_where_java_holds_a_value() {
    let files = sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    let is_unsafe = |file: &&PathBuf| {
        let text = fs::read_to_string(file).expect("a source file is readable");
        let code = text.lines().map(|line| line.split("//").next().unwrap_or(line));
        code.flat_map(|line| line.split(|c: char| !c.is_alphanumeric() && c != '_')).any(|word| word == "unsafe")
    };
    let found: Vec<_> = files.iter().filter(is_unsafe).filter_map(|file| file.file_name()).collect();
    assert_eq!(found, ["handle.rs"]);
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the sources are readable");
    let paths = entries.map(|entry| entry.expect("a source entry is readable").path());
    paths.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
}
