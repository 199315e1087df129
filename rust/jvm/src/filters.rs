//! Filters that Spark pushes down: those that a scan does exactly are taken out of the query.
use crate::read::Read;
use rmqfast_store::filter::TagExpression;
use rmqfast_store::scan::{Column, OffsetBound};

/// A condition on one column: a comparison with one value, `in` with some, `null` and `not null` with none.
#[derive(Clone, Debug)]
pub struct Filter {
    /// `=`, `<`, `<=`, `>`, `>=`, `in`, `null`, `not null`.
    pub kind: String,
    /// The column.
    pub column: String,
    /// Values as text, times in microseconds; `None` is null.
    pub values: Vec<Option<String>>,
}

impl Filter {
    /// A filter from its parts: kind, column, values.
    pub fn of(mut parts: Vec<Option<String>>) -> Self {
        let values = parts.split_off(parts.len().min(2));
        let mut head = parts.into_iter().map(Option::unwrap_or_default);
        Self { kind: head.next().unwrap_or_default(), column: head.next().unwrap_or_default(), values }
    }
}

impl Read {
    /// Narrows the read filter by filter; tells which were taken: those Spark does not check again.
    pub fn take(&mut self, filters: &[Filter]) -> Vec<bool> {
        let mut taken = vec![false; filters.len()];
        // "tags is not null" stands before "tags = 'A'", which makes it true
        for last in [false, true] {
            for (filter, taken) in filters.iter().zip(&mut taken).filter(|(f, _)| (f.kind == "not null") == last) {
                *taken = self.takes(filter).is_some();
            }
        }
        taken
    }

    fn takes(&mut self, filter: &Filter) -> Option<()> {
        let column = Column::of_name(&filter.column).ok()?;
        let values = &filter.values;
        match (column, filter.kind.as_str()) {
            (_, "not null") => self.takes_not_null(column),
            (_, "null") => self.takes_null(column),
            (Column::Topic, "=") => self.takes_topic(values.first()?.as_deref()?),
            (Column::Tags, "=" | "in") => self.takes_tags(values),
            (Column::QueueId, "=" | "in") => self.takes_queue_ids(values),
            (Column::QueueOffset, kind) => self.takes_offset(kind, values.first()?.as_deref()?.parse().ok()?),
            (Column::StoreTimestamp, kind) => self.takes_time(kind, values.first()?.as_deref()?.parse().ok()?),
            _ => None,
        }
    }

    fn takes_not_null(&mut self, column: Column) -> Option<()> {
        let is_tagged = column == Column::Tags && !self.request.tags.is_all();
        match column {
            Column::BrokerName => self.is_empty |= self.request.broker_name.is_none(),
            _ if is_tagged || !may_be_null(column) => {}
            _ => return None,
        }
        Some(())
    }

    fn takes_null(&mut self, column: Column) -> Option<()> {
        match column {
            Column::BrokerName => self.is_empty |= self.request.broker_name.is_some(),
            _ if !may_be_null(column) => self.is_empty = true,
            _ => return None,
        }
        Some(())
    }

    /// Rows of a topic among all records: the request for a topic would leave out what no consume queue lists.
    fn takes_topic(&mut self, topic: &str) -> Option<()> {
        match self.request.topic.as_deref().or(self.only_topic.as_deref()) {
            Some(known) => self.is_empty |= known != topic,
            None => self.only_topic = Some(topic.to_owned()),
        }
        Some(())
    }

    fn takes_tags(&mut self, values: &[Option<String>]) -> Option<()> {
        // IN (..., NULL) is never true by the NULL
        let wanted: Vec<&str> = values.iter().flatten().map(String::as_str).collect();
        if !self.request.tags.is_all() || !wanted.iter().all(|tag| is_one_tag(tag)) {
            return None;
        }
        if wanted.is_empty() {
            self.is_empty = true;
        } else {
            self.request.tags = TagExpression::of(wanted);
        }
        Some(())
    }

    fn takes_queue_ids(&mut self, values: &[Option<String>]) -> Option<()> {
        let mut wanted: Vec<i32> = values.iter().flatten().map(|id| id.parse().ok()).collect::<Option<_>>()?;
        wanted.sort_unstable();
        wanted.dedup();
        wanted.retain(|id| self.request.queue_ids.as_ref().is_none_or(|before| before.contains(id)));
        self.is_empty |= wanted.is_empty();
        self.request.queue_ids = Some(wanted);
        Some(())
    }

