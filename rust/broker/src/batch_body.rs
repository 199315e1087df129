//! Parses the body of a SEND_BATCH_MESSAGE request into its messages.
//!
//! ```text
//! { int32 total size | int32 magic | int32 CRC | int32 flag | int32 body length | body | int16 properties length | properties }*
//! ```
//!
//! Source: `MessageDecoder.encodeMessage`, `CommitLog.MessageExtBatchEncoder.encode`.

/// Length of a message with empty body and properties, in bytes.
const MIN_LEN: usize = 22;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchMessage<'a> {
    /// The application's flag of 32 bits.
    pub flag: i32,
    pub body: &'a [u8],
    pub properties: &'a [u8],
}

/// Parses all messages of a batch. Returns `None` for invalid bytes.
pub fn messages(mut bytes: &[u8]) -> Option<Vec<BatchMessage<'_>>> {
    // the capacity is a guess from the body's size, not from lengths in it, which a client could forge
    let mut messages = Vec::with_capacity(bytes.len() / 1024 + 1);
    while !bytes.is_empty() {
        let size = usize::try_from(i32::from_be_bytes(*bytes.first_chunk()?)).ok().filter(|size| *size >= MIN_LEN)?;
        let (message, rest) = bytes.split_at_checked(size)?;
        // skips size, magic and CRC: producers send zero for the last two, and the store computes its own
        messages.push(message_of(message.get(12..)?)?);
        bytes = rest;
    }
    // an empty body is no batch
    (!messages.is_empty()).then_some(messages)
}

/// Parses a message. `bytes` begins with its flag. Returns `None` for invalid bytes.
fn message_of(bytes: &[u8]) -> Option<BatchMessage<'_>> {
    let (flag, bytes) = bytes.split_first_chunk()?;
    let (length, bytes) = bytes.split_first_chunk()?;
    let (body, bytes) = bytes.split_at_checked(usize::try_from(i32::from_be_bytes(*length)).ok()?)?;
    let (length, properties) = bytes.split_first_chunk()?;
    let length = usize::try_from(i16::from_be_bytes(*length)).ok()?;
    // the properties must end exactly where the message ends
    (length == properties.len()).then(|| BatchMessage { flag: i32::from_be_bytes(*flag), body, properties })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(flag: i32, body: &[u8], properties: &[u8]) -> Vec<u8> {
        let size = (MIN_LEN + body.len() + properties.len()) as i32;
        let mut out = Vec::new();
        for number in [size, 0, 0, flag, body.len() as i32] {
            out.extend_from_slice(&number.to_be_bytes());
        }
        out.extend_from_slice(body);
        out.extend_from_slice(&(properties.len() as i16).to_be_bytes());
        out.extend_from_slice(properties);
        out
    }

    #[test]
    fn messages_stand_one_behind_the_other() {
        let bytes = [encoded(1, b"a", b"k\x01v"), encoded(-2, b"", b"")].concat();
        let expected = [
            BatchMessage { flag: 1, body: b"a", properties: b"k\x01v" },
            BatchMessage { flag: -2, body: b"", properties: b"" },
        ];
        assert_eq!(messages(&bytes).as_deref(), Some(&expected[..]));
    }

    #[test]
    fn what_is_cut_or_lies_about_a_length_is_no_batch() {
        let whole = encoded(0, b"body", b"k\x01v");
        assert!((0..whole.len()).all(|end| messages(&whole[..end]).is_none()));
        for at in [0, 1, 2, 3, 16, 17, 18, 19, 24, 25] {
            for byte in [0x00, 0x7F, 0x80, 0xFF] {
                let mut wrong = whole.clone();
                if std::mem::replace(&mut wrong[at], byte) != byte {
                    assert!(messages(&wrong).is_none(), "{at}: {byte}");
                }
            }
        }
    }
}
