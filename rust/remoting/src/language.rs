//! The languages that clients may be written in.
//!
//! Source: `LanguageCode`.

// Names in the order of their codes.
const NAMES: [&str; 14] = [
    "JAVA", "CPP", "DOTNET", "PYTHON", "DELPHI", "ERLANG", "RUBY", "OTHER", "HTTP", "GO", "PHP", "OMS", "RUST",
    "NODE_JS",
];

/// A language: one that is known, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Language(u8);

impl Language {
    /// Java, which a peer that says nothing is taken to be written in.
    pub const JAVA: Self = Self(0);
    /// One that this side does not know.
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

    /// Its name; `None` for one that is not known.
    pub fn name(self) -> Option<&'static str> {
        NAMES.get(usize::from(self.0)).copied()
    }
}
