//! Converts frames to commands and headers to frames, in both encodings of headers.
use crate::command::Command;
use crate::error::Result;
use crate::frame::Limits;
use crate::frame::{self, Frame, SerializeType};
use crate::header::Header;
use crate::{binary_header, json_header};

impl<'a> Command<'a> {
    /// Decodes the header of a frame. The body stays as it is.
    ///
    /// # Errors
    /// [`crate::Error::Malformed`] for an invalid header, [`crate::Error::TooLarge`].
    pub fn decode(frame: &Frame<'a>, limits: &Limits) -> Result<Self> {
        let command = match frame.serialize_type {
            SerializeType::Json => json_header::decode(frame.header, limits)?,
            SerializeType::RocketMq => binary_header::decode(frame.header, limits)?,
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
            SerializeType::RocketMq => binary_header::encode(self, out),
        }
        frame::end(out, at, self.serialize_type, body);
    }
}
