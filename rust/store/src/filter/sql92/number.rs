//! Parses numbers in property values exactly as Java does.
//!
//! Source: `Integer.valueOf`, `Long.valueOf`, `Double.valueOf` of `java.lang`.
use std::str::FromStr;

/// Parses like `Integer.valueOf`: an optional sign and decimal digits of any script, without blanks.
pub(super) fn java_int(text: &str) -> Option<i32> {
    integer(text)
}

/// Parses like `Long.valueOf`, which accepts the same characters as [`java_int`] and no trailing `L`.
pub(super) fn java_long(text: &str) -> Option<i64> {
    integer(text)
}

fn integer<T: FromStr>(text: &str) -> Option<T> {
    match text.parse() {
        Ok(value) => Some(value),
        // Java accepts digits of other scripts, which hardly any string has.
        Err(_) if text.is_ascii() => None,
        Err(_) => text.chars().map(ascii_digit).collect::<Option<String>>()?.parse().ok(),
    }
}

/// The zero digits of the non-ASCII scripts that Java 17 knows in the Basic Multilingual Plane. The code points of
/// the digits 1 to 9 follow each zero.
const ZEROS: [u16; 36] = [
    0x0660, 0x06F0, 0x07C0, 0x0966, 0x09E6, 0x0A66, 0x0AE6, 0x0B66, 0x0BE6, 0x0C66, 0x0CE6, 0x0D66, 0x0DE6, 0x0E50,
    0x0ED0, 0x0F20, 0x1040, 0x1090, 0x17E0, 0x1810, 0x1946, 0x19D0, 0x1A80, 0x1A90, 0x1B50, 0x1BB0, 0x1C40, 0x1C50,
    0xA620, 0xA8D0, 0xA900, 0xA9D0, 0xA9F0, 0xAA50, 0xABF0, 0xFF10,
];

fn ascii_digit(c: char) -> Option<char> {
    if c.is_ascii() {
        return Some(c);
    }
    let code = u16::try_from(u32::from(c)).ok()?;
    // The last zero at or before the character belongs to its script.
    let zero = ZEROS.iter().rfind(|zero| **zero <= code)?;
    char::from_digit(u32::from(code - zero), 10)
}

/// Parses like `Double.valueOf`, which accepts blanks at both ends, NaN, Infinity, hexadecimal digits, and a trailing `f` or `d`.
pub(super) fn java_double(text: &str) -> Option<f64> {
    // The characters that Java's `String.trim` removes.
    let text = text.trim_matches(|c| c <= ' ');
    let (negative, rest) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let magnitude = match rest.as_bytes() {
        b"NaN" => f64::NAN,
        b"Infinity" => f64::INFINITY,
        [b'0', b'x' | b'X', ..] => hexadecimal(&rest[2..])?,
        _ => decimal(rest)?,
    };
    Some(if negative { -magnitude } else { magnitude })
}

fn decimal(text: &str) -> Option<f64> {
    let number = without_suffix(text);
    // Rust also parses "inf", "nan" and the like, which Java does not.
    let legal = number.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-'));
    let has_sign = matches!(number.as_bytes().first()?, b'+' | b'-');
    // The sign was read before. A second sign is an error.
    if legal && !has_sign { number.parse().ok() } else { None }
}

/// Parses a hexadecimal number such as `1.8p3`, from behind the `0x`. The exponent is required and counts powers of two.
fn hexadecimal(text: &str) -> Option<f64> {
    let (mantissa, exponent) = without_suffix(text).split_once(['p', 'P'])?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = || whole.bytes().chain(fraction.bytes());
    let unsigned = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    let legal = digits().next().is_some()
        && digits().all(|b| b.is_ascii_hexdigit())
        && !unsigned.is_empty()
        && unsigned.bytes().all(|b| b.is_ascii_digit());
    if !legal {
        return None;
    }
    // An exponent beyond i64 gives zero or infinity, like any other exponent of that size.
    let limit = if exponent.starts_with('-') { i64::MIN / 4 } else { i64::MAX / 4 };
    let exponent = exponent.parse::<i64>().map_or(limit, |e| e.clamp(i64::MIN / 4, i64::MAX / 4));
    Some(scale(digits(), exponent - 4 * fraction.len() as i64))
}

