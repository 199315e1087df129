//! Constants of a record, used by decoder and encoder.

/// Magic number of a record whose topic length has one byte.
pub const MAGIC_V1: i32 = 0xDAA3_20A7_u32 as i32;
/// Magic number of a 5.x record whose topic length has two bytes.
pub const MAGIC_V2: i32 = 0xDAA3_20AB_u32 as i32;
/// Magic number of the blank record that fills the end of a file.
pub const BLANK_MAGIC: i32 = 0xCBD4_3194_u32 as i32;
/// Bytes that stay free behind each record of a file, so that a blank record fits (`END_FILE_MIN_BLANK_LENGTH`).
pub const MIN_BLANK_LEN: usize = 8;
/// Length of a V1 record with two IPv4 hosts, and empty topic, body and properties.
pub const MIN_LEN: usize = 91;
/// Size of the smallest log file: a record with a topic of one letter, and the free bytes behind it.
pub const MIN_FILE_SIZE: u64 = (MIN_LEN + MIN_BLANK_LEN + 1) as u64;

/// Bit of sysFlag: the body is compressed.
pub const COMPRESSED: i32 = 0x1;
/// Bits of sysFlag for the type of transaction.
pub const TRANSACTION_MASK: i32 = 0xC;
/// Value of the transaction bits for a prepared (half) message. Consumers do not see the message, so no queue lists
/// it.
pub const TRANSACTION_PREPARED: i32 = 0x4;
/// Value of the transaction bits for a rolled-back message. Consumers do not see the message, so no queue lists it.
pub const TRANSACTION_ROLLBACK: i32 = 0xC;
/// Bit of sysFlag: the record contains several messages. 5.x lists it in another kind of queue.
pub const INNER_BATCH: i32 = 0x80;
/// Bit of sysFlag: the born host has an IPv6 address.
pub const BORN_HOST_V6: i32 = 0x10;
/// Bit of sysFlag: the store host has an IPv6 address.
pub const STORE_HOST_V6: i32 = 0x20;

pub(super) const SYS_FLAG_AT: usize = 36;
pub(super) const BORN_HOST_AT: usize = 48;

/// Computes the CRC that a record stores for `body` (`UtilAll.crc32`).
#[inline]
pub fn body_crc(body: &[u8]) -> i32 {
    if body.is_empty() { 0 } else { (crc32fast::hash(body) & 0x7FFF_FFFF) as i32 }
}

/// Returns the length of a host. `v6_bit` is the bit of its address family.
#[inline]
pub(super) fn host_len(sys_flag: i32, v6_bit: i32) -> usize {
    if sys_flag & v6_bit == 0 { 8 } else { 20 }
}
