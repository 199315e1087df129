//! Literals to values.
//!
//! Source: `ConstantExpression.createFromDecimal`, `createFloat`, `SelectorParser.stringLitteral`.
use super::fault::Fault;
use super::tree::Value;

/// What stands between the outer quotes, with doubled quotes made single.
pub(super) fn string(raw: &str) -> Box<str> {
    raw.replace("''", "'").into()
}

/// An integer as small as it fits: Java's `Integer`, else its `Long`.
pub(super) fn integer(digits: &str, at: usize) -> Result<Value<Box<str>>, Fault> {
    let value: i64 = digits
        .trim_end_matches(['l', 'L'])
        .parse()
        .map_err(|_| Fault::new(at, format!("integer {digits} is above {}", i64::MAX)))?;
    Ok(i32::try_from(value).map_or(Value::Long(value), Value::Int))
}

/// Zero is refused: RocketMQ holds it to be below `Double.MIN_VALUE`.
pub(super) fn decimal(digits: &str, at: usize) -> Result<Value<Box<str>>, Fault> {
    match digits.parse::<f64>() {
        Ok(0.0) => Err(Fault::new(at, format!("decimal {digits} is below 4.9E-324; write 0"))),
        Ok(value) if value.is_finite() => Ok(Value::Double(value)),
        _ => Err(Fault::new(at, format!("decimal {digits} is above {:e}", f64::MAX))),
    }
}
