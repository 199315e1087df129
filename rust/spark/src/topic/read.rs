//! A read of topics: its offsets are fixed once, and cut into pieces. Together they give each message once, whenever and
//! wherever they are read.
use crate::error::{Error, Result};
use crate::origin::copy_plan::Copies;
use crate::origin::log_plan::{LogPlan, LogPlanner};
use crate::origin::piece::TopicPiece;
use crate::origin::{BrokerWay, Via};
use crate::request::cluster::cluster_options;
use crate::request::offsets::Offsets;
use crate::request::options::{Kind, Options};
use crate::request::push_down::{Filter, Limits, Selection, Source, column_warning};
use crate::request::schema::{check_agreed, columns_of};
use crate::stream::{Limits as BatchLimits, Log};
use crate::topic::offsets::{ByTopic, Edge, check_order, parse, resolve};
use crate::topic::topics::{TopicQueues, Topics};
use rmqfast_client::cluster::{Bounds, ClusterOptions, TopicCluster};
use rmqfast_client::names::check_group;
use rmqfast_client::puller::{PullerOptions, Queue, Subscription};
use rmqfast_client::ranges::{PoolKey, QueueRange, RangeRequest};
use rmqfast_store::filter::TagExpression;
use rmqfast_store::scan::{QueueCounts, ScanRequest};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The request of a topic read.
#[derive(Clone, Debug)]
pub struct TopicRead {
    pub cluster: ClusterOptions,
    pub topics: Topics,
    /// Which messages, and what of them.
    pub request: RangeRequest,
    pub start: Offsets<ByTopic>,
    pub end: Offsets<ByTopic>,
    /// Only these queues of each broker.
    pub queue_ids: Option<Vec<i32>>,
    /// Pieces at least, where there are as many messages.
    pub min_pieces: i64,
    /// Offsets of a piece at most.
    pub max_rows: i64,
    pub cut: RangeCut,
    /// No message can pass the filters.
    pub is_empty: bool,
    /// An earlier plan, if any.
    pub planned: Option<Vec<TopicPiece>>,
    pub via: Via,
    /// Earlier decisions for each broker.
    pub ways: Option<Vec<BrokerWay>>,
    /// Key of shared pullers; none if the cluster is reached in a way that no option says.
    pub pool_key: Option<PoolKey>,
    pub limits: BatchLimits,
    /// For which group a stream stores offsets, if for any.
    pub commit_group: Option<String>,
    option_warnings: Vec<String>,
}

/// Options that two reads agree on which share a connection.
const CONNECTION: [&str; 15] = [
    "nameServer",
    "accessKey",
    "secretKey",
    "securityToken",
    "tls",
    "tlsTrust",
    "tlsCertificate",
    "tlsKey",
    "tlsVerify",
    "tlsCheckHost",
    "group",
    "pullsInFlight",
    "pullsUnderWay",
    "pullTimeoutMs",
    "pullBatchSize",
];

/// The queues and offsets that filters leave. Unlike offsets that a user names, they need not exist.
#[derive(Clone, Debug, Default)]
pub struct RangeCut {
    /// Only queues of these topics.
    pub topics: Option<Vec<String>>,
    /// Only queues of these brokers.
    pub broker_names: Option<Vec<String>>,
    /// Only queues with these numbers.
    pub queue_ids: Option<Vec<i32>>,
    /// The first offset in all queues, and the one behind the last.
    pub offsets: Limits,
}

impl RangeCut {
    fn has(&self, queue: &Queue) -> bool {
        let is_one_of = |names: &Option<Vec<String>>, name: &str| {
            names.as_ref().is_none_or(|names| names.iter().any(|other| other == name))
        };
        is_one_of(&self.topics, &queue.topic)
            && is_one_of(&self.broker_names, &queue.broker_name)
            && self.queue_ids.as_ref().is_none_or(|ids| ids.contains(&queue.queue_id))
    }

