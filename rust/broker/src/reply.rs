//! Writes the answer to one request.
use rmqfast_remoting::code::response;
use rmqfast_remoting::{Body, Command, Header, Outgoing, SerializeType, Value};
use rmqfast_store::store::serve::Places;

/// Minimum bytes of records in an answer that is copied chunk by chunk while it is written. A smaller answer is
/// copied at once, because a single write wakes the client only once.
const LARGE: usize = 512 << 10;

/// A body in the mapped files of the log. The files stay mapped until the body is written or the connection ends,
/// even if retention removes them. If the peer does not read, a timeout ends the connection.
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

/// Result of a request that the control plane must answer. It creates a missing topic or group, or has information
/// that is not in the tables.
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
    /// Creates the reply to `request`. It will be appended to `out`.
    pub fn to(request: &Command<'_>, out: &'a mut Outgoing) -> Self {
        Self { out, opaque: request.opaque, serialize_type: request.serialize_type, is_oneway: request.is_oneway() }
    }

    pub fn write(&mut self, code: i32, remark: Option<&str>, fields: &[(&str, Value<'_>)], body: &[u8]) {
        if !self.is_oneway {
            let header = Header { code, remark, fields, opaque: self.opaque, ..Header::response(self.serialize_type) };
            header.write(body, self.out.frames());
        }
    }

    /// Writes an answer whose body is records, directly from the log. Empties `records` if they are too large to
    /// copy.
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
