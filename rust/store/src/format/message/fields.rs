//! Constants of a record, for reading and writing.

/// Magic of a record whose topic length is one byte.
pub const MAGIC_V1: i32 = 0xDAA3_20A7_u32 as i32;
/// Magic of a 5.x record whose topic length is two bytes.
pub const MAGIC_V2: i32 = 0xDAA3_20AB_u32 as i32;
/// Magic of the end of a file.
pub const BLANK_MAGIC: i32 = 0xCBD4_3194_u32 as i32;
/// Bytes that stay free behind a record for a blank one (`END_FILE_MIN_BLANK_LENGTH`).
pub const MIN_BLANK_LEN: usize = 8;
/// Length of an empty V1 record with two IPv4 hosts.
pub const MIN_LEN: usize = 91;
/// Size of the smallest log file: one record with a topic of one letter, and the free bytes behind it.
pub const MIN_FILE_SIZE: u64 = (MIN_LEN + MIN_BLANK_LEN + 1) as u64;

/// sysFlag: the body is compressed.
pub const COMPRESSED: i32 = 0x1;
/// sysFlag: the bits of the transaction type.
pub const TRANSACTION_MASK: i32 = 0xC;
/// sysFlag: prepared; such a record has no place in a queue.
pub const TRANSACTION_PREPARED: i32 = 0x4;
/// sysFlag: rolled back; such a record has no place in a queue.
pub const TRANSACTION_ROLLBACK: i32 = 0xC;
/// sysFlag: several messages in one record, which 5.x lists in another kind of queue.
pub const INNER_BATCH: i32 = 0x80;
/// sysFlag: the born host is IPv6.
pub const BORN_HOST_V6: i32 = 0x10;
/// sysFlag: the store host is IPv6.
pub const STORE_HOST_V6: i32 = 0x20;

pub(super) const SYS_FLAG_AT: usize = 36;
pub(super) const BORN_HOST_AT: usize = 48;

/// The CRC that a record stores for `body` (`UtilAll.crc32`).
#[inline]
pub fn body_crc(body: &[u8]) -> i32 {
    if body.is_empty() { 0 } else { (crc32fast::hash(body) & 0x7FFF_FFFF) as i32 }
}

/// Length of a host by the bit of its address family.
#[inline]
pub(super) fn host_len(sys_flag: i32, v6_bit: i32) -> usize {
    if sys_flag & v6_bit == 0 { 8 } else { 20 }
}
