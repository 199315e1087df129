//! The bytes that a registry's client puts before a payload.
use crate::{Error, Result};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Framing {
    #[default]
    None,
    /// Confluent's wire format: a zero byte and a schema id of four bytes, big-endian.
    Confluent,
    /// Avro's single-object encoding: `C3 01` and the schema's fingerprint of eight bytes, little-endian.
    SingleObject,
}

/// The number that names the writer's schema.
pub type SchemaId = u64;

const NAMES: &str = "'none', 'confluent' or 'single-object'";
const CONFLUENT_MAGIC: &[u8] = &[0];
const SINGLE_OBJECT_MAGIC: &[u8] = &[0xC3, 0x01];

impl Framing {
    pub fn of_name(name: &str) -> Result<Self> {
        match name {
            "none" => Ok(Self::None),
            "confluent" => Ok(Self::Confluent),
            "single-object" => Ok(Self::SingleObject),
            other => Err(Error::invalid("framing", NAMES, format!("'{other}'"))),
        }
    }

    /// Returns the number of bytes before the payload.
    pub fn prefix_len(self) -> usize {
        match self {
            Self::None => 0,
            Self::Confluent => 5,
            Self::SingleObject => 10,
        }
    }

    pub fn id_name(self) -> &'static str {
        match self {
            Self::SingleObject => "the schema with fingerprint",
            _ => "schema id",
        }
    }

    pub fn write_id(self, id: SchemaId) -> String {
        match self {
            Self::SingleObject => format!("{id:016x}"),
            _ => id.to_string(),
        }
    }

    /// Splits a body into the schema's id, if there is one, and the payload. The error is a reason for the user.
    pub fn split(self, body: &[u8]) -> Result<(Option<SchemaId>, &[u8]), String> {
        let magic = match self {
            Self::None => return Ok((None, body)),
            Self::Confluent => CONFLUENT_MAGIC,
            Self::SingleObject => SINGLE_OBJECT_MAGIC,
        };
        let Some((prefix, payload)) = body.split_at_checked(self.prefix_len()) else {
            return Err(format!("expected a prefix of {} bytes, got a body of {}", self.prefix_len(), body.len()));
        };
        let Some(id) = prefix.strip_prefix(magic) else {
            let got = &prefix[..magic.len()];
            return Err(format!("expected a prefix that begins with {magic:02X?}, got {got:02X?}"));
        };
        let id = match self {
            Self::SingleObject => id.iter().rev().fold(0, |id, byte| id << 8 | u64::from(*byte)),
            _ => id.iter().fold(0, |id, byte| id << 8 | u64::from(*byte)),
        };
        Ok((Some(id), payload))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_split_and_others_are_refused() {
        assert_eq!(Framing::None.split(b""), Ok((None, &b""[..])));
        assert_eq!(Framing::Confluent.split(b"\x00\x00\x00\x01\x02{}"), Ok((Some(258), &b"{}"[..])));
        let single = b"\xC3\x01\x01\x02\x00\x00\x00\x00\x00\x00{}";
        assert_eq!(Framing::SingleObject.split(single), Ok((Some(513), &b"{}"[..])));
        let reason = Framing::Confluent.split(b"\x00\x00").expect_err("short");
        assert_eq!(reason, "expected a prefix of 5 bytes, got a body of 2");
        let reason = Framing::Confluent.split(b"{\"a\":1}").expect_err("other");
        assert_eq!(reason, "expected a prefix that begins with [00], got [7B]");
        let error = Framing::of_name("kafka").expect_err("unknown").to_string();
        assert_eq!(error, "framing: expected 'none', 'confluent' or 'single-object', got 'kafka'");
    }
}
