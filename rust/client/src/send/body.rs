//! Compression of bodies before a send.
//!
//! Source: `DefaultMQProducerImpl.tryToCompressMessage`.
use rmqfast_store::format::compression::{Compression, compress};

pub const COMPRESS_LEVEL: i32 = 5;

/// Compresses a body. Returns the compressed body, and the bits of `sysFlag` that say how it is compressed. As in Java,
/// it may be longer than the original body.
pub fn compressed(body: &[u8]) -> (Vec<u8>, i32) {
    (compress(Compression::Zlib, body, COMPRESS_LEVEL), Compression::Zlib.sys_flag())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmqfast_store::format::compression::decompress_into;

    #[test]
    fn a_compressed_body_begins_and_is_flagged_as_those_of_java() {
        let body = b"compress me, ".repeat(400);
        let (sent, sys_flag) = compressed(&body);
        assert_eq!((&sent[..2], sys_flag), (&[0x78, 0x5E][..], 769));
        let mut back = Vec::new();
        decompress_into(Compression::Zlib, &sent, 1 << 20, &mut back).expect("sound");
        assert_eq!(back, body);
    }
}
