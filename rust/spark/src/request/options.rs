//! The options of Spark's reads and its sink: a table of their names, syntax and defaults, and the parser.
use crate::error::{Error, Result};
use crate::request::table_options::without_properties;
use crate::request::text::{hint, integer, quote, trim, trim_start};
use crate::request::time::{check_range, milliseconds};

/// Names and values of options, as Spark passes them.
pub type Pairs = Vec<(String, String)>;

/// The source or sink that parses the options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A batch read of a store directory.
    StoreBatch,
    /// A stream of a store directory.
    StoreStream,
    /// A batch read of a store inside the JVM. Resolved options also name the part of the log to read.
    Columnar,
    /// A batch read of a topic.
    TopicBatch,
    /// A batch read of a topic inside the JVM. Resolved options may also name the planned pieces.
    ColumnarTopic,
    /// A stream of a topic.
    TopicStream,
    /// The sink of a topic.
    Sink,
}

impl Kind {
    /// Parses a kind's name, which errors and Python use.
    ///
    /// # Errors
    /// An unknown name.
    pub fn of_name(name: &str) -> Result<Self> {
        Ok(match name {
            "store batch" => Self::StoreBatch,
            "store stream" => Self::StoreStream,
            "topic batch" => Self::TopicBatch,
            "topic stream" => Self::TopicStream,
            "sink" => Self::Sink,
            _ => {
                return Err(Error::argument(format!("kind: expected one of a read or of a sink, got {}", quote(name))));
            }
        })
    }

    fn has(self, row: &Row) -> bool {
        match self {
            Self::StoreBatch | Self::StoreStream => row.of & STORE != 0,
            Self::Columnar => row.of & (STORE | LOG_RANGE) != 0,
            Self::TopicBatch | Self::TopicStream => row.of & TOPIC != 0,
            Self::ColumnarTopic => row.of & (TOPIC | PLANNED) != 0,
            Self::Sink => row.of & SINK != 0,
        }
    }

    /// Returns options of other sources that users often give by mistake, and the reason that the error states.
    fn others(self) -> (&'static [&'static str], &'static str) {
        match self {
            Self::StoreBatch | Self::StoreStream | Self::Columnar => (
                &[
                    "nameServer",
                    "subscribe",
                    "subscribePattern",
                    "assign",
                    "group",
                    "pullBatchSize",
                    "pullTimeoutMs",
                    "maxRowsPerPartition",
                    "via",
                    "mirrorPath",
                ],
                "is a live cluster's; this source reads a store directory, storePath",
            ),
            Self::TopicBatch | Self::TopicStream | Self::ColumnarTopic => (
                &["storePath", "path", "partitionBytes", "brokerName", "commitLogDirs", "storeHosts", "io"],
                "is of a store directory; this read has nameServer, a live cluster",
            ),
            Self::Sink => {
                (&["path", "storePath"], "is a store's; this sink sends to brokers, nameServer says to which")
            }
        }
    }
}

/// The value of an option.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A string that is not blank.
    Text(String),
    Flag(bool),
    /// A number within the option's limits.
    Number(i64),
    Time(i64),
    /// A list of strings, none of which is empty.
    Texts(Vec<String>),
    Ids(Vec<i32>),
}

#[derive(Clone, Copy)]
enum Form {
    Text,
    Topic,
    OneTopic,
    Flag,
    Number(i64, i64),
    Time,
    Texts,
    Ids,
    OneOf(&'static [&'static str]),
}

/// The definition of an option.
struct Row {
    name: &'static str,
    alias: Option<&'static str>,
    /// Deprecated name, still accepted with a warning.
    old_name: Option<&'static str>,
    /// Python's keyword argument for the option.
    argument: &'static str,
    /// Bits of the sources and sinks that have the option.
    of: u8,
    form: Form,
    default: Option<&'static str>,
}

const STORE: u8 = 1;
const TOPIC: u8 = 2;
const READ: u8 = STORE | TOPIC;
const SINK: u8 = 4;
const CLUSTER: u8 = TOPIC | SINK;
/// Bit of the options for the stores, and the parts of their logs, that a resolved read covers. Users do not set them.
const LOG_RANGE: u8 = 8;
/// Bit of the options with a plan that was made before the tasks. Users do not set them.
const PLANNED: u8 = 16;

const MOST: i64 = 1 << 62;
const DAY_MS: i64 = 86_400_000;
const COUNT: Form = Form::Number(1, MOST);
const BODY_BYTES: Form = Form::Number(1, 1 << 30);
const MILLISECONDS: Form = Form::Number(1, DAY_MS);

