//! Growing arrays of values without parts: numbers, times, texts and bytes. They can be cut back, so that a body which turns out
//! to be bad leaves nothing behind.
use super::super::unchecked::bytes_of;
use super::ddl::UTC;
use super::scalar::{Scalar, byte_of_hex, decimal, duration, float, sign_extended, whole};
use arrow_array::timezone::Tz;
use arrow_array::types::{
    ArrowPrimitiveType, ByteArrayType, Date32Type, Decimal128Type, Decimal256Type, DecimalType, Float32Type,
    Float64Type, GenericBinaryType, GenericStringType, Int8Type, Int16Type, Int32Type, Int64Type,
    IntervalMonthDayNanoType, Time32MillisecondType, Time32SecondType, Time64MicrosecondType, Time64NanosecondType,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    ArrayRef, BinaryViewArray, BooleanArray, DictionaryArray, FixedSizeBinaryArray, GenericByteArray, Int32Array,
    NullArray, PrimitiveArray, StringArray, StringViewArray,
};
use arrow_buffer::{ArrowNativeType, BooleanBufferBuilder, NullBufferBuilder, ScalarBuffer, i256};
use arrow_cast::parse::string_to_datetime;
use arrow_schema::{ArrowError, DataType, IntervalUnit, TimeUnit};
use std::str::FromStr;
use std::sync::Arc;

