//! Keeps a command beyond the frame it was read from: for another thread, or until it can be answered.
use crate::command::{Command, RESPONSE};
use crate::frame::SerializeType;
use crate::language::Language;
use crate::owned_fields::OwnedFields;

/// A command of its own memory.
#[derive(Clone, Debug)]
pub struct OwnedCommand {
    /// The request code, or the response code.
    pub code: i32,
    /// The peer's programming language.
    pub language: Language,
    /// Ordinal of the peer's release.
    pub version: i32,
    /// Which response belongs to which request.
    pub opaque: i32,
    /// Bits: see [`Command::flag`].
    pub flag: i32,
    /// Text for people, such as an error message.
    pub remark: Option<String>,
    pub fields: OwnedFields,
    pub serialize_type: SerializeType,
    pub body: Vec<u8>,
}

impl From<&Command<'_>> for OwnedCommand {
    fn from(command: &Command<'_>) -> Self {
        Self {
            code: command.code,
            language: command.language,
            version: command.version,
            opaque: command.opaque,
            flag: command.flag,
            remark: command.remark.as_ref().map(ToString::to_string),
            fields: command.fields.iter().map(|(name, value)| (&**name, &**value)).collect(),
            serialize_type: command.serialize_type,
            body: command.body.to_vec(),
        }
    }
}

impl OwnedCommand {
    /// Whether this answers a request of this side.
    pub fn is_response(&self) -> bool {
        self.flag & RESPONSE != 0
    }

    /// The command with borrowed texts.
    pub fn borrow(&self) -> Command<'_> {
        Command {
            code: self.code,
            language: self.language,
            version: self.version,
            opaque: self.opaque,
            flag: self.flag,
            remark: self.remark.as_deref().map(Into::into),
            fields: self.fields.iter().map(|(name, value)| (name.into(), value.into())).collect(),
            serialize_type: self.serialize_type,
            body: &self.body,
        }
    }
}
