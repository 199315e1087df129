//! The options of `spark.read.format("rocketmq-columnar")`: names, texts to values, errors that name the choices.
//!
//! They are those of the Python data source, and mean the same. Texts are also how a read travels: what the driver
//! resolved is written back as options, and each task reads those.
use crate::failure::{Failure, Result, quoted};
use crate::time::milliseconds;
use rmqfast_store::Error;
use rmqfast_store::scan::{Column, ScanRequest};

/// Names of options, as errors list them.
pub const NAMES: [&str; 22] = [
    "storePath",
    "path",
    "topic",
    "tags",
    "subExpression",
    "sql",
    "keys",
    "queueIds",
    "startingOffsets",
    "endingOffsets",
    "startingTimestamp",
    "endingTimestamp",
    "columns",
    "minPartitions",
    "partitionBytes",
    "failOnDataLoss",
    "verifyCrc",
    "maxBodyBytes",
    "brokerName",
    "commitLogDirs",
    "pushdown",
    "io",
];
/// Where the read shall begin and end in the commit log: `read_store` says what the log held when it was called. Nobody types
/// them.
const LOG_RANGE: [&str; 2] = ["logStart", "logEnd"];
const CLUSTER: [&str; 4] = ["nameServer", "group", "pullBatchSize", "pullTimeoutMs"];
const PARTITION_BYTES: u64 = 256 << 20;
const MOST_PARTITIONS: u64 = 1_000_000;

/// A name and a text for each option, as Spark gives them.
pub type Pairs = Vec<(String, String)>;

/// Options as values.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names are those of the options")]
pub struct Options {
    pub store_path: String,
    pub topic: Option<String>,
    pub tags: String,
    pub sql: Option<String>,
    pub keys: Option<Vec<String>>,
    pub queue_ids: Option<Vec<i32>>,
    pub starting_offsets: String,
    pub ending_offsets: String,
    pub starting_timestamp: Option<i64>,
    pub ending_timestamp: Option<i64>,
    pub columns: Option<Vec<String>>,
    pub min_partitions: u64,
    pub partition_bytes: u64,
    pub fail_on_data_loss: bool,
    pub verify_crc: bool,
    pub max_body_bytes: usize,
    pub broker_name: Option<String>,
    pub commit_log_dirs: Vec<String>,
    pub log_range: (u64, u64),
}

impl Options {
    /// Reads options; their names may be in any case.
    ///
    /// # Errors
    /// An unknown name, a text that is no such value, a value out of range.
    pub fn of(pairs: &[(String, String)]) -> Result<Self> {
        let mut options = Self::default();
        let mut seen: Vec<&str> = Vec::new();
        for (given, text) in pairs {
            let name = canonical(given)?;
            let field = match name {
                "path" => "storePath",
                "subExpression" => "tags",
                other => other,
            };
            if seen.contains(&field) {
                return Err(Failure::argument(format!("option {name}: given twice, the other time as its alias")));
            }
            seen.push(field);
            options.set(field, name, text)?;
        }
        if let (Some(start), Some(end)) = (options.starting_timestamp, options.ending_timestamp)
            && end < start
        {
            let text = format!("expected option startingTimestamp, {start}, or later, got {end}");
            return Err(Failure::argument(format!("option endingTimestamp: {text}")));
        }
        if options.store_path.is_empty() {
            return Err(Failure::argument("option storePath: expected the directory of a store, got none"));
        }
        Ok(options)
    }

