//! The warning of SQL92 expressions that name a column.
use rmqfast_store::filter::Sql92;
use rmqfast_store::scan::Column;

/// Returns a warning if an SQL92 expression names a column, since SQL92 filters see properties, but no columns.
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
