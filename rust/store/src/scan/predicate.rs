//! A predicate of an engine, and the conditions on single columns that it surely implies.
//!
//! A scan that is narrowed by these conditions reads all rows that match the predicate, and perhaps more, so the engine
//! still applies the predicate. What is not understood costs time, and never a row.
use super::push_down::{Filter, Literal};

#[derive(Clone, Debug)]
pub enum Predicate {
    /// All of them are true.
    All(Vec<Self>),
    /// One of them is true.
    Any(Vec<Self>),
    Filter(Filter),
    /// A condition that does not narrow a scan.
    Other,
}

impl Predicate {
    /// Creates a condition on one column, as `("=", "tags", ["paid"])`.
    pub fn filter(kind: &str, column: &str, values: Vec<Option<Literal>>) -> Self {
        Self::Filter(Filter { kind: kind.to_owned(), column: column.to_owned(), values })
    }

    /// Returns conditions that are all true for each row for which the predicate is true.
    pub fn implied_filters(&self) -> Vec<Filter> {
        match self {
            Self::All(parts) => parts.iter().flat_map(Self::implied_filters).collect(),
            Self::Any(branches) => common_values(branches),
            Self::Filter(filter) => vec![filter.clone()],
            Self::Other => Vec::new(),
        }
    }
}

/// Returns for each column to which every branch gives values, as in `tags = 'a' or tags = 'b'`, a condition with the
/// values of all branches.
fn common_values(branches: &[Predicate]) -> Vec<Filter> {
    let branches: Vec<Vec<Filter>> = branches.iter().map(Predicate::implied_filters).collect();
    let Some((first, others)) = branches.split_first() else { return Vec::new() };
    let of_column = |branch: &[Filter], column: &str| {
        branch.iter().find(|filter| filter.column == column && names_values(filter)).cloned()
    };
    let merge = |filter: &Filter| {
        let mut values = filter.values.clone();
        for branch in others {
            values.extend(of_column(branch, &filter.column)?.values);
        }
        Some(Filter { kind: "in".to_owned(), column: filter.column.clone(), values })
    };
    first.iter().filter(|filter| names_values(filter)).filter_map(merge).collect()
}

fn names_values(filter: &Filter) -> bool {
    matches!(filter.kind.as_str(), "=" | "in")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tag(tag: &str) -> Predicate {
        Predicate::filter("=", "tags", vec![Some(Literal::Text(tag.to_owned()))])
    }

    fn queue(id: i64) -> Predicate {
        Predicate::filter("=", "queue_id", vec![Some(Literal::Number(id))])
    }

    fn implied(predicate: &Predicate) -> Vec<String> {
        let text = |filter: Filter| format!("{} {} {}", filter.column, filter.kind, filter.values.len());
        predicate.implied_filters().into_iter().map(text).collect()
    }

    #[test]
    fn all_parts_are_implied_and_unknown_ones_are_left_out() {
        assert_eq!(implied(&Predicate::All(vec![tag("a"), Predicate::Other, queue(1)])), ["tags = 1", "queue_id = 1"]);
    }

    #[test]
    fn only_columns_of_every_branch_are_implied() {
        let both = |a, b| Predicate::All(vec![a, b]);
        assert_eq!(implied(&Predicate::Any(vec![tag("a"), both(tag("b"), queue(1))])), ["tags in 2"]);
        assert_eq!(implied(&Predicate::Any(vec![tag("a"), queue(1)])), [""; 0]);
        assert_eq!(implied(&Predicate::Any(vec![tag("a"), Predicate::Other])), [""; 0]);
        assert_eq!(implied(&Predicate::Any(Vec::new())), [""; 0]);
    }
}
