//! The layers of this crate, held by a test: each module names only those below it, and `unsafe` has its few places.
//!
//! Comments may name any module. Code names a layer by a path from `crate`, or by enough `super`s to get there: two may
//! lead out of a layer, one only from the file of the layer itself.
use std::fs;
use std::path::{Path, PathBuf};

/// A layer, and those that it may not name.
const FORBIDDEN: [(&str, &[&str]); 5] = [
    ("format", &["file", "filter", "store", "scan", "export"]),
    ("filter", &["file", "store", "scan", "export"]),
    ("file", &["filter", "store", "scan", "export"]),
    ("store", &["scan", "export"]),
    ("scan", &["export"]),
];

/// Where `unsafe` may stand: each block has its `SAFETY:` comment, which clippy demands.
const UNSAFE: [&str; 2] = ["file/mmap.rs", "scan/unchecked.rs"];

#[test]
fn a_layer_names_only_the_layers_below_it() {
    let mut faults = Vec::new();
    for (layer, forbidden) in FORBIDDEN {
        let files = sources(&root().join(layer));
        assert!(!files.is_empty(), "the layer {layer} has no files: is the list of layers out of date?");
        for file in files {
            // in the file of the layer itself, `super` is the crate
            let is_root = file == root().join(layer).join("mod.rs");
            let named = layers_named(&code_of(&file).replace("super::", if is_root { "crate::" } else { "super::" }));
            faults.extend(forbidden.iter().filter(|f| named.iter().any(|n| n == *f)).map(|f| format!("{file:?}: {f}")));
        }
    }
    assert_eq!(faults, Vec::<String>::new(), "layers named from below");
}

#[test]
fn every_module_of_the_crate_has_its_place_in_a_layer() {
    let modules = ["lib", "error", "format", "filter", "file", "store", "scan", "export"];
    let entries = fs::read_dir(root()).expect("the sources are readable");
    let names = entries.map(|e| e.expect("a source entry is readable").path());
    let strangers: Vec<_> = names.filter(|p| !modules.iter().any(|k| p.file_stem().is_some_and(|s| s == *k))).collect();
    assert_eq!(strangers, Vec::<PathBuf>::new(), "give the module a layer, here and in lib.rs");
}

#[test]
fn unsafe_stands_only_where_it_is_listed() {
    let mut files = files_where(|code| words(code).any(|word| word == "unsafe"));
    files.retain(|file| !UNSAFE.contains(&file.as_str()));
    assert_eq!(files, Vec::<String>::new(), "unsafe code outside {UNSAFE:?}");
}

/// What may open files by itself: writers, the open store of a broker, and the layer of files.
const LOCAL: [&str; 6] = ["store/append", "store/recover", "store/retain", "store/serve", "export", "file"];

#[test]
fn readers_get_files_through_the_storage_alone() {
    let opens = |code: &str| words(code.split("#[cfg(test)]").next().unwrap_or(code)).any(|w| w == "fs" || w == "File");
    let mut files = files_where(opens);
    files.retain(|file| !LOCAL.iter().any(|place| Path::new(file).starts_with(place)));
    assert_eq!(files, Vec::<String>::new(), "a reader goes around file/storage.rs");
}

#[test]
fn a_layer_is_seen_however_it_is_named() {
    assert_eq!(layers_named("use crate::scan::Plan;"), ["scan"]);
    assert_eq!(layers_named("let x = crate :: store\n:: open();"), ["store"]);
    assert_eq!(layers_named("use crate::{error::Error, file::{self, Segment}, scan};"), ["error", "file", "scan"]);
    assert_eq!(layers_named("use super::super::scan; use super::offset;"), ["scan"]);
    assert_eq!(layers_named("use super::super::super::scan;"), ["scan"]);
    assert_eq!(layers_named("use rmqfast_store::file;"), Vec::<String>::new());
    assert_eq!(without_comments("a // crate::scan\n/// unsafe\n b"), "a \n\n b");
    assert_eq!(words("unsafe { unsafe_code }").filter(|w| *w == "unsafe").count(), 1);
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// Every `.rs` file below `folder`.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the sources are readable");
    let paths = entries.map(|entry| entry.expect("a source entry is readable").path());
    let files = paths.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] });
    files.filter(|file| file.extension().is_some_and(|e| e == "rs")).collect()
}

fn code_of(file: &Path) -> String {
    without_comments(&fs::read_to_string(file).expect("a source file is readable"))
}

/// The files, relative to `src`, whose code has the fault.
fn files_where(fault: impl Fn(&str) -> bool) -> Vec<String> {
    let faulty = sources(&root()).into_iter().filter(|file| fault(&code_of(file)));
    faulty.map(|f| f.strip_prefix(root()).expect("below src").to_string_lossy().into_owned()).collect()
}

/// The first segment of every path that starts at `crate::`, those in braces included.
fn layers_named(code: &str) -> Vec<String> {
    let code = squeezed(code).replace("super::super::", "crate::").replace("crate::super::", "crate::");
    code.match_indices("crate::").flat_map(|(at, start)| first_segments(&code[at + start.len()..])).collect()
}

fn first_segments(path: &str) -> Vec<String> {
    let Some(list) = path.strip_prefix('{') else { return vec![identifier(path)] };
    let mut depth = 0;
    let mut segments = vec![identifier(list)];
    for (at, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => segments.push(identifier(&list[at + 1..])),
            _ => {}
        }
    }
    segments.retain(|segment| !segment.is_empty());
    segments
}

fn identifier(text: &str) -> String {
    text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

fn words(code: &str) -> impl Iterator<Item = &str> {
    code.split(|c: char| !c.is_alphanumeric() && c != '_')
}

fn squeezed(code: &str) -> String {
    code.chars().filter(|c| !c.is_whitespace()).collect()
}

/// The code alone: line comments are left out. (A string that holds `//` hides the rest of its line; rustfmt leaves little there.)
fn without_comments(source: &str) -> String {
    source.lines().map(|line| line.split("//").next().unwrap_or(line)).collect::<Vec<_>>().join("\n")
}
