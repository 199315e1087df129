//! A row of a DataFrame, as the JVM source passes it: bytes, field by field.
//!
//! ```text
//! text or bytes  int32 length, bytes          array  int32 count, texts
//! number         int32 length = 8, int64      map    int32 count, names and values in turn
//! ```
//!
//! A length or a count of -1 stands for null. Numbers have native byte order, since rows stay in this process.
use super::columns::SinkColumn;
use rmqfast_client::send::BatchRow;

/// A property's name and value.
pub type Property<'a> = (&'a [u8], Option<&'a [u8]>);

#[derive(Clone, Debug, Default)]
pub struct Row<'a> {
    pub body: Option<&'a [u8]>,
    pub tags: Option<&'a [u8]>,
    /// Keys separated by spaces. Null elements are left out.
    pub keys: Option<Keys<'a>>,
    pub properties: Option<Vec<Property<'a>>>,
    pub topic: Option<&'a [u8]>,
    pub broker_name: Option<&'a [u8]>,
    pub queue_id: Option<i64>,
    /// Delay level; 0 or null delivers at once.
    pub delay_level: Option<i64>,
    /// The application's 32-bit flag.
    pub flag: Option<i64>,
}

#[derive(Clone, Debug)]
pub enum Keys<'a> {
    Text(&'a [u8]),
    Joined(Vec<u8>),
}

impl Keys<'_> {
    /// Joins keys with spaces. Null elements are left out.
    pub fn joined<'b>(keys: impl IntoIterator<Item = Option<&'b [u8]>>) -> Self {
        // RocketMQ stores all keys in the property KEYS, separated by spaces
        Self::Joined(keys.into_iter().flatten().collect::<Vec<_>>().join(&b' '))
    }

    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text,
            Self::Joined(text) => text,
        }
    }
}

impl<'a> Row<'a> {
    /// Parses the row at the beginning of `bytes` and returns it with its length. `None` if the bytes are malformed.
    pub fn read(columns: &[SinkColumn], bytes: &'a [u8]) -> Option<(Self, usize)> {
        let mut fields = Fields { bytes, at: 0 };
        let mut row = Self::default();
        for column in columns {
            match column {
                SinkColumn::Body => row.body = fields.bytes()?,
                SinkColumn::Tags => row.tags = fields.bytes()?,
                SinkColumn::Keys => row.keys = fields.bytes()?.map(Keys::Text),
                SinkColumn::KeyList => row.keys = fields.list()?.map(Keys::joined),
                SinkColumn::Properties => row.properties = fields.pairs()?,
                SinkColumn::Topic => row.topic = fields.bytes()?,
                SinkColumn::BrokerName => row.broker_name = fields.bytes()?,
                SinkColumn::QueueId => row.queue_id = fields.number()?,
                SinkColumn::DelayLevel => row.delay_level = fields.number()?,
                SinkColumn::Flag => row.flag = fields.number()?,
            }
        }
        Some((row, fields.at))
    }

    pub fn message(&self) -> BatchRow<'_> {
        BatchRow {
            body: self.body,
            tags: self.tags,
            keys: self.keys.as_ref().map(Keys::bytes),
            pairs: self.properties.as_deref().unwrap_or_default(),
            flag: self.flag.unwrap_or(0),
        }
    }
}

struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Fields<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(length)?;
        let field = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(field)
    }

    /// Reads a length or a count. `Some(None)` means null, and `None` that the bytes are malformed.
    fn count(&mut self) -> Option<Option<usize>> {
        let head = i32::from_ne_bytes(*self.take(4)?.first_chunk()?);
        if head == -1 { Some(None) } else { Some(Some(usize::try_from(head).ok()?)) }
    }

    fn bytes(&mut self) -> Option<Option<&'a [u8]>> {
        match self.count()? {
            None => Some(None),
            Some(length) => self.take(length).map(Some),
        }
    }

    fn number(&mut self) -> Option<Option<i64>> {
        let field = self.bytes()?;
        field.map(|bytes| Some(i64::from_ne_bytes(*bytes.first_chunk()?))).map_or(Some(None), |number| number.map(Some))
    }

    fn list(&mut self) -> Option<Option<Vec<Option<&'a [u8]>>>> {
        let Some(count) = self.count()? else { return Some(None) };
        // no memory is reserved by the count, which may be wrong
        let mut list = Vec::new();
        for _ in 0..count {
            list.push(self.bytes()?);
        }
        Some(Some(list))
    }

    fn pairs(&mut self) -> Option<Option<Vec<Property<'a>>>> {
        let Some(count) = self.count()? else { return Some(None) };
        let mut pairs = Vec::new();
        for _ in 0..count {
            // Spark's maps have no null keys
            pairs.push((self.bytes()?.unwrap_or_default(), self.bytes()?));
        }
        Some(Some(pairs))
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Writes fields in the form of the JVM source.
    #[derive(Default)]
    pub struct RowBytes(pub Vec<u8>);

    impl RowBytes {
        pub fn head(mut self, head: i32) -> Self {
            self.0.extend_from_slice(&head.to_ne_bytes());
            self
        }

        pub fn text(self, text: &str) -> Self {
            let mut with_head = self.head(text.len() as i32);
            with_head.0.extend_from_slice(text.as_bytes());
            with_head
        }

        pub fn number(self, number: i64) -> Self {
            let mut with_head = self.head(8);
            with_head.0.extend_from_slice(&number.to_ne_bytes());
            with_head
        }

        pub fn null(self) -> Self {
            self.head(-1)
        }
    }

    const ALL: [SinkColumn; 5] =
        [SinkColumn::Body, SinkColumn::KeyList, SinkColumn::Properties, SinkColumn::QueueId, SinkColumn::Flag];

    #[test]
    fn a_row_is_read_as_it_was_written() {
        let keys = RowBytes::default().text("body").head(3).text("k1").null().text("k2");
        let row = keys.head(2).text("a").text("1").text("b").null().number(-5).null();
        let (read, length) = Row::read(&ALL, &row.0).expect("a row");
        assert_eq!((read.body, length), (Some(&b"body"[..]), row.0.len()));
        assert_eq!(read.keys.as_ref().map(Keys::bytes), Some(&b"k1 k2"[..]));
        assert_eq!(read.properties, Some(vec![(&b"a"[..], Some(&b"1"[..])), (&b"b"[..], None)]));
        assert_eq!((read.queue_id, read.flag), (Some(-5), None));
        let nulls = RowBytes::default().null().null().null().null().null();
        let (read, _) = Row::read(&ALL, &nulls.0).expect("nulls");
        assert!(read.body.is_none() && read.keys.is_none() && read.properties.is_none());
    }

    #[test]
    fn what_is_no_row_is_none() {
        let row = RowBytes::default().text("body").head(0).head(0).number(1).number(1);
        assert!(Row::read(&ALL, &row.0).is_some());
        for length in 0..row.0.len() {
            assert!(Row::read(&ALL, &row.0[..length]).is_none(), "{length}");
        }
        for wrong in [-2, i32::MAX] {
            assert!(Row::read(&ALL[..1], &RowBytes::default().head(wrong).0).is_none());
            assert!(Row::read(&ALL[2..3], &RowBytes::default().head(wrong).0).is_none());
        }
    }
}
