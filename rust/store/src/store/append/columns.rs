//! Rows to append from an Arrow record batch. A column may have any type that can hold its values.
use super::rows::{Pair, Row, Rows};
use crate::format::compression::TYPE_MASK;
use crate::format::host::Host;
use crate::format::message::COMPRESSED;
use crate::{Error, Result};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Date64Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, FixedSizeBinaryArray, Int64Array, LargeBinaryArray, MapArray,
    OffsetSizeTrait, RecordBatch, StructArray,
};
use arrow_schema::{DataType, TimeUnit};
use std::net::SocketAddr;
use std::ops::Range;

pub const STORED: [&str; 12] = [
    "topic",
    "body",
    "tags",
    "keys",
    "properties",
    "queue_id",
    "flag",
    "born_timestamp",
    "born_host",
    "sys_flag",
    "reconsume_times",
    "prepared_transaction_offset",
];
/// Columns of a scan that an append ignores, because the append assigns their values.
pub const IGNORED: [&str; 9] = [
    "broker_name",
    "queue_offset",
    "physical_offset",
    "msg_id",
    "offset_msg_id",
    "store_timestamp",
    "store_host",
    "store_size",
    "body_crc",
];

#[derive(Clone, Debug)]
pub struct Columns {
    len: usize,
    topic: Bytes,
    body: Bytes,
    tags: Option<Bytes>,
    keys: Option<Bytes>,
    properties: Option<Pairs>,
    queue_id: Option<Int64Array>,
    flag: Option<Int64Array>,
    born_timestamp: Option<Int64Array>,
    born_host: Option<Vec<Option<Host>>>,
    sys_flag: Option<Int64Array>,
    reconsume_times: Option<Int64Array>,
    prepared_transaction_offset: Option<Int64Array>,
}

impl Columns {
    /// Reads a batch. Fails with [`Error::Unknown`] for an unknown column, with [`Error::Invalid`] for a wrong type or a
    /// missing column.
    pub fn new(batch: &RecordBatch) -> Result<Self> {
        check_names(batch)?;
        let bytes = |name| column(batch, name).map(|array| Bytes::new(name, array)).transpose();
        let integers = |name| column(batch, name).map(|array| integers(name, array)).transpose();
        let missing = |name| Error::invalid("columns", format!("one called {name}"), "none, or nothing but nulls");
        Ok(Self {
            len: batch.num_rows(),
            topic: bytes("topic")?.ok_or_else(|| missing("topic"))?,
            body: bytes("body")?.ok_or_else(|| missing("body"))?,
            tags: bytes("tags")?,
            keys: column(batch, "keys").map(|array| join_texts("keys", array)).transpose()?,
            properties: column(batch, "properties").map(|array| Pairs::new(array)).transpose()?,
            queue_id: integers("queue_id")?,
            flag: integers("flag")?,
            born_timestamp: integers("born_timestamp")?,
            born_host: bytes("born_host")?.map(|texts| hosts(&texts, batch.num_rows())).transpose()?,
            sys_flag: integers("sys_flag")?,
            reconsume_times: integers("reconsume_times")?,
            prepared_transaction_offset: integers("prepared_transaction_offset")?,
        })
    }
}

impl Rows for Columns {
    fn len(&self) -> usize {
        self.len
    }

    #[inline]
    fn row(&self, index: usize) -> Row<'_> {
        let integer = |column: &Option<Int64Array>| {
            column.as_ref().filter(|array| array.is_valid(index)).map(|array| array.value(index))
        };
        // An empty tag or key counts as no tag or key, as in Java's `Message`.
        Row {
            topic: self.topic.value(index),
            body: self.body.value(index),
            tags: self.tags.as_ref().and_then(|column| column.value(index)).filter(|tag| !tag.is_empty()),
            keys: self.keys.as_ref().and_then(|column| column.value(index)).filter(|keys| !keys.is_empty()),
            pairs: self.properties.as_ref().map_or(0..0, |pairs| pairs.of_row(index)),
            queue_id: integer(&self.queue_id).unwrap_or(0),
            flag: integer(&self.flag).unwrap_or(0),
            born_timestamp: integer(&self.born_timestamp),
            born_host: self.born_host.as_ref().and_then(|hosts| hosts[index]),
            // A scan returns decompressed bodies, so the compression flags do not apply.
            sys_flag: integer(&self.sys_flag).unwrap_or(0) & !i64::from(COMPRESSED | TYPE_MASK),
            reconsume_times: integer(&self.reconsume_times).unwrap_or(0),
            prepared_transaction_offset: integer(&self.prepared_transaction_offset).unwrap_or(0),
            is_due: false,
        }
    }

    #[inline]
    fn pair(&self, index: usize) -> Pair<'_> {
        self.properties.as_ref().map_or((&[], None), |pairs| pairs.pair(index))
    }
}

