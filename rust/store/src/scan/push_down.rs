//! Filters of an engine, such as Spark or DuckDB, that narrow a scan. An engine need not check again what a scan applies
//! exactly.
use super::column::Column;
use super::request::{OffsetBound, ScanRequest};
use crate::filter::TagExpression;

/// A condition on one column. A comparison has one value, `in` has several values, `null` and `not null` have no value.
#[derive(Clone, Debug)]
pub struct Filter {
    /// The kind of condition: `=`, `<`, `<=`, `>`, `>=`, `in`, `null` or `not null`.
    pub kind: String,
    pub column: String,
    pub values: Vec<Option<Literal>>,
}

/// A value in a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Literal {
    Text(String),
    Number(i64),
    /// A time in microseconds since 1970.
    Micros(i64),
    /// A value of a type that no column with filters has.
    Other,
}

impl Literal {
    fn text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    fn number(&self) -> Option<i64> {
        if let Self::Number(number) = self { Some(*number) } else { None }
    }

    fn micros(&self) -> Option<i64> {
        if let Self::Micros(micros) = self { Some(*micros) } else { None }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Source {
    /// A store directory, whose rows all have the same `broker_name`, which may be null; or those of several brokers.
    #[default]
    Store,
    Topic,
}

/// The messages that options and filters select.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    pub source: Source,
    /// The topic that the options select, in a read of a store.
    pub topic: Option<String>,
    /// The topic that a filter selects, if the options select all topics of a store.
    pub only_topic: Option<String>,
    /// The topics of a cluster that filters select.
    pub topics: Option<Vec<String>>,
    /// Whether the cluster may have light queues (LMQ). Their records carry the topic, queue and offset of another
    /// queue.
    pub may_be_light: bool,
    /// Whether the options select tags.
    pub has_tags: bool,
    /// Tags that a filter selects.
    pub tags: Option<Vec<String>>,
    /// The brokers that filters select. Of stores, those that have a name; `None` if the store has none.
    pub broker_names: Option<Vec<String>>,
    pub queue_ids: Option<Vec<i32>>,
    /// Whether the options set offsets for each queue.
    pub has_offsets_by_queue: bool,
    /// The first offset to read in all queues, and the offset after the last offset to read.
    pub offsets: Limits,
    /// The first store time to read, and the time after the last store time to read, in milliseconds.
    pub times: Limits,
    /// Whether no message can match.
    pub is_empty: bool,
}

/// The first value, and the value after the last; `None` if there is no bound.
pub type Limits = (Option<i64>, Option<i64>);

impl Selection {
    /// Returns what the filters of a scan of a store select.
    pub fn of(request: &ScanRequest) -> Self {
        let by_queue = |bound: &Option<OffsetBound>| matches!(bound, Some(OffsetBound::ByQueue(_)));
        let every = |bound: &Option<OffsetBound>| match bound {
            Some(OffsetBound::Every(offset)) => Some(*offset),
            _ => None,
        };
        Self {
            topic: request.topic.clone(),
            may_be_light: request.has_light_queues(),
            has_tags: !request.tags.is_all(),
            broker_names: request.broker_name.clone().map(|name| vec![name]),
            queue_ids: request.queue_ids.clone(),
            has_offsets_by_queue: by_queue(&request.start_offset) || by_queue(&request.end_offset),
            offsets: (every(&request.start_offset), every(&request.end_offset)),
            times: (request.start_time, request.end_time),
            ..Self::default()
        }
    }

    /// Writes what filters have narrowed into the request from which the selection was made. Leaves the topic: a scan
    /// of one topic skips records that no consume queue lists, which a filter does not.
    pub fn narrow(&self, request: &mut ScanRequest) {
        if let Some(tags) = &self.tags {
            request.tags = TagExpression::of(tags.iter().map(String::as_str));
        }
        // otherwise the request bounds each queue, and filters on offsets were refused
        if !self.has_offsets_by_queue {
            request.start_offset = self.offsets.0.map(OffsetBound::Every);
            request.end_offset = self.offsets.1.map(OffsetBound::Every);
        }
        (request.start_time, request.end_time) = self.times;
        request.queue_ids.clone_from(&self.queue_ids);
    }

    /// Narrows the read by filters. Returns for each filter whether the read applies it, so that Spark need not.
    pub fn take(&mut self, filters: &[Filter]) -> Vec<bool> {
        let mut is_taken = vec![false; filters.len()];
        // Spark also sends "tags is not null" with "tags = 'A'", which implies it, so it is looked at last
        for last in [false, true] {
            for (filter, is_taken) in filters.iter().zip(&mut is_taken).filter(|(f, _)| (f.kind == "not null") == last)
            {
                *is_taken = self.takes(filter).is_some();
            }
        }
        is_taken
    }