    fn narrow(&self, piece: &TopicPiece) -> TopicPiece {
        let filtered = piece.ranges.iter().filter(|range| self.has(&range.queue));
        let ranges = filtered.map(|range| {
            let (start, end) = self.of((range.start, range.end));
            QueueRange { queue: range.queue.clone(), start, end }
        });
        let ranges = ranges.filter(|range| range.start < range.end).collect();
        let mut narrowed = TopicPiece { ranges, log: None, ..piece.clone() };
        narrowed.log = piece.log.as_ref().map(|part| part.keep_ranges(&piece.ranges, &narrowed.ranges));
        narrowed
    }

    fn of(&self, (start, end): Bounds) -> Bounds {
        let start = self.offsets.0.map_or(start, |first| start.max(first));
        (start, self.offsets.1.map_or(end, |last| end.min(last)))
    }
}

/// The plan of a read.
#[derive(Debug, Default)]
pub struct ReadPlan {
    pub pieces: Vec<TopicPiece>,
    /// Decisions for each broker, unless only pulls were requested.
    pub ways: Vec<BrokerWay>,
    pub log: Log,
}

/// An offset of each queue.
pub type QueueOffsets = Vec<(Queue, i64)>;

impl TopicRead {
    /// The read that the options of a batch or a stream ask for, of columns by name.
    ///
    /// # Errors
    /// As [`Options::of`]; other columns than the option `columns` says; a name that topics or groups may not have; an
    /// expression that does not parse.
    pub fn of(kind: Kind, pairs: &[(String, String)], columns: &[String]) -> Result<Self> {
        let options = Options::of(kind, pairs)?;
        let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
        // none: which of them Spark will want is not known yet
        if !columns.is_empty() {
            check_agreed(options.texts("columns"), &columns)?;
        }
        let cluster = cluster_options(&options)?;
        let number = |name| options.number(name).unwrap_or_default();
        let milliseconds = |name| Duration::from_millis(number(name).unsigned_abs());
        let (topics, group) = (Topics::of(&options)?, options.text("group").unwrap_or_default());
        check_group(group)?;
        let mut subscription = Subscription::by_tags(options.text("tags").unwrap_or("*"))?;
        if let Some(expression) = options.text("sql") {
            // `SubscriptionData` of Java, too, has the time as its version
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let by_sql = Subscription::by_sql(expression, now.as_millis() as i64)?;
            // a broker takes one expression: the tags are left to whoever pulls
            subscription = Subscription { tags: subscription.tags, ..by_sql };
        }
        let request = RangeRequest {
            puller: PullerOptions {
                tls: cluster.tls.clone(),
                consumer_group: group.to_owned(),
                depth: number("pullsInFlight") as usize,
                batch: number("pullBatchSize"),
                timeout: milliseconds("pullTimeoutMs"),
                connect_timeout: cluster.connect_timeout,
                sign: cluster.sign.clone(),
                ..PullerOptions::default()
            },
            subscription: subscription.into(),
            scan: ScanRequest {
                // brokers do these
                topic: None,
                tags: TagExpression::all(),
                sql: None,
                queue_ids: None,
                ..options.scan_request(columns_of(columns)?)?
            },
            patience: milliseconds("retryTimeoutMs"),
            is_strict: options.flag("failOnDataLoss"),
        };
        // a time is looked for in all there is
        let is_of_time = options.number("startingTimestamp").is_some();
        let usual = if kind == Kind::TopicStream && !is_of_time { "latest" } else { "earliest" };
        let offsets = |name, usual| parse(name, options.text(name).unwrap_or(usual), &topics);
        Ok(Self {
            start: offsets("startingOffsets", usual)?,
            end: offsets("endingOffsets", "latest")?,
            queue_ids: options.ids("queueIds").map(<[i32]>::to_vec),
            min_pieces: options.number("minPartitions").unwrap_or(1),
            max_rows: number("maxRowsPerPartition"),
            cut: RangeCut::default(),
            is_empty: false,
            pool_key: Some(PoolKey::of(
                pairs.iter().filter(|(name, _)| is_of_connection(name)).flat_map(|(name, text)| [&**name, &**text]),
            )),
            planned: options.text("pieces").map(TopicPiece::of_option).transpose()?,
            via: Via::of(&options)?,
            ways: options.text("ways").map(BrokerWay::of_option).transpose()?,
            limits: BatchLimits::of(&options),
            commit_group: options.flag("commitOffsets").then(|| group.to_owned()),
            option_warnings: options.warnings().to_vec(),
            topics,
            cluster,
            request,
        })
    }

