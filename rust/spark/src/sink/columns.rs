//! The columns of a DataFrame that the sink accepts, with their types.
use crate::error::{Error, Result};
use crate::request::text::{hint, quote};
use rmqfast_store::scan::Column;

const INTEGERS: &[&str] = &["int", "bigint", "smallint", "tinyint"];
const TEXT: &[&str] = &["string"];

/// A column of the sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SinkColumn {
    /// The body, binary or as a string.
    Body,
    Tags,
    /// Keys as one string.
    Keys,
    /// Keys as an array of strings.
    KeyList,
    /// A map from string to string.
    Properties,
    Topic,
    BrokerName,
    QueueId,
    /// Delay level; 0 or null delivers at once.
    DelayLevel,
    /// The application's 32-bit flag, which brokers pass on unchanged.
    Flag,
}

/// The name of each column, the Spark types that it may have, and its meaning.
const COLUMNS: [(&str, &[&str], SinkColumn); 9] = [
    ("body", &["binary", "string"], SinkColumn::Body),
    ("tags", TEXT, SinkColumn::Tags),
    ("keys", &["string", "array<string>"], SinkColumn::Keys),
    ("properties", &["map<string,string>"], SinkColumn::Properties),
    ("topic", TEXT, SinkColumn::Topic),
    ("broker_name", TEXT, SinkColumn::BrokerName),
    ("queue_id", INTEGERS, SinkColumn::QueueId),
    ("delay_level", INTEGERS, SinkColumn::DelayLevel),
    ("flag", INTEGERS, SinkColumn::Flag),
];

impl SinkColumn {
    pub fn name(self) -> &'static str {
        let named = COLUMNS.iter().find(|(.., column)| *column == self);
        // only `KeyList` is not in the table; it shares its name with `Keys`
        named.map_or("keys", |(name, ..)| name)
    }
}

/// Returns each column's name and its accepted Spark types.
pub fn column_types() -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
    COLUMNS.into_iter().map(|(name, types, _)| (name, types))
}

/// Returns the index in the schema and the meaning of each column to send.
///
/// Columns that a broker sets itself are left out, so that a topic's rows can be copied. `topic` is left out if the
/// option `topic` is given.
///
/// # Errors
/// An unknown column, a wrong type, a column twice, no body, or no topic.
pub fn sink_columns(fields: &[(String, String)], topic: Option<&str>) -> Result<Vec<(usize, SinkColumn)>> {
    for (name, _) in fields {
        check_name(name)?;
        let count = fields.iter().filter(|(other, _)| other == name).count();
        // Spark allows equal names, but the sink could not choose between them
        if count > 1 {
            let text = format!("schema: column {name}: expected once, got {count} of that name");
            return Err(Error::argument(text));
        }
    }
    let mut columns = Vec::new();
    for (index, (name, got)) in fields.iter().enumerate() {
        let Some((_, types, column)) = COLUMNS.iter().find(|(known, ..)| known == name) else { continue };
        if !types.contains(&got.as_str()) {
            let types = types.join(" or ");
            return Err(Error::argument(format!("schema: column {name}: expected {types}, got {got}")));
        }
        let is_list = got.starts_with("array");
        columns.push((index, if is_list { SinkColumn::KeyList } else { *column }));
    }
    let has = |column| columns.iter().any(|(_, other)| *other == column);
    if !has(SinkColumn::Body) {
        let names: Vec<_> = fields.iter().map(|(name, _)| name.as_str()).collect();
        let got = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        let text = format!("schema: column body: expected binary or string, got no such column, only {got}");
        return Err(Error::argument(text));
    }
    if topic.is_none() && !has(SinkColumn::Topic) {
        return Err(Error::argument("expected the option topic or a column topic, got neither"));
    }
    // the option `topic` overrides the column
    columns.retain(|(_, column)| *column != SinkColumn::Topic || topic.is_none());
    Ok(columns)
}

/// Refuses unknown columns, so that a typing error does not lose a column silently.
fn check_name(name: &str) -> Result<()> {
    let names = COLUMNS.map(|(names, ..)| names);
    if names.contains(&name) || Column::ALL.iter().any(|column| column.name() == name) {
        return Ok(());
    }
    let (near, names) = (hint(name, names), names.join(", "));
    Err(Error::UnknownColumn(format!("unknown column {}; {near}the columns of a sink are {names}", quote(name))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(fields: &[(&str, &str)]) -> Vec<(String, String)> {
        fields.iter().map(|(name, kind)| ((*name).to_owned(), (*kind).to_owned())).collect()
    }

    #[test]
    fn columns_are_taken_in_the_order_of_the_schema() {
        let schema = fields(&[
            ("queue_offset", "bigint"),
            ("keys", "array<string>"),
            ("topic", "string"),
            ("body", "string"),
            ("flag", "tinyint"),
        ]);
        let rest = [(1, SinkColumn::KeyList), (3, SinkColumn::Body), (4, SinkColumn::Flag)];
        assert_eq!(sink_columns(&schema, Some("orders")).expect("taken"), rest);
        let with_topic = [rest[0], (2, SinkColumn::Topic), rest[1], rest[2]];
        assert_eq!(sink_columns(&schema, None).expect("taken"), with_topic);
    }

    #[test]
    fn a_schema_that_cannot_be_sent_says_which_column() {
        let refused =
            |schema: &[(&str, &str)], topic| sink_columns(&fields(schema), topic).expect_err("refused").to_string();
        let body = ("body", "binary");
        let of = |column| refused(&[body, column], Some("t"));
        assert_eq!(of(("tags", "int")), "schema: column tags: expected string, got int");
        assert_eq!(of(("keys", "array<int>")), "schema: column keys: expected string or array<string>, got array<int>");
        assert_eq!(of(body), "schema: column body: expected once, got 2 of that name");
        assert!(
            of(("tag", "string")).starts_with("unknown column 'tag'; did you mean tags? the columns of a sink are")
        );
        let missing = "schema: column body: expected binary or string, got no such column, only ";
        assert_eq!(refused(&[("tags", "string")], Some("t")), format!("{missing}tags"));
        assert_eq!(refused(&[], Some("t")), format!("{missing}none"));
        assert_eq!(refused(&[body], None), "expected the option topic or a column topic, got neither");
    }
}
