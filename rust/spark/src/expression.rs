//! What to tell of an expression of SQL92.
use rmqfast_store::filter::Sql92;
use rmqfast_store::scan::Column;

/// What to warn of an expression that names a column of the row, as it sees properties alone.
pub fn column_warning(sql: &str) -> Option<String> {
    let parsed = Sql92::parse(sql).ok()?;
    let column = parsed.properties().find(|name| Column::ALL.iter().any(|column| column.name() == *name))?;
    Some(format!(
        "sql: {column} is a column, and SQL sees properties alone: it asks for a property of that name; for the column write a filter \
         of the DataFrame"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_that_names_a_column_is_warned_of() {
        let text = column_warning("region = 'eu' AND queue_offset > 5").expect("a warning");
        assert!(text.starts_with("sql: queue_offset is a column, and SQL sees properties alone"), "{text}");
        for other in ["region = 'eu'", "queueOffset > 5", "region = 'queue_offset'", "no expression ("] {
            assert_eq!(column_warning(other), None, "{other}");
        }
    }
}
