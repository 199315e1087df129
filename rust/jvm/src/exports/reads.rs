//! Native methods of `Native` that plan and read stores and topics.
use super::handle::Handle;
use crate::java::{self, TextLists, Texts};
use crate::open::Request;
use crate::task::{Result, Task};
use jni::Env;
use jni::objects::{JBooleanArray, JByteArray, JLongArray, JObjectArray, JString};
use jni::sys::{jboolean, jint, jlong};
use rmqfast_spark::Options;
use rmqfast_spark::catalog;
use rmqfast_spark::read::{self, Read, batch_kind};
use rmqfast_spark::request::decode;
use rmqfast_spark::request::options::names_a_cluster;
use rmqfast_spark::request::row_columns::RowColumns;
use rmqfast_spark::request::schema::spark_type;
use rmqfast_spark::store::piece;
use rmqfast_store::scan::{Column, QueueCounts};
use std::sync::Arc;
use std::time::Duration;

exports! {
    "org.rmqfast.spark.Native"

    /// Returns whether the options select a live cluster, and not a store directory.
    fn is_topic(env, options => Texts<'a>) -> jboolean {
        Ok(names_a_cluster(&java::pairs(env, &options)?))
    }

    /// Panics with `text`. Tests call it to check that on this platform a panic becomes an exception.
    fn panic(env, text => JString<'a>) -> jboolean {
        let text = java::text(env, &text)?;
        panic!("{}", text.as_deref().unwrap_or_default());
    }

    /// Returns the options with the text of the schema file that they name, which executors may not have.
    fn with_schema_text(env, options => Texts<'a>) -> Texts<'a> {
        let pairs = decode::with_schema_text(&java::pairs(env, &options)?)?;
        Ok(java::string_pairs(env, pairs)?)
    }

    /// Returns the names of the topics in a catalog with these options.
    fn topics(env, options => Texts<'a>) -> Texts<'a> {
        let topics = catalog::topics(&java::pairs(env, &options)?, Arc::new(java::check_interrupt))?;
        Ok(java::string_array(env, &topics)?)
    }

    /// Returns the options of the table of a topic in a catalog with these options.
    fn table_options(env, options => Texts<'a>, topic => JString<'a>) -> Texts<'a> {
        let topic = java::text(env, &topic)?.unwrap_or_default();
        let pairs = catalog::table_options(&java::pairs(env, &options)?, &topic)?;
        Ok(java::string_pairs(env, pairs)?)
    }

    /// Returns the options of a table with those of one query.
    fn with_options(env, options => Texts<'a>, given => Texts<'a>) -> Texts<'a> {
        let pairs = catalog::with_options(&java::pairs(env, &options)?, &java::pairs(env, &given)?);
        Ok(java::string_pairs(env, pairs)?)
    }

    /// Returns the options of a table that count for its reads, or for its writes.
    fn options_of(env, options => Texts<'a>, is_write => jboolean) -> Texts<'a> {
        let pairs = java::pairs(env, &options)?;
        let chosen = if is_write { catalog::write_options(&pairs) } else { catalog::read_options(&pairs) };
        Ok(java::string_pairs(env, chosen)?)
    }

    /// Returns the options that people may see.
    fn shown_options(env, options => Texts<'a>) -> Texts<'a> {
        let pairs = catalog::shown_options(&java::pairs(env, &options)?);
        Ok(java::string_pairs(env, pairs)?)
    }

    /// Returns all columns of messages. Names and types alternate.
    fn all_columns(env) -> Texts<'a> {
        let columns = Column::ALL.map(|column| (column.name().to_owned(), spark_type(column).to_owned()));
        Ok(java::string_pairs(env, columns)?)
    }

    /// Returns the columns that the options select. Names and types alternate. The type of `value` is JSON.
    fn row(env, options => Texts<'a>) -> Texts<'a> {
        let pairs = decode::with_schema_text(&java::pairs(env, &options)?)?;
        let types = RowColumns::of_options(&Options::of(batch_kind(&pairs), &pairs)?)?.types()?;
        Ok(java::string_pairs(env, types.into_iter().map(|(name, kind)| (name.to_owned(), kind)))?)
    }

    /// Returns the options with numbers for offsets: replaces words for them, such as "latest", by the current offsets.
    /// `fields` are names, types and nullability of the schema.
    fn resolve(env, options => Texts<'a>, fields => Texts<'a>) -> Texts<'a> {
        let (pairs, fields) = (java::pairs(env, &options)?, java::words(env, &fields)?);
        let (resolved, lines) = read::resolve(&pairs, &fields, Arc::new(java::check_interrupt))?;
        java::log(env, &lines)?;
        Ok(java::string_pairs(env, resolved)?)
    }

    /// Returns, for each filter, whether the read applies it exactly, so that Spark need not apply it again.
    fn push(env, options => Texts<'a>, filters => TextLists<'a>) -> JBooleanArray<'a> {
        // without columns, since Spark has not chosen them yet
        let mut read = Read::of(&java::pairs(env, &options)?, &[], &[])?;
        let is_taken = read.take(&java::filters(env, &filters)?);
        let array = JBooleanArray::new(env, is_taken.len())?;
        array.set_region(env, 0, &is_taken)?;
        Ok(array)
    }

    /// Returns four numbers, which need only the consume queues: the number of rows, 1 if there are rows (else 0), the
    /// least queue offset and the largest. Returns null if messages must be read.
    fn listed(env, options => Texts<'a>, filters => TextLists<'a>) -> JLongArray<'a> {
        let read = Read::of(&java::pairs(env, &options)?, &[], &java::filters(env, &filters)?)?;
        let read = read.with_interrupt(Arc::new(java::check_interrupt));
        let Some(QueueCounts { messages, min_offset, max_offset }) = read.known_counts()? else {
            return Ok(JLongArray::null());
        };
        let [min, max] = [min_offset, max_offset].map(Option::unwrap_or_default);
        Ok(java::longs(env, &[messages, i64::from(messages > 0), min, max])?)
    }

    fn describe(env, options => Texts<'a>, filters => TextLists<'a>) -> JString<'a> {
        let read = Read::of(&java::pairs(env, &options)?, &[], &java::filters(env, &filters)?)?;
        Ok(env.new_string(read.to_string())?)
    }

    /// Plans the read. Returns its pieces in the serialized form that `open` takes.
    fn plan(
        env, options => Texts<'a>, fields => Texts<'a>, filters => TextLists<'a>, cores => jint
    ) -> JObjectArray<'a, JByteArray<'a>> {
        let read = read_of(env, &options, &fields, &filters)?.with_interrupt(Arc::new(java::check_interrupt));
        let (pieces, lines) = read.pieces(cores.unsigned_abs().into())?;
        java::log(env, &lines)?;
        Ok(java::byte_arrays(env, &pieces)?)
    }

    /// Returns the hosts on which a task should run that reads a piece, if they are known.
    fn piece_hosts(env, piece => JByteArray<'a>) -> Texts<'a> {
        let piece = env.convert_byte_array(piece)?;
        Ok(java::string_array(env, &piece::hosts_of(&piece)?)?)
    }

    /// Opens a piece from `plan`. The handle is valid until `close`.
    fn open(
        env, options => Texts<'a>, fields => Texts<'a>, filters => TextLists<'a>, piece => JByteArray<'a>, limit => jlong,
        is_repeated => jboolean, reads_ahead => jboolean
    ) -> Handle<Box<dyn Task>> {
        let (pairs, fields, filters) =
            (java::pairs(env, &options)?, java::words(env, &fields)?, java::filters(env, &filters)?);
        let piece = env.convert_byte_array(piece)?;
        let request = Request { pairs, fields, filters };
        Ok(Handle::new(crate::open::open(&request, &piece, limit.unsigned_abs(), is_repeated, reads_ahead)?))
    }

    /// Fills the next batch and writes the addresses of its arrays to `addresses`. Returns the number of rows, or -1
    /// at the end. Waits at most `wait` milliseconds for messages.
    fn next(env, mut task => Handle<Box<dyn Task>>, addresses => JLongArray<'a>, wait => jlong) -> jlong {
        let task = task.get();
        let step = task.advance(Duration::from_millis(wait.unsigned_abs()));
        let is_over = !matches!(step, Ok(Some(_)));
        // logged before an error is thrown, since the warning may explain it
        java::warn(env, task.take_warning(is_over).as_slice())?;
        let Some(rows) = step? else { return Ok(-1) };
        // Java reads the values directly from these addresses, so one call per batch is enough
        addresses.set_region(env, 0, task.addresses())?;
        Ok(rows as jlong)
    }

    /// Converts rows of the batch, starting at row `from`, to Spark's row format. Returns the number of converted
    /// rows. Writes the addresses of the rows and of their lengths to `addresses`.
    fn rows(env, mut task => Handle<Box<dyn Task>>, from => jint, addresses => JLongArray<'a>) -> jint {
        let rows = task.get().rows(from.unsigned_abs() as usize);
        addresses.set_region(env, 0, &rows.addresses)?;
        Ok(rows.count as jint)
    }

    /// Returns numbers since the task was opened: rows, bytes, pulls, milliseconds of waiting, and bad bodies.
    fn counts(env, mut task => Handle<Box<dyn Task>>) -> JLongArray<'a> {
        let task = task.get();
        let (counts, bad_bodies) = (task.counts(), task.bad_bodies());
        let waited = counts.waited.as_millis() as u64;
        Ok(java::longs(env, &[counts.rows, counts.bytes, counts.pulls, waited, bad_bodies].map(u64::cast_signed))?)
    }

    /// Returns the next offset of each queue after the first `rows` rows of the batch, in the form of a checkpoint.
    fn position(env, mut task => Handle<Box<dyn Task>>, rows => jint) -> JString<'a> {
        Ok(env.new_string(task.get().position(rows.unsigned_abs() as usize)?)?)
    }

    /// Frees the task. If the task did not fail, the next task may use its connection.
    fn close(env, task => Handle<Box<dyn Task>>, is_sound => jboolean) {
        let mut task = task.into_inner();
        if is_sound {
            task.keep();
        }
        // a task that is closed before its last row, as by a limit, has not told all yet
        Ok(java::warn(env, task.take_warning(true).as_slice())?)
    }
}

fn read_of(env: &mut Env<'_>, options: &Texts<'_>, fields: &Texts<'_>, filters: &TextLists<'_>) -> Result<Read> {
    let pairs = java::pairs(env, options)?;
    Ok(Read::of(&pairs, &java::words(env, fields)?, &java::filters(env, filters)?)?)
}