    /// The same read of a cluster that is reached in another way.
    #[must_use]
    pub fn at(mut self, cluster: ClusterOptions) -> Self {
        let puller = &mut self.request.puller;
        (puller.tls, puller.sign) = (cluster.tls.clone(), cluster.sign.clone());
        puller.connect_timeout = cluster.connect_timeout;
        Self { cluster, pool_key: None, ..self }
    }

    /// Narrows the read; tells which filters were taken.
    pub fn take(&mut self, filters: &[Filter]) -> Vec<bool> {
        let mut selection = Selection {
            source: Source::Topic,
            topics: self.cut.topics.take(),
            may_be_light: self.topics.may_be_light(),
            has_tags: self.request.subscription.is_filtered(),
            broker_names: self.cut.broker_names.take(),
            // not the read's own `queue_ids`: one of those that no broker has is an error
            queue_ids: self.cut.queue_ids.take(),
            offsets: self.cut.offsets,
            times: (self.request.scan.start_time, self.request.scan.end_time),
            is_empty: self.is_empty,
            ..Selection::default()
        };
        let is_taken = selection.take(filters);
        let Selection { mut topics, broker_names, queue_ids, offsets, times, tags, mut is_empty, .. } = selection;
        if let Some(topics) = &mut topics {
            topics.retain(|topic| self.topics.has(topic));
            is_empty |= topics.is_empty();
        }
        (self.cut, self.is_empty) = (RangeCut { topics, broker_names, queue_ids, offsets }, is_empty);
        (self.request.scan.start_time, self.request.scan.end_time) = times;
        // tags that a filter names are single ones, so they parse
        if let Some(subscription) = tags.and_then(|tags| Subscription::by_tags(&tags.join(" || ")).ok()) {
            self.request.subscription = subscription.into();
        }
        is_taken
    }

    /// Counts known from the queues' bounds alone; `None` if messages must be read.
    ///
    /// # Errors
    /// As [`plan`](Self::plan).
    pub fn known_counts(&self) -> Result<Option<QueueCounts>> {
        let scan = &self.request.scan;
        let has_filter = self.request.subscription.is_filtered() || scan.keys.is_some() || scan.verify_crc;
        // stored times need not rise with offsets: between two bounds some may lie outside
        if has_filter || scan.start_time.is_some() || scan.end_time.is_some() {
            return Ok(None);
        }
        let mut listed = QueueCounts::default();
        if self.is_empty {
            return Ok(Some(listed));
        }
        let ranges = match (&self.planned, &self.via) {
            // several pieces of a copy have the same ranges
            (Some(_), _) | (None, Via::Mirror(_)) => distinct_ranges(self.plan()?.pieces),
            (None, Via::Pull | Via::Log | Via::Auto) => {
                let cluster = self.open_cluster()?;
                let bounds = cluster.bounds(&self.find(&cluster)?.queues, false)?;
                // what a read would warn of it warns of when it is planned
                self.ranges(&cluster, bounds, None, &mut Vec::new())?
            }
        };
        for QueueRange { start, end, .. } in ranges {
            // each is as many as a broker says
            listed.messages = listed.messages.saturating_add(end - start);
            listed.min_offset = Some(listed.min_offset.map_or(start, |least| least.min(start)));
            listed.max_offset = listed.max_offset.max(Some(end - 1));
        }
        Ok(Some(listed))
    }

