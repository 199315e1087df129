//! A read of topics. Its offsets are fixed once and divided into pieces. The pieces together contain each message once,
//! no matter when and where they are read.
use crate::error::{Error, Result};
use crate::origin::copy_plan::Copies;
use crate::origin::log_plan::{LogPlan, LogPlanner};
use crate::origin::piece::TopicPiece;
use crate::origin::{BrokerWay, Via};
use crate::request::cluster::cluster_options;
use crate::request::column_warning::column_warning;
use crate::request::offsets::Offsets;
use crate::request::options::{Kind, Options};
use crate::request::row_columns::RowColumns;
use crate::stream::{Limits as BatchLimits, Log};
use crate::topic::offsets::{ByTopic, Edge, check_order, parse, resolve};
use crate::topic::scan::{TopicRequest, TopicScan};
use crate::topic::topics::{TopicQueues, Topics};
use rmqfast_client::cluster::{Bounds, ClusterOptions, TopicCluster};
use rmqfast_client::names::check_group;
use rmqfast_client::puller::{PullerOptions, Queue, Subscription};
use rmqfast_client::ranges::{PoolKey, QueueRange, RangeRequest};
use rmqfast_store::filter::TagExpression;
use rmqfast_store::scan::push_down::{Filter, Limits, Selection, Source};
use rmqfast_store::scan::{QueueCounts, ScanRequest};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

#[derive(Clone, Debug)]
pub struct TopicRead {
    pub cluster: ClusterOptions,
    pub topics: Topics,
    /// Selects messages and columns, and holds the options of pulls.
    pub request: RangeRequest,
    pub start: Offsets<ByTopic>,
    pub end: Offsets<ByTopic>,
    /// Queue ids to read, on each broker.
    pub queue_ids: Option<Vec<i32>>,
    /// Minimum number of pieces. Few messages give fewer pieces.
    pub min_pieces: i64,
    /// Maximum number of offsets in a piece.
    pub max_rows: i64,
    pub cut: RangeCut,
    /// Whether no message can match the filters.
    pub is_empty: bool,
    /// Pieces of an earlier plan, which are read unchanged.
    pub planned: Option<Vec<TopicPiece>>,
    pub via: Via,
    /// Decisions of an earlier plan, whether each broker's log is read.
    pub ways: Option<Vec<BrokerWay>>,
    /// Key under which reads share pullers. `None` if the cluster is reached by settings that are not options.
    pub pool_key: Option<PoolKey>,
    pub limits: BatchLimits,
    /// Group for which a stream commits offsets; `None` if it does not.
    pub commit_group: Option<String>,
    /// The times of the options, which offsets of a plan already consider.
    option_times: Limits,
    option_warnings: Vec<String>,
}

/// Reads share a connection if these options are equal.
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

/// The queues and offsets that pushed filters select. Unlike in options, they need not exist.
#[derive(Clone, Debug, Default)]
pub struct RangeCut {
    pub topics: Option<Vec<String>>,
    pub broker_names: Option<Vec<String>>,
    pub queue_ids: Option<Vec<i32>>,
    /// The first offset to read in all queues, and the offset after the last offset to read.
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
    /// For each broker, the decision whether its log is read. Empty if the read never uses logs.
    pub ways: Vec<BrokerWay>,
    pub log: Log,
}

pub type QueueOffsets = Vec<(Queue, i64)>;