const fn row(name: &'static str, argument: &'static str, of: u8, form: Form, default: Option<&'static str>) -> Row {
    Row { name, alias: None, old_name: None, argument, of, form, default }
}

const fn with_alias(alias: &'static str, row: Row) -> Row {
    Row { alias: Some(alias), ..row }
}

const fn with_old_name(old_name: &'static str, row: Row) -> Row {
    Row { old_name: Some(old_name), ..row }
}

const TABLE: [Row; 69] = [
    with_alias("path", row("storePath", "store_path", STORE, Form::Text, None)),
    row("nameServer", "name_server", CLUSTER, Form::Text, None),
    row("topic", "topic", STORE | SINK, Form::Topic, None),
    // several topics are the option `subscribe`
    row("topic", "topic", TOPIC, Form::OneTopic, None),
    // named as in Spark's Kafka source
    row("subscribe", "subscribe", TOPIC, Form::Texts, None),
    row("subscribePattern", "subscribe_pattern", TOPIC, Form::Text, None),
    row("assign", "assign", TOPIC, Form::Text, None),
    row("group", "group", TOPIC, Form::Text, Some("rmqfast_spark")),
    // the sink's options have no defaults here because Python's `SinkOptions` has them
    row("group", "group", SINK, Form::Text, None),
    row("namespace", "namespace", SINK, Form::Text, None),
    with_alias("subExpression", row("tags", "tags", READ, Form::Text, Some("*"))),
    row("sql", "sql", READ, Form::Text, None),
    row("keys", "keys", READ, Form::Texts, None),
    row("keysPrefix", "keys_prefix", STORE, Form::Text, None),
    row("queueIds", "queue_ids", READ, Form::Ids, None),
    row("startingOffsets", "starting_offsets", STORE, Form::Text, Some("earliest")),
    // no default: a batch begins at the earliest, a stream at the latest
    row("startingOffsets", "starting_offsets", TOPIC, Form::Text, None),
    row("endingOffsets", "ending_offsets", READ, Form::Text, Some("latest")),
    row("startingTimestamp", "start_time", READ, Form::Time, None),
    row("endingTimestamp", "end_time", READ, Form::Time, None),
    row("asOf", "as_of", READ, Form::Time, None),
    row("columns", "columns", READ, Form::Texts, None),
    row("propertyNames", "property_names", READ, Form::Texts, None),
    row("decode", "decode", READ, Form::OneOf(&["json", "avro"]), None),
    // `schema` would be taken for that of the DataFrame
    row("valueSchema", "schema", READ, Form::Text, None),
    row("framing", "framing", READ, Form::OneOf(&["none", "confluent", "single-object"]), None),
    row("schemaId", "schema_id", READ, Form::Number(0, u32::MAX as i64), None),
    row("onDecodeError", "on_error", READ, Form::OneOf(&["null", "fail"]), None),
    row("minPartitions", "min_partitions", READ, Form::Number(1, 1_000_000), None),
    row("partitionBytes", "partition_bytes", STORE, COUNT, Some("268435456")),
    row("maxRowsPerPartition", "max_rows_per_partition", TOPIC, COUNT, Some("1000000")),
    row("failOnDataLoss", "fail_on_data_loss", READ, Form::Flag, Some("true")),
    row("verifyCrc", "verify_crc", READ, Form::Flag, Some("false")),
    row("pullBatchSize", "pull_batch_size", TOPIC, Form::Number(1, 1 << 16), Some("32")),
    // the default of `consumerPullTimeoutMillis` in Java's pull consumer
    row("pullTimeoutMs", "pull_timeout_ms", TOPIC, MILLISECONDS, Some("10000")),
    // renamed; the old name works until 1.0
    with_old_name("pullsUnderWay", row("pullsInFlight", "pulls_in_flight", TOPIC, Form::Number(1, 1024), Some("16"))),
    row("retryTimeoutMs", "retry_timeout_ms", TOPIC, MILLISECONDS, Some("60000")),
    row("via", "via", TOPIC, Form::OneOf(&["pull", "log", "auto", "mirror"]), Some("pull")),
    row("mirrorPath", "mirror_path", TOPIC, Form::Text, None),
    row("maxBodyBytes", "max_body_bytes", READ, BODY_BYTES, Some("67108864")),
    row("brokerName", "broker_name", STORE, Form::Text, None),
    row("commitLogDirs", "commit_log_dirs", STORE, Form::Texts, None),
    row("storeHosts", "store_hosts", STORE, Form::Text, None),
    row("accessKey", "access_key", CLUSTER, Form::Text, None),
    row("secretKey", "secret_key", CLUSTER, Form::Text, None),
    row("securityToken", "security_token", CLUSTER, Form::Text, None),
    row("tls", "tls", CLUSTER, Form::Flag, None),
    row("tlsTrust", "tls_trust", CLUSTER, Form::Text, None),
    row("tlsCertificate", "tls_certificate", CLUSTER, Form::Text, None),
    row("tlsKey", "tls_key", CLUSTER, Form::Text, None),
    row("tlsVerify", "tls_verify", CLUSTER, Form::Flag, None),
    row("tlsCheckHost", "tls_check_host", CLUSTER, Form::Flag, None),
    row("maxOffsetsPerTrigger", "max_offsets_per_trigger", TOPIC, COUNT, None),
    row("minOffsetsPerTrigger", "min_offsets_per_trigger", TOPIC, COUNT, None),
    // 15 minutes, the default of `maxTriggerDelay` in Spark's Kafka source
    row("maxTriggerDelayMs", "max_trigger_delay_ms", TOPIC, MILLISECONDS, Some("900000")),
    row("commitOffsets", "commit_offsets", TOPIC, Form::Flag, Some("false")),
    row("pushdown", "pushdown", READ, Form::Flag, Some("false")),
    row("maxBytesPerTrigger", "max_bytes_per_trigger", STORE, COUNT, None),
    row("io", "io", STORE, Form::OneOf(&["pread", "mmap"]), Some("pread")),
    row("batchSize", "batch_size", SINK, Form::Number(1, 32_767), None),
    row("maxMessageSize", "max_message_size", SINK, BODY_BYTES, None),
    row("sendTimeoutMs", "send_timeout_ms", SINK, MILLISECONDS, None),
    row("retryTimeoutMs", "retry_timeout_ms", SINK, Form::Number(0, DAY_MS), None),
    row("inFlight", "in_flight", SINK, Form::Number(1, 64), None),
    row("logStart", "log_start", LOG_RANGE, Form::Number(0, i64::MAX), None),
    row("logEnd", "log_end", LOG_RANGE, Form::Number(0, i64::MAX), None),
    row("stores", "stores", LOG_RANGE, Form::Text, None),
    row("pieces", "pieces", PLANNED, Form::Text, None),
    row("ways", "ways", PLANNED, Form::Text, None),
];
/// Options that only count with `decode`.
const OF_DECODE: [&str; 4] = ["valueSchema", "framing", "schemaId", "onDecodeError"];
/// Options that select a cluster's topics; exactly one must be given.
pub const TOPICS: [&str; 4] = ["topic", "subscribe", "subscribePattern", "assign"];
/// Options that Spark adds to every sink of a stream; they are ignored.
const SPARKS_OWN: [&str; 2] = ["checkpointlocation", "queryname"];

