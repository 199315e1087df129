//! Evaluates an expression tree for the properties of a message. The result is TRUE, FALSE, NULL or an error. Allocates no memory.
//!
//! Source: `ComparisonExpression.evaluate`, `__compare`, `LogicExpression`, `UnaryExpression`, `Integer.valueOf`, `Long.valueOf`,
//! `Double.valueOf`, `java.lang`.
use super::tree::{Node, NodeId, Order, Part, Tree, Value};
use std::cmp::Ordering;
use std::str::FromStr;

/// The expression has no result for a message. Such a message does not match, as in RocketMQ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EvaluationError {
    /// A property is compared with a number, but its value is not a number of that type.
    #[error("a property compared with a number holds no number of its kind")]
    NotANumber,
    /// A condition on the left side is compared with a string on the right side.
    #[error("a condition cannot be compared with a string")]
    BooleanWithString,
}

type Evaluated<T> = Result<T, EvaluationError>;

pub(super) fn evaluate<'p, F>(tree: &Tree, property: &F) -> Evaluated<Option<bool>>
where
    F: Fn(&str) -> Option<&'p str>,
{
    let Some(root) = tree.nodes.len().checked_sub(1) else { return Ok(None) };
    Evaluation { tree, property }.condition(NodeId(root as u32))
}

struct Evaluation<'t, F> {
    tree: &'t Tree,
    property: &'t F,
}

impl<'t, 'p: 't, F: Fn(&str) -> Option<&'p str>> Evaluation<'t, F> {
    fn value(&self, id: NodeId) -> Evaluated<Value<&'t str>> {
        match self.tree.node(id) {
            Node::Constant(value) => Ok(value.borrow()),
            Node::Property(slot) => Ok(self.text(*slot).map_or(Value::Null, Value::Text)),
            Node::Negate(operand) => self.value(*operand).map(negate),
            _ => Ok(self.condition(id)?.map_or(Value::Null, Value::Bool)),
        }
    }

    fn text(&self, slot: u32) -> Option<&'t str> {
        (self.property)(&self.tree.names[slot as usize])
    }

    fn condition(&self, id: NodeId) -> Evaluated<Option<bool>> {
        match self.tree.node(id) {
            Node::Constant(Value::Bool(value)) => Ok(Some(*value)),
            // A property by itself is a string, and a string is never TRUE.
            Node::Constant(_) | Node::Property(_) | Node::Negate(_) => Ok(None),
            // `a AND TRUE` with a property `a` is never TRUE, as in RocketMQ.
            Node::Cast(operand) => Ok(if self.value(*operand)? == Value::Null { None } else { Some(false) }),
            Node::Not(operand) => Ok(self.condition(*operand)?.map(|value| !value)),
            Node::And(operands) => self.decide(operands, false),
            Node::Or(operands) => self.decide(operands, true),
            Node::Equal(left, right) => equal(self.value(*left)?, self.value(*right)?),
            Node::IsNull(operand) => Ok(Some(self.value(*operand)? == Value::Null)),
            Node::Compare(order, left, right) => self.compare_order(*order, self.value(*left)?, *right),
            Node::Between { not, value, low, high } => self.between(*not, *value, *low, *high),
            Node::In { not, value, list } => Ok(match self.value(*value)? {
                Value::Text(text) => Some(is_in(list, text) != *not),
                _ => None,
            }),
            Node::Match { not, part, value, search } => self.matching(*not, *part, *value, search),
        }
    }

    /// Evaluates AND (`decisive` is false) or OR (`decisive` is true). Stops at the first operand that equals
    /// `decisive`, so errors in later operands have no effect.
    fn decide(&self, operands: &[NodeId], decisive: bool) -> Evaluated<Option<bool>> {
        let mut result = Some(!decisive);
        for operand in operands {
            match self.condition(*operand)? {
                Some(value) if value == decisive => return Ok(Some(decisive)),
                Some(_) => {}
                None => result = None,
            }
        }
        Ok(result)
    }

    /// Evaluates `<`, `<=`, `>` or `>=`. Evaluates the right side only if the left side is not null.
    fn compare_order(&self, order: Order, left: Value<&str>, right: NodeId) -> Evaluated<Option<bool>> {
        if left == Value::Null {
            return Ok(None);
        }
        let ordering = match (left, self.value(right)?) {
            (_, Value::Null) => return Ok(None),
            // Two properties are compared as numbers, even if both are strings.
            (Value::Text(left), Value::Text(right)) => java_compare(double(left)?, double(right)?),
            (left, right) => compare(left, right)?,
        };
        Ok(Some(order.holds(ordering)))
    }

    fn between(&self, not: bool, value: NodeId, low: NodeId, high: NodeId) -> Evaluated<Option<bool>> {
        let value = self.value(value)?;
        let (first, second) =
            if not { (Order::Less, Order::Greater) } else { (Order::GreaterOrEqual, Order::LessOrEqual) };
        let first = self.compare_order(first, value, low)?;
        // The first comparison decides, so the second is not evaluated and cannot fail.
        if first == Some(not) {
            return Ok(first);
        }
        Ok(match self.compare_order(second, value, high)? {
            decided if decided == Some(not) => decided,
            other => first.and(other),
        })
    }

    /// Evaluates CONTAINS, STARTSWITH and ENDSWITH. If the value is null or not a string, the result is false, with
    /// NOT as well as without.
    fn matching(&self, not: bool, part: Part, value: NodeId, search: &str) -> Evaluated<Option<bool>> {
        // As in RocketMQ an empty search string matches no message, with or without NOT.
        if search.is_empty() {
            return Ok(Some(false));
        }
        let Value::Text(text) = self.value(value)? else { return Ok(Some(false)) };
        let is_match = match part {
            Part::Contains => text.contains(search),
            Part::StartsWith => text.starts_with(search),
            Part::EndsWith => text.ends_with(search),
        };
        Ok(Some(is_match != not))
    }
}