/// Parses hosts as a scan writes them. A run of equal strings is parsed once.
fn hosts(texts: &Bytes, len: usize) -> Result<Vec<Option<Host>>> {
    let mut last: (&[u8], Option<Host>) = (&[], None);
    let host = |row| {
        let Some(text) = texts.value(row) else { return Ok(None) };
        // Most rows have the same host as the row before.
        if last.0 != text {
            let address = std::str::from_utf8(text).ok().and_then(|text| text.parse::<SocketAddr>().ok());
            let expected = format!("in row {row} 'ip:port' or '[ip6]:port'");
            let wrong = || Error::invalid("born_host", expected, format!("{:?}", String::from_utf8_lossy(text)));
            last = (text, Some(address.ok_or_else(wrong)?.into()));
        }
        Ok(last.1)
    };
    (0..len).map(host).collect()
}

/// Returns the column `name`, or `None` if it is missing. A column that has only nulls counts as missing, because its
/// type is meaningless.
fn column<'a>(batch: &'a RecordBatch, name: &str) -> Option<&'a ArrayRef> {
    batch.column_by_name(name).filter(|array| *array.data_type() != DataType::Null)
}

fn check_names(batch: &RecordBatch) -> Result<()> {
    let schema = batch.schema_ref();
    for field in schema.fields() {
        let name = field.name().as_str();
        // Row numbers of pandas are no part of a message.
        if is_unnamed_index(name) {
            continue;
        }
        if !STORED.contains(&name) && !IGNORED.contains(&name) {
            return Err(Error::unknown("column", name, STORED));
        }
    }
    Ok(())
}

/// Returns whether a column is the unnamed index that pandas writes for a filtered or sorted frame. Its values are
/// row numbers.
fn is_unnamed_index(name: &str) -> bool {
    let level = name.strip_prefix("__index_level_").and_then(|rest| rest.strip_suffix("__"));
    level.is_some_and(|level| !level.is_empty() && level.bytes().all(|digit| digit.is_ascii_digit()))
}

const DAY_MS: i64 = 86_400_000;

/// A column of strings or bytes. Strings are read as bytes, because their producer may not have checked that they are UTF-8.
#[derive(Clone, Debug)]
pub enum Bytes {
    Small(BinaryArray),
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

#[derive(Debug)]
pub struct Lists<'a> {
    /// Range of each row in `values`; `None` for a null row.
    pub ranges: Vec<Option<Range<usize>>>,
    pub values: &'a ArrayRef,
}

impl<'a> Lists<'a> {
    /// Reads a column of lists; `name` is for errors.
    pub fn new(name: &'static str, array: &'a dyn Array) -> Result<Self> {
        let (ranges, values): (Vec<Range<usize>>, _) = match array.data_type() {
            DataType::List(_) => between(array.as_list::<i32>().value_offsets(), array.as_list::<i32>().values()),
            DataType::LargeList(_) => between(array.as_list::<i64>().value_offsets(), array.as_list::<i64>().values()),
            DataType::FixedSizeList(_, size) => {
                let size = usize::try_from(*size).unwrap_or_default();
                let ranges = (0..array.len()).map(|row| row * size..(row + 1) * size);
                (ranges.collect(), array.as_fixed_size_list().values())
            }
            // Views have an offset and a size for each row, because their ranges may have any order.
            DataType::ListView(_) => {
                let lists = array.as_list_view::<i32>();
                (at(lists.value_offsets(), lists.value_sizes()), lists.values())
            }
            DataType::LargeListView(_) => {
                let lists = array.as_list_view::<i64>();
                (at(lists.value_offsets(), lists.value_sizes()), lists.values())
            }
            other => return Err(Error::invalid(name, "a column of lists", other)),
        };
        let ranges = ranges.into_iter().enumerate().map(|(row, range)| array.is_valid(row).then_some(range));
        Ok(Self { ranges: ranges.collect(), values })
    }

    pub fn are_in(kind: &DataType) -> bool {
        use DataType::{FixedSizeList, LargeList, LargeListView, List, ListView};
        matches!(kind, List(_) | LargeList(_) | FixedSizeList(..) | ListView(_) | LargeListView(_))
    }
}

/// Reads a column of strings, or of lists of strings. The items of a list are joined by spaces, the form in which
/// messages store keys. Nulls are left out.
pub fn join_texts(name: &'static str, array: &dyn Array) -> Result<Bytes> {
    if !Lists::are_in(array.data_type()) {
        return Bytes::new(name, array);
    }
    let lists = Lists::new(name, array)?;
    let texts = Bytes::new(name, lists.values)?;
    let joined = lists.ranges.into_iter().map(|range| {
        let items: Vec<_> = range?.filter_map(|at| texts.value(at)).collect();
        Some(items.join(&b' '))
    });
    Ok(Bytes::Small(joined.collect::<BinaryArray>()))
}

fn between<'a, O: OffsetSizeTrait>(ends: &[O], values: &'a ArrayRef) -> (Vec<Range<usize>>, &'a ArrayRef) {
    (ends.windows(2).map(|ends| ends[0].as_usize()..ends[1].as_usize()).collect(), values)
}

