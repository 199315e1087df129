//! The body of a batch, one message after the other. Layout of a message:
//!
//! ```text
//! int32 total size | int32 magic = 0 | int32 body CRC = 0 | int32 flag | int32 body length, body | int16 properties length, properties
//! ```
//!
//! Source: `MessageDecoder.encodeMessage`, `encodeMessages`.

/// Bytes of a message without its body and properties.
const FIXED: usize = 4 + 4 + 4 + 4 + 4 + 2;

/// One message of a batch.
#[derive(Clone, Copy, Debug)]
pub struct BatchMessage<'a> {
    /// The application's 32-bit flag.
    pub flag: i32,
    /// The uncompressed body, as batches are never compressed.
    pub body: &'a [u8],
    pub properties: &'a str,
}

/// Appends a message to the body of a batch. Returns false if a length does not fit its field.
#[must_use]
pub fn write_batch_message(message: &BatchMessage<'_>, out: &mut Vec<u8>) -> bool {
    let (body, properties) = (message.body, message.properties.as_bytes());
    // Java casts to a short: after an overflow the broker would parse the middle of the properties as a message
    let Ok(properties_length) = i16::try_from(properties.len()) else { return false };
    let Ok(total) = i32::try_from(FIXED + body.len() + properties.len()) else { return false };
    out.extend_from_slice(&total.to_be_bytes());
    // the broker ignores magic and CRC, and computes its own
    out.extend_from_slice(&[0; 8]);
    out.extend_from_slice(&message.flag.to_be_bytes());
    out.extend_from_slice(&(body.len() as i32).to_be_bytes());
    out.extend_from_slice(body);
    out.extend_from_slice(&properties_length.to_be_bytes());
    out.extend_from_slice(properties);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_written_as_the_java_client_does() {
        let mut out = b"before".to_vec();
        let message = BatchMessage { flag: 7, body: b"bb", properties: "WAIT\u{1}true" };
        assert!(write_batch_message(&message, &mut out));
        let expected = b"before\0\0\0\x21\0\0\0\0\0\0\0\0\0\0\0\x07\0\0\0\x02bb\0\x09WAIT\x01true";
        assert_eq!(out, expected);
    }

    #[test]
    fn properties_that_are_too_long_are_refused() {
        let (long, mut out) = ("x".repeat(32768), Vec::new());
        assert!(!write_batch_message(&BatchMessage { flag: 0, body: b"", properties: &long }, &mut out));
        assert!(out.is_empty());
    }
}
