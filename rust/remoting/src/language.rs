//! Programming languages of clients.
//!
//! Source: `LanguageCode`.

// Names in the order of their codes.
const NAMES: [&str; 14] = [
    "JAVA", "CPP", "DOTNET", "PYTHON", "DELPHI", "ERLANG", "RUBY", "OTHER", "HTTP", "GO", "PHP", "OMS", "RUST",
    "NODE_JS",
];

/// A programming language. [`UNKNOWN`](Self::UNKNOWN) stands for all languages that this side does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Language(u8);

impl Language {
    /// Java, the default for a header without a language.
    pub const JAVA: Self = Self(0);
    /// Any language that this side does not know.
    pub const UNKNOWN: Self = Self(u8::MAX);

    pub fn of_code(code: i64) -> Self {
        usize::try_from(code).ok().filter(|code| *code < NAMES.len()).map_or(Self::UNKNOWN, |code| Self(code as u8))
    }

    pub fn of_name(name: &str) -> Self {
        NAMES.iter().position(|candidate| *candidate == name).map_or(Self::UNKNOWN, |code| Self(code as u8))
    }

    pub fn code(self) -> u8 {
        self.0
    }

    /// Returns the name, or `None` for an unknown language.
    pub fn name(self) -> Option<&'static str> {
        NAMES.get(usize::from(self.0)).copied()
    }
}
