//! Arrow columns of lists of any type.
use super::values::Bytes;
use crate::{Error, Result};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryArray, OffsetSizeTrait};
use arrow_schema::DataType;
use std::ops::Range;

#[derive(Debug)]
pub struct Lists<'a> {
    /// Range of each row in `values`; `None` for a null row.
    pub ranges: Vec<Option<Range<usize>>>,
    /// The items of all rows.
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
