//! Reads values of Arrow columns. Offsets and numbers may have any width.
use crate::{Error, Result};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Date64Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, BinaryArray, BinaryViewArray, FixedSizeBinaryArray, Int64Array, LargeBinaryArray};
use arrow_schema::{DataType, TimeUnit};

const DAY_MS: i64 = 86_400_000;

/// A column of strings or bytes. Strings are read as bytes, because their producer may not have checked that they are UTF-8.
#[derive(Clone, Debug)]
pub enum Bytes {
    /// A column whose offsets have 32 bits.
    Small(BinaryArray),
    /// A column whose offsets have 64 bits.
    Large(LargeBinaryArray),
    View(BinaryViewArray),
    Fixed(FixedSizeBinaryArray),
    /// A column whose values are in a dictionary, such as a pandas column of categories.
    Dictionary {
        keys: Int64Array,
        values: Box<Bytes>,
    },
}

impl Bytes {
    /// Reads a column. `name` is the name of the column in errors.
    pub fn new(name: &'static str, array: &dyn Array) -> Result<Self> {
        Ok(match array.data_type() {
            DataType::Utf8 => Self::Small(array.as_string::<i32>().clone().into()),
            DataType::LargeUtf8 => Self::Large(array.as_string::<i64>().clone().into()),
            DataType::Utf8View => Self::View(array.as_string_view().clone().to_binary_view()),
            DataType::Binary => Self::Small(array.as_binary::<i32>().clone()),
            DataType::LargeBinary => Self::Large(array.as_binary::<i64>().clone()),
            DataType::BinaryView => Self::View(array.as_binary_view().clone()),
            DataType::FixedSizeBinary(_) => Self::Fixed(array.as_fixed_size_binary().clone()),
            // Lists or a dictionary whose rows are all empty have items of type null.
            DataType::Null => Self::Small(BinaryArray::new_null(array.len())),
            DataType::Dictionary(..) => {
                let dictionary = array.as_any_dictionary();
                let values = Self::new(name, dictionary.values())?.into();
                Self::Dictionary { keys: integers(name, dictionary.keys())?, values }
            }
            other => return Err(Error::invalid(name, "a column of text or bytes", other)),
        })
    }

    #[inline]
    pub fn value(&self, index: usize) -> Option<&[u8]> {
        match self {
            Self::Small(array) => array.is_valid(index).then(|| array.value(index)),
            Self::Large(array) => array.is_valid(index).then(|| array.value(index)),
            Self::View(array) => array.is_valid(index).then(|| array.value(index)),
            Self::Fixed(array) => array.is_valid(index).then(|| array.value(index)),
            Self::Dictionary { keys, values } => {
                keys.is_valid(index).then(|| values.value(keys.value(index) as usize)).flatten()
            }
        }
    }
}

/// Reads integers of any width, also as floats, decimals or in a dictionary. Timestamps and dates become milliseconds, rounded
/// down. Refuses other types, and numbers that do not fit into 64-bit integers.
pub fn integers(name: &'static str, array: &dyn Array) -> Result<Int64Array> {
    Ok(match array.data_type() {
        DataType::Int8 => convert::<Int8Type>(array, i64::from),
        DataType::Int16 => convert::<Int16Type>(array, i64::from),
        DataType::Int32 => convert::<Int32Type>(array, i64::from),
        DataType::Int64 => convert::<Int64Type>(array, |v| v),
        DataType::UInt8 => convert::<UInt8Type>(array, i64::from),
        DataType::UInt16 => convert::<UInt16Type>(array, i64::from),
        DataType::UInt32 => convert::<UInt32Type>(array, i64::from),
        DataType::UInt64 => try_convert::<UInt64Type>(name, array, |v| i64::try_from(v).ok())?,
        // pandas stores a column of integers with a missing value as floats.
        DataType::Float32 => try_convert::<Float32Type>(name, array, |v| whole(v.into()))?,
        DataType::Float64 => try_convert::<Float64Type>(name, array, whole)?,
        // DuckDB returns sums as decimals.
        DataType::Decimal128(_, 0) => try_convert::<Decimal128Type>(name, array, |v| i64::try_from(v).ok())?,
        DataType::Date32 => convert::<Date32Type>(array, |days| i64::from(days) * DAY_MS),
        DataType::Date64 => convert::<Date64Type>(array, |v| v),
        DataType::Timestamp(TimeUnit::Second, _) => convert::<TimestampSecondType>(array, |v| v.saturating_mul(1000)),
        DataType::Timestamp(TimeUnit::Millisecond, _) => convert::<TimestampMillisecondType>(array, |v| v),
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            convert::<TimestampMicrosecondType>(array, |v| v.div_euclid(1000))
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            convert::<TimestampNanosecondType>(array, |v| v.div_euclid(1_000_000))
        }
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            let (keys, values) = (integers(name, dictionary.keys())?, integers(name, dictionary.values())?);
            let value = |key: i64| values.is_valid(key as usize).then(|| values.value(key as usize));
            keys.iter().map(|key| key.and_then(value)).collect()
        }
        other => return Err(Error::invalid(name, "a column of integers or timestamps", other)),
    })
}

fn convert<T: ArrowPrimitiveType>(array: &dyn Array, to_i64: impl Fn(T::Native) -> i64) -> Int64Array {
    array.as_primitive::<T>().unary(to_i64)
}

fn try_convert<T: ArrowPrimitiveType>(
    name: &'static str,
    array: &dyn Array,
    to_i64: impl Fn(T::Native) -> Option<i64>,
) -> Result<Int64Array> {
    let numbers = array.as_primitive::<T>();
    numbers.try_unary(|v| to_i64(v).ok_or_else(|| Error::invalid(name, "integers of 64 bits", format!("{v:?}"))))
}

/// Converts a float to an integer. Returns `None` for a fraction, and from 2^53 on, where floats are not exact.
fn whole(value: f64) -> Option<i64> {
    let fits = value.fract() == 0.0 && value.abs() < 9_007_199_254_740_992.0;
    fits.then_some(value as i64)
}