    fn set(&mut self, field: &str, name: &str, value: &str) -> Result<()> {
        match field {
            "storePath" => self.store_path = text(name, value)?,
            "topic" => self.topic = Some(topic(name, value)?),
            "tags" => self.tags = text(name, value)?,
            "sql" => self.sql = Some(text(name, value)?),
            "keys" => self.keys = Some(list(name, value)?),
            "queueIds" => self.queue_ids = Some(queue_ids(name, value)?),
            "startingOffsets" => self.starting_offsets = text(name, value)?,
            "endingOffsets" => self.ending_offsets = text(name, value)?,
            "startingTimestamp" => self.starting_timestamp = Some(time(name, value)?),
            "endingTimestamp" => self.ending_timestamp = Some(time(name, value)?),
            "columns" => self.columns = Some(list(name, value)?),
            "minPartitions" => self.min_partitions = number(name, value, 1, MOST_PARTITIONS)?,
            "partitionBytes" => self.partition_bytes = number(name, value, 1, 1 << 62)?,
            "failOnDataLoss" => self.fail_on_data_loss = flag(name, value)?,
            "verifyCrc" => self.verify_crc = flag(name, value)?,
            "maxBodyBytes" => self.max_body_bytes = number(name, value, 1, 1 << 30)? as usize,
            "brokerName" => self.broker_name = Some(text(name, value)?),
            "commitLogDirs" => self.commit_log_dirs = list(name, value)?,
            "logStart" => self.log_range.0 = number(name, value, 0, i64::MAX as u64)?,
            "logEnd" => self.log_range.1 = number(name, value, 0, i64::MAX as u64)?,
            // filters are always pushed down here
            "pushdown" => drop(flag(name, value)?),
            _ => check_io(name, value)?,
        }
        Ok(())
    }

    /// The columns that are read unless the user's schema says which.
    ///
    /// # Errors
    /// A column that the row does not have, or one twice.
    pub fn row(&self) -> Result<Vec<Column>> {
        match &self.columns {
            Some(names) => columns(names.iter().map(String::as_str)),
            None => Ok(Column::ALL.to_vec()),
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            store_path: String::new(),
            topic: None,
            tags: "*".to_owned(),
            sql: None,
            keys: None,
            queue_ids: None,
            starting_offsets: "earliest".to_owned(),
            ending_offsets: "latest".to_owned(),
            starting_timestamp: None,
            ending_timestamp: None,
            columns: None,
            min_partitions: 1,
            partition_bytes: PARTITION_BYTES,
            fail_on_data_loss: true,
            verify_crc: false,
            max_body_bytes: ScanRequest::MAX_BODY_BYTES,
            broker_name: None,
            commit_log_dirs: Vec::new(),
            log_range: (u64::MAX, u64::MAX),
        }
    }
}

/// `pairs` with the text of some options replaced.
pub fn replaced(pairs: &[(String, String)], with: &[(&str, String)]) -> Pairs {
    let is_kept = |given: &str| !with.iter().any(|(name, _)| name.eq_ignore_ascii_case(given));
    let kept = pairs.iter().filter(|(given, _)| is_kept(given)).cloned();
    kept.chain(with.iter().map(|(name, text)| ((*name).to_owned(), text.clone()))).collect()
}

/// Columns by name, each once.
///
/// # Errors
/// A name that the row does not have, or one twice.
pub fn columns<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Vec<Column>> {
    let mut found: Vec<Column> = Vec::new();
    for name in names {
        let column = Column::of_name(name).map_err(|_| unknown_column(name))?;
        if found.contains(&column) {
            let twice = quoted(name);
            return Err(Failure::argument(format!("columns: expected each once, got [{twice}] more often")));
        }
        found.push(column);
    }
    Ok(found)
}

/// The columns that a schema of the user's asks for: fields of name, Spark type and `true` where it may be null.
///
/// # Errors
/// A column that the row does not have, one of another type than the row's, NOT NULL, or none at all.
pub fn columns_of_schema(fields: &[String]) -> Result<Vec<Column>> {
    let all = Column::ALL.map(Column::name).join(", ");
    if fields.is_empty() {
        return Err(Failure::argument(format!("schema: expected at least one column of {all}, got none")));
    }
    for field in fields.chunks_exact(3) {
        let [name, kind, nullable] = field else { continue };
        let column = Column::of_name(name).map_err(|_| unknown_column(name))?;
        let wanted = spark_type(column);
        if wanted != kind {
            return Err(Failure::argument(format!("schema: column {name}: expected {wanted}, got {kind}")));
        }
        if nullable != "true" {
            let text = format!("schema: column {name}: expected nullable, as every column is, got NOT NULL");
            return Err(Failure::argument(text));
        }
    }
    columns(fields.chunks_exact(3).map(|field| field[0].as_str()))
}