fn at<O: OffsetSizeTrait>(starts: &[O], sizes: &[O]) -> Vec<Range<usize>> {
    starts.iter().zip(sizes).map(|(start, size)| start.as_usize()..start.as_usize() + size.as_usize()).collect()
}

#[derive(Clone, Debug)]
pub struct Pairs {
    places: Places,
    names: Bytes,
    values: Bytes,
}

#[derive(Clone, Debug)]
enum Places {
    Map(MapArray),
    Ranges(Vec<Option<Range<usize>>>),
}

impl Pairs {
    /// Reads a column of maps, of structs with the names as fields, or of lists of pairs. pandas and Polars turn maps into
    /// these types. Values may be integers, too.
    pub fn new(array: &dyn Array) -> Result<Self> {
        match array.data_type() {
            DataType::Map(..) => {
                let map = array.as_map();
                let (names, values) = (texts(map.keys())?, texts(map.values())?);
                Ok(Self { places: Places::Map(map.clone()), names, values })
            }
            DataType::Struct(_) => Self::of_structs(array.as_struct()),
            kind if Lists::are_in(kind) => Self::of_lists(Lists::new("properties", array)?),
            other => {
                let expected = "a column of maps, of structs, or of lists of pairs of texts";
                Err(Error::invalid("properties", expected, other))
            }
        }
    }

    #[inline]
    pub fn is_null(&self, index: usize) -> bool {
        match &self.places {
            Places::Map(map) => map.is_null(index),
            Places::Ranges(ranges) => ranges[index].is_none(),
        }
    }

    /// Returns the numbers of a row's pairs, for [`pair`](Self::pair).
    #[inline]
    pub fn of_row(&self, index: usize) -> Range<usize> {
        match &self.places {
            // Arrow allows a null row to have entries, which do not count.
            Places::Map(map) if map.is_null(index) => 0..0,
            Places::Map(map) => map.value_offsets()[index] as usize..map.value_offsets()[index + 1] as usize,
            Places::Ranges(ranges) => ranges[index].clone().unwrap_or(0..0),
        }
    }

    #[inline]
    pub fn pair(&self, index: usize) -> Pair<'_> {
        (self.names.value(index).unwrap_or_default(), self.values.value(index))
    }

    /// Reads a column of structs. A field that is null is an absent property.
    fn of_structs(array: &StructArray) -> Result<Self> {
        let columns: Result<Vec<_>> = array.columns().iter().map(texts).collect();
        let columns: Vec<_> = array.column_names().into_iter().zip(columns?).collect();
        let (mut names, mut values, mut ranges) = (Vec::new(), Vec::new(), Vec::with_capacity(array.len()));
        for row in 0..array.len() {
            let start = names.len();
            let present = columns.iter().filter_map(|(name, column)| Some((*name, column.value(row)?)));
            // A null row has no properties, whatever its fields contain.
            for (name, value) in present.take_while(|_| array.is_valid(row)) {
                names.push(name);
                values.push(value);
            }
            ranges.push(array.is_valid(row).then_some(start..names.len()));
        }
        let (names, values) = (BinaryArray::from_iter_values(names), BinaryArray::from_iter_values(values));
        Ok(Self { places: Places::Ranges(ranges), names: Bytes::Small(names), values: Bytes::Small(values) })
    }

    /// Reads lists of structs, or lists of lists, with a name and a value each.
    fn of_lists(lists: Lists<'_>) -> Result<Self> {
        let wrong = |got: &str| Error::invalid("properties", "lists of pairs, a name and a value each", got);
        let (names, values) = match lists.values.data_type() {
            DataType::Struct(fields) if fields.len() == 2 => {
                let pairs = lists.values.as_struct();
                (texts(pairs.column(0))?, texts(pairs.column(1))?)
            }
            // The type is null if all lists are empty.
            DataType::Null => (texts(lists.values)?, texts(lists.values)?),
            kind if Lists::are_in(kind) => {
                let pairs = Lists::new("properties", lists.values)?;
                let (texts, mut halves) = (texts(pairs.values)?, (Vec::new(), Vec::new()));
                for pair in &pairs.ranges {
                    let pair = pair.clone().filter(|pair| pair.len() == 2);
                    let pair = pair.ok_or_else(|| wrong("one that has more or less"))?;
                    halves.0.push(texts.value(pair.start));
                    halves.1.push(texts.value(pair.start + 1));
                }
                (Bytes::Small(halves.0.into_iter().collect()), Bytes::Small(halves.1.into_iter().collect()))
            }
            other => return Err(wrong(&format!("lists of {other}"))),
        };
        Ok(Self { places: Places::Ranges(lists.ranges), names, values })
    }
}

/// Reads strings. Integers become strings.
fn texts(array: &ArrayRef) -> Result<Bytes> {
    if array.data_type().is_integer() {
        let numbers = integers("properties", array)?;
        let texts: BinaryArray = numbers.iter().map(|number| number.map(|number| number.to_string())).collect();
        return Ok(Bytes::Small(texts));
    }
    Bytes::new("properties", array)
}