#[derive(Clone, Debug)]
pub struct Options {
    kind: Kind,
    /// Values in the order of `TABLE`, including defaults.
    values: Vec<Option<Value>>,
    /// Indexes in `TABLE` of the options that the user gave.
    given: Vec<usize>,
    warnings: Vec<String>,
}

impl Options {
    /// Parses options and fills in defaults. Names are compared without case.
    ///
    /// # Errors
    /// An unknown name, an invalid value, a missing option, or an option that this kind does not have.
    pub fn of(kind: Kind, pairs: &[(String, String)]) -> Result<Self> {
        let mut options =
            Self { kind, values: TABLE.iter().map(|_| None).collect(), given: Vec::new(), warnings: Vec::new() };
        // Spark's map folds case, so an option is given twice only by two of its names
        for (given, text) in without_properties(pairs, is_option).iter().filter(|(name, _)| !is_sparks_own(kind, name))
        {
            let (index, name) = canonical(kind, given)?;
            if options.given.contains(&index) {
                return Err(Error::argument(format!("option {name}: given twice, the other time as its alias")));
            }
            if TABLE[index].old_name == Some(name) {
                let new = TABLE[index].name;
                options.warnings.push(format!("option {name}: deprecated, use {new}; 1.0 removes the old name"));
            }
            options.given.push(index);
            options.values[index] = Some(TABLE[index].form.parse(name, text)?);
        }
        // checked before defaults are filled in, so that a default never causes an error
        options.check()?;
        for (index, row) in rows(kind).filter(|(_, row)| row.default.is_some()) {
            if options.values[index].is_none() {
                options.values[index] = row.default.map(|text| row.form.parse(row.name, text)).transpose()?;
            }
        }
        Ok(options)
    }

    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns warnings about deprecated names of options.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Returns the names and aliases that errors list.
    pub fn names(kind: Kind) -> Vec<&'static str> {
        // options that only code sets must not appear in hints
        let listed = rows(kind).filter(|(_, row)| row.of & (LOG_RANGE | PLANNED) == 0);
        listed.flat_map(|(_, row)| [Some(row.name), row.alias]).flatten().collect()
    }

    /// Returns each option's name with Python's keyword argument.
    pub fn arguments(kind: Kind) -> Vec<(&'static str, &'static str)> {
        rows(kind).map(|(_, row)| (row.name, row.argument)).collect()
    }

    /// Returns each of Python's keyword arguments with its value, if it has one.
    pub fn values(&self) -> impl Iterator<Item = (&'static str, Option<&Value>)> {
        rows(self.kind).map(|(index, row)| (row.argument, self.values[index].as_ref()))
    }

    pub fn is_given(&self, name: &str) -> bool {
        self.given.iter().any(|index| TABLE[*index].name == name)
    }

    /// Returns a string option; `None` if it has no value.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.get(name) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    pub fn flag(&self, name: &str) -> bool {
        self.get(name) == Some(&Value::Flag(true))
    }

    /// Returns a boolean option, or `default` if it has no value.
    pub fn flag_or(&self, name: &str, default: bool) -> bool {
        if self.get(name).is_some() { self.flag(name) } else { default }
    }

    /// Returns a number, or a time in milliseconds; `None` if the option has no value.
    pub fn number(&self, name: &str) -> Option<i64> {
        match self.get(name) {
            Some(Value::Number(number) | Value::Time(number)) => Some(*number),
            _ => None,
        }
    }

    pub fn texts(&self, name: &str) -> Option<&[String]> {
        match self.get(name) {
            Some(Value::Texts(texts)) => Some(texts),
            _ => None,
        }
    }

    pub fn ids(&self, name: &str) -> Option<&[i32]> {
        match self.get(name) {
            Some(Value::Ids(ids)) => Some(ids),
            _ => None,
        }
    }

    /// Returns where a stream of a store starts without a checkpoint: `earliest` or `latest`. A start time overrides
    /// it.
    pub fn begin(&self) -> String {
        let text = self.text("startingOffsets").filter(|_| self.is_given("startingOffsets"));
        // a stream begins at the latest, like Kafka's; the table's default is for batches
        text.map_or_else(|| "latest".to_owned(), |text| trim(text).to_lowercase())
    }

    /// Returns the store time before which all messages must be: by `endingTimestamp`, or by `asOf`, which includes its
    /// millisecond.
    pub fn end_time(&self) -> Option<i64> {
        let behind = self.number("asOf").map(|when| when.saturating_add(1));
        self.number("endingTimestamp").into_iter().chain(behind).min()
    }

    fn get(&self, name: &str) -> Option<&Value> {
        let (index, _) = rows(self.kind).find(|(_, row)| row.name == name)?;
        self.values[index].as_ref()
    }

    fn check(&self) -> Result<()> {
        match self.kind {
            Kind::StoreBatch | Kind::StoreStream | Kind::Columnar => {
                if self.text("storePath").is_none() {
                    return Err(Error::argument("option storePath: expected the directory of a store, got none"));
                }
                self.check_times()
            }
            Kind::TopicBatch | Kind::TopicStream | Kind::ColumnarTopic => {
                if self.text("nameServer").is_none() {
                    return Err(Error::argument("option nameServer: expected host:port of a name server, got none"));
                }
                let selected: Vec<&str> = TOPICS.into_iter().filter(|name| self.is_given(name)).collect();
                if selected.len() != 1 {
                    let (names, got) = (TOPICS.join(", "), selected.join(", "));
                    let got = if got.is_empty() { "none" } else { &got };
                    return Err(Error::argument(format!("options {names}: expected one of them, got {got}")));
                }
                if self.is_given("assign") && self.is_given("queueIds") {
                    return Err(Error::argument("option queueIds: the option assign says which queues are read"));
                }
                // reads share the default group, so they would overwrite each other's offsets
                if self.flag("commitOffsets") && !self.is_given("group") {
                    let text = "option commitOffsets: needs the option group, which has no other consumers";
                    return Err(Error::argument(text));
                }
                self.check_mirror()?;
                self.check_times()
            }
            Kind::Sink => Ok(()),
        }?;
        self.check_decode()?;
        if matches!(self.kind, Kind::StoreStream | Kind::TopicStream) { self.check_stream() } else { Ok(()) }
    }

    fn check_decode(&self) -> Result<()> {
        let is_decoded = self.is_given("decode");
        if let Some(name) = OF_DECODE.into_iter().find(|name| !is_decoded && self.is_given(name)) {
            return Err(Error::argument(format!("option {name}: expected the option decode with it, got none")));
        }
        if is_decoded && !self.is_given("valueSchema") {
            let text = "option valueSchema: expected the schema of the bodies with the option decode, got none";
            return Err(Error::argument(text));
        }
        Ok(())
    }

    fn check_times(&self) -> Result<()> {
        let names = ("option startingTimestamp", "option endingTimestamp");
        check_range(self.number("startingTimestamp"), self.number("endingTimestamp"), names)?;
        let names = ("option startingTimestamp", "option asOf");
        check_range(self.number("startingTimestamp"), self.number("asOf"), names)
    }

    fn check_mirror(&self) -> Result<()> {
        let (via, path) = (self.text("via").unwrap_or("pull"), self.text("mirrorPath"));
        if (via == "mirror") == path.is_some() {
            return Ok(());
        }
        let got = path.map_or_else(|| "none".to_owned(), quote);
        let text = "expected the directory of rmqfast mirror with the option via=mirror, and only with it";
        Err(Error::argument(format!("option mirrorPath: {text}; got {got} with via={via}")))
    }

    fn check_stream(&self) -> Result<()> {
        for name in ["endingOffsets", "endingTimestamp", "asOf"] {
            // `endingOffsets=latest` is accepted because it changes nothing
            let is_usual = self.kind == Kind::TopicStream && self.text(name) == Some("latest");
            if self.is_given(name) && !is_usual {
                let text = "a stream has no end; read a batch, or use Trigger.AvailableNow";
                return Err(Error::argument(format!("option {name}: {text}")));
            }
        }
        // no version of Spark pushes filters to a stream
        if self.kind == Kind::TopicStream && self.flag("pushdown") {
            let text = "option pushdown: Spark pushes no filters to a stream; use tags, sql, keys or queueIds";
            return Err(Error::argument(text));
        }
        // logs and copies are read up to a known end, and a stream has no end
        if self.is_given("via") && self.text("via") != Some("pull") {
            let text = "option via: a stream pulls; read a batch, or the stream of a store: storePath";
            return Err(Error::argument(text));
        }
        let is_word = matches!(self.begin().as_str(), "earliest" | "latest");
        if self.kind == Kind::StoreStream && !is_word {
            let text = "the stream of a store begins at earliest, latest or startingTimestamp";
            return Err(Error::argument(format!("option startingOffsets: {text}")));
        }
        Ok(())
    }
}