/// The name of a column's type in Spark, as `DataType.catalogString` gives it.
pub fn spark_type(column: Column) -> &'static str {
    match column {
        Column::QueueOffset | Column::PhysicalOffset | Column::PreparedTransactionOffset => "bigint",
        Column::QueueId
        | Column::Flag
        | Column::SysFlag
        | Column::ReconsumeTimes
        | Column::StoreSize
        | Column::BodyCrc => "int",
        Column::BornTimestamp | Column::StoreTimestamp => "timestamp",
        Column::Body => "binary",
        Column::Properties => "map<string,string>",
        _ => "string",
    }
}

fn canonical(given: &str) -> Result<&'static str> {
    let is_given = |name: &&&str| name.eq_ignore_ascii_case(given);
    if let Some(name) = NAMES.iter().chain(&LOG_RANGE).find(is_given) {
        return Ok(name);
    }
    if let Some(name) = CLUSTER.iter().find(is_given) {
        let text = format!("option {name}: is a live cluster's; this source reads a store directory, storePath");
        return Err(Failure::argument(text));
    }
    let hint = hint(given, &NAMES);
    Err(Failure::argument(format!("unknown option {given}; {hint}the options are {}", NAMES.join(", "))))
}

fn unknown_column(name: &str) -> Failure {
    let all = Column::ALL.map(Column::name);
    let text = format!("unknown column {}; {}the columns are {}", quoted(name), hint(name, &all), all.join(", "));
    Failure { kind: "UnknownColumnError", text }
}

fn hint(name: &str, known: &[&str]) -> String {
    match Error::unknown("name", name, known.iter().copied()) {
        Error::Unknown { near, .. } if !near.is_empty() => format!("did you mean {}? ", near.join(", ")),
        _ => String::new(),
    }
}

fn refused(name: &str, expected: &str, got: &str) -> Failure {
    Failure::argument(format!("option {name}: expected {expected}, got {}", quoted(got)))
}

fn text(name: &str, value: &str) -> Result<String> {
    if value.trim().is_empty() { Err(refused(name, "a text", value)) } else { Ok(value.to_owned()) }
}

fn topic(name: &str, value: &str) -> Result<String> {
    if value.contains(',') {
        return Err(refused(name, "one topic, or no such option for all of them", value));
    }
    text(name, value.trim())
}

fn flag(name: &str, value: &str) -> Result<bool> {
    let value = value.trim();
    match (value.eq_ignore_ascii_case("true"), value.eq_ignore_ascii_case("false")) {
        (true, _) => Ok(true),
        (_, true) => Ok(false),
        _ => Err(refused(name, "true or false", value)),
    }
}

fn number(name: &str, value: &str, least: u64, most: u64) -> Result<u64> {
    let found = value.trim().parse().ok().filter(|n| (least..=most).contains(n));
    found.ok_or_else(|| refused(name, &format!("a number from {least} to {most}"), value))
}

fn time(name: &str, value: &str) -> Result<i64> {
    milliseconds(value.trim()).map_err(|failure| Failure::argument(format!("option {name}: {}", failure.text)))
}

/// Words between commas, or a JSON array for those that hold commas.
fn list(name: &str, value: &str) -> Result<Vec<String>> {
    let words = if value.trim_start().starts_with('[') {
        let array: serde_json::Value = serde_json::from_str(value).map_err(|_| refused(name, "a JSON array", value))?;
        let texts = array.as_array().map(|items| items.iter().map(|item| item.as_str().map(str::to_owned)).collect());
        texts.unwrap_or(None)
    } else {
        Some(value.split(',').map(|word| word.trim().to_owned()).collect::<Vec<_>>())
    };
    let words = words.filter(|words| !words.is_empty() && words.iter().all(|word| !word.is_empty()));
    words.ok_or_else(|| refused(name, "words between commas, or a JSON array of texts", value))
}