    /// Looks whether the read can be: not at offsets, which a stream with a checkpoint has no use for. A broker that does not
    /// answer now may do so later.
    ///
    /// Returns what is worth a warning.
    ///
    /// # Errors
    /// The name servers do not know a topic, or none answers; a queue that no broker has; a broker refuses.
    pub fn check(&self) -> Result<Vec<String>> {
        // whether there is a copy of each broker shows where its offsets are looked at
        if matches!(self.via, Via::Mirror(_)) {
            self.plan()?;
            return Ok(self.request_warnings());
        }
        let cluster = self.open_cluster()?;
        let queues = self.find(&cluster)?.queues;
        // patient: a stream may start while a broker is away
        cluster.bounds(&queues, true)?;
        let RangeRequest { subscription, puller, .. } = &self.request;
        cluster.check_expression(subscription, &puller.consumer_group, &queues, true)?;
        let mut warnings = cluster.take_warnings();
        warnings.extend(self.nothing(&queues));
        warnings.extend(self.request_warnings());
        Ok(warnings)
    }

    /// Warnings that need no cluster: old names of options, SQL92 that names a column.
    pub fn request_warnings(&self) -> Vec<String> {
        let subscription = &self.request.subscription;
        let is_sql = subscription.expression_type == "SQL92";
        let of_columns = is_sql.then(|| column_warning(&subscription.expression)).flatten();
        self.option_warnings.iter().cloned().chain(of_columns).collect()
    }

    /// The brokers of the topics; nobody is asked yet.
    ///
    /// # Errors
    /// There is no name server.
    pub fn open_cluster(&self) -> Result<TopicCluster> {
        Ok(TopicCluster::new(self.cluster.clone())?)
    }

    /// Fixes what is read, and cuts it into pieces, those of pulls before those of logs.
    ///
    /// # Errors
    /// As [`check`](Self::check); a broker does not answer; an offset that a queue does not have, where the read is strict; there
    /// is no copy of a broker, where copies are read.
    pub fn plan(&self) -> Result<ReadPlan> {
        if self.is_empty {
            return Ok(ReadPlan::default());
        }
        if let Some(planned) = &self.planned {
            let pieces = planned.iter().map(|piece| self.cut.narrow(piece));
            let pieces = pieces.filter(|piece| !piece.ranges.is_empty()).collect();
            return Ok(ReadPlan { pieces, ..ReadPlan::default() });
        }
        let cluster = self.open_cluster()?;
        let TopicQueues { queues, addresses } = self.find(&cluster)?;
        // a batch that left a broker out would be short without a word
        let bounds = cluster.bounds(&queues, false)?;
        let mut warnings: Vec<String> = self.nothing(&queues).into_iter().collect();
        if let Via::Mirror(directory) = &self.via {
            return self.plan_copies(directory, &cluster, bounds, warnings);
        }
        let RangeRequest { subscription, puller, .. } = &self.request;
        cluster.check_expression(subscription, &puller.consumer_group, &queues, false)?;
        let ranges = self.ranges(&cluster, bounds, None, &mut warnings)?;
        let address_of = |name: &str| addresses.get(name).cloned();
        let LogPlan { pieces: by_log, pulled, ways } = self.plan_logs(&cluster, ranges, address_of)?;
        let mut pieces = TopicPiece::cut(pulled, self.max_rows, self.min_pieces, address_of)?;
        pieces.extend(by_log);
        warnings.extend(cluster.take_warnings());
        // what was decided before was told then
        let is_new = |way: &&BrokerWay| !self.ways.iter().flatten().any(|decided| decided == *way);
        let pulled = ways.iter().filter(|way| way.pulled_because.is_some()).filter(is_new);
        warnings.extend(pulled.map(|way| format!("read {way}")));
        let mut log = Log::default();
        log.warn(warnings);
        Ok(ReadPlan { pieces, ways, log })
    }

