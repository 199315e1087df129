//! Registers the types and functions of Python's extension module.
#![allow(missing_docs)]

use pyo3::prelude::*;
use rmqfast_store::format;

mod append;
mod append_options;
mod arrow;
mod broker;
mod client;
mod client_send;
mod config;
mod defect;
mod error;
mod export;
mod follower;
mod live;
mod lookup;
mod message;
mod names;
mod pairs;
mod paths;
mod process;
mod remoting;
mod request;
mod retain;
mod row;
mod scan;
mod selection;
mod signals;
mod spark;
mod store;
mod stream;
mod tail;
mod topic;
mod topic_sink;
mod work_lock;

/// The extension module of `rmqfast`; see `_rmqfast.pyi`.
// in builds without the GIL many threads call in at once: shared types are `Send` and `Sync`, and only `arrow.rs` has
// `unsafe`, inside critical sections; `tests/release/threads.py` tests it
#[pymodule(gil_used = false)]
fn _rmqfast(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<store::Store>()?;
    module.add_class::<scan::Scan>()?;
    module.add_class::<tail::Tail>()?;
    module.add_class::<spark::SparkOptions>()?;
    module.add_class::<selection::Selection>()?;
    module.add_function(wrap_pyfunction!(selection::implied_filters, module)?)?;
    module.add_function(wrap_pyfunction!(names::name_problem, module)?)?;
    module.add_function(wrap_pyfunction!(names::is_legal_name, module)?)?;
    module.add_function(wrap_pyfunction!(names::wrap_namespace, module)?)?;
    module.add_function(wrap_pyfunction!(names::unwrap_namespace, module)?)?;
    module.add_function(wrap_pyfunction!(names::without_namespace, module)?)?;
    module.add_function(wrap_pyfunction!(lookup::parse_message_id, module)?)?;
    module.add_function(wrap_pyfunction!(defect::panic, module)?)?;
    module.add_function(wrap_pyfunction!(error::plain_remark, module)?)?;
    module.add_function(wrap_pyfunction!(error::step_after, module)?)?;
    module.add_function(wrap_pyfunction!(spark::milliseconds, module)?)?;
    module.add_function(wrap_pyfunction!(spark::names_a_cluster, module)?)?;
    module.add_function(wrap_pyfunction!(spark::namespace_of_endpoint, module)?)?;
    module.add_function(wrap_pyfunction!(spark::parse_name_servers, module)?)?;
    module.add_function(wrap_pyfunction!(spark::check_not_expired, module)?)?;
    module.add_function(wrap_pyfunction!(spark::spark_row, module)?)?;
    module.add_class::<topic::read::TopicRead>()?;
    module.add_function(wrap_pyfunction!(topic::read::pieces_option, module)?)?;
    module.add_function(wrap_pyfunction!(topic::read::read_piece, module)?)?;
    module.add_class::<stream::SparkStream>()?;
    module.add_class::<topic_sink::TopicSink>()?;
    module.add_class::<topic_sink::TopicWriter>()?;
    module.add_class::<topic_sink::Written>()?;
    module.add_function(wrap_pyfunction!(stream::read_store_piece, module)?)?;
    module.add_class::<topic::range_reader::RangeReader>()?;
    module.add_function(wrap_pyfunction!(spark::columns_of_schema, module)?)?;
    module.add_function(wrap_pyfunction!(spark::check_agreed, module)?)?;
    module.add_class::<append::Appender>()?;
    module.add_class::<arrow::Batch>()?;
    module.add_class::<follower::Follower>()?;
    module.add_function(wrap_pyfunction!(follower::begin_mark, module)?)?;
    module.add_function(wrap_pyfunction!(follower::cut_copy, module)?)?;
    module.add_function(wrap_pyfunction!(follower::load_mark, module)?)?;
    module.add_function(wrap_pyfunction!(follower::log_source, module)?)?;
    module.add_function(wrap_pyfunction!(follower::newest_copy, module)?)?;
    module.add_function(wrap_pyfunction!(paths::is_directory, module)?)?;
    module.add_function(wrap_pyfunction!(paths::is_file, module)?)?;
    module.add_function(wrap_pyfunction!(paths::list_directory, module)?)?;
    module.add_function(wrap_pyfunction!(paths::local_path, module)?)?;
    module.add_function(wrap_pyfunction!(paths::path_exists, module)?)?;
    module.add_class::<broker::DataPlane>()?;
    module.add_class::<client_send::UniqueIds>()?;
    module.add_class::<client_send::MessageEncoder>()?;
    module.add_class::<client_send::MessageSender>()?;
    module.add_class::<client_send::PySend>()?;
    module.add_class::<client_send::PublishQueues>()?;
    module.add_function(wrap_pyfunction!(client_send::is_timed, module)?)?;
    module.add_class::<client::routes::RouteTable>()?;
    module.add_class::<client::name_servers::NameServers>()?;
    module.add_class::<client_send::Outgoing>()?;
    module.add_class::<client::message_view::MessageView>()?;
    module.add_function(wrap_pyfunction!(client::decode::decode_pull, module)?)?;
    module.add_function(wrap_pyfunction!(client::single_pull::pull_fields, module)?)?;
    module.add_function(wrap_pyfunction!(client::single_pull::read_pull, module)?)?;
    module.add_class::<client::puller::Puller>()?;
    module.add_class::<client::fetched::Fetched>()?;
    module.add_class::<client::fetched::FlowControl>()?;
    module.add_class::<client::fetched::PullerEvent>()?;
    module.add_function(wrap_pyfunction!(client::arrow::messages_to_arrow, module)?)?;
    module.add_function(wrap_pyfunction!(client::arrow::fetched_to_arrow, module)?)?;
    module.add_class::<remoting::mailbox::Mailbox>()?;
    module.add_class::<remoting::call::Call>()?;
    module.add_class::<remoting::channel::Channel>()?;
    module.add_class::<remoting::server::RemotingServer>()?;
    module.add_class::<remoting::client::RemotingClient>()?;
    module.add_class::<remoting::connections::Connections>()?;
    module.add_function(wrap_pyfunction!(remoting::fastjson::read_fastjson, module)?)?;
    module.add_function(wrap_pyfunction!(remoting::signature::sign_fields, module)?)?;
    module.add_function(wrap_pyfunction!(remoting::signature::signature_of, module)?)?;
    module.add_function(wrap_pyfunction!(append::missing_end, module)?)?;
    module.add_function(wrap_pyfunction!(append::repair, module)?)?;
    module.add_function(wrap_pyfunction!(config::config_text, module)?)?;
    module.add_function(wrap_pyfunction!(config::load_config, module)?)?;
    module.add_function(wrap_pyfunction!(remoting::tls::make_certificates, module)?)?;
    module.add_function(wrap_pyfunction!(config::save_config, module)?)?;
    module.add_function(wrap_pyfunction!(retain::plan_clean, module)?)?;
    module.add_function(wrap_pyfunction!(retain::used_percent, module)?)?;
    module.add_function(wrap_pyfunction!(request::parse_tags, module)?)?;
    module.add_function(wrap_pyfunction!(request::sql_properties, module)?)?;
    // registered at import, before the process can fork
    process::forget_in_forks(module)?;
    module.add("COLUMNS", request::column_names())?;
    module.add("MAX_TOPIC", format::names::MAX_TOPIC)?;
    module.add("MAX_NAMED_TOPIC", format::names::MAX_NAMED_TOPIC)?;
    module.add("FORBIDDEN_TOPICS", format::names::FORBIDDEN_TOPICS)?;
    module.add("SYSTEM_TOPICS", format::names::SYSTEM_TOPICS)?;
    Ok(())
}
