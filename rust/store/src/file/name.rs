//! The name of a segment file: the offset of its first byte in 20 decimal digits (`UtilAll.offset2FileName`).

pub const DIGITS: usize = 20;

pub fn of_offset(offset: u64) -> String {
    format!("{offset:020}")
}

/// Parses the offset in a name. `None` for any other name, which belongs to a stray file.
pub fn offset(name: &str) -> Option<u64> {
    let digits = name.len() == DIGITS && name.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| name.parse().ok()).flatten().filter(|offset| *offset <= i64::MAX as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_strays_are_none() {
        assert_eq!(of_offset(1_073_741_824), "00000000001073741824");
        assert_eq!(offset("00000000001073741824"), Some(1_073_741_824));
        for stray in
            ["", "lock", "0000000000107374182", "000000000010737418240", "-0000000001073741824", "99999999999999999999"]
        {
            assert_eq!(offset(stray), None, "{stray}");
        }
    }
}
