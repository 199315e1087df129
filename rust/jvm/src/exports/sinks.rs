//! Native methods of `NativeSink`, which sends rows to a topic.
use super::handle::Handle;
use crate::java::{self, Texts};
use crate::task::Result;
use jni::Env;
use jni::objects::{JByteArray, JIntArray, JLongArray, JString};
use jni::sys::{jboolean, jint};
use rmqfast_spark::sink::{
    Month, SinkColumn, SinkOptions, TopicWriter, Written, check_topic, sink_columns, unique_ids,
};
use std::sync::Arc;
use std::time::Duration;

/// Maximum wait of a call, so that Java can check whether its task was killed.
const WAIT: Duration = Duration::from_millis(100);

exports! {
    "org.rmqfast.spark.NativeSink"

    /// Validates options and schema. Returns the indexes of the columns to send. `fields` are names and types.
    fn columns(env, options => Texts<'a>, fields => Texts<'a>) -> JIntArray<'a> {
        let (_, columns) = sink(env, &options, &fields)?;
        let places: Vec<i32> = columns.iter().map(|(index, _)| *index as i32).collect();
        let array = JIntArray::new(env, places.len())?;
        array.set_region(env, 0, &places)?;
        Ok(array)
    }

    /// Checks that messages can be sent to the topic in the options. `month` holds the starts of this month and of
    /// the next month, in milliseconds.
    fn check(env, options => Texts<'a>, fields => Texts<'a>, month => JLongArray<'a>) {
        let (mut options, columns) = sink(env, &options, &fields)?;
        options.cluster.interrupt = Arc::new(java::check_interrupt);
        let ids = unique_ids(&options, month_of(env, &month)?);
        let columns: Vec<SinkColumn> = columns.into_iter().map(|(_, column)| column).collect();
        Ok(check_topic(options, &columns, ids)?)
    }

    /// Opens the writer of a partition. The handle is valid until `close`. With `prompt` each block is sent at once.
    fn open(
        env, options => Texts<'a>, fields => Texts<'a>, partition => jint, month => JLongArray<'a>, prompt => jboolean
    ) -> Handle<TopicWriter> {
        let (options, columns) = sink(env, &options, &fields)?;
        let columns = columns.into_iter().map(|(_, column)| column).collect();
        Ok(Handle::new(TopicWriter::new(options, columns, partition, month_of(env, &month)?, prompt)?))
    }

    /// Passes the first `length` bytes of a block of rows to the writer. Returns false if the writer cannot accept
    /// the block yet. If so, call `isTaken` until it returns true.
    fn send(env, mut writer => Handle<TopicWriter>, block => JByteArray<'a>, length => jint) -> jboolean {
        let mut rows = env.convert_byte_array(&block)?;
        // the array is Java's whole buffer, which may be longer than its rows
        rows.truncate(length.unsigned_abs() as usize);
        let is_taken = writer.get().push(rows, WAIT);
        java::log(env, &writer.get().take_log())?;
        Ok(is_taken?)
    }

    /// Returns whether the writer has accepted the last block. Waits up to `WAIT`.
    fn is_taken(env, mut writer => Handle<TopicWriter>) -> jboolean {
        let is_taken = writer.get().push_waiting(WAIT);
        java::log(env, &writer.get().take_log())?;
        Ok(is_taken?)
    }

    /// Returns the counts of sent rows once all rows are stored. Returns null if this takes longer than `WAIT`.
    fn finish(env, mut writer => Handle<TopicWriter>) -> JLongArray<'a> {
        let written = writer.get().finish(WAIT);
        java::log(env, &writer.get().take_log())?;
        let Some(written) = written? else { return Ok(JLongArray::null()) };
        Ok(java::longs(env, &written.counts().map(u64::cast_signed))?)
    }

    fn close(_, writer => Handle<TopicWriter>) {
        drop(writer.into_inner());
        Ok(())
    }

    fn text(env, counts => JLongArray<'a>) -> JString<'a> {
        let mut numbers = [0; 5];
        counts.get_region(env, 0, &mut numbers)?;
        Ok(env.new_string(Written::of_counts(numbers.map(i64::cast_unsigned)).to_string())?)
    }
}

fn sink(env: &mut Env<'_>, options: &Texts<'_>, fields: &Texts<'_>) -> Result<(SinkOptions, Vec<(usize, SinkColumn)>)> {
    let (pairs, fields) = (java::pairs(env, options)?, java::pairs(env, fields)?);
    let options = SinkOptions::of(&pairs)?;
    let columns = sink_columns(&fields, options.topic.as_deref())?;
    Ok((options, columns))
}

fn month_of(env: &mut Env<'_>, month: &JLongArray<'_>) -> Result<Month> {
    let mut bounds = [0; 2];
    month.get_region(env, 0, &mut bounds)?;
    Ok(bounds.into())
}