    /// The plan of a read from a mirror's copies. Brokers are asked only for ends of queues and offsets at times.
    fn plan_copies(
        &self,
        directory: &Path,
        cluster: &TopicCluster,
        bounds: Vec<(Queue, Bounds)>,
        mut warnings: Vec<String>,
    ) -> Result<ReadPlan> {
        self.check_kinds(cluster, &bounds)?;
        let copies = Copies::open(directory, bounds.iter().map(|(queue, _)| queue))?;
        let ranges = self.ranges(cluster, bounds, Some(&copies), &mut warnings)?;
        let (pieces, told) = copies.plan(ranges, &self.request, self.min_pieces)?;
        warnings.extend(cluster.take_warnings());
        let mut log = Log::default();
        log.warn(warnings);
        log.info(told);
        Ok(ReadPlan { pieces, log, ..ReadPlan::default() })
    }

    /// Refuses topics whose messages their brokers count otherwise than the log lists them.
    fn check_kinds(&self, cluster: &TopicCluster, bounds: &[(Queue, Bounds)]) -> Result<()> {
        let of_topics: BTreeMap<_, _> =
            bounds.iter().map(|(queue, _)| ((&queue.topic, &queue.broker_name), queue)).collect();
        let queues: Vec<Queue> = of_topics.into_values().cloned().collect();
        let answers = match cluster.are_listed_otherwise(&queues) {
            // not everybody may ask that
            Err(rmqfast_client::Error::Response { .. }) => Vec::new(),
            answers => answers?,
        };
        let other = queues.iter().zip(answers).find(|(_, is_otherwise)| *is_otherwise).map(|(queue, _)| &queue.topic);
        let other = other.cloned().or_else(|| self.topics.may_be_light().then(|| self.topics.to_string()));
        other.map_or(Ok(()), |topic| {
            let text = format!("option via: a copy does not tell what {topic} has: a topic of another kind");
            Err(Error::argument(format!("{text}; read it with via=pull")))
        })
    }

    /// Start offsets of a stream without a checkpoint, and warnings.
    ///
    /// # Errors
    /// As [`plan`](Self::plan).
    pub fn initial(&self, cluster: &TopicCluster, bounds: Vec<(Queue, Bounds)>) -> Result<(QueueOffsets, Vec<String>)> {
        let RangeRequest { subscription, puller, .. } = &self.request;
        let (mut start, mut warnings) = self.resolve("startingOffsets", &self.start, Edge::Start, &bounds)?;
        let queues: Vec<Queue> = bounds.iter().map(|(queue, _)| queue.clone()).collect();
        cluster.check_expression(subscription, &puller.consumer_group, &queues, false)?;
        self.not_before_start_time(cluster, &bounds, &mut start)?;
        warnings.extend(cluster.take_warnings());
        Ok((queues.into_iter().zip(start).collect(), warnings))
    }

    /// The queues that are read as they are now. A pattern may find none.
    fn find(&self, cluster: &TopicCluster) -> Result<TopicQueues> {
        let mut topic_queues = self.topics.find(cluster, self.cut.topics.as_deref(), |_, _| false)?;
        self.keep(&mut topic_queues.queues, self.cut.topics.is_none())?;
        Ok(topic_queues)
    }

    /// Leaves the queues that the read asks for; those that it names must be there where that `is_strict`.
    ///
    /// # Errors
    /// A number that no queue has; a queue that is assigned and not there.
    pub fn keep(&self, queues: &mut Vec<Queue>, is_strict: bool) -> Result<()> {
        self.topics.keep(queues, is_strict)?;
        let Some(ids) = &self.queue_ids else { return Ok(()) };
        // a number that one broker has is enough: brokers may have different numbers of queues
        let unknown = ids.iter().find(|id| !queues.iter().any(|queue| queue.queue_id == **id));
        if let Some(unknown) = unknown.filter(|_| is_strict && !queues.is_empty()) {
            let numbers: BTreeSet<i32> = queues.iter().map(|queue| queue.queue_id).collect();
            let numbers: Vec<String> = numbers.iter().map(i32::to_string).collect();
            let text = format!("queue_ids: no queue {unknown}; the topic's queues are {}", numbers.join(", "));
            return Err(Error::argument(text));
        }
        queues.retain(|queue| ids.contains(&queue.queue_id));
        Ok(())
    }