/// Returns the hexadecimal digits as an integer, times 2 to the power of `exponent`. Rounds once, half to even.
fn scale(digits: impl Iterator<Item = u8>, mut exponent: i64) -> f64 {
    let (mut bits, mut has_more) = (0_u64, false);
    for digit in digits.filter_map(|b| char::from(b).to_digit(16)) {
        if bits >> 60 == 0 {
            bits = bits << 4 | u64::from(digit);
        } else {
            exponent += 4;
            // Digits that do not fit into 64 bits matter only for rounding.
            has_more |= digit != 0;
        }
    }
    if bits == 0 {
        return 0.0;
    }
    let shift = i64::from(bits.leading_zeros());
    let (bits, exponent) = (bits << shift, exponent - shift);
    // The value is bits * 2^exponent, and its top bit is set. Keep 53 bits, or fewer if the result is subnormal.
    let top = exponent + 63;
    if top > 1023 {
        return f64::INFINITY;
    }
    // The number of bits that the result can hold: 53, or fewer for subnormal numbers.
    let precision = (top + 1075).clamp(-1, 53);
    if precision < 0 {
        return 0.0;
    }
    let rounded = round(bits, 64 - precision as u32, has_more);
    let unit = (top - 52).max(-1074);
    // This is exact: `rounded` has at most 53 bits and a carry, and each factor is a power of two.
    let half = unit / 2;
    rounded as f64 * 2_f64.powi(half as i32) * 2_f64.powi((unit - half) as i32)
}

/// Drops the last `drop` bits (11 to 64) of `bits` and rounds half to even. `has_more` says that nonzero digits
/// follow.
fn round(bits: u64, drop: u32, has_more: bool) -> u64 {
    let high = bits.checked_shr(drop).unwrap_or(0);
    let rest = u128::from(bits) & ((1_u128 << drop) - 1);
    let half = 1_u128 << (drop - 1);
    let up = rest > half || (rest == half && (has_more || high & 1 == 1));
    high + u64::from(up)
}

fn without_suffix(text: &str) -> &str {
    text.strip_suffix(['f', 'F', 'd', 'D']).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_take_a_sign_and_digits_only() {
        for (text, value) in [("5", 5), ("+5", 5), ("-007", -7), ("-2147483648", i32::MIN), ("٣٤", 34), ("-１2", -12)]
        {
            assert_eq!(java_int(text), Some(value), "{text}");
        }
        for text in ["", "+", "-", " 5", "5 ", "5L", "1_0", "2147483648", "0x1", "5.0", "½", "五", "𝟓"] {
            assert_eq!(java_int(text), None, "{text}");
        }
        assert_eq!(java_long("-9223372036854775808"), Some(i64::MIN));
        assert_eq!(java_long("9223372036854775808"), None);
    }

    #[test]
    fn doubles_take_all_that_java_takes() {
        for (text, value) in [
            (" 5 ", 5.0),
            ("\u{1}.5\n", 0.5),
            ("5.", 5.0),
            ("+1e3", 1000.0),
            ("1.5f", 1.5),
            ("2D", 2.0),
            ("-Infinity", f64::NEG_INFINITY),
            ("1e999999999999", f64::INFINITY),
            ("1e-999999999999", 0.0),
            ("0x1p3", 8.0),
            ("-0X.8p1d", -1.0),
            ("0x1.p-1074", 5e-324),
        ] {
            assert_eq!(java_double(text), Some(value), "{text}");
        }
        assert!(java_double("-NaN").is_some_and(f64::is_nan));
        for text in [
            "", " ", "+", ".", "e5", "1e", "1e+f", "inf", "nan", "infinity", "1_0", "--1", "+-1", "1ff", "0x1", "0xp1",
            "0x.p1", "٣",
        ] {
            assert_eq!(java_double(text), None, "{text}");
        }
    }

    #[test]
    fn hexadecimal_rounds_once_and_half_to_even() {
        for (text, bits) in [
            ("0x1.00000000000008p0", 0x3FF0_0000_0000_0000_u64),
            ("0x1.00000000000018p0", 0x3FF0_0000_0000_0002),
            ("0x1.000000000000080000000001p0", 0x3FF0_0000_0000_0001),
            ("0x1.fffffffffffffp1023", f64::MAX.to_bits()),
            ("0x1.fffffffffffff8p1023", f64::INFINITY.to_bits()),
            ("0x0.8p-1074", 0),
            ("0x0.80001p-1074", 1),
            ("0x1.8p-1074", 2),
            ("0x1.fffffffffffffp-1023", f64::MIN_POSITIVE.to_bits()),
            ("0x0p999999999999999999999", 0),
            ("0x1p-999999999999999999999", 0),
        ] {
            assert_eq!(java_double(text).map(f64::to_bits), Some(bits), "{text}");
        }
    }
}