/// Returns `pairs` with the values of some options replaced.
pub fn replace_options(pairs: &[(String, String)], with: &[(&str, String)]) -> Pairs {
    // Spark compares names without case
    let is_kept = |given: &str| !with.iter().any(|(name, _)| name.eq_ignore_ascii_case(given));
    let others = pairs.iter().filter(|(given, _)| is_kept(given)).cloned();
    others.chain(with.iter().map(|(name, text)| ((*name).to_owned(), text.clone()))).collect()
}

fn rows(kind: Kind) -> impl Iterator<Item = (usize, &'static Row)> {
    TABLE.iter().enumerate().filter(move |(_, row)| kind.has(row))
}

/// Whether the options select a live cluster instead of a store directory.
pub fn names_a_cluster(pairs: &[(String, String)]) -> bool {
    let pairs = without_properties(pairs, is_option);
    let has = |names: &[&str]| pairs.iter().any(|(given, _)| names.iter().any(|name| name.eq_ignore_ascii_case(given)));
    // with both, the parser of store options refuses `nameServer` with a reason
    has(&["nameServer"]) && !has(&["storePath", "path"])
}

/// Returns whether an option of this kind has this name or alias.
pub fn has_option(kind: Kind, name: &str) -> bool {
    rows(kind).flat_map(|(_, row)| row.names()).any(|known| known.eq_ignore_ascii_case(name))
}