    /// Warning for a pattern that finds no topic.
    fn nothing(&self, queues: &[Queue]) -> Option<String> {
        // a filter may leave out all there are
        let is_nothing = queues.is_empty() && self.cut.topics.is_none();
        is_nothing.then(|| format!("{}: there is none now", self.topics))
    }

    /// Ranges of the queues that have messages; `bounds` are the brokers'.
    fn ranges(
        &self,
        cluster: &TopicCluster,
        bounds: Vec<(Queue, Bounds)>,
        copies: Option<&Copies>,
        warnings: &mut Vec<String>,
    ) -> Result<Vec<QueueRange>> {
        let there = copies.map(|copies| copies.from_start(&bounds));
        let there = there.as_ref().unwrap_or(&bounds);
        let (start, expired) = self.resolve("startingOffsets", &self.start, Edge::Start, there)?;
        let (end, ahead) = self.resolve("endingOffsets", &self.end, Edge::End, there)?;
        warnings.extend(expired.into_iter().chain(ahead));
        check_order(&self.start, &self.end, there)?;
        // after the offsets were looked at in all queues: one that there is not is an error, whatever filters leave of it
        let filtered = bounds.into_iter().zip(start.into_iter().zip(end)).filter(|((queue, _), _)| self.cut.has(queue));
        let (bounds, (mut start, mut end)): (Vec<_>, (Vec<_>, Vec<_>)) = filtered.unzip();
        // a copy may have more of that time than the broker, and its scan compares times anyway
        if copies.is_none() {
            self.not_before_start_time(cluster, &bounds, &mut start)?;
        }
        if let Some(when) = self.request.scan.end_time {
            let sooner = cluster.offsets_at(when, &bounds, &self.request.puller.consumer_group)?;
            // a time narrows offsets and never widens them
            end.iter_mut().zip(sooner).for_each(|(end, sooner)| *end = sooner.min(*end));
        }
        let ranges = bounds.into_iter().zip(start.into_iter().zip(end)).map(|((queue, _), range)| {
            let (start, end) = self.cut.of(range);
            QueueRange { queue, start, end }
        });
        // an empty range would be a task, and a connection, for nothing
        Ok(ranges.filter(|range| range.start < range.end).collect())
    }

    /// Plans which ranges come from the brokers' logs.
    fn plan_logs(
        &self,
        cluster: &TopicCluster,
        ranges: Vec<QueueRange>,
        address_of: impl Fn(&str) -> Option<String>,
    ) -> Result<LogPlan> {
        if self.via == Via::Pull {
            return Ok(LogPlan { pulled: ranges, ..LogPlan::default() });
        }
        let (via, ways, refusal) = (&self.via, self.ways.as_deref(), self.why_pulled().map(str::to_owned));
        let (request, min_pieces) = (&self.request, self.min_pieces);
        LogPlanner { cluster, request, via, ways, min_pieces, refusal }.plan(ranges, address_of)
    }

    /// Why the read goes by pulls, whatever the brokers are.
    fn why_pulled(&self) -> Option<&'static str> {
        let subscription = &self.request.subscription;
        if subscription.expression_type != "TAG" {
            return Some("brokers filter by SQL92");
        }
        if self.cluster.tls.is_some() {
            return Some("the read is encrypted, which an HA port is not");
        }
        if self.cluster.translate.is_some() {
            return Some("translate_address does not tell where HA ports are");
        }
        let is_filtered = self.via == Via::Auto && subscription.is_filtered();
        is_filtered.then_some("brokers send only those with the tags")
    }

    fn resolve(
        &self,
        name: &str,
        offsets: &Offsets<ByTopic>,
        edge: Edge,
        bounds: &[(Queue, Bounds)],
    ) -> Result<(Vec<i64>, Vec<String>)> {
        // topics that filters leave out are not looked up: nobody knows which queues these have
        let offsets = match (offsets, &self.cut.topics) {
            (Offsets::Named(by_topic), Some(topics)) => {
                &Offsets::Named(by_topic.iter().filter(|(topic, _)| topics.contains(topic)).cloned().collect())
            }
            _ => offsets,
        };
        resolve(name, offsets, bounds, edge, self.request.is_strict)
    }

    fn not_before_start_time(
        &self,
        cluster: &TopicCluster,
        bounds: &[(Queue, Bounds)],
        start: &mut [i64],
    ) -> Result<()> {
        let Some(when) = self.request.scan.start_time else { return Ok(()) };
        let later = cluster.offsets_at(when, bounds, &self.request.puller.consumer_group)?;
        start.iter_mut().zip(later).for_each(|(start, later)| *start = later.max(*start));
        Ok(())
    }
}