impl TopicRead {
    /// Builds the read of the given columns from the options of a batch or a stream.
    ///
    /// # Errors
    /// See [`Options::of`]. Also columns that differ from the option `columns`, an invalid topic or group, or an
    /// expression that does not parse.
    pub fn of(kind: Kind, pairs: &[(String, String)], columns: &[String]) -> Result<Self> {
        let options = Options::of(kind, pairs)?;
        let row = RowColumns::of_names(&options, columns)?;
        // empty while Spark has not yet chosen columns
        if !columns.is_empty() {
            row.check_agreed(&options)?;
        }
        let cluster = cluster_options(&options)?;
        let number = |name| options.number(name).unwrap_or_default();
        let milliseconds = |name| Duration::from_millis(number(name).unsigned_abs());
        let (topics, group) = (Topics::of(&options)?, options.text("group").unwrap_or_default());
        check_group(group)?;
        let mut subscription = Subscription::by_tags(options.text("tags").unwrap_or("*"))?;
        if let Some(expression) = options.text("sql") {
            // Java's `SubscriptionData` also uses the time as the version of an expression
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let by_sql = Subscription::by_sql(expression, now.as_millis() as i64)?;
            // a broker takes one expression, so tags are compared after the pull
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
                // the broker or the puller applies these
                topic: None,
                tags: TagExpression::all(),
                sql: None,
                queue_ids: None,
                ..row.scan_request(&options)?
            },
            patience: milliseconds("retryTimeoutMs"),
            is_strict: options.flag("failOnDataLoss"),
        };
        // with a start time all messages are searched, also in a stream
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
            option_times: (request.scan.start_time, request.scan.end_time),
            option_warnings: options.warnings().to_vec(),
            topics,
            cluster,
            request,
        })
    }

    /// Replaces the address, account and TLS of the cluster.
    #[must_use]
    pub fn at(mut self, cluster: ClusterOptions) -> Self {
        let puller = &mut self.request.puller;
        // the puller has its own copy of these settings
        (puller.tls, puller.sign) = (cluster.tls.clone(), cluster.sign.clone());
        puller.connect_timeout = cluster.connect_timeout;
        Self { cluster, pool_key: None, ..self }
    }

    /// Narrows the read by filters. Returns for each filter whether the read applies it.
    pub fn take(&mut self, filters: &[Filter]) -> Vec<bool> {
        let mut selection = Selection {
            source: Source::Topic,
            topics: self.cut.topics.take(),
            may_be_light: self.topics.may_be_light(),
            has_tags: self.request.subscription.is_filtered(),
            broker_names: self.cut.broker_names.take(),
            // `self.queue_ids` stays, since an unknown id in that option is an error
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
        // the filters give single tags, which always parse
        if let Some(subscription) = tags.and_then(|tags| Subscription::by_tags(&tags.join(" || ")).ok()) {
            self.request.subscription = subscription.into();
        }
        is_taken
    }

    /// Counts the messages from the queues' bounds alone. `None` if the count needs the messages themselves.
    ///
    /// # Errors
    /// See [`plan`](Self::plan).
    pub fn known_counts(&self) -> Result<Option<QueueCounts>> {
        let scan = &self.request.scan;
        let has_filter = self.request.subscription.is_filtered() || scan.keys.is_some() || scan.verify_crc;
        // store times need not increase with offsets, so a time range needs a look at each message
        if has_filter || scan.start_time.is_some() || scan.end_time.is_some() {
            return Ok(None);
        }
        let mut listed = QueueCounts::default();
        if self.is_empty {
            return Ok(Some(listed));
        }
        let ranges = match (&self.planned, &self.via) {
            // several pieces of a copy have the same ranges, which count once
            (Some(_), _) | (None, Via::Mirror(_)) => distinct_ranges(self.plan()?.pieces),
            (None, Via::Pull | Via::Log | Via::Auto) => {
                let cluster = self.open_cluster()?;
                let bounds = cluster.bounds(&self.find(&cluster)?.queues, false)?;
                // warnings are dropped here; the plan reports them
                self.ranges(&cluster, bounds, None, &mut Vec::new())?
            }
        };
        for QueueRange { start, end, .. } in ranges {
            // saturating, since brokers may report any numbers
            listed.messages = listed.messages.saturating_add(end - start);
            listed.min_offset = Some(listed.min_offset.map_or(start, |least| least.min(start)));
            listed.max_offset = listed.max_offset.max(Some(end - 1));
        }
        Ok(Some(listed))
    }

    /// Returns the selected queues and the offsets that they have at present.
    ///
    /// # Errors
    /// See [`plan`](Self::plan).
    pub fn bounds(&self) -> Result<Vec<(Queue, Bounds)>> {
        let cluster = self.open_cluster()?;
        Ok(cluster.bounds(&self.find(&cluster)?.queues, false)?)
    }

    /// Fixes the pieces of an earlier [`plan`](Self::plan), which filters may still narrow.
    #[must_use]
    pub fn with_pieces(self, pieces: Vec<TopicPiece>) -> Self {
        Self { planned: Some(pieces), ..self }
    }

    /// Returns a scan of planned pieces, see [`plan`](Self::plan), by `threads` threads.
    pub fn scan(&self, pieces: Vec<TopicPiece>, threads: usize) -> TopicScan {
        let RangeRequest { scan, .. } = &self.request;
        let searches_times = (scan.start_time, scan.end_time) != self.option_times;
        let (request, cluster) = (self.request.clone(), self.cluster.clone());
        TopicScan::new(TopicRequest { request, cluster, searches_times }, pieces, threads)
    }

    /// Checks as early as possible that the read can be done. Returns warnings.
    ///
    /// Offsets are not checked, because a stream with a checkpoint does not use them. A broker that does not answer is
    /// no error, because it may answer later.
    ///
    /// # Errors
    /// A topic is unknown, no name server answers, no broker has a queue, or a broker refuses.
    pub fn check(&self) -> Result<Vec<String>> {
        // planning also checks that each broker has a copy
        if matches!(self.via, Via::Mirror(_)) {
            self.plan()?;
            return Ok(self.request_warnings());
        }
        let cluster = self.open_cluster()?;
        let queues = self.find(&cluster)?.queues;
        // patient: a stream may start while a broker does not answer
        cluster.bounds(&queues, true)?;
        let RangeRequest { subscription, puller, .. } = &self.request;
        cluster.check_expression(subscription, &puller.consumer_group, &queues, true)?;
        let mut warnings = cluster.take_warnings();
        warnings.extend(self.nothing(&queues));
        warnings.extend(self.request_warnings());
        Ok(warnings)
    }

    /// Returns the warnings that need no request: deprecated options, and SQL92 that names a column.
    pub fn request_warnings(&self) -> Vec<String> {
        let subscription = &self.request.subscription;
        let is_sql = subscription.expression_type == "SQL92";
        let of_columns = is_sql.then(|| column_warning(&subscription.expression)).flatten();
        self.option_warnings.iter().cloned().chain(of_columns).collect()
    }

    /// Creates the client of the cluster, without a request.
    ///
    /// # Errors
    /// There is no name server.
    pub fn open_cluster(&self) -> Result<TopicCluster> {
        Ok(TopicCluster::new(self.cluster.clone())?)
    }

    /// Fixes the offsets and divides them into pieces. Pieces to pull come before pieces of logs.
    ///
    /// # Errors
    /// See [`check`](Self::check). Also a broker that does not answer, a missing copy, or in a strict read an offset
    /// that a queue does not have.
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
        // a batch without a broker's queues would silently be incomplete
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
        // earlier decisions were logged by the earlier plan
        let is_new = |way: &&BrokerWay| !self.ways.iter().flatten().any(|decided| decided == *way);
        let pulled = ways.iter().filter(|way| way.pulled_because.is_some()).filter(is_new);
        warnings.extend(pulled.map(|way| format!("read {way}")));
        let mut log = Log::default();
        log.warn(warnings);
        Ok(ReadPlan { pieces, ways, log })
    }

    /// Plans a read from a mirror's copies. The bounds of queues, and offsets at given times, still come from brokers.
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

    /// Refuses topics whose consume queues do not number messages as the log does, such as light queues.
    fn check_kinds(&self, cluster: &TopicCluster, bounds: &[(Queue, Bounds)]) -> Result<()> {
        let of_topics: BTreeMap<_, _> =
            bounds.iter().map(|(queue, _)| ((&queue.topic, &queue.broker_name), queue)).collect();
        let queues: Vec<Queue> = of_topics.into_values().cloned().collect();
        let answers = match cluster.are_listed_otherwise(&queues) {
            // some accounts may not ask for the topic's kind
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

    /// Returns the start offsets of a stream without a checkpoint, and warnings.
    ///
    /// # Errors
    /// See [`plan`](Self::plan).
    pub fn initial(&self, cluster: &TopicCluster, bounds: Vec<(Queue, Bounds)>) -> Result<(QueueOffsets, Vec<String>)> {
        let RangeRequest { subscription, puller, .. } = &self.request;
        let (mut start, mut warnings) = self.resolve("startingOffsets", &self.start, Edge::Start, &bounds)?;
        let queues: Vec<Queue> = bounds.iter().map(|(queue, _)| queue.clone()).collect();
        cluster.check_expression(subscription, &puller.consumer_group, &queues, false)?;
        self.not_before_start_time(cluster, &bounds, &mut start)?;
        warnings.extend(cluster.take_warnings());
        Ok((queues.into_iter().zip(start).collect(), warnings))
    }

    /// Returns the current queues of the read. It is no error if a pattern matches no topic.
    fn find(&self, cluster: &TopicCluster) -> Result<TopicQueues> {
        let mut topic_queues = self.topics.find(cluster, self.cut.topics.as_deref(), |_, _| false)?;
        self.keep(&mut topic_queues.queues, self.cut.topics.is_none())?;
        Ok(topic_queues)
    }

    /// Drops queues that the read does not select. With `is_strict`, queues that the options name must exist.
    ///
    /// # Errors
    /// No broker has a queue id, or an assigned queue does not exist.
    pub fn keep(&self, queues: &mut Vec<Queue>, is_strict: bool) -> Result<()> {
        self.topics.keep(queues, is_strict)?;
        let Some(ids) = &self.queue_ids else { return Ok(()) };
        // one broker with the id is enough, since brokers may have different numbers of queues
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

    /// Returns a warning if there are no queues because a pattern matches no topic. No warning if filters select
    /// topics.
    fn nothing(&self, queues: &[Queue]) -> Option<String> {
        // no warning if a pushed filter excluded all topics
        let is_nothing = queues.is_empty() && self.cut.topics.is_none();
        is_nothing.then(|| format!("{}: there is none now", self.topics))
    }

    /// Returns the ranges to read that are not empty. `bounds` are the bounds that brokers report.
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
        // filters come after the offsets are checked, so that an unknown queue is an error with any filter
        let filtered = bounds.into_iter().zip(start.into_iter().zip(end)).filter(|((queue, _), _)| self.cut.has(queue));
        let (bounds, (mut start, mut end)): (Vec<_>, (Vec<_>, Vec<_>)) = filtered.unzip();
        // a copy may hold older messages than the broker, and the scan compares times anyway
        if copies.is_none() {
            self.not_before_start_time(cluster, &bounds, &mut start)?;
        }
        if let Some(when) = self.request.scan.end_time {
            let sooner = cluster.offsets_at(when, &bounds, &self.request.puller.consumer_group)?;
            // a time may narrow the offsets but never widen them
            end.iter_mut().zip(sooner).for_each(|(end, sooner)| *end = sooner.min(*end));
        }
        let ranges = bounds.into_iter().zip(start.into_iter().zip(end)).map(|((queue, _), range)| {
            let (start, end) = self.cut.of(range);
            QueueRange { queue, start, end }
        });
        // each range costs a task and a connection
        Ok(ranges.filter(|range| range.start < range.end).collect())
    }

    /// Decides which ranges are read from brokers' logs. The other ranges are pulled.
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

    /// Returns the reason to pull from every broker, if the read itself does not allow logs.
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
        // queues of filtered topics were not fetched, so their offsets cannot be checked
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
    use rmqfast_store::scan::push_down::Literal;

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
        // hints must not suggest the old name
        assert!(!Options::names(Kind::TopicBatch).contains(&"pullsUnderWay"));
    }

    #[test]
    fn filters_leave_topics_that_are_read() {
        for option in [("subscribe", "a,b"), ("subscribePattern", "[ab]")] {
            let mut read = read(&[option]);
            assert!(read.take(&[]).is_empty());
            // otherwise the read would not check that all topics in the options exist
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
