//! Values of Arrow columns, however wide their offsets and numbers are.
use super::row::Pair;
use crate::{Error, Result};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type,
};
use arrow_array::{Array, BinaryArray, BinaryViewArray, Int64Array, LargeBinaryArray, MapArray};
use arrow_schema::{DataType, TimeUnit};

/// Text and bytes are read as bytes: whoever made a text column may have filled it with anything.
#[derive(Clone, Debug)]
pub enum Bytes {
    /// Offsets of 32 bits.
    Small(BinaryArray),
    /// Offsets of 64 bits.
    Large(LargeBinaryArray),
    /// Views.
    View(BinaryViewArray),
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
        }
    }
}

/// Maps of texts.
#[derive(Clone, Debug)]
pub struct Pairs {
    map: MapArray,
    names: Bytes,
    values: Bytes,
}

impl Pairs {
    /// The maps of a column.
    ///
    /// # Errors
    /// [`Error::Invalid`]: it has none.
    pub fn new(array: &dyn Array) -> Result<Self> {
        let map = array.as_map_opt().ok_or_else(|| Error::invalid("properties", "a map column", array.data_type()))?;
        let names = Bytes::new("properties", map.keys())?;
        Ok(Self { names, values: Bytes::new("properties", map.values())?, map: map.clone() })
    }

    /// Whether a row has no map.
    #[inline]
    pub fn is_null(&self, index: usize) -> bool {
        self.map.is_null(index)
    }

    /// Which [`pair`](Self::pair)s a row has.
    #[inline]
    pub fn of_row(&self, index: usize) -> std::ops::Range<usize> {
        let offsets = self.map.value_offsets();
        if self.is_null(index) { 0..0 } else { offsets[index] as usize..offsets[index + 1] as usize }
    }

    /// One of the pairs of all rows.
    #[inline]
    pub fn pair(&self, index: usize) -> Pair<'_> {
        (self.names.value(index).unwrap_or_default(), self.values.value(index))
    }
}

/// Integers of any width; timestamps as milliseconds, rounded down.
///
/// # Errors
/// [`Error::Invalid`]: a column of another type.
pub fn integers(name: &'static str, array: &dyn Array) -> Result<Int64Array> {
    Ok(match array.data_type() {
        DataType::Int8 => converted::<Int8Type>(array, i64::from),
        DataType::Int16 => converted::<Int16Type>(array, i64::from),
        DataType::Int32 => converted::<Int32Type>(array, i64::from),
        DataType::Int64 => converted::<Int64Type>(array, |v| v),
        DataType::UInt8 => converted::<UInt8Type>(array, i64::from),
        DataType::UInt16 => converted::<UInt16Type>(array, i64::from),
        DataType::UInt32 => converted::<UInt32Type>(array, i64::from),
        DataType::Timestamp(TimeUnit::Second, _) => converted::<TimestampSecondType>(array, |v| v.saturating_mul(1000)),
        DataType::Timestamp(TimeUnit::Millisecond, _) => converted::<TimestampMillisecondType>(array, |v| v),
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            converted::<TimestampMicrosecondType>(array, |v| v.div_euclid(1000))
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            converted::<TimestampNanosecondType>(array, |v| v.div_euclid(1_000_000))
        }
        other => return Err(Error::invalid(name, "a column of integers or timestamps", other)),
    })
}

fn converted<T: ArrowPrimitiveType>(array: &dyn Array, to_i64: impl Fn(T::Native) -> i64) -> Int64Array {
    array.as_primitive::<T>().unary(to_i64)
}