fn distinct_ranges(pieces: Vec<TopicPiece>) -> Vec<QueueRange> {
    let mut seen = BTreeSet::new();
    let ranges = pieces.into_iter().flat_map(|piece| piece.ranges);
    ranges.filter(|range| seen.insert((range.queue.clone(), range.start, range.end))).collect()
}

fn is_of_connection(given: &str) -> bool {
    CONNECTION.iter().any(|name| name.eq_ignore_ascii_case(given))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::push_down::Literal;

    fn read(pairs: &[(&str, &str)]) -> TopicRead {
        let pairs = [&[("nameServer", "127.0.0.1:1")], pairs].concat();
        let pairs: Vec<_> = pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        TopicRead::of(Kind::TopicBatch, &pairs, &[]).expect("a read")
    }

    fn topic_in(topics: &[&str]) -> Filter {
        let values = topics.iter().map(|topic| Some(Literal::Text((*topic).to_owned()))).collect();
        Filter { kind: "in".into(), column: "topic".into(), values }
    }

    #[test]
    fn an_old_name_of_an_option_works_and_is_warned_of() {
        let old = read(&[("topic", "a"), ("pullsunderway", "3")]);
        assert_eq!(old.request.puller.depth, 3);
        let warning = "option pullsUnderWay: deprecated, use pullsInFlight; 1.0 removes the old name";
        assert_eq!(old.request_warnings(), [warning]);
        let new = read(&[("topic", "a"), ("pullsInFlight", "3")]);
        assert_eq!((new.request.puller.depth, new.request_warnings()), (3, Vec::new()));
        // nobody is led to it
        assert!(!Options::names(Kind::TopicBatch).contains(&"pullsUnderWay"));
    }

    #[test]
    fn filters_leave_topics_that_are_read() {
        for option in [("subscribe", "a,b"), ("subscribePattern", "[ab]")] {
            let mut read = read(&[option]);
            assert!(read.take(&[]).is_empty());
            // or it would not look whether all is there that options name
            assert_eq!(read.cut.topics, None);
            assert_eq!(read.take(&[topic_in(&["c", "b", "a"])]), [true]);
            assert_eq!(
                (read.cut.topics.as_deref(), read.is_empty),
                (Some(&["a".to_owned(), "b".to_owned()][..]), false)
            );
            assert_eq!(read.take(&[topic_in(&["c", "b"]), topic_in(&["a"])]), [true, true]);
            assert!(read.is_empty);
        }
    }

    #[test]
    fn numbers_of_queues_that_are_named_must_be_there_unless_there_is_none() {
        let queue = |topic: &str, queue_id| Queue { topic: topic.into(), broker_name: "a".into(), queue_id };
        let all = vec![queue("a", 0), queue("a", 1), queue("b", 0)];
        let read = read(&[("subscribePattern", "[ab]"), ("queueIds", "1,2")]);
        let error = read.keep(&mut all.clone(), true).expect_err("no queue 2").to_string();
        assert_eq!(error, "queue_ids: no queue 2; the topic's queues are 0, 1");
        let mut left = all;
        read.keep(&mut left, false).expect("brokers may be away");
        assert_eq!(left, [queue("a", 1)]);
        read.keep(&mut Vec::new(), true).expect("nothing matches");
    }
}
