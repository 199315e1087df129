//! Values of bodies that have no parts, and how they are read as numbers, durations and UUIDs.
use arrow_array::ArrowNativeTypeOp;
use arrow_array::types::DecimalType;
use arrow_buffer::{ArrowNativeType, IntervalMonthDayNano};
use arrow_cast::parse::Parser;

/// A value of a body that has no parts.
#[derive(Clone, Copy, Debug)]
pub enum Scalar<'a> {
    Boolean(bool),
    /// A number as JSON writes it.
    Number(&'a str),
    Text(&'a str),
    Long(i64),
    Double(f64),
    Bytes(&'a [u8]),
    Uuid([u8; 16]),
    /// One of the symbols of an enum.
    Symbol(&'a [String], usize),
}

impl Scalar<'_> {
    /// Returns the bytes that the value has beside those of any value.
    pub fn text_len(&self) -> usize {
        match self {
            Self::Number(text) | Self::Text(text) => text.len(),
            Self::Bytes(bytes) => bytes.len(),
            Self::Symbol(symbols, at) => symbols[*at].len(),
            _ => 0,
        }
    }
}

/// Reads an integer from a number, or what `T` understands from a text.
pub fn whole<T: Parser, I: Parser<Native = T::Native>>(scalar: Scalar<'_>) -> Option<T::Native>
where
    T::Native: TryFrom<i64>,
{
    match scalar {
        Scalar::Text(text) => T::parse(text),
        Scalar::Number(text) => I::parse(text).or_else(|| whole_of_float(text)?.try_into().ok()),
        Scalar::Long(number) => number.try_into().ok(),
        _ => None,
    }
}

/// Reads a number with a fraction or an exponent that is whole all the same, as `1.0` and `1e3` are. One that a double does not
/// hold exactly is not taken.
fn whole_of_float(text: &str) -> Option<i64> {
    const EXACT: f64 = (1_u64 << 53) as f64;
    let number = text.parse::<f64>().ok()?;
    (number.fract() == 0.0 && number.abs() <= EXACT).then_some(number as i64)
}

pub fn float<T: Parser>(scalar: Scalar<'_>, of_double: fn(f64) -> T::Native) -> Option<T::Native> {
    match scalar {
        Scalar::Text(text) | Scalar::Number(text) => T::parse(text),
        Scalar::Double(double) => Some(of_double(double)),
        _ => None,
    }
}

/// Reads a decimal number, such as `1.230` or `12.3e-1`, exactly. `None` if the type keeps fewer digits.
///
/// arrow-cast's parser cuts what is behind the scale, and overflows by 256 digits or an exponent of five.
pub fn decimal<T: DecimalType>(text: &str, precision: u8, scale: i8) -> Option<T::Native> {
    let (number, exponent) = match text.split_once(['e', 'E']) {
        Some((number, exponent)) => (number, exponent.parse::<i64>().ok()?),
        None => (text, 0),
    };
    let unsigned = number.strip_prefix(['-', '+']).unwrap_or(number);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let count = i64::try_from(whole.len() + fraction.len()).ok().filter(|count| *count > 0)?;
    // the value is its digits, moved by so many places
    let shift = exponent.checked_sub(fraction.len() as i64)?.checked_add(scale.into())?;
    let kept = count.saturating_add(shift.min(0));
    let base = T::Native::usize_as(10);
    let mut value = T::Native::ZERO;
    for (at, digit) in (0..).zip(whole.bytes().chain(fraction.bytes())) {
        match digit {
            b'0'..=b'9' if at < kept => {
                value = value
                    .mul_checked(base)
                    .and_then(|value| value.add_checked(T::Native::usize_as((digit - b'0').into())))
                    .ok()?;
            }
            b'0' => {}
            _ => return None,
        }
    }
    // zero stays zero, and all else is too large after few places
    for _ in 0..if value.is_zero() { 0 } else { shift } {
        value = value.mul_checked(base).ok()?;
    }
    let signed = if number.starts_with('-') { value.neg_wrapping() } else { value };
    T::is_valid_decimal_precision(signed, precision).then_some(signed)
}

/// Returns a big-endian number with a sign in `N` bytes. `None` if it needs more.
pub fn sign_extended<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    let is_negative = bytes.first().is_some_and(|byte| *byte >= 0x80);
    let fill = if is_negative { 0xFF } else { 0 };
    let mut extended = [fill; N];
    let (more, last) = bytes.split_at(bytes.len().saturating_sub(N));
    extended[N - last.len()..].copy_from_slice(last);
    let keeps_sign = more.is_empty() || (extended[0] >= 0x80) == is_negative;
    (keeps_sign && more.iter().all(|byte| *byte == fill)).then_some(extended)
}

/// Reads Avro's duration: months, days and milliseconds.
pub fn duration(scalar: Scalar<'_>) -> Option<IntervalMonthDayNano> {
    let Scalar::Bytes(bytes) = scalar else { return None };
    let (parts, []) = bytes.as_chunks::<4>() else { return None };
    let [months, days, milliseconds] = parts else { return None };
    let part = |bytes: &[u8; 4]| i32::try_from(u32::from_le_bytes(*bytes)).ok();
    let nanoseconds = i64::from(u32::from_le_bytes(*milliseconds)) * 1_000_000;
    Some(IntervalMonthDayNano::new(part(months)?, part(days)?, nanoseconds))
}

/// Reads a UUID: 32 hexadecimal digits, with hyphens as in RFC 4122 or without.
pub fn uuid(text: &str) -> Option<[u8; 16]> {
    const HYPHENS: [usize; 4] = [8, 13, 18, 23];
    let has_hyphens = text.len() == 36 && HYPHENS.iter().all(|at| text.as_bytes()[*at] == b'-');
    let digits = if has_hyphens { text.replace('-', "") } else { text.to_owned() };
    let (pairs, []) = digits.as_bytes().as_chunks::<2>() else { return None };
    let bytes = pairs.iter().map(byte_of_hex).collect::<Option<Vec<_>>>()?;
    bytes.try_into().ok()
}

pub fn byte_of_hex([high, low]: &[u8; 2]) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    Some((digit(*high)? << 4 | digit(*low)?) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_need_more_bytes_are_refused() {
        assert_eq!(sign_extended::<2>(&[0xFF, 0x7F, 0]), None);
        assert_eq!(sign_extended::<2>(&[0, 0x80, 0]), None);
    }

    #[test]
    fn uuids_have_hyphens_or_none() {
        let text = "00112233-4455-6677-8899-aabbccddeeff";
        let bytes = uuid(text).expect("a UUID");
        assert_eq!((bytes[0], bytes[15], uuid(&text.replace('-', ""))), (0, 0xFF, Some(bytes)));
        for bad in
            ["", "0011", &text[1..], "00112233-4455-6677-8899-aabbccddeefg", "0011223-34455-6677-8899-aabbccddeeff"]
        {
            assert_eq!(uuid(bad), None, "{bad}");
        }
    }

    #[test]
    fn durations_have_three_parts() {
        let part = |number: u32| number.to_le_bytes();
        let whole = [part(1), part(2), part(u32::MAX)].concat();
        assert_eq!(duration(Scalar::Bytes(&whole)), Some(IntervalMonthDayNano::new(1, 2, 4_294_967_295_000_000)));
        assert_eq!(duration(Scalar::Bytes(&[part(u32::MAX), part(2), part(3)].concat())), None);
        assert_eq!(duration(Scalar::Bytes(&whole[..8])), None);
    }
}