    fn takes_offset(&mut self, kind: &str, value: i64) -> Option<()> {
        let by_queue = |bound: &Option<OffsetBound>| matches!(bound, Some(OffsetBound::ByQueue(_)));
        let request = &mut self.request;
        if by_queue(&request.start_offset) || by_queue(&request.end_offset) || value.checked_abs()? == i64::MAX {
            return None;
        }
        let every = |bound: &Option<OffsetBound>| match bound {
            Some(OffsetBound::Every(offset)) => Some(*offset),
            _ => None,
        };
        let (from, end) = range(kind, value, value)?;
        request.start_offset = later(every(&request.start_offset), from).map(OffsetBound::Every);
        request.end_offset = earlier(every(&request.end_offset), end).map(OffsetBound::Every);
        Some(())
    }

    /// Stored are whole milliseconds: between two of them, after the one is from the other.
    fn takes_time(&mut self, kind: &str, micros: i64) -> Option<()> {
        let (low, high) = (micros.div_euclid(1000), micros.checked_add(999)?.div_euclid(1000));
        let (from, end) = range(kind, low, high)?;
        self.request.start_time = later(self.request.start_time, from);
        self.request.end_time = earlier(self.request.end_time, end);
        Some(())
    }
}

fn may_be_null(column: Column) -> bool {
    matches!(column, Column::BrokerName | Column::Tags | Column::Keys | Column::Body | Column::Properties)
}

/// What a comparison leaves of whole numbers: the first, and the one behind the last. The value lies between `low` and
/// `high`, the whole numbers around it, which are the same where it is whole.
fn range(kind: &str, low: i64, high: i64) -> Option<(Option<i64>, Option<i64>)> {
    Some(match kind {
        "=" => (Some(high), Some(low + 1)),
        ">" => (Some(low + 1), None),
        ">=" => (Some(high), None),
        "<" => (None, Some(high)),
        "<=" => (None, Some(low + 1)),
        _ => return None,
    })
}

/// Whether a tag expression of just this tag means just this tag.
fn is_one_tag(tag: &str) -> bool {
    tag == tag.trim() && !matches!(tag, "" | "*") && !tag.contains('|')
}

fn later(before: Option<i64>, bound: Option<i64>) -> Option<i64> {
    before.max(bound)
}

fn earlier(before: Option<i64>, bound: Option<i64>) -> Option<i64> {
    match (before, bound) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;

    fn read() -> Read {
        let options = Options { store_path: "/store".into(), ..Options::default() };
        Read::of(&options, Column::ALL.to_vec()).expect("a read")
    }

    fn filter(kind: &str, column: &str, values: &[&str]) -> Filter {
        let values = values.iter().map(|value| Some((*value).to_owned())).collect();
        Filter { kind: kind.to_owned(), column: column.to_owned(), values }
    }

    #[test]
    fn what_a_scan_does_exactly_is_taken() {
        let mut read = read();
        let filters = [
            filter("not null", "tags", &[]),
            filter("in", "tags", &["A", "B"]),
            filter("=", "queue_id", &["3"]),
            filter(">=", "queue_offset", &["5"]),
            filter("<", "queue_offset", &["9"]),
            filter(">", "store_timestamp", &["1500"]),
            filter("=", "topic", &["orders"]),
            filter("not null", "keys", &[]),
            filter(">", "flag", &["1"]),
        ];
        assert_eq!(read.take(&filters), [true, true, true, true, true, true, true, false, false]);
        assert_eq!(read.request.tags.tags(), ["A", "B"]);
        assert_eq!(read.request.queue_ids, Some(vec![3]));
        assert_eq!(read.request.start_offset, Some(OffsetBound::Every(5)));
        assert_eq!(read.request.end_offset, Some(OffsetBound::Every(9)));
        assert_eq!(read.request.start_time, Some(2));
        assert_eq!((read.only_topic.as_deref(), read.is_empty), (Some("orders"), false));
    }

    #[test]
    fn what_is_no_single_tag_stays_with_spark() {
        for tag in ["", "*", " A", "A||B"] {
            assert_eq!(read().take(&[filter("=", "tags", &[tag])]), [false], "{tag}");
        }
    }

    #[test]
    fn conditions_that_nothing_meets_read_nothing() {
        let two_topics = [filter("=", "topic", &["a"]), filter("=", "topic", &["b"])];
        let nowhere = [filter("in", "queue_id", &[])];
        for filters in [&two_topics[..], &nowhere, &[filter("null", "queue_id", &[])], &[filter("in", "tags", &[])]] {
            let mut read = read();
            assert!(read.take(filters).iter().all(|taken| *taken));
            assert!(read.is_empty && read.partitions(1).expect("no store is opened").is_empty());
        }
    }
}
