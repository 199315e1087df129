//! Values of Arrow columns, however wide their offsets and numbers are.
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

/// Text and bytes are read as bytes: whoever made a text column may have filled it with anything.
#[derive(Clone, Debug)]
pub enum Bytes {
    /// Offsets of 32 bits.
    Small(BinaryArray),
    /// Offsets of 64 bits.
    Large(LargeBinaryArray),
    View(BinaryViewArray),
    /// All of one length.
    Fixed(FixedSizeBinaryArray),
    /// Values of a dictionary, as categories are, by the number that a row has.
    Dictionary {
        /// The number of each row.
        keys: Int64Array,
        /// What the numbers stand for.
        values: Box<Bytes>,
    },
}

impl Bytes {
    /// The values of a column, whose name is for errors.
    ///
    /// # Errors
    /// [`Error::Invalid`]: it is neither text nor bytes.
    pub fn new(name: &'static str, array: &dyn Array) -> Result<Self> {
        Ok(match array.data_type() {
            DataType::Utf8 => Self::Small(array.as_string::<i32>().clone().into()),
            DataType::LargeUtf8 => Self::Large(array.as_string::<i64>().clone().into()),
            DataType::Utf8View => Self::View(array.as_string_view().clone().to_binary_view()),
            DataType::Binary => Self::Small(array.as_binary::<i32>().clone()),
            DataType::LargeBinary => Self::Large(array.as_binary::<i64>().clone()),
            DataType::BinaryView => Self::View(array.as_binary_view().clone()),
            DataType::FixedSizeBinary(_) => Self::Fixed(array.as_fixed_size_binary().clone()),
            // of a list, or a dictionary, that is empty in all rows
            DataType::Null => Self::Small(BinaryArray::new_null(array.len())),
            DataType::Dictionary(..) => {
                let dictionary = array.as_any_dictionary();
                let values = Self::new(name, dictionary.values())?.into();
                Self::Dictionary { keys: integers(name, dictionary.keys())?, values }
            }
            other => return Err(Error::invalid(name, "a column of text or bytes", other)),
        })
    }

    /// One of them; `None` for null.
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

/// Integers of any width, also as floats, decimals or in a dictionary; timestamps and dates as milliseconds, rounded down.
///
/// # Errors
/// [`Error::Invalid`]: a column of another type, or a number that is no integer of 64 bits.
pub fn integers(name: &'static str, array: &dyn Array) -> Result<Int64Array> {
    Ok(match array.data_type() {
        DataType::Int8 => converted::<Int8Type>(array, i64::from),
        DataType::Int16 => converted::<Int16Type>(array, i64::from),
        DataType::Int32 => converted::<Int32Type>(array, i64::from),
        DataType::Int64 => converted::<Int64Type>(array, |v| v),
        DataType::UInt8 => converted::<UInt8Type>(array, i64::from),
        DataType::UInt16 => converted::<UInt16Type>(array, i64::from),
        DataType::UInt32 => converted::<UInt32Type>(array, i64::from),
        DataType::UInt64 => checked::<UInt64Type>(name, array, |v| i64::try_from(v).ok())?,
        // pandas makes floats of a column of integers in which one is missing
        DataType::Float32 => checked::<Float32Type>(name, array, |v| whole(v.into()))?,
        DataType::Float64 => checked::<Float64Type>(name, array, whole)?,
        // sums of DuckDB
        DataType::Decimal128(_, 0) => checked::<Decimal128Type>(name, array, |v| i64::try_from(v).ok())?,
        DataType::Date32 => converted::<Date32Type>(array, |days| i64::from(days) * DAY_MS),
        DataType::Date64 => converted::<Date64Type>(array, |v| v),
        DataType::Timestamp(TimeUnit::Second, _) => converted::<TimestampSecondType>(array, |v| v.saturating_mul(1000)),
        DataType::Timestamp(TimeUnit::Millisecond, _) => converted::<TimestampMillisecondType>(array, |v| v),
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            converted::<TimestampMicrosecondType>(array, |v| v.div_euclid(1000))
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            converted::<TimestampNanosecondType>(array, |v| v.div_euclid(1_000_000))
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

fn converted<T: ArrowPrimitiveType>(array: &dyn Array, to_i64: impl Fn(T::Native) -> i64) -> Int64Array {
    array.as_primitive::<T>().unary(to_i64)
}

fn checked<T: ArrowPrimitiveType>(
    name: &'static str,
    array: &dyn Array,
    to_i64: impl Fn(T::Native) -> Option<i64>,
) -> Result<Int64Array> {
    let numbers = array.as_primitive::<T>();
    numbers.try_unary(|v| to_i64(v).ok_or_else(|| Error::invalid(name, "integers of 64 bits", format!("{v:?}"))))
}

/// A float without a fraction; all of those that a file could have made of an integer.
fn whole(value: f64) -> Option<i64> {
    let fits = value.fract() == 0.0 && value.abs() < 9_007_199_254_740_992.0;
    fits.then_some(value as i64)
}