    fn takes(&mut self, filter: &Filter) -> Option<()> {
        let column = Column::of_name(&filter.column).ok()?;
        let values = &filter.values;
        let first = || values.first()?.as_ref();
        match (column, filter.kind.as_str()) {
            (_, "not null") => self.takes_not_null(column),
            (_, "null") => self.takes_null(column),
            (Column::Tags, "=" | "in") => self.takes_tags(values),
            (Column::BrokerName, "=" | "in") => self.takes_broker_names(values),
            (Column::StoreTimestamp, kind) => self.takes_time(kind, first()?.micros()?),
            (Column::Topic | Column::QueueId | Column::QueueOffset, _) if self.may_be_light => None,
            (Column::Topic, "=" | "in") if self.source == Source::Topic => self.takes_topics(values),
            (Column::Topic, "=") => self.takes_topic(first()?.text()?),
            (Column::QueueId, "=" | "in") => self.takes_queue_ids(values),
            (Column::QueueOffset, kind) => self.takes_offset(kind, first()?.number()?),
            _ => None,
        }
    }

    fn takes_not_null(&mut self, column: Column) -> Option<()> {
        let is_tagged = column == Column::Tags && (self.has_tags || self.tags.is_some());
        match column {
            // a store has one broker name for all rows, or null in all rows
            Column::BrokerName if self.source == Source::Store => self.is_empty |= self.broker_names.is_none(),
            // a read by tags never returns a message without tags
            _ if is_tagged || !may_be_null(column) => {}
            _ => return None,
        }
        Some(())
    }

    fn takes_null(&mut self, column: Column) -> Option<()> {
        match column {
            Column::BrokerName if self.source == Source::Store => self.is_empty |= self.broker_names.is_some(),
            _ if !may_be_null(column) => self.is_empty = true,
            _ => return None,
        }
        Some(())
    }

    /// Narrows the read to a topic. All records are still scanned, because a scan of one topic would skip records that
    /// no consume queue lists.
    fn takes_topic(&mut self, topic: &str) -> Option<()> {
        match self.topic.as_deref().or(self.only_topic.as_deref()) {
            Some(known) => self.is_empty |= known != topic,
            None => self.only_topic = Some(topic.to_owned()),
        }
        Some(())
    }

    fn takes_topics(&mut self, values: &[Option<Literal>]) -> Option<()> {
        self.topics = Some(left(texts(values)?, self.topics.as_deref()));
        self.is_empty |= self.topics.as_ref().is_some_and(Vec::is_empty);
        Some(())
    }

    fn takes_tags(&mut self, values: &[Option<Literal>]) -> Option<()> {
        // NULL in IN (..., NULL) never makes the condition true
        let tags: Vec<&str> = values.iter().flatten().map(Literal::text).collect::<Option<_>>()?;
        // a tag expression has no "and", so Spark has to apply a second condition
        if self.has_tags || self.tags.is_some() || !tags.iter().all(|tag| TagExpression::is_one_tag(tag)) {
            return None;
        }
        // IN (NULL) is never true
        if tags.is_empty() {
            self.is_empty = true;
        } else {
            self.tags = Some(tags.into_iter().map(str::to_owned).collect());
        }
        Some(())
    }

    fn takes_broker_names(&mut self, values: &[Option<Literal>]) -> Option<()> {
        let names = texts(values)?;
        // no value equals the null in all rows of a store without a name
        let has_no_name = self.source == Source::Store && self.broker_names.is_none();
        self.broker_names = Some(left(names, self.broker_names.as_deref())).filter(|_| !has_no_name);
        self.is_empty |= has_no_name || self.broker_names.as_ref().is_some_and(Vec::is_empty);
        Some(())
    }

    fn takes_queue_ids(&mut self, values: &[Option<Literal>]) -> Option<()> {
        let ids = values.iter().flatten().map(|id| id.number()?.try_into().ok());
        self.queue_ids = Some(left(ids.collect::<Option<_>>()?, self.queue_ids.as_deref()));
        self.is_empty |= self.queue_ids.as_ref().is_some_and(Vec::is_empty);
        Some(())
    }

    fn takes_offset(&mut self, kind: &str, value: i64) -> Option<()> {
        // one bound for all queues cannot narrow bounds by queue; the largest numbers would overflow
        if self.has_offsets_by_queue || value.checked_abs()? == i64::MAX {
            return None;
        }
        self.offsets = both(self.offsets, range(kind, value, value)?);
        Some(())
    }

