//! The column of properties. It consists of maps of strings, or of other types into which data frames turn maps.
use super::lists::Lists;
use super::row::Pair;
use super::values::{Bytes, integers};
use crate::{Error, Result};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryArray, MapArray, StructArray};
use arrow_schema::DataType;
use std::ops::Range;

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