/// Returns whether an option of any kind has this name or alias. `name` must be in lower case.
fn is_option(name: &str) -> bool {
    TABLE.iter().flat_map(Row::names).any(|known| known.to_lowercase() == name)
}

fn is_sparks_own(kind: Kind, name: &str) -> bool {
    kind == Kind::Sink && SPARKS_OWN.contains(&name.to_lowercase().as_str())
}

/// Returns an option's index in `TABLE`, and the documented spelling of its name.
fn canonical(kind: Kind, given: &str) -> Result<(usize, &'static str)> {
    let lower = given.to_lowercase();
    for (index, row) in rows(kind) {
        if let Some(name) = row.names().find(|name| name.to_lowercase() == lower) {
            return Ok((index, name));
        }
    }
    // an option of another source gets its own error instead of "unknown option"
    let (others, reason) = kind.others();
    if let Some(name) = others.iter().find(|name| name.to_lowercase() == lower) {
        return Err(Error::argument(format!("option {name}: {reason}")));
    }
    let names = Options::names(kind);
    let hint = hint(given, names.iter().copied());
    Err(Error::argument(format!("unknown option {given}; {hint}the options are {}", names.join(", "))))
}

impl Row {
    fn names(&self) -> impl Iterator<Item = &'static str> {
        [Some(self.name), self.alias, self.old_name].into_iter().flatten()
    }
}

