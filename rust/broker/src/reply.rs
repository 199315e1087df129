//! The answer to one request, in the making.
use rmqfast_remoting::code::response;
use rmqfast_remoting::{Body, Command, Header, Outgoing, SerializeType, Value};
use rmqfast_store::store::serve::Places;

/// Records of so many bytes are copied once the socket takes them, chunk by chunk; fewer at once: a single write wakes who
/// waits for them only once.
const LARGE: usize = 512 << 10;

/// A body that stands in the log. Its files stay mapped, though retention may remove them, until it is written or the
/// connection ends: a peer that does not read for long is cut off.
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

/// Why there is no answer yet: the control plane has to make something first, as a topic or a group, or knows more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandOver;

/// Writes the answer to a request; nothing for a one-way request.
#[derive(Debug)]
pub struct Reply<'a> {
    out: &'a mut Outgoing,
    opaque: i32,
    serialize_type: SerializeType,
    is_oneway: bool,
}

impl<'a> Reply<'a> {
    /// Returns the answer to `request`.
    pub fn to(request: &Command<'_>, out: &'a mut Outgoing) -> Self {
        Self { out, opaque: request.opaque, serialize_type: request.serialize_type, is_oneway: request.is_oneway() }
    }

    pub fn write(&mut self, code: i32, remark: Option<&str>, fields: &[(&str, Value<'_>)], body: &[u8]) {
        if !self.is_oneway {
            let header = Header { code, remark, fields, opaque: self.opaque, ..Header::response(self.serialize_type) };
            header.write(body, self.out.frames());
        }
    }

    /// Writes it with records as its body, which come straight from the log; they may be taken.
    pub fn write_records(&mut self, code: i32, remark: &str, fields: &[(&str, Value<'_>)], records: &mut Places) {
        if !self.is_oneway {
            let remark = Some(remark);
            let header = Header { code, remark, fields, opaque: self.opaque, ..Header::response(self.serialize_type) };
            let start = self.out.frames().len();
            header.write_before(records.bytes(), self.out.frames());
            if records.bytes() < LARGE {
                records.write(self.out.frames());
                // a map that lost its pages reads as zeroes, which are no message (decision 0012)
                if !records.are_complete() {
                    self.out.frames().truncate(start);
                    self.end(response::SYSTEM_ERROR, "a file of the commit log was cut off while it was read");
                }
            } else {
                self.out.push_body(Box::new(InLog(std::mem::take(records))));
            }
        }
    }

    /// Writes one that has neither fields nor a body.
    pub fn end(&mut self, code: i32, remark: &str) {
        self.write(code, Some(remark), &[], b"");
    }
}
