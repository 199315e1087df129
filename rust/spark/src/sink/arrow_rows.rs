//! The rows of an Arrow record batch. Values are not copied, except for lists of keys, which are joined, and properties
//! that are not maps.
use super::columns::SinkColumn;
use super::row::{Keys, Row};
use crate::error::Result;
use arrow_array::{Array, Int64Array, RecordBatch};
use arrow_schema::DataType;
use rmqfast_store::store::append::columns::{Bytes, Pairs, integers, join_texts};

/// The columns of a batch that the sink sends.
#[derive(Debug)]
pub struct ArrowRows {
    count: usize,
    bytes: usize,
    columns: Vec<(SinkColumn, Values)>,
}

#[derive(Debug)]
enum Values {
    Bytes(Bytes),
    Pairs(Box<Pairs>),
    Numbers(Int64Array),
}

impl ArrowRows {
    /// Finds the columns of a batch by name. A missing column counts as null.
    ///
    /// # Errors
    /// A column whose type differs from the schema's.
    pub fn new(batch: &RecordBatch, columns: &[SinkColumn]) -> Result<Self> {
        let there = columns.iter().filter_map(|column| Some((*column, batch.column_by_name(column.name())?)));
        // a column of nulls may arrive without a type
        let typed = there.filter(|(_, array)| *array.data_type() != DataType::Null);
        let read: Result<Vec<_>> = typed.map(|(column, array)| Ok((column, Values::new(column, array)?))).collect();
        Ok(Self { count: batch.num_rows(), bytes: batch.get_array_memory_size(), columns: read? })
    }

    pub fn count(&self) -> usize {
        self.count
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the row at `index`; `None` after the last row.
    pub fn row(&self, index: usize) -> Option<Row<'_>> {
        if index >= self.count {
            return None;
        }
        let mut row = Row::default();
        for (column, values) in &self.columns {
            match column {
                SinkColumn::Body => row.body = values.bytes(index),
                SinkColumn::Tags => row.tags = values.bytes(index),
                SinkColumn::Keys | SinkColumn::KeyList => row.keys = values.bytes(index).map(Keys::Text),
                SinkColumn::Properties => row.properties = values.pairs(index).map(Iterator::collect),
                SinkColumn::Topic => row.topic = values.bytes(index),
                SinkColumn::BrokerName => row.broker_name = values.bytes(index),
                SinkColumn::QueueId => row.queue_id = values.number(index),
                SinkColumn::DelayLevel => row.delay_level = values.number(index),
                SinkColumn::Flag => row.flag = values.number(index),
            }
        }
        Some(row)
    }
}

impl Values {
    fn new(column: SinkColumn, array: &dyn Array) -> Result<Self> {
        use SinkColumn::{Body, BrokerName, DelayLevel, Flag, KeyList, Keys, Properties, QueueId, Tags, Topic};
        let name = column.name();
        Ok(match column {
            Body | Tags | Topic | BrokerName => Self::Bytes(Bytes::new(name, array)?),
            Keys | KeyList => Self::Bytes(join_texts(name, array)?),
            Properties => Self::Pairs(Box::new(Pairs::new(array)?)),
            QueueId | DelayLevel | Flag => Self::Numbers(integers(name, array)?),
        })
    }

    fn bytes(&self, index: usize) -> Option<&[u8]> {
        if let Self::Bytes(bytes) = self { bytes.value(index) } else { None }
    }

    fn number(&self, index: usize) -> Option<i64> {
        if let Self::Numbers(numbers) = self { numbers.is_valid(index).then(|| numbers.value(index)) } else { None }
    }

