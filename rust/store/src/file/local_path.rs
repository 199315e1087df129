//! Converts a path or `file:` URL from the user. All arguments, options and configuration keys follow this rule.
use std::ffi::OsStr;
use std::path::PathBuf;

const FILE: &str = "file:";

/// Returns the path itself, or the path in a `file:` URL. Other URLs are an error, and so is the empty string, which would mean the current
/// directory. The error says what is expected.
pub fn local_path(given: &OsStr) -> Result<PathBuf, &'static str> {
    if given.is_empty() {
        return Err("a path (. is the current directory)");
    }
    // A path that is not UTF-8 is no URL.
    let Some(text) = given.to_str() else { return Ok(given.into()) };
    match text.get(..FILE.len()) {
        Some(scheme) if scheme.eq_ignore_ascii_case(FILE) && text[FILE.len()..].starts_with('/') => {
            of_file_url(&text[FILE.len()..])
        }
        _ if is_url(text) => {
            Err("a path of this machine, as of a mounted or copied directory (./NAME where it begins with such a name)")
        }
        _ => Ok(given.into()),
    }
}

/// Decodes the part of a `file:` URL behind the colon: `/x`, `///x` or `//localhost/x`. It may be percent-encoded.
fn of_file_url(rest: &str) -> Result<PathBuf, &'static str> {
    const EXPECTED: &str = "a file: URL of this machine, as file:///data/store";
    let path = match rest.strip_prefix("//") {
        Some(path) => path.strip_prefix("localhost").filter(|path| path.starts_with('/')).unwrap_or(path),
        None => rest,
    };
    // Without a slash this is another host, as in `file://host/x`.
    let path = path.strip_prefix('/').and_then(percent_decode).ok_or(EXPECTED)?;
    Ok(format!("/{}", path.trim_start_matches('/')).into())
}

fn percent_decode(text: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text);
    while let Some((plain, escaped)) = rest.split_once('%') {
        bytes.extend_from_slice(plain.as_bytes());
        bytes.push(u8::from_str_radix(escaped.get(..2)?, 16).ok()?);
        rest = &escaped[2..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8(bytes).ok()
}

/// Returns whether the string begins like `s3://`, or like `s3:/`, into which libraries for paths shorten `s3://`. A
/// single letter before the colon is a Windows drive, not a URL.
fn is_url(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let is_scheme = scheme.len() > 1 && scheme.starts_with(|c: char| c.is_ascii_alphabetic());
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '.' | '-');
    rest.starts_with('/') && is_scheme && scheme.chars().all(legal)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;

    fn of(text: &str) -> Result<PathBuf, &'static str> {
        local_path(OsStr::new(text))
    }

    #[test]
    fn paths_stay_and_file_urls_are_paths() {
        for path in [".", "store", "/data/a b", "./s3:/x", "a:b", "C:/x", "x:", "file:x", "~/s", " "] {
            assert_eq!(of(path).as_deref(), Ok(Path::new(path)));
        }
        for url in ["file:///data/a%20b", "file:/data/a b", "FILE://localhost/data/a%20b", "file:////data/a b"] {
            assert_eq!(of(url).as_deref(), Ok(Path::new("/data/a b")), "{url}");
        }
        let odd = OsStr::from_bytes(b"s3://\xff");
        assert_eq!(local_path(odd).as_deref(), Ok(Path::new(odd)));
    }

    #[test]
    fn nothing_and_urls_of_other_systems_are_no_paths() {
        for text in ["", "s3://b/out", "s3:/b/out", "hdfs://n:8020/x", "host:/x", "wasb+x.y-z://c", "https://x"] {
            assert!(of(text).is_err(), "{text}");
        }
        for text in ["file://host/x", "file:///a%2", "file:///a%zz", "file:///%ff"] {
            assert!(of(text).expect_err(text).contains("file: URL"), "{text}");
        }
    }
}