impl Form {
    fn parse(self, name: &str, text: &str) -> Result<Value> {
        match self {
            Self::Text => not_blank(name, text),
            Self::Topic if text.contains(',') => {
                Err(invalid(name, "one topic, or no such option for all of them", text))
            }
            Self::OneTopic if text.contains(',') => {
                let got = quote(text);
                let text = format!("option {name}: expected one topic, got {got}; several are the option subscribe");
                Err(Error::argument(text))
            }
            Self::Topic | Self::OneTopic => not_blank(name, trim(text)),
            Self::Flag => match trim(text).to_lowercase().as_str() {
                "true" => Ok(Value::Flag(true)),
                "false" => Ok(Value::Flag(false)),
                _ => Err(invalid(name, "true or false", text)),
            },
            Self::Number(least, most) => number(name, text, least, most).map(Value::Number),
            Self::Time => match milliseconds(trim(text)) {
                Ok(time) => Ok(Value::Time(time)),
                Err(error) => Err(Error::argument(format!("option {name}: {error}"))),
            },
            Self::Texts => texts(name, text).map(Value::Texts),
            Self::Ids => {
                // a JSON array is accepted, too
                let ids = text.trim_matches([' ', '[', ']']).split(',');
                let ids = ids.map(|word| number(name, word, 0, i32::MAX.into()).map(|id| id as i32));
                ids.collect::<Result<_>>().map(Value::Ids)
            }
            Self::OneOf(words) if words.contains(&text) => Ok(Value::Text(text.to_owned())),
            Self::OneOf(words) => Err(invalid(name, &alternatives(words), text)),
        }
    }
}

/// Formats words as "a, b or c".
fn alternatives(words: &[&str]) -> String {
    match words {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        _ => words.join(", "),
    }
}

fn not_blank(name: &str, text: &str) -> Result<Value> {
    if trim(text).is_empty() { Err(invalid(name, "a text", text)) } else { Ok(Value::Text(text.to_owned())) }
}

fn number(name: &str, text: &str, least: i64, most: i64) -> Result<i64> {
    let number = integer(text).filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| invalid(name, &format!("a number from {least} to {most}"), text))
}

/// Splits a string at commas. A JSON array is accepted, too, for words that contain commas.
fn texts(name: &str, text: &str) -> Result<Vec<String>> {
    let words = if trim_start(text).starts_with('[') {
        let array: serde_json::Value = serde_json::from_str(text).map_err(|_| invalid(name, "a JSON array", text))?;
        let words = array.as_array().map(|items| items.iter().map(|item| item.as_str().map(str::to_owned)).collect());
        words.unwrap_or(None)
    } else {
        Some(text.split(',').map(|word| trim(word).to_owned()).collect::<Vec<_>>())
    };
    let words = words.filter(|words| !words.is_empty() && words.iter().all(|word| !word.is_empty()));
    words.ok_or_else(|| invalid(name, "words between commas, or a JSON array of texts", text))
}

fn invalid(name: &str, expected: &str, got: &str) -> Error {
    Error::argument(format!("option {name}: expected {expected}, got {}", quote(got)))
}