/// Evaluates `=`. Two nulls are equal. Otherwise a null on the left gives null, and a null on the right gives false.
fn equal(left: Value<&str>, right: Value<&str>) -> Evaluated<Option<bool>> {
    match (left, right) {
        (Value::Null, Value::Null) => Ok(Some(true)),
        (Value::Null, _) => Ok(None),
        (_, Value::Null) => Ok(Some(false)),
        (left, right) => Ok(Some(compare(left, right)?.is_eq())),
    }
}

/// Compares two values as Java does. A string is converted to the type of the other side. A boolean is less than any number.
pub(super) fn compare(left: Value<&str>, right: Value<&str>) -> Evaluated<Ordering> {
    use Value::{Bool, Double, Int, Long, Null, Text};
    Ok(match (left, right) {
        (Int(l), Int(r)) => l.cmp(&r),
        (Long(l), Long(r)) => l.cmp(&r),
        (Double(l), Double(r)) => java_compare(l, r),
        (Int(l), Long(r)) => i64::from(l).cmp(&r),
        (Long(l), Int(r)) => l.cmp(&i64::from(r)),
        (Int(l), Double(r)) => java_compare(f64::from(l), r),
        (Double(l), Int(r)) => java_compare(l, f64::from(r)),
        (Long(l), Double(r)) => java_compare(l as f64, r),
        (Double(l), Long(r)) => java_compare(l, r as f64),
        (Text(l), Text(r)) => l.cmp(r),
        (Text(l), Int(r)) => int(l)?.cmp(&r),
        (Int(l), Text(r)) => l.cmp(&int(r)?),
        (Text(l), Long(r)) => long(l)?.cmp(&r),
        (Long(l), Text(r)) => l.cmp(&long(r)?),
        (Text(l), Double(r)) => java_compare(double(l)?, r),
        (Double(l), Text(r)) => java_compare(l, double(r)?),
        (Bool(l), Bool(r)) => l.cmp(&r),
        // `Boolean.valueOf` converts any string but "true" to false.
        (Text(l), Bool(r)) => l.eq_ignore_ascii_case("true").cmp(&r),
        (Bool(_), Text(_)) => return Err(EvaluationError::BooleanWithString),
        (Bool(_), _) | (_, Bool(_)) | (Null, _) | (_, Null) => Ordering::Less,
    })
}

/// Compares two numbers as `Double.compare` does. NaN equals itself and is the largest value, and -0.0 is less than
/// 0.0.
fn java_compare(left: f64, right: f64) -> Ordering {
    // All NaNs are equal in Java, whatever their bits.
    let one_nan = |value: f64| if value.is_nan() { f64::NAN.abs() } else { value };
    one_nan(left).total_cmp(&one_nan(right))
}

fn int(text: &str) -> Evaluated<i32> {
    java_int(text).ok_or(EvaluationError::NotANumber)
}

fn long(text: &str) -> Evaluated<i64> {
    java_long(text).ok_or(EvaluationError::NotANumber)
}

fn double(text: &str) -> Evaluated<f64> {
    java_double(text).ok_or(EvaluationError::NotANumber)
}

fn negate(value: Value<&str>) -> Value<&str> {
    match value {
        // The smallest number is its own negative, as in Java.
        Value::Int(value) => Value::Int(value.wrapping_neg()),
        Value::Long(value) => Value::Long(value.wrapping_neg()),
        Value::Double(value) => Value::Double(-value),
        _ => Value::Null,
    }
}

fn is_in(list: &[Box<str>], text: &str) -> bool {
    const FEW: usize = 8;
    // A few strings are compared faster one by one.
    if list.len() <= FEW {
        list.iter().any(|element| **element == *text)
    } else {
        list.binary_search_by(|element| (**element).cmp(text)).is_ok()
    }
}

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

/// Parses a hexadecimal number without its `0x`, such as `1.8p3`. The exponent is required and counts powers of two.
/// Returns `None` for any other text.
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
