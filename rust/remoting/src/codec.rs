//! Converts frames to commands, and headers to frames, in both encodings of headers. Also reads and writes the binary
//! encoding:
//!
//! ```text
//! int16 code | int8 language | int16 version | int32 opaque | int32 flag
//! int32 remark length | remark
//! int32 fields length | { int16 name length | name | int32 value length | value }*
//! ```
//!
//! Source: `RocketMQSerializable.rocketMQProtocolEncode`, `rocketMQProtocolDecode`.
use crate::command::{Command, Header, Language};
use crate::error::{Error, Result};
use crate::frame::{self, Frame, Limits, SerializeType};
use crate::json_header;
use std::borrow::Cow;

impl<'a> Command<'a> {
    pub fn decode(frame: &Frame<'a>, limits: &Limits) -> Result<Self> {
        let command = match frame.serialize_type {
            SerializeType::Json => json_header::decode(frame.header, limits)?,
            SerializeType::RocketMq => decode_binary(frame.header, limits)?,
        };
        Ok(Self { body: frame.body, serialize_type: frame.serialize_type, ..command })
    }
}

impl Header<'_> {
    #[inline]
    pub fn write(&self, body: &[u8], out: &mut Vec<u8>) {
        self.write_before(body.len(), out);
        out.extend_from_slice(body);
    }

    /// Appends the start of a frame with this header. The caller must append `body` more bytes.
    pub fn write_before(&self, body: usize, out: &mut Vec<u8>) {
        let at = frame::begin(out);
        match self.serialize_type {
            SerializeType::Json => json_header::encode(self, out),
            SerializeType::RocketMq => encode_binary(self, out),
        }
        frame::end(out, at, self.serialize_type, body);
    }
}

fn decode_binary<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Command<'a>> {
    let mut rest = Rest(bytes);
    let mut command = Command::empty();
    command.code = rest.int16("code")?;
    command.language = Language::of_code(i64::from(rest.int8("language")?));
    command.version = rest.int16("version")?;
    command.opaque = rest.int32("opaque")?;
    command.flag = rest.int32("flag")?;
    let length = rest.int32("remark length")?;
    // Java reads an empty string as null
    command.remark = Some(rest.text("remark", length)?).filter(|remark| !remark.is_empty());
    let length = rest.int32("fields length")?;
    command.fields = fields(Rest(rest.bytes("header fields", length)?), limits)?;
    Ok(command)
}

fn fields<'a>(mut rest: Rest<'a>, limits: &Limits) -> Result<Vec<(Cow<'a, str>, Cow<'a, str>)>> {
    let mut fields = Vec::new();
    // there is no count of fields, only their total length
    while !rest.0.is_empty() {
        limits.check_fields(fields.len() + 1)?;
        let length = rest.int16("name length")?;
        let name = rest.text("name of a field", length)?;
        let length = rest.int32("value length")?;
        fields.push((name, rest.text("value of a field", length)?));
    }
    Ok(fields)
}

fn encode_binary(header: &Header<'_>, out: &mut Vec<u8>) {
    // the code has 16 bits here; larger codes, such as those of POP in 5.x, are sent as JSON only
    out.extend_from_slice(&(header.code as i16).to_be_bytes());
    out.push(Language::JAVA.code());
    out.extend_from_slice(&(header.version as i16).to_be_bytes());
    out.extend_from_slice(&header.opaque.to_be_bytes());
    out.extend_from_slice(&header.flag.to_be_bytes());
    long_text(header.remark.unwrap_or_default(), out);
    // placeholder: the length of the fields is known after they are written
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    for (name, value) in header.fields {
        out.extend_from_slice(&(name.len() as i16).to_be_bytes());
        out.extend_from_slice(name.as_bytes());
        value.with_text(|value| long_text(value, out));
    }
    let length = (out.len() - at - 4) as i32;
    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
}

fn long_text(text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(&(text.len() as i32).to_be_bytes());
    out.extend_from_slice(text.as_bytes());
}

struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N]> {
        let Some((first, rest)) = self.0.split_first_chunk() else {
            return Err(Error::malformed(what, format!("{N} bytes"), self.0.len()));
        };
        self.0 = rest;
        Ok(*first)
    }

    fn int8(&mut self, what: &'static str) -> Result<i8> {
        self.array(what).map(i8::from_be_bytes)
    }

    fn int16(&mut self, what: &'static str) -> Result<i32> {
        self.array(what).map(i16::from_be_bytes).map(i32::from)
    }

    fn int32(&mut self, what: &'static str) -> Result<i32> {
        self.array(what).map(i32::from_be_bytes)
    }

    fn bytes(&mut self, what: &'static str, length: i32) -> Result<&'a [u8]> {
        let parts = usize::try_from(length).ok().and_then(|length| self.0.split_at_checked(length));
        let Some((first, rest)) = parts else {
            return Err(Error::malformed(what, format!("at most {} bytes", self.0.len()), length));
        };
        self.0 = rest;
        Ok(first)
    }

    fn text(&mut self, what: &'static str, length: i32) -> Result<Cow<'a, str>> {
        let bytes = self.bytes(what, length)?;
        std::str::from_utf8(bytes).map(Cow::Borrowed).map_err(|e| Error::malformed(what, "UTF-8", e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Value;
    use crate::frame::{self, SerializeType};
    use proptest::prelude::*;

    const EXAMPLE: &[u8] = b"\0\x69\0\x01\x91\0\0\0\x07\0\0\0\0\0\0\0\x01r\0\0\0\x0c\0\x05topic\0\0\0\x01t";

    #[test]
    fn the_example_of_a_java_client_is_read_and_written() {
        let command = decode_binary(EXAMPLE, &Limits::default()).expect("sound");
        assert_eq!((command.code, command.version, command.opaque, command.flag), (105, 401, 7, 0));
        assert_eq!((command.remark.as_deref(), command.field("topic")), (Some("r"), Some("t")));
        let fields = [("topic", Value::Text("t"))];
        let header =
            Header { remark: Some("r"), serialize_type: SerializeType::RocketMq, ..Header::request(105, 7, &fields) };
        let mut out = Vec::new();
        encode_binary(&header, &mut out);
        assert_eq!(out, EXAMPLE);
    }

    proptest! {
        #[test]
        fn bytes_never_panic_and_what_is_cut_off_is_missed(
            bytes in proptest::collection::vec(any::<u8>(), 0..80), end in 0..EXAMPLE.len(),
        ) {
            let _ = decode_binary(&bytes, &Limits::default());
            prop_assert!(decode_binary(&EXAMPLE[..end], &Limits::default()).is_err());
        }

        #[test]
        fn what_is_written_is_read(code: i16, opaque: i32, number: i64, text in "\\PC{0,20}") {
            let fields = [("a", Value::Number(number)), ("b", Value::Text(&text)), ("c", Value::Flag(false))];
            for serialize_type in [SerializeType::Json, SerializeType::RocketMq] {
                let mut out = Vec::new();
                let header = Header { serialize_type, remark: Some(&text), ..Header::request(code.into(), opaque, &fields) };
                header.write(b"body", &mut out);
                let (frame, used) = frame::first(&out, &Limits::default()).expect("sound").expect("whole");
                let read = Command::decode(&frame, &Limits::default()).expect("sound");
                prop_assert_eq!((read.code, read.opaque, used, read.body), (code.into(), opaque, out.len(), &b"body"[..]));
                let number = number.to_string();
                prop_assert_eq!(["a", "b", "c"].map(|n| read.field(n)), [Some(number.as_str()), Some(text.as_str()), Some("false")]);
            }
        }
    }
}
