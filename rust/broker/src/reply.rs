//! The answer to one request, in the making.
use rmqfast_remoting::{Command, Header, SerializeType, Value};
use rmqfast_store::store::serve::Places;

/// Where an answer is written to. Nothing is written where nobody waits for it.
#[derive(Debug)]
pub struct Reply<'a> {
    out: &'a mut Vec<u8>,
    opaque: i32,
    serialize_type: SerializeType,
    is_oneway: bool,
}

impl<'a> Reply<'a> {
    /// The answer to `request`.
    pub fn to(request: &Command<'_>, out: &'a mut Vec<u8>) -> Self {
        Self { out, opaque: request.opaque, serialize_type: request.serialize_type, is_oneway: request.is_oneway() }
    }

    /// Writes it.
    pub fn write(&mut self, code: i32, remark: Option<&str>, fields: &[(&str, Value<'_>)], body: &[u8]) {
        if !self.is_oneway {
            let header = Header { code, remark, fields, opaque: self.opaque, ..Header::response(self.serialize_type) };
            header.write(body, self.out);
        }
    }

    /// Writes it with records as its body, which come straight from the log.
    pub fn write_records(&mut self, code: i32, remark: &str, fields: &[(&str, Value<'_>)], records: &Places) {
        if !self.is_oneway {
            let remark = Some(remark);
            let header = Header { code, remark, fields, opaque: self.opaque, ..Header::response(self.serialize_type) };
            header.write_before(records.bytes(), self.out);
            records.write(self.out);
        }
    }

    /// Writes one that has neither fields nor a body.
    pub fn end(&mut self, code: i32, remark: &str) {
        self.write(code, Some(remark), &[], b"");
    }
}
