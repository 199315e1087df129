//! Logical types of Avro: the meaning of a number or of bytes.
use super::ddl::UTC;
use arrow_schema::{DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType, IntervalUnit, TimeUnit};
use serde_json::{Map, Value};

/// Returns the type that a schema's `logicalType` gives to values of a plain type, or the plain type if Avro has no such logical
/// type: the specification asks readers to ignore those.
pub fn logical_type(object: &Map<String, Value>, plain: &DataType) -> DataType {
    let name = object.get("logicalType").and_then(Value::as_str).unwrap_or_default();
    let utc = || Some(UTC.into());
    match (plain, name) {
        (DataType::Int32, "date") => DataType::Date32,
        (DataType::Int32, "time-millis") => DataType::Time32(TimeUnit::Millisecond),
        (DataType::Int64, "time-micros") => DataType::Time64(TimeUnit::Microsecond),
        (DataType::Int64, "timestamp-millis") => DataType::Timestamp(TimeUnit::Millisecond, utc()),
        (DataType::Int64, "timestamp-micros") => DataType::Timestamp(TimeUnit::Microsecond, utc()),
        (DataType::Int64, "timestamp-nanos") => DataType::Timestamp(TimeUnit::Nanosecond, utc()),
        (DataType::Int64, "local-timestamp-millis") => DataType::Timestamp(TimeUnit::Millisecond, None),
        (DataType::Int64, "local-timestamp-micros") => DataType::Timestamp(TimeUnit::Microsecond, None),
        (DataType::Int64, "local-timestamp-nanos") => DataType::Timestamp(TimeUnit::Nanosecond, None),
        (DataType::Binary | DataType::FixedSizeBinary(_), "decimal") => {
            decimal(object).unwrap_or_else(|| plain.clone())
        }
        (DataType::FixedSizeBinary(12), "duration") => DataType::Interval(IntervalUnit::MonthDayNano),
        _ => plain.clone(),
    }
}

fn decimal(object: &Map<String, Value>) -> Option<DataType> {
    let precision = u8::try_from(object.get("precision")?.as_u64()?).ok()?;
    let scale = object.get("scale").map_or(Some(0), Value::as_u64).and_then(|scale| i8::try_from(scale).ok())?;
    if precision == 0 || scale as u8 > precision || precision > DECIMAL256_MAX_PRECISION {
        return None;
    }
    let fits = precision <= DECIMAL128_MAX_PRECISION;
    Some(if fits { DataType::Decimal128(precision, scale) } else { DataType::Decimal256(precision, scale) })
}