    fn pairs(&self, index: usize) -> Option<impl Iterator<Item = (&[u8], Option<&[u8]>)>> {
        let Self::Pairs(pairs) = self else { return None };
        (!pairs.is_null(index)).then(|| pairs.of_row(index).map(|at| pairs.pair(at)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::builder::{
        Int16Builder, LargeListBuilder, LargeStringBuilder, ListBuilder, MapBuilder, StringBuilder,
    };
    use arrow_array::{ArrayRef, BinaryArray, LargeStringArray, NullArray, StringArray};
    use std::sync::Arc;

    fn rows(columns: Vec<(&str, ArrayRef)>, sent: &[SinkColumn]) -> ArrowRows {
        let batch =
            RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true)));
        ArrowRows::new(&batch.expect("columns of one length"), sent).expect("their types")
    }

    fn keys_of(lists: ArrayRef) -> Vec<Option<String>> {
        let rows = rows(vec![("keys", lists)], &[SinkColumn::KeyList]);
        let keys = (0..rows.count()).map(|at| rows.row(at).expect("there").keys);
        keys.map(|keys| keys.map(|keys| String::from_utf8(keys.bytes().to_vec()).expect("text"))).collect()
    }

    #[test]
    fn all_columns_are_read_whatever_their_width() {
        let mut numbers = Int16Builder::new();
        numbers.append_value(-5);
        numbers.append_null();
        let mut maps = MapBuilder::new(None, StringBuilder::new(), StringBuilder::new());
        maps.keys().append_value("a");
        maps.values().append_value("1");
        maps.keys().append_value("b");
        maps.values().append_null();
        maps.append(true).expect("a map");
        maps.append(false).expect("null");
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("other", Arc::new(NullArray::new(2))),
            ("flag", Arc::new(numbers.finish())),
            ("body", Arc::new(BinaryArray::from_opt_vec(vec![Some(b"\xff"), None]))),
            ("tags", Arc::new(LargeStringArray::from(vec![None, Some("t")]))),
            ("keys", Arc::new(StringArray::from(vec!["k1 k2", ""]))),
            ("topic", Arc::new(NullArray::new(2))),
            ("properties", Arc::new(maps.finish())),
        ];
        use SinkColumn::{Body, Flag, Keys, Properties, Tags, Topic};
        let rows = rows(columns, &[Body, Tags, Keys, Properties, Topic, Flag]);
        let row = rows.row(0).expect("there");
        assert_eq!((row.body, row.tags, row.topic, row.flag), (Some(&b"\xff"[..]), None, None, Some(-5)));
        assert_eq!(row.keys.as_ref().map(super::Keys::bytes), Some(&b"k1 k2"[..]));
        assert_eq!(row.properties, Some(vec![(&b"a"[..], Some(&b"1"[..])), (&b"b"[..], None)]));
        let row = rows.row(1).expect("there");
        assert_eq!((row.body, row.tags, row.properties, row.flag), (None, Some(&b"t"[..]), None, None));
        assert!(rows.row(2).is_none());
    }

    #[test]
    fn keys_of_an_array_are_joined_and_nulls_among_them_left_out() {
        let lists = [Some(vec![Some("a"), None, Some("b")]), None, Some(vec![None]), Some(vec![])];
        let joined = vec![Some("a b".to_owned()), None, Some(String::new()), Some(String::new())];
        let mut small = ListBuilder::new(StringBuilder::new());
        let mut large = LargeListBuilder::new(LargeStringBuilder::new());
        for list in lists {
            small.append_option(list.clone());
            large.append_option(list);
        }
        assert_eq!(keys_of(Arc::new(small.finish())), joined);
        let large = large.finish();
        assert_eq!(keys_of(Arc::new(large.slice(1, 3))), joined[1..]);
    }

    #[test]
    fn a_column_of_another_type_is_refused() {
        let batch = RecordBatch::try_from_iter([("keys", Arc::new(Int64Array::from(vec![1])) as ArrayRef)]);
        let text = ArrowRows::new(&batch.expect("a column"), &[SinkColumn::KeyList]).expect_err("no texts").to_string();
        assert_eq!(text, "keys: expected a column of text or bytes, got Int64");
    }
}
