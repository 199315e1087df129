//! Writes the answer to one request.
use rmqfast_remoting::code::response;
use rmqfast_remoting::{Body, Command, Header, Outgoing, SerializeType, Value};
use rmqfast_store::store::serve::Places;

/// Answers with at least this many bytes of records are copied chunk by chunk while they are written. Smaller answers
/// are copied at once, as a single write wakes the peer only once.
const LARGE: usize = 512 << 10;

/// A body within the log's mapped files. They stay mapped, even if retention removes them, until the body is written or
/// the connection ends, which happens if the peer does not read.
#[derive(Debug)]
struct InLog(Places);

impl Body for InLog {
    fn bytes(&self) -> usize {
        self.0.bytes()
    }

    fn piece(&self, number: usize) -> Option<&[u8]> {
        self.0.piece(number)
    }

    fn is_whole(&self) -> bool {
        self.0.are_complete()
    }
}

/// The control plane must answer: it creates a missing topic or group first, or has more information.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandOver;

/// Writes the answer to a request. Writes nothing for a oneway request.
#[derive(Debug)]
pub struct Reply<'a> {
    out: &'a mut Outgoing,
    opaque: i32,
    serialize_type: SerializeType,
    is_oneway: bool,
}

impl<'a> Reply<'a> {
    /// Creates the reply to `request`, which is appended to `out`.
    pub fn to(request: &Command<'_>, out: &'a mut Outgoing) -> Self {
        Self { out, opaque: request.opaque, serialize_type: request.serialize_type, is_oneway: request.is_oneway() }
    }

    pub fn write(&mut self, code: i32, remark: Option<&str>, fields: &[(&str, Value<'_>)], body: &[u8]) {
        if !self.is_oneway {
            let header = Header { code, remark, fields, opaque: self.opaque, ..Header::response(self.serialize_type) };
            header.write(body, self.out.frames());
        }
    }

    /// Writes an answer with records as its body, directly from the log. Takes `records` if they are many.
    pub fn write_records(&mut self, code: i32, remark: &str, fields: &[(&str, Value<'_>)], records: &mut Places) {
        if !self.is_oneway {
            let remark = Some(remark);
            let header = Header { code, remark, fields, opaque: self.opaque, ..Header::response(self.serialize_type) };
            // to undo the header if the log was truncated meanwhile
            let start = self.out.frames().len();
            header.write_before(records.bytes(), self.out.frames());
            if records.bytes() < LARGE {
                records.write(self.out.frames());
                // lost pages of a map read as zeroes, which are no message (decision 0012)
                if !records.are_complete() {
                    self.out.frames().truncate(start);
                    self.end(response::SYSTEM_ERROR, "a file of the commit log was cut off while it was read");
                }
            } else {
                self.out.push_body(Box::new(InLog(std::mem::take(records))));
            }
        }
    }

    /// Writes an answer without fields and body.
    pub fn end(&mut self, code: i32, remark: &str) {
        self.write(code, Some(remark), &[], b"");
    }
}
