//! Native methods of `Native` for streams in the driver.
use super::handle::Handle;
use crate::java::{self, Texts};
use crate::task::Result;
use jni::Env;
use jni::objects::{JByteArray, JObjectArray, JString};
use jni::sys::{jboolean, jint, jlong};
use rmqfast_spark::origin::piece::TopicPiece;
use rmqfast_spark::read::open_stream;
use rmqfast_spark::stream::Stream;
use std::sync::Arc;

exports! {
    "org.rmqfast.spark.Native"

    /// Opens a stream. The handle is valid until `streamClose`. `fields` are names, types and nullability of the schema.
    fn stream_open(env, options => Texts<'a>, fields => Texts<'a>) -> Handle<Box<dyn Stream>> {
        let (pairs, fields) = (java::pairs(env, &options)?, java::words(env, &fields)?);
        Ok(Handle::new(open_stream(&pairs, &fields, Arc::new(java::check_interrupt))?))
    }

    fn stream_describe(env, stream => Handle<Box<dyn Stream>>) -> JString<'a> {
        let description = ask_stream(env, stream, |stream| Ok(stream.description()))?;
        Ok(env.new_string(description)?)
    }

    /// Returns the start offsets of a stream without a checkpoint.
    fn stream_initial(env, stream => Handle<Box<dyn Stream>>) -> JString<'a> {
        let start = ask_stream(env, stream, |stream| stream.initial())?;
        Ok(env.new_string(start)?)
    }

    /// Fixes the current end offsets. No later batch goes beyond them.
    fn stream_aim(env, stream => Handle<Box<dyn Stream>>) {
        ask_stream(env, stream, |stream| stream.aim())
    }

    /// Returns the latest end offsets for the batch that begins at `start`.
    fn stream_latest(
        env, stream => Handle<Box<dyn Stream>>, start => JString<'a>, is_limited => jboolean
    ) -> JString<'a> {
        let start = java::text(env, &start)?;
        let end = ask_stream(env, stream, |stream| stream.latest(start.as_deref(), is_limited))?;
        Ok(env.new_string(end)?)
    }

    /// Returns the latest end offsets that are known, or null.
    fn stream_report(env, stream => Handle<Box<dyn Stream>>) -> JString<'a> {
        let Some(end) = ask_stream(env, stream, |stream| Ok(stream.report()))? else { return Ok(JString::null()) };
        Ok(env.new_string(end)?)
    }

    fn stream_pieces(
        env, stream => Handle<Box<dyn Stream>>, start => JString<'a>, end => JString<'a>
    ) -> JObjectArray<'a, JByteArray<'a>> {
        let (start, end) = (start.try_to_string(env)?, end.try_to_string(env)?);
        let pieces = ask_stream(env, stream, |stream| stream.pieces(&start, &end))?;
        Ok(java::byte_arrays(env, &pieces)?)
    }

    /// Returns a number that the piece with the same queues has in every batch; -1 if no batch follows, or for a piece
    /// of a store.
    fn piece_number(env, piece => JByteArray<'a>) -> jlong {
        let piece = env.convert_byte_array(piece)?;
        // pieces of a store's stream need no connection, so they have no number
        Ok(TopicPiece::of_bytes(&piece).ok().and_then(|piece| piece.number()).map_or(-1, jlong::from))
    }

    /// Returns pieces without an end offset. Their number is `most`, or the number of brokers if that is larger.
    fn stream_endless_pieces(
        env, stream => Handle<Box<dyn Stream>>, start => JString<'a>, most => jint
    ) -> JObjectArray<'a, JByteArray<'a>> {
        let (start, most) = (start.try_to_string(env)?, most.unsigned_abs() as usize);
        let pieces = ask_stream(env, stream, |stream| stream.endless_pieces(&start, most))?;
        Ok(java::byte_arrays(env, &pieces)?)
    }

    /// Merges the offsets that tasks have reported. Returns the offsets of all queues.
    fn stream_merged(env, stream => Handle<Box<dyn Stream>>, offsets => Texts<'a>) -> JString<'a> {
        let offsets = java::words(env, &offsets)?;
        let merged = ask_stream(env, stream, |stream| stream.merge(&offsets))?;
        Ok(env.new_string(merged)?)
    }

    /// Called when Spark has stored all rows before `end`.
    fn stream_commit(env, stream => Handle<Box<dyn Stream>>, end => JString<'a>) {
        let end = end.try_to_string(env)?;
        ask_stream(env, stream, |stream| stream.commit(&end))
    }

    /// Returns metrics of the backlog, counted from the offsets `consumed`. Names and values alternate.
    fn stream_metrics(env, stream => Handle<Box<dyn Stream>>, consumed => JString<'a>) -> Texts<'a> {
        let consumed = java::text(env, &consumed)?;
        let metrics = ask_stream(env, stream, |stream| stream.metrics(consumed.as_deref()))?;
        Ok(java::string_pairs(env, metrics)?)
    }

    fn stream_close(_, stream => Handle<Box<dyn Stream>>) {
        stream.into_inner().close();
        Ok(())
    }
}

/// Calls a method of the stream, then writes the stream's log lines to Spark's log.
fn ask_stream<T>(
    env: &mut Env<'_>,
    mut stream: Handle<Box<dyn Stream>>,
    ask: impl FnOnce(&mut dyn Stream) -> rmqfast_spark::Result<T>,
) -> Result<T> {
    let stream = stream.get();
    let answer = ask(&mut **stream);
    // logged before an error is thrown, since the lines may explain it
    java::log(env, &stream.take_log())?;
    Ok(answer?)
}
