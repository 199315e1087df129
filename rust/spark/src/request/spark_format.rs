//! Formats of bodies in types that Spark has. Avro has others, such as enums and times in milliseconds.
use crate::error::{Error, Result};
use arrow_schema::{DataType, Field, FieldRef, Fields, TimeUnit};
use rmqfast_store::scan::decode::Decode;
use std::sync::Arc;

/// Zone of Spark's timestamps.
const UTC: &str = "UTC";
/// Largest precision of a decimal in Spark.
const MAX_PRECISION: u8 = 38;

/// Returns the decoding with types that Spark has: text for enums, bytes for `fixed`, microseconds for timestamps, and the
/// number for times of a day.
///
/// # Errors
/// A type that none of Spark's holds.
pub fn in_types_of_spark(decode: &Decode) -> Result<Decode> {
    let fields = fields_of_spark(decode.format.fields())?;
    Ok(decode.with_fields(&fields)?)
}

fn fields_of_spark(fields: &Fields) -> Result<Fields> {
    fields.iter().map(field_of_spark).collect()
}

fn field_of_spark(field: &FieldRef) -> Result<FieldRef> {
    let data_type = type_of_spark(field)?;
    Ok(Arc::new(Field::new(field.name(), data_type, field.is_nullable())))
}

fn type_of_spark(field: &Field) -> Result<DataType> {
    Ok(match field.data_type() {
        DataType::Dictionary(_, values) if **values == DataType::Utf8 => DataType::Utf8,
        DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8,
        DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => DataType::Binary,
        DataType::Timestamp(_, Some(_)) => DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into())),
        DataType::Timestamp(_, None) => DataType::Timestamp(TimeUnit::Microsecond, None),
        DataType::Time32(_) => DataType::Int32,
        DataType::Time64(_) => DataType::Int64,
        DataType::Decimal256(precision, scale) if *precision <= MAX_PRECISION => {
            DataType::Decimal128(*precision, *scale)
        }
        DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale) if *scale < 0 => return Err(unknown(field)),
        DataType::Struct(fields) => DataType::Struct(fields_of_spark(fields)?),
        DataType::List(item) | DataType::LargeList(item) => DataType::List(field_of_spark(item)?),
        DataType::Map(entries, is_sorted) => DataType::Map(field_of_spark(entries)?, *is_sorted),
        DataType::Boolean | DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => {
            field.data_type().clone()
        }
        DataType::Float32 | DataType::Float64 | DataType::Utf8 | DataType::Binary => field.data_type().clone(),
        DataType::Date32 | DataType::Decimal128(..) => field.data_type().clone(),
        _ => return Err(unknown(field)),
    })
}

fn unknown(field: &Field) -> Error {
    let (name, got) = (field.name(), field.data_type());
    Error::argument(format!("option valueSchema: field {name}: expected a type that Spark has, got {got}"))
}