fn queue_ids(name: &str, value: &str) -> Result<Vec<i32>> {
    let words = value.trim_matches([' ', '[', ']']).split(',');
    words.map(|word| number(name, word, 0, i32::MAX as u64).map(|id| id as i32)).collect()
}

fn check_io(name: &str, value: &str) -> Result<()> {
    match value {
        "pread" => Ok(()),
        _ => Err(refused(name, "pread (a mapped file that somebody truncates would end the JVM)", value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&str, &str)]) -> Result<Options> {
        let pairs: Pairs = pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        Options::of(&pairs)
    }

    #[test]
    fn names_are_read_in_any_case_and_by_their_aliases() {
        let options = of(&[("PATH", "/s"), ("subexpression", "A || B"), ("queueids", "[0, 1]")]).expect("reads");
        assert_eq!((options.store_path.as_str(), options.tags.as_str()), ("/s", "A || B"));
        assert_eq!(options.queue_ids, Some(vec![0, 1]));
    }

    #[test]
    fn what_is_wrong_is_said() {
        let cases: [(&[(&str, &str)], &str); 10] = [
            (&[], "option storePath: expected the directory of a store, got none"),
            (&[("storePath", "/s"), ("path", "/s")], "option path: given twice, the other time as its alias"),
            (
                &[("nameserver", "x")],
                "option nameServer: is a live cluster's; this source reads a store directory, storePath",
            ),
            (&[("topic", "a,b")], "option topic: expected one topic, or no such option for all of them, got 'a,b'"),
            (&[("verifyCrc", "yes")], "option verifyCrc: expected true or false, got 'yes'"),
            (&[("maxBodyBytes", "0")], "option maxBodyBytes: expected a number from 1 to 1073741824, got '0'"),
            (&[("keys", "[1]")], "option keys: expected words between commas, or a JSON array of texts, got '[1]'"),
            (
                &[("startingTimestamp", "x")],
                "option startingTimestamp: time: expected ISO 8601 as 2026-11-21T09:00:00, or milliseconds, got 'x'",
            ),
            (
                &[("endingTimestamp", "1000"), ("startingTimestamp", "1970-01-01T00:00:02")],
                "option endingTimestamp: expected option startingTimestamp, 2000, or later, got 1000",
            ),
            (
                &[("io", "mmap")],
                "option io: expected pread (a mapped file that somebody truncates would end the JVM), got 'mmap'",
            ),
        ];
        for (pairs, said) in cases {
            let error = of(pairs).expect_err(said).to_string();
            assert_eq!(error, format!("ArgumentError: {said}"));
        }
        let error = of(&[("startOffsets", "earliest")]).expect_err("unknown").to_string();
        assert!(
            error.starts_with("ArgumentError: unknown option startOffsets; did you mean startingOffsets"),
            "{error}"
        );
    }

    #[test]
    fn a_schema_of_the_user_chooses_columns_and_no_other_types() {
        let fields = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let columns = columns_of_schema(&fields("tags string true queue_id int true")).expect("columns");
        assert_eq!(columns, [Column::Tags, Column::QueueId]);
        let error = |text| columns_of_schema(&fields(text)).expect_err(text).to_string();
        assert_eq!(error("tags int true"), "ArgumentError: schema: column tags: expected string, got int");
        assert!(error("tags string false").ends_with("expected nullable, as every column is, got NOT NULL"));
        assert!(error("tag string true").starts_with("UnknownColumnError: unknown column 'tag'; did you mean tags"));
    }

    #[test]
    fn a_replaced_option_stands_once_whatever_case_it_was_given_in() {
        let pairs = vec![("startingoffsets".to_owned(), "latest".to_owned()), ("path".to_owned(), "/s".to_owned())];
        let now = replaced(&pairs, &[("startingOffsets", "earliest".to_owned())]);
        assert_eq!(now, [("path".to_owned(), "/s".to_owned()), ("startingOffsets".to_owned(), "earliest".to_owned())]);
    }
}
