//! The column `value`: decoded bodies in the layout of Arrow, which Java reads in place.
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType,
};
use arrow_array::{Array, ArrowPrimitiveType, StructArray};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow_schema::DataType;
use rmqfast_store::format::message::Message;
use rmqfast_store::scan::decode::{BadBodies, Decode, ValueColumn};

/// Approximate bytes of memory of the values of a batch. At this size the batch ends.
const MOST: usize = 8 << 20;

/// The values of a batch. Their addresses are, from the whole column to its children:
///
/// - each vector first has its null bits, a bit for each row, 1 for a value; 0 if no row is null;
/// - a struct then has its fields;
/// - an array its starts, of which row `n` has those from `n` to `n + 1`, and its elements;
/// - a map its starts, its keys and its values;
/// - texts and bytes have the starts of their values, and the bytes;
/// - booleans have a bit, and all other types a number for each row.
pub(super) struct Values {
    column: ValueColumn,
    /// What the addresses point to.
    array: Option<StructArray>,
    buffers: Vec<Buffer>,
}

impl Values {
    pub(super) fn new(decode: &Decode) -> Self {
        Self { column: ValueColumn::new(decode), array: None, buffers: Vec::new() }
    }

    pub(super) fn clear(&mut self) {
        self.column.clear();
        self.array = None;
        self.buffers.clear();
    }

    /// Appends a message and its body. Returns whether the batch ends behind it.
    pub(super) fn push(&mut self, message: Option<&Message<'_>>, body: Option<&[u8]>) -> bool {
        self.column.push(message, body);
        self.column.cost() >= MOST
    }

    /// Ends the values and appends their addresses.
    ///
    /// # Panics
    /// If the values do not fit the schema, which is a bug.
    pub(super) fn seal(&mut self, addresses: &mut Vec<i64>) {
        let array = self.column.finish().unwrap_or_else(|error| panic!("{error}"));
        self.note_struct(&array, addresses);
        self.array = Some(array);
    }

    pub(super) fn take_bad(&mut self) -> BadBodies {
        self.column.take_bad()
    }

    fn note_struct(&mut self, array: &StructArray, addresses: &mut Vec<i64>) {
        self.note_nulls(array.nulls(), addresses);
        array.columns().iter().for_each(|column| self.note(column, addresses));
    }

    /// Appends the addresses of an array.
    ///
    /// # Panics
    /// If the type has no vector, which is a bug, since a read with such a type is refused.
    fn note(&mut self, array: &dyn Array, addresses: &mut Vec<i64>) {
        if let DataType::Struct(_) = array.data_type() {
            return self.note_struct(array.as_struct(), addresses);
        }
        self.note_nulls(array.nulls(), addresses);
        let address = match array.data_type() {
            DataType::Boolean => self.bits(array.as_boolean().values()),
            DataType::Int8 => numbers::<Int8Type>(array),
            DataType::Int16 => numbers::<Int16Type>(array),
            DataType::Int32 => numbers::<Int32Type>(array),
            DataType::Int64 => numbers::<Int64Type>(array),
            DataType::Float32 => numbers::<Float32Type>(array),
            DataType::Float64 => numbers::<Float64Type>(array),
            DataType::Date32 => numbers::<Date32Type>(array),
            DataType::Timestamp(..) => numbers::<TimestampMicrosecondType>(array),
            DataType::Decimal128(..) => numbers::<Decimal128Type>(array),
            DataType::Utf8 => {
                let texts = array.as_string::<i32>();
                return addresses.extend([texts.value_offsets().as_ptr() as i64, texts.values().as_ptr() as i64]);
            }
            DataType::Binary => {
                let bytes = array.as_binary::<i32>();
                return addresses.extend([bytes.value_offsets().as_ptr() as i64, bytes.values().as_ptr() as i64]);
            }
            DataType::List(_) => {
                let list = array.as_list::<i32>();
                addresses.push(list.value_offsets().as_ptr() as i64);
                return self.note(list.values(), addresses);
            }
            DataType::Map(..) => {
                let map = array.as_map();
                addresses.push(map.value_offsets().as_ptr() as i64);
                self.note(map.keys(), addresses);
                return self.note(map.values(), addresses);
            }
            other => panic!("no vector of type {other}"),
        };
        addresses.push(address);
    }

    fn note_nulls(&mut self, nulls: Option<&NullBuffer>, addresses: &mut Vec<i64>) {
        let address = match nulls.filter(|nulls| nulls.null_count() > 0) {
            Some(nulls) => self.bits(nulls.inner()),
            None => 0,
        };
        addresses.push(address);
    }

    /// Returns the address of bits that begin in a whole byte.
    fn bits(&mut self, bits: &BooleanBuffer) -> i64 {
        let buffer = bits.sliced();
        let address = buffer.as_ptr() as i64;
        // it may be a copy, which is freed otherwise
        self.buffers.push(buffer);
        address
    }
}

fn numbers<T: ArrowPrimitiveType>(array: &dyn Array) -> i64 {
    array.as_primitive::<T>().values().as_ptr() as i64
}