/// The values of a field, to which bodies append.
pub trait Leaf: Send {
    /// Appends a value. Returns whether it fits the type; if not, nothing is appended.
    fn append(&mut self, scalar: Scalar<'_>) -> bool;
    fn append_null(&mut self);
    fn len(&self) -> usize;
    fn truncate(&mut self, len: usize);
    /// Returns the values, and begins anew.
    fn finish(&mut self) -> Result<ArrayRef, ArrowError>;
}

/// Returns the leaf for a type that only Avro has. `None` for all other types.
pub fn avro_leaf_of(data_type: &DataType) -> Option<Box<dyn Leaf>> {
    Some(match data_type {
        DataType::Null => Box::<Nulls>::default(),
        DataType::FixedSizeBinary(len) => {
            Box::new(FixedBytes { len: *len, values: Vec::new(), nulls: NullBufferBuilder::new(0) })
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => Numbers::<IntervalMonthDayNanoType>::of(data_type, duration),
        DataType::Dictionary(..) => Box::<Symbols>::default(),
        _ => return None,
    })
}

/// Returns the leaf for a type that JSON and Avro have. `None` for all other types. Bodies have values of the type `declared`.
pub fn leaf_of(data_type: &DataType, declared: &DataType) -> Option<Box<dyn Leaf>> {
    use DataType as D;
    Some(match data_type {
        D::Int32 if let D::Time32(unit) = declared => {
            let read = if *unit == TimeUnit::Second {
                whole::<Time32SecondType, Int32Type>
            } else {
                whole::<Time32MillisecondType, Int32Type>
            };
            Numbers::<Int32Type>::of(data_type, read)
        }
        D::Int64 if let D::Time64(unit) = declared => {
            let read = if *unit == TimeUnit::Microsecond {
                whole::<Time64MicrosecondType, Int64Type>
            } else {
                whole::<Time64NanosecondType, Int64Type>
            };
            Numbers::<Int64Type>::of(data_type, read)
        }
        D::Boolean => Box::new(Booleans { values: BooleanBufferBuilder::new(0), nulls: NullBufferBuilder::new(0) }),
        D::Int8 => Numbers::<Int8Type>::of(data_type, whole::<Int8Type, Int8Type>),
        D::Int16 => Numbers::<Int16Type>::of(data_type, whole::<Int16Type, Int16Type>),
        D::Int32 => Numbers::<Int32Type>::of(data_type, whole::<Int32Type, Int32Type>),
        D::Int64 => Numbers::<Int64Type>::of(data_type, whole::<Int64Type, Int64Type>),
        D::UInt8 => Numbers::<UInt8Type>::of(data_type, whole::<UInt8Type, UInt8Type>),
        D::UInt16 => Numbers::<UInt16Type>::of(data_type, whole::<UInt16Type, UInt16Type>),
        D::UInt32 => Numbers::<UInt32Type>::of(data_type, whole::<UInt32Type, UInt32Type>),
        D::UInt64 => Numbers::<UInt64Type>::of(data_type, whole::<UInt64Type, UInt64Type>),
        D::Float32 => {
            Numbers::<Float32Type>::of(data_type, |scalar| float::<Float32Type>(scalar, |double| double as f32))
        }
        D::Float64 => Numbers::<Float64Type>::of(data_type, |scalar| float::<Float64Type>(scalar, |double| double)),
        D::Decimal128(precision, scale) => decimals::<Decimal128Type>(data_type, *precision, *scale, |bytes| {
            Some(i128::from_be_bytes(sign_extended(bytes)?))
        }),
        D::Decimal256(precision, scale) => decimals::<Decimal256Type>(data_type, *precision, *scale, |bytes| {
            Some(i256::from_be_bytes(sign_extended(bytes)?))
        }),
        D::Date32 => Numbers::<Date32Type>::of(data_type, whole::<Date32Type, Int32Type>),
        D::Time32(TimeUnit::Second) => Numbers::<Time32SecondType>::of(data_type, whole::<Time32SecondType, Int32Type>),
        D::Time32(TimeUnit::Millisecond) => {
            Numbers::<Time32MillisecondType>::of(data_type, whole::<Time32MillisecondType, Int32Type>)
        }
        D::Time64(TimeUnit::Microsecond) => {
            Numbers::<Time64MicrosecondType>::of(data_type, whole::<Time64MicrosecondType, Int64Type>)
        }
        D::Time64(TimeUnit::Nanosecond) => {
            Numbers::<Time64NanosecondType>::of(data_type, whole::<Time64NanosecondType, Int64Type>)
        }
        D::Timestamp(unit, zone) => times(data_type, (*unit, zone.as_deref()), declared)?,
        D::Utf8 => Bytes::<GenericStringType<i32>>::of(write_text, |texts| Arc::new(texts)),
        D::LargeUtf8 => Bytes::<GenericStringType<i64>>::of(write_text, |texts| Arc::new(texts)),
        D::Utf8View => Bytes::<GenericStringType<i32>>::of(write_text, |texts| Arc::new(StringViewArray::from(&texts))),
        D::Binary => Bytes::<GenericBinaryType<i32>>::of(write_bytes, |bytes| Arc::new(bytes)),
        D::LargeBinary => Bytes::<GenericBinaryType<i64>>::of(write_bytes, |bytes| Arc::new(bytes)),
        D::BinaryView => {
            Bytes::<GenericBinaryType<i32>>::of(write_bytes, |bytes| Arc::new(BinaryViewArray::from(&bytes)))
        }
        _ => return None,
    })
}

/// Values that are all null.
#[derive(Default)]
pub struct Nulls {
    len: usize,
}

impl Leaf for Nulls {
    fn append(&mut self, _scalar: Scalar<'_>) -> bool {
        false
    }

    fn append_null(&mut self) {
        self.len += 1;
    }

    fn len(&self) -> usize {
        self.len
    }

    fn truncate(&mut self, len: usize) {
        self.len = len;
    }

    fn finish(&mut self) -> Result<ArrayRef, ArrowError> {
        Ok(Arc::new(NullArray::new(std::mem::take(&mut self.len))))
    }
}

struct Booleans {
    values: BooleanBufferBuilder,
    nulls: NullBufferBuilder,
}

impl Leaf for Booleans {
    fn append(&mut self, scalar: Scalar<'_>) -> bool {
        let Scalar::Boolean(value) = scalar else { return false };
        self.values.append(value);
        self.nulls.append_non_null();
        true
    }

    fn append_null(&mut self) {
        self.values.append(false);
        self.nulls.append_null();
    }

    fn len(&self) -> usize {
        self.values.len()
    }

    fn truncate(&mut self, len: usize) {
        self.values.truncate(len);
        self.nulls.truncate(len);
    }

    fn finish(&mut self) -> Result<ArrayRef, ArrowError> {
        Ok(Arc::new(BooleanArray::new(self.values.finish(), self.nulls.finish())))
    }
}

/// Values of a fixed width: numbers, dates and times.
struct Numbers<T: ArrowPrimitiveType> {
    data_type: DataType,
    read: Read<T>,
    values: Vec<T::Native>,
    nulls: NullBufferBuilder,
}

/// Reads a value. `None` if it does not fit the type.
type Read<T> = Box<dyn Fn(Scalar<'_>) -> Option<<T as ArrowPrimitiveType>::Native> + Send>;

impl<T: ArrowPrimitiveType> Numbers<T> {
    fn of(data_type: &DataType, read: impl Fn(Scalar<'_>) -> Option<T::Native> + Send + 'static) -> Box<dyn Leaf> {
        let (values, nulls) = (Vec::new(), NullBufferBuilder::new(0));
        Box::new(Self { data_type: data_type.clone(), read: Box::new(read), values, nulls })
    }
}

impl<T: ArrowPrimitiveType> Leaf for Numbers<T> {
    fn append(&mut self, scalar: Scalar<'_>) -> bool {
        let Some(value) = (self.read)(scalar) else { return false };
        self.values.push(value);
        self.nulls.append_non_null();
        true
    }

    fn append_null(&mut self) {
        self.values.push(T::Native::default());
        self.nulls.append_null();
    }

    fn len(&self) -> usize {
        self.values.len()
    }

    fn truncate(&mut self, len: usize) {
        self.values.truncate(len);
        self.nulls.truncate(len);
    }

    fn finish(&mut self) -> Result<ArrayRef, ArrowError> {
        let values = ScalarBuffer::from(std::mem::take(&mut self.values));
        let values = PrimitiveArray::<T>::try_new(values, self.nulls.finish())?;
        Ok(Arc::new(values.with_data_type(self.data_type.clone())))
    }
}

fn decimals<T: DecimalType>(
    data_type: &DataType,
    precision: u8,
    scale: i8,
    of_bytes: fn(&[u8]) -> Option<T::Native>,
) -> Box<dyn Leaf> {
    Numbers::<T>::of(data_type, move |scalar| match scalar {
        Scalar::Text(text) | Scalar::Number(text) => decimal::<T>(text, precision, scale),
        Scalar::Bytes(bytes) => of_bytes(bytes).filter(|value| T::is_valid_decimal_precision(*value, precision)),
        _ => None,
    })
}

/// Returns the leaf of timestamps. A number counts the units of the type `declared`. `None` for a zone that is no offset, since there
/// is no table of zones.
fn times(data_type: &DataType, (unit, zone): (TimeUnit, Option<&str>), declared: &DataType) -> Option<Box<dyn Leaf>> {
    let zone = Tz::from_str(zone.filter(|zone| *zone != UTC).unwrap_or("+00:00")).ok()?;
    let unit_of_numbers = if let DataType::Timestamp(unit, _) = declared { *unit } else { unit };
    let (to, from) = (per_second(unit), per_second(unit_of_numbers));
    let read = move |scalar: Scalar<'_>| match scalar {
        Scalar::Text(text) => {
            let time = string_to_datetime(&zone, text).ok()?;
            match unit {
                TimeUnit::Second => Some(time.timestamp()),
                TimeUnit::Millisecond => Some(time.timestamp_millis()),
                TimeUnit::Microsecond => Some(time.timestamp_micros()),
                TimeUnit::Nanosecond => time.timestamp_nanos_opt(),
            }
        }
        number => {
            let number = whole::<Int64Type, Int64Type>(number)?;
            if to >= from { number.checked_mul(to / from) } else { Some(number.div_euclid(from / to)) }
        }
    };
    Some(match unit {
        TimeUnit::Second => Numbers::<TimestampSecondType>::of(data_type, read),
        TimeUnit::Millisecond => Numbers::<TimestampMillisecondType>::of(data_type, read),
        TimeUnit::Microsecond => Numbers::<TimestampMicrosecondType>::of(data_type, read),
        TimeUnit::Nanosecond => Numbers::<TimestampNanosecondType>::of(data_type, read),
    })
}

fn per_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}

/// Texts, or bytes.
struct Bytes<T: ByteArrayType> {
    /// Appends a value to the bytes. Returns whether it fits; if not, the bytes are as before.
    write: fn(Scalar<'_>, &mut Vec<u8>) -> bool,
    wrap: fn(GenericByteArray<T>) -> ArrayRef,
    values: Vec<u8>,
    ends: Vec<T::Offset>,
    nulls: NullBufferBuilder,
}

impl<T: ByteArrayType> Bytes<T> {
    fn of(write: fn(Scalar<'_>, &mut Vec<u8>) -> bool, wrap: fn(GenericByteArray<T>) -> ArrayRef) -> Box<dyn Leaf> {
        Box::new(Self { write, wrap, values: Vec::new(), ends: Vec::new(), nulls: NullBufferBuilder::new(0) })
    }
}

impl<T: ByteArrayType> Leaf for Bytes<T> {
    fn append(&mut self, scalar: Scalar<'_>) -> bool {
        let before = self.values.len();
        if !(self.write)(scalar, &mut self.values) {
            return false;
        }
        let Some(end) = T::Offset::from_usize(self.values.len()) else {
            self.values.truncate(before);
            return false;
        };
        self.ends.push(end);
        self.nulls.append_non_null();
        true
    }

    fn append_null(&mut self) {
        self.ends.push(self.ends.last().copied().unwrap_or_default());
        self.nulls.append_null();
    }

    fn len(&self) -> usize {
        self.ends.len()
    }

    fn truncate(&mut self, len: usize) {
        self.ends.truncate(len);
        self.values.truncate(self.ends.last().map_or(0, |end| end.as_usize()));
        self.nulls.truncate(len);
    }

    fn finish(&mut self) -> Result<ArrayRef, ArrowError> {
        let (ends, values) = (std::mem::take(&mut self.ends), std::mem::take(&mut self.values));
        Ok((self.wrap)(bytes_of(ends, values, self.nulls.finish())))
    }
}

/// Writes a text. Numbers and booleans are texts, too, as they stand in the body.
fn write_text(scalar: Scalar<'_>, out: &mut Vec<u8>) -> bool {
    out.extend_from_slice(match scalar {
        Scalar::Text(text) | Scalar::Number(text) => text.as_bytes(),
        Scalar::Boolean(true) => b"true",
        Scalar::Boolean(false) => b"false",
        Scalar::Symbol(symbols, at) => symbols[at].as_bytes(),
        _ => return false,
    });
    true
}

/// Writes bytes, or those that a text has as hexadecimal digits.
fn write_bytes(scalar: Scalar<'_>, out: &mut Vec<u8>) -> bool {
    let text = match scalar {
        Scalar::Bytes(bytes) => {
            out.extend_from_slice(bytes);
            return true;
        }
        Scalar::Uuid(bytes) => {
            out.extend_from_slice(&bytes);
            return true;
        }
        Scalar::Text(text) => text,
        _ => return false,
    };
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let before = out.len();
    out.extend(pairs.iter().map_while(byte_of_hex));
    let is_hex = rest.is_empty() && out.len() - before == pairs.len();
    if !is_hex {
        out.truncate(before);
    }
    is_hex
}

/// Bytes of one length.
struct FixedBytes {
    len: i32,
    values: Vec<u8>,
    nulls: NullBufferBuilder,
}

impl Leaf for FixedBytes {
    fn append(&mut self, scalar: Scalar<'_>) -> bool {
        let before = self.values.len();
        match scalar {
            Scalar::Bytes(bytes) => self.values.extend_from_slice(bytes),
            Scalar::Uuid(bytes) => self.values.extend_from_slice(&bytes),
            _ => {}
        }
        let fits = self.values.len() - before == self.len as usize;
        if fits {
            self.nulls.append_non_null();
        } else {
            self.values.truncate(before);
        }
        fits
    }

    fn append_null(&mut self) {
        self.values.resize(self.values.len() + self.len as usize, 0);
        self.nulls.append_null();
    }

    fn len(&self) -> usize {
        self.nulls.len()
    }

    fn truncate(&mut self, len: usize) {
        self.values.truncate(len * self.len as usize);
        self.nulls.truncate(len);
    }

    fn finish(&mut self) -> Result<ArrayRef, ArrowError> {
        let values = std::mem::take(&mut self.values).into();
        Ok(Arc::new(FixedSizeBinaryArray::try_new(self.len, values, self.nulls.finish())?))
    }
}

/// Symbols of an enum, by their number.
#[derive(Default)]
struct Symbols {
    symbols: Vec<String>,
    keys: Vec<Option<i32>>,
}

impl Leaf for Symbols {
    fn append(&mut self, scalar: Scalar<'_>) -> bool {
        let Scalar::Symbol(symbols, at) = scalar else { return false };
        if self.symbols.is_empty() {
            self.symbols = symbols.to_vec();
        }
        self.keys.push(Some(at as i32));
        true
    }

    fn append_null(&mut self) {
        self.keys.push(None);
    }

    fn len(&self) -> usize {
        self.keys.len()
    }

    fn truncate(&mut self, len: usize) {
        self.keys.truncate(len);
    }

    fn finish(&mut self) -> Result<ArrayRef, ArrowError> {
        let symbols = Arc::new(StringArray::from(self.symbols.clone()));
        let keys = Int32Array::from(std::mem::take(&mut self.keys));
        Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(keys, symbols)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::Array;
    use arrow_array::cast::AsArray;
    use proptest::prelude::*;

    #[test]
    fn decimals_of_bytes_keep_their_sign_and_precision() {
        let mut leaf = leaf_of(&DataType::Decimal128(4, 2), &DataType::Null).expect("a leaf");
        for (bytes, fits) in [
            (&[0x7B][..], true),
            (&[0xFF, 0x85], true),
            (&[0; 20], true),
            (&[], true),
            (&[0x27, 0x10], false),
            (&[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], false),
        ] {
            assert_eq!(leaf.append(Scalar::Bytes(bytes)), fits, "{bytes:?}");
        }
        let array = leaf.finish().expect("an array");
        let expected: &[i128] = &[123, -123, 0, 0];
        assert_eq!(array.as_primitive::<Decimal128Type>().values(), expected);
    }

    #[test]
    fn decimals_lose_no_digit() {
        let mut leaf = leaf_of(&DataType::Decimal128(4, 2), &DataType::Null).expect("a leaf");
        for (text, fits) in [
            ("1.23", true),
            ("-1.2300", true),
            ("1.239", false),
            ("0.001", false),
            ("0.000", true),
            ("12.3e-1", true),
            ("12.3e-2", false),
            ("1200e-3", true),
            ("1e1", true),
            ("0e-9", true),
            ("1e-99999999999999999999", false),
            ("1e32768", false),
            ("0e32768", true),
            ("1e-9223372036854775808", false),
            ("100", false),
            ("1_0", false),
            ("", false),
            ("-", false),
            (".", false),
            ("1e", false),
        ] {
            assert_eq!(leaf.append(Scalar::Number(text)), fits, "{text}");
        }
        for digits in [39, 255, 256, 100_000] {
            assert!(!leaf.append(Scalar::Number(&"9".repeat(digits))), "{digits}");
            assert!(!leaf.append(Scalar::Number(&format!("0.{}", "9".repeat(digits)))), "{digits}");
        }
        let array = leaf.finish().expect("an array");
        let expected: &[i128] = &[123, -123, 0, 123, 120, 1000, 0, 0];
        assert_eq!(array.as_primitive::<Decimal128Type>().values(), expected);
    }

    #[test]
    fn numbers_count_units_of_the_declared_type() {
        let timestamp = |unit| DataType::Timestamp(unit, Some(UTC.into()));
        let mut leaf = leaf_of(&timestamp(TimeUnit::Microsecond), &timestamp(TimeUnit::Second)).expect("a leaf");
        for (scalar, fits) in
            [(Scalar::Long(2), true), (Scalar::Text("1970-01-01T00:00:02Z"), true), (Scalar::Long(i64::MAX), false)]
        {
            assert_eq!(leaf.append(scalar), fits, "{scalar:?}");
        }
        let array = leaf.finish().expect("an array");
        assert_eq!(array.as_primitive::<TimestampMicrosecondType>().values(), &[2_000_000, 2_000_000]);
        let mut leaf = leaf_of(&timestamp(TimeUnit::Microsecond), &timestamp(TimeUnit::Nanosecond)).expect("a leaf");
        assert!(leaf.append(Scalar::Long(-1_500)));
        assert_eq!(leaf.finish().expect("an array").as_primitive::<TimestampMicrosecondType>().values(), &[-2]);
        let mut leaf = leaf_of(&DataType::Int32, &DataType::Time32(TimeUnit::Second)).expect("a leaf");
        assert!(leaf.append(Scalar::Text("00:01:00")));
        assert_eq!(leaf.finish().expect("an array").as_primitive::<Int32Type>().values(), &[60]);
    }

    #[test]
    fn bytes_that_are_no_hex_leave_nothing() {
        let mut leaf = leaf_of(&DataType::Binary, &DataType::Binary).expect("a leaf");
        for (text, fits) in [("00fF", true), ("0", false), ("00zz", false), ("", true)] {
            assert_eq!(leaf.append(Scalar::Text(text)), fits, "{text}");
        }
        let array = leaf.finish().expect("an array");
        assert_eq!(array.as_binary::<i32>().iter().collect::<Vec<_>>(), [Some(&[0, 0xFF][..]), Some(&[])]);
    }

    proptest! {
        #[test]
        fn any_text_and_number_is_read_or_refused(
            text in prop_oneof![
                "[+-]?[0-9]{0,60}\\.?[0-9]{0,60}([eE][+-]?[0-9]{0,25})?",
                "[0-9]{200,400}(\\.[0-9]{0,300})?",
                "[+-]?[0-9]{1,7}-[0-9]{1,2}-[0-9]{1,2}[T ]?[0-9:.]{0,20}(Z|[+-][0-9:]{0,6})?",
                "([0-9]{1,2}:){1,3}[0-9.]{0,20} ?(AM|pm)?",
            ],
            at in any::<prop::sample::Index>(),
        ) {
            let stamp = |unit| DataType::Timestamp(unit, Some(UTC.into()));
            let types = [
                DataType::Int8, DataType::Int64, DataType::UInt64, DataType::Float32, DataType::Float64, DataType::Date32,
                DataType::Decimal128(38, 0), DataType::Decimal128(38, 38), DataType::Decimal256(76, 0), DataType::Decimal256(76, 38),
                DataType::Time32(TimeUnit::Second), DataType::Time32(TimeUnit::Millisecond), DataType::Time64(TimeUnit::Microsecond),
                DataType::Time64(TimeUnit::Nanosecond), stamp(TimeUnit::Second), stamp(TimeUnit::Millisecond),
                stamp(TimeUnit::Microsecond), stamp(TimeUnit::Nanosecond),
            ];
            let data_type = at.get(&types);
            let mut leaf = leaf_of(data_type, data_type).expect("a leaf");
            let read = [Scalar::Number(&text), Scalar::Text(&text)].map(|scalar| leaf.append(scalar));
            let array = leaf.finish().expect("an array");
            prop_assert_eq!(array.len(), read.into_iter().filter(|read| *read).count());
            array.to_data().validate_full().expect("a valid array");
        }
    }
}