    /// Narrows the range of store times; `None` if the comparison cannot be applied. A value with a fraction of a
    /// millisecond is rounded, since store times are whole milliseconds.
    fn takes_time(&mut self, kind: &str, micros: i64) -> Option<()> {
        let (low, high) = (micros.div_euclid(1000), micros.checked_add(999)?.div_euclid(1000));
        self.times = both(self.times, range(kind, low, high)?);
        Some(())
    }
}

/// Returns the strings of a condition, or `None` if a value is no string. NULL is left out, as `IN (..., NULL)` is
/// never true because of NULL.
fn texts(values: &[Option<Literal>]) -> Option<Vec<String>> {
    values.iter().flatten().map(|value| value.text().map(str::to_owned)).collect()
}

fn may_be_null(column: Column) -> bool {
    matches!(column, Column::Tags | Column::Keys | Column::Body | Column::Properties)
}

/// Returns the sorted values of `wanted` that are also in `before`, if `before` is given.
fn left<T: Ord>(mut wanted: Vec<T>, before: Option<&[T]>) -> Vec<T> {
    wanted.sort_unstable();
    wanted.dedup();
    wanted.retain(|value| before.is_none_or(|before| before.contains(value)));
    wanted
}

/// Returns the range of whole numbers that match a comparison with a value; `low` and `high` are this value rounded
/// down and up. `None` if `kind` is no comparison.
fn range(kind: &str, low: i64, high: i64) -> Option<Limits> {
    Some(match kind {
        // for a value between two whole numbers the range is empty
        "=" => (Some(high), Some(low + 1)),
        ">" => (Some(low + 1), None),
        ">=" => (Some(high), None),
        "<" => (None, Some(high)),
        "<=" => (None, Some(low + 1)),
        _ => return None,
    })
}

fn both(before: Limits, bound: Limits) -> Limits {
    let end = match (before.1, bound.1) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (one, other) => one.or(other),
    };
    (before.0.max(bound.0), end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Option<Literal> {
        Some(Literal::Text(text.to_owned()))
    }

    fn number(number: i64) -> Option<Literal> {
        Some(Literal::Number(number))
    }

    fn filter(kind: &str, column: &str, values: &[Option<Literal>]) -> Filter {
        Filter { kind: kind.to_owned(), column: column.to_owned(), values: values.to_vec() }
    }

    #[test]
    fn what_a_scan_does_exactly_is_taken() {
        let mut selection = Selection::default();
        let filters = [
            filter("not null", "tags", &[]),
            filter("in", "tags", &[text("A"), text("B")]),
            filter("=", "queue_id", &[number(3)]),
            filter(">=", "queue_offset", &[number(5)]),
            filter("<", "queue_offset", &[number(9)]),
            filter(">", "store_timestamp", &[Some(Literal::Micros(1500))]),
            filter("=", "topic", &[text("orders")]),
            filter("not null", "keys", &[]),
            filter(">", "flag", &[number(1)]),
        ];
        assert_eq!(selection.take(&filters), [true, true, true, true, true, true, true, false, false]);
        assert_eq!(selection.tags, Some(vec!["A".to_owned(), "B".to_owned()]));
        assert_eq!(selection.queue_ids, Some(vec![3]));
        assert_eq!((selection.offsets, selection.times), ((Some(5), Some(9)), (Some(2), None)));
        assert_eq!((selection.only_topic.as_deref(), selection.is_empty), (Some("orders"), false));
    }

    #[test]
    fn filters_leave_topics_of_a_cluster_unless_its_queues_are_light() {
        let filters = [
            filter("in", "topic", &[text("b"), text("a"), None]),
            filter("=", "topic", &[text("a")]),
            filter("in", "topic", &[number(1)]),
            filter("=", "queue_id", &[number(1)]),
        ];
        let read = || Selection { source: Source::Topic, ..Selection::default() };
        let mut selection = read();
        assert_eq!(selection.take(&filters), [true, true, false, true]);
        assert_eq!((selection.topics, selection.is_empty), (Some(vec!["a".to_owned()]), false));
        let mut named = Selection { topics: Some(vec!["c".to_owned()]), ..read() };
        assert_eq!((named.take(&filters[..1]), named.is_empty), (vec![true], true));
        let mut light = Selection { may_be_light: true, ..read() };
        assert_eq!(light.take(&filters), [false; 4]);
    }

    #[test]
    fn what_is_no_single_tag_stays_with_the_engine() {
        for tag in ["", "*", " A", "A||B"] {
            assert_eq!(Selection::default().take(&[filter("=", "tags", &[text(tag)])]), [false], "{tag}");
        }
    }

    #[test]
    fn conditions_that_nothing_meets_read_nothing() {
        let two_topics = [filter("=", "topic", &[text("a")]), filter("=", "topic", &[text("b")])];
        let nowhere = [filter("in", "queue_id", &[])];
        for filters in [&two_topics[..], &nowhere, &[filter("null", "queue_id", &[])], &[filter("in", "tags", &[None])]]
        {
            let mut selection = Selection::default();
            assert!(selection.take(filters).iter().all(|taken| *taken));
            assert!(selection.is_empty);
        }
    }
}
