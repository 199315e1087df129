#![allow(unsafe_code, reason = "names that the JVM looks up, and the handles that Java holds for us")]
//! What `org.rmqfast.spark.Native` declares: each takes apart what Java gives, calls, and throws what fails. A panic is
//! thrown, too: it never unwinds into the JVM.
use crate::failure::{Failure, Result};
use crate::java;
use crate::java::{TextLists, Texts};
use crate::open::open;
use crate::task::Task;
use jni::errors::{Error, ErrorPolicy};
use jni::objects::{JBooleanArray, JByteArray, JClass, JIntArray, JLongArray, JObjectArray, JString};
use jni::strings::JNIString;
use jni::sys::{jboolean, jint, jlong};
use jni::{Env, EnvUnowned, jni_str};
use rmqfast_remoting::Interrupt;
use rmqfast_spark::Options;
use rmqfast_spark::read::{Read, batch_kind, names_a_cluster, open_stream, resolve};
use rmqfast_spark::schema::{columns_of_schema, row, spark_type};
use rmqfast_spark::sink::{
    Month, SinkColumn, SinkOptions, TopicWriter, Written, check_topic, sink_columns, unique_ids,
};
use rmqfast_spark::stream::Stream;
use rmqfast_spark::topic_piece::TopicPiece;
use rmqfast_store::scan::Listed;
use std::any::Any;
use std::time::Duration;

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self { kind: "RmqError", text: format!("java native interface: {error}") }
    }
}

/// Turns a failure or a panic of a call into a Java exception; the value that goes back with it Java never sees.
struct Thrown;

impl<T: Default> ErrorPolicy<T, Failure> for Thrown {
    type Captures<'e: 'm, 'm> = ();

    fn on_error<'e: 'm, 'm>(env: &mut Env<'e>, (): &mut (), failure: Failure) -> jni::errors::Result<T> {
        // an exception that Java itself raised meanwhile, as when memory is short, goes first
        if !env.exception_check() {
            // not by the loader of the thread, but by that of the class whose method this is
            let class = env.find_class(jni_str!("org/rmqfast/spark/SourceException"))?;
            // to have thrown is an error here, too
            let _ = env.throw_new(class, JNIString::from(failure.to_string()));
        }
        Ok(T::default())
    }

    fn on_panic<'e: 'm, 'm>(env: &mut Env<'e>, none: &mut (), panic: Box<dyn Any + Send>) -> jni::errors::Result<T> {
        let said = panic.downcast_ref::<String>().map(String::as_str);
        // a panic with arguments has a `String`, one without a `&str`
        let said = said.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no words");
        Self::on_error(env, none, Failure { kind: "RmqError", text: format!("a defect of rmqfast: {said}") })
    }
}

/// Runs `call`; see [`Thrown`].
fn guarded<'a, T: Default>(mut env: EnvUnowned<'a>, call: impl FnOnce(&mut Env<'a>) -> Result<T>) -> T {
    env.with_env(call).resolve::<Thrown>()
}

/// Whether options name a live cluster, not a store directory.
#[unsafe(no_mangle)]
extern "system" fn Java_org_rmqfast_spark_Native_isTopic<'a>(
    env: EnvUnowned<'a>,
    _: JClass<'a>,
    options: Texts<'a>,
) -> jboolean {
    guarded(env, |env| Ok(names_a_cluster(&java::pairs(env, &options)?)))
}

/// Columns that the options ask for: names and types that take turns.
#[unsafe(no_mangle)]
extern "system" fn Java_org_rmqfast_spark_Native_row<'a>(
    env: EnvUnowned<'a>,
    _: JClass<'a>,
    options: Texts<'a>,
) -> Texts<'a> {
    guarded(env, |env| {
        let pairs = java::pairs(env, &options)?;
        let row = row(&Options::of(batch_kind(&pairs), &pairs)?)?;
        let words: Vec<String> = row.iter().flat_map(|c| [c.name().to_owned(), spark_type(*c).to_owned()]).collect();
        Ok(java::string_array(env, &words)?)
    })
}

/// The options with all that depends on the store as it is now; `fields` of the schema are names, types, nullable.
#[unsafe(no_mangle)]
extern "system" fn Java_org_rmqfast_spark_Native_resolve<'a>(
    env: EnvUnowned<'a>,
    _: JClass<'a>,
    options: Texts<'a>,
    fields: Texts<'a>,
) -> Texts<'a> {
    guarded(env, |env| {
        let pairs = java::pairs(env, &options)?;
        let columns = columns_of_schema(&java::words(env, &fields)?)?;
        let (resolved, warnings) = resolve(&pairs, columns, &mut || java::interrupted(env))?;
        java::warn(env, &warnings)?;
        let words: Vec<String> = resolved.into_iter().flat_map(|(name, text)| [name, text]).collect();
        Ok(java::string_array(env, &words)?)
    })
}

/// Which filters the read does itself.
#[unsafe(no_mangle)]
extern "system" fn Java_org_rmqfast_spark_Native_push<'a>(
    env: EnvUnowned<'a>,
    _: JClass<'a>,
    options: Texts<'a>,
    filters: TextLists<'a>,
) -> JBooleanArray<'a> {
    guarded(env, |env| {
        // without columns: which of them Spark will want is not known yet
        let mut read = Read::of(&java::pairs(env, &options)?, &[], &[])?;
        let taken = read.take(&java::filters(env, &filters)?);
        let array = JBooleanArray::new(env, taken.len())?;
        array.set_region(env, 0, &taken)?;
        Ok(array)
    })
}

/// What is told without a look at messages: how many, 1 if there are any, the least queue offset, the largest. Null where it
/// takes a look.
#[unsafe(no_mangle)]
extern "system" fn Java_org_rmqfast_spark_Native_listed<'a>(
    env: EnvUnowned<'a>,
    _: JClass<'a>,
    options: Texts<'a>,
    filters: TextLists<'a>,
) -> JLongArray<'a> {
    guarded(env, |env| {
        let read = Read::of(&java::pairs(env, &options)?, &[], &java::filters(env, &filters)?)?;
        let Some(Listed { messages, min_offset, max_offset }) = read.listed(&mut || java::interrupted(env))? else {
            // null, which Java takes for "look at the messages"
            return Ok(JLongArray::default());
        };
        let [min, max] = [min_offset, max_offset].map(Option::unwrap_or_default);
        longs(env, &[messages, i64::from(messages > 0), min, max])
    })
}

/// What a query reads, in words for a person.
#[unsafe(no_mangle)]
extern "system" fn Java_org_rmqfast_spark_Native_describe<'a>(
    env: EnvUnowned<'a>,
    _: JClass<'a>,
    options: Texts<'a>,
    filters: TextLists<'a>,
) -> JString<'a> {
    guarded(env, |env| {
        let read = Read::of(&java::pairs(env, &options)?, &[], &java::filters(env, &filters)?)?;
        Ok(env.new_string(read.to_string())?)
    })
}

/// Pieces, as bytes that `open` takes.
#[unsafe(no_mangle)]
extern "system" fn Java_org_rmqfast_spark_Native_plan<'a>(
    env: EnvUnowned<'a>,
    _: JClass<'a>,
    options: Texts<'a>,
    columns: Texts<'a>,
    filters: TextLists<'a>,
    cores: jint,
) -> JObjectArray<'a, JByteArray<'a>> {
    guarded(env, |env| {
        let read = read(env, &options, &columns, &filters)?;
        let (pieces, warnings) = read.pieces(cores.unsigned_abs().into(), &mut || java::interrupted(env))?;
        java::warn(env, &warnings)?;
        Ok(java::byte_arrays(env, &pieces)?)
    })
}

/// Begins to read a piece of `plan`; the handle is valid until `close`.
#[unsafe(no_mangle)]
extern "system" fn Java_org_rmqfast_spark_Native_open<'a>(
    env: EnvUnowned<'a>,
    _: JClass<'a>,
    options: Texts<'a>,
    columns: Texts<'a>,
    filters: TextLists<'a>,
    piece: JByteArray<'a>,
    limit: jlong,
    is_repeated: jboolean,
    reads_ahead: jboolean,
) -> jlong {
    guarded(env, |env| {
        let read = read(env, &options, &columns, &filters)?;
        let piece = env.convert_byte_array(piece)?;
        let task: Box<dyn Task> = open(read, &piece, limit.unsigned_abs(), is_repeated, reads_ahead)?;
        // boxed once more, as Java holds one number and gives it back with each call
        Ok(Box::into_raw(Box::new(task)) as jlong)
    })
}

/// Fills the next batch and writes the addresses of its arrays; rows, or -1 at the end. Waits for messages for `wait`
/// milliseconds at most.
#[unsafe(no_mangle)]
extern "system" fn Java_org_rmqfast_spark_Native_next<'a>(
    env: EnvUnowned<'a>,
    _: JClass<'a>,
    handle: jlong,
    addresses: JLongArray<'a>,
    wait: jlong,
) -> jlong {
    guarded(env, |env| {
        // SAFETY: Java gives a handle of `open` that it has not closed, from one thread at a time: `VectorReader`, the
        // only one who holds it, gives up its handle before it closes it, and its methods are synchronized.
        let task = unsafe { &mut *(handle as *mut Box<dyn Task>) };
        let step = task.advance(Duration::from_millis(wait.unsigned_abs()));
        // before an error is thrown: they may say why
        java::warn(env, task.take_warning().as_slice())?;
        let Some(rows) = step? else { return Ok(-1) };
        // Java reads the values from these addresses itself: one call for each batch, not for each value
        addresses.set_region(env, 0, task.addresses())?;
        Ok(rows as jlong)
    })
}

/// Rows, bytes, pulls and milliseconds of waiting so far.
#[unsafe(no_mangle)]
extern "system" fn Java_org_rmqfast_spark_Native_counts<'a>(
    env: EnvUnowned<'a>,
    _: JClass<'a>,
    handle: jlong,
) -> JLongArray<'a> {
    guarded(env, |env| {
        // SAFETY: as in `next`.
        let task = unsafe { &*(handle as *const Box<dyn Task>) };
        let counts = task.counts();
        let waited = counts.waited.as_millis() as i64;
        longs(env, &[counts.rows.cast_signed(), counts.bytes.cast_signed(), counts.pulls.cast_signed(), waited])
    })
}

/// Where each queue goes on once the first `rows` of the batch are done, as offsets of a checkpoint.
#[unsafe(no_mangle)]
extern "system" fn Java_org_rmqfast_spark_Native_position<'a>(
    env: EnvUnowned<'a>,
    _: JClass<'a>,
    handle: jlong,
    rows: jint,
) -> JString<'a> {
    guarded(env, |env| {
        // SAFETY: as in `next`.
        let task = unsafe { &*(handle as *const Box<dyn Task>) };
        Ok(env.new_string(task.position(rows.unsigned_abs() as usize)?)?)
    })
}

/// Frees what `open` gave; a task that did not fail may leave its connection to the next one.
#[unsafe(no_mangle)]
extern "system" fn Java_org_rmqfast_spark_Native_close<'a>(
    env: EnvUnowned<'a>,
    _: JClass<'a>,
    handle: jlong,
    is_sound: jboolean,
) {
    guarded(env, |_| {
        // SAFETY: as in `next`; the box is the one that `open` gave away, and Java closes it once.
        let mut task = unsafe { Box::from_raw(handle as *mut Box<dyn Task>) };
        if is_sound {
            task.keep();
        }
        Ok(())
    });
}

/// Begins a stream; the handle is valid until `streamClose`.
#[unsafe(no_mangle)]
extern "system" fn Java_org_rmqfast_spark_Native_streamOpen<'a>(
    env: EnvUnowned<'a>,
    _: JClass<'a>,
    options: Texts<'a>,
    columns: Texts<'a>,
) -> jlong {
    guarded(env, |env| {
        let stream: Box<dyn Stream> = open_stream(&java::pairs(env, &options)?, &java::words(env, &columns)?)?;
        // boxed once more, as Java holds one number and gives it back with each call
        Ok(Box::into_raw(Box::new(stream)) as jlong)
    })
}

/// Where a stream without a checkpoint begins.
#[unsafe(no_mangle)]
extern "system" fn Java_org_rmqfast_spark_Native_streamInitial<'a>(
    env: EnvUnowned<'a>,
    _: JClass<'a>,
    handle: jlong,
) -> JString<'a> {
    asked(env, handle, |stream, _, interrupt| stream.initial(interrupt), text)
}

/// From now on no batch goes beyond what there is now.
#[unsafe(no_mangle)]
extern "system" fn Java_org_rmqfast_spark_Native_streamAim<'a>(env: EnvUnowned<'a>, _: JClass<'a>, handle: jlong) {
    asked(env, handle, |stream, _, interrupt| stream.aim(interrupt), |_, ()| Ok(()));
}

/// How far the batch goes that begins at `start`.
#[unsafe(no_mangle)]
extern "system" fn Java_org_rmqfast_spark_Native_streamLatest<'a>(
    env: EnvUnowned<'a>,
    _: JClass<'a>,
    handle: jlong,
    start: JString<'a>,
    is_limited: jboolean,
) -> JString<'a> {
    let latest = |stream: &mut dyn Stream, texts: &[String], interrupt: Interrupt<'_>| {
        stream.latest(texts.first().map(String::as_str), is_limited, interrupt)
    };
    asked_of(env, handle, &[start], latest, text)
}

/// The last end that is known, or null.
#[unsafe(no_mangle)]
extern "system" fn Java_org_rmqfast_spark_Native_streamReport<'a>(
    env: EnvUnowned<'a>,
    _: JClass<'a>,
    handle: jlong,
) -> JString<'a> {
    let optional = |env: &mut Env<'a>, report: Option<String>| match report {
        Some(report) => text(env, report),
        None => Ok(JString::null()),
    };
    asked(env, handle, |stream, _, _| Ok(stream.report()), optional)
}

/// The pieces of a batch.
#[unsafe(no_mangle)]
extern "system" fn Java_org_rmqfast_spark_Native_streamPieces<'a>(
    env: EnvUnowned<'a>,
    _: JClass<'a>,
    handle: jlong,
    start: JString<'a>,
    end: JString<'a>,
) -> JObjectArray<'a, JByteArray<'a>> {
    let pieces = |stream: &mut dyn Stream, texts: &[String], interrupt: Interrupt<'_>| match texts {
        [start, end] => stream.pieces(start, end, interrupt),
        _ => Ok(Vec::new()),
    };
    asked_of(env, handle, &[start, end], pieces, |env, pieces| java::byte_arrays(env, &pieces))
}

/// A number that the next batch's piece of the same queues has, too; -1 of one that no piece follows.
#[unsafe(no_mangle)]
extern "system" fn Java_org_rmqfast_spark_Native_pieceNumber<'a>(
    env: EnvUnowned<'a>,
    _: JClass<'a>,
    piece: JByteArray<'a>,
) -> jlong {
    guarded(env, |env| {
        let piece = env.convert_byte_array(piece)?;
        // the pieces of a stream of a store need no connection
        Ok(TopicPiece::of_bytes(&piece).ok().and_then(|piece| piece.number()).map_or(-1, jlong::from))
    })
}

/// Pieces without an end, `most` of them where there are no more brokers.
#[unsafe(no_mangle)]
extern "system" fn Java_org_rmqfast_spark_Native_streamEndlessPieces<'a>(
    env: EnvUnowned<'a>,
    _: JClass<'a>,
    handle: jlong,
    start: JString<'a>,
    most: jint,
) -> JObjectArray<'a, JByteArray<'a>> {
    let pieces = |stream: &mut dyn Stream, texts: &[String], interrupt: Interrupt<'_>| {
        stream.endless_pieces(&texts.concat(), most.unsigned_abs() as usize, interrupt)
    };
    asked_of(env, handle, &[start], pieces, |env, pieces| java::byte_arrays(env, &pieces))
}

/// The offsets of all queues, of which each task said its own.
#[unsafe(no_mangle)]
extern "system" fn Java_org_rmqfast_spark_Native_streamMerged<'a>(
    env: EnvUnowned<'a>,
    _: JClass<'a>,
    handle: jlong,
    offsets: Texts<'a>,
) -> JString<'a> {
    guarded(env, |env| {
        let offsets = java::words(env, &offsets)?;
        // SAFETY: as in `asked_of`.
        let stream = unsafe { &*(handle as *const Box<dyn Stream>) };
        Ok(text(env, stream.merged(&offsets)?)?)
    })
}

/// Spark has stored all before `end`.
#[unsafe(no_mangle)]
extern "system" fn Java_org_rmqfast_spark_Native_streamCommit<'a>(
    env: EnvUnowned<'a>,
    _: JClass<'a>,
    handle: jlong,
    end: JString<'a>,
) {
    let commit =
        |stream: &mut dyn Stream, texts: &[String], interrupt: Interrupt<'_>| stream.commit(&texts.concat(), interrupt);
    asked_of(env, handle, &[end], commit, |_, ()| Ok(()));
}

/// How far a query that read as far as `consumed` is behind: names and values that take turns.
#[unsafe(no_mangle)]
extern "system" fn Java_org_rmqfast_spark_Native_streamMetrics<'a>(
    env: EnvUnowned<'a>,
    _: JClass<'a>,
    handle: jlong,
    consumed: JString<'a>,
) -> Texts<'a> {
    let metrics =
        |stream: &mut dyn Stream, texts: &[String], _: Interrupt<'_>| stream.metrics(texts.first().map(String::as_str));
    asked_of(env, handle, &[consumed], metrics, |env, metrics| {
        let words: Vec<String> = metrics.into_iter().flat_map(|(name, value)| [name, value]).collect();
        java::string_array(env, &words)
    })
}

/// Frees what `streamOpen` gave.
#[unsafe(no_mangle)]
extern "system" fn Java_org_rmqfast_spark_Native_streamClose<'a>(env: EnvUnowned<'a>, _: JClass<'a>, handle: jlong) {
    guarded(env, |_| {
        // SAFETY: as in `asked_of`; the box is the one that `streamOpen` gave away, and Java closes it once.
        let mut stream = unsafe { Box::from_raw(handle as *mut Box<dyn Stream>) };
        stream.close();
        Ok(())
    });
}

/// Asks a stream without a text.
fn asked<'a, T, R: Default>(
    env: EnvUnowned<'a>,
    handle: jlong,
    ask: impl FnOnce(&mut dyn Stream, &[String], Interrupt<'_>) -> rmqfast_spark::Result<T>,
    give: impl FnOnce(&mut Env<'a>, T) -> jni::errors::Result<R>,
) -> R {
    asked_of(env, handle, &[], ask, give)
}

/// Asks a stream, which writes its log; `texts` are those that are not null. An interrupt of the thread ends the wait.
fn asked_of<'a, T, R: Default>(
    env: EnvUnowned<'a>,
    handle: jlong,
    texts: &[JString<'a>],
    ask: impl FnOnce(&mut dyn Stream, &[String], Interrupt<'_>) -> rmqfast_spark::Result<T>,
    give: impl FnOnce(&mut Env<'a>, T) -> jni::errors::Result<R>,
) -> R {
    guarded(env, |env| {
        let mut said = Vec::new();
        for text in texts.iter().filter(|text| !text.is_null()) {
            said.push(text.try_to_string(env)?);
        }
        // SAFETY: Java gives a handle of `streamOpen` that it has not closed, from one thread at a time: `SourceStream`, the
        // only one who holds it, has synchronized methods and gives it up before it closes it.
        let stream = unsafe { &mut *(handle as *mut Box<dyn Stream>) };
        let answer = ask(&mut **stream, &said, &mut || java::interrupted(env));
        // before an error is thrown: it may say why
        java::log(env, &stream.take_log())?;
        Ok(give(env, answer?)?)
    })
}

fn text<'a>(env: &mut Env<'a>, text: String) -> jni::errors::Result<JString<'a>> {
    env.new_string(text)
}

fn longs<'a>(env: &mut Env<'a>, numbers: &[i64]) -> Result<JLongArray<'a>> {
    let array = JLongArray::new(env, numbers.len())?;
    array.set_region(env, 0, numbers)?;
    Ok(array)
}

fn read(env: &mut Env<'_>, options: &Texts<'_>, columns: &Texts<'_>, filters: &TextLists<'_>) -> Result<Read> {
    let pairs = java::pairs(env, options)?;
    Ok(Read::of(&pairs, &java::words(env, columns)?, &java::filters(env, filters)?)?)
}

/// How long a call waits, so that Java can look whether its task was killed.
const SINK_WAIT: Duration = Duration::from_millis(100);

/// Where the columns that a sink sends stand in a schema; the options are checked as well. `fields` are names and types.
#[unsafe(no_mangle)]
extern "system" fn Java_org_rmqfast_spark_NativeSink_columns<'a>(
    env: EnvUnowned<'a>,
    _: JClass<'a>,
    options: Texts<'a>,
    fields: Texts<'a>,
) -> JIntArray<'a> {
    guarded(env, |env| {
        let (_, columns) = sink(env, &options, &fields)?;
        let places: Vec<i32> = columns.iter().map(|(index, _)| *index as i32).collect();
        let array = JIntArray::new(env, places.len())?;
        array.set_region(env, 0, &places)?;
        Ok(array)
    })
}

/// Asks a name server whether the topic of the options is there. `month` is when this one began, and when the next one does.
#[unsafe(no_mangle)]
extern "system" fn Java_org_rmqfast_spark_NativeSink_check<'a>(
    env: EnvUnowned<'a>,
    _: JClass<'a>,
    options: Texts<'a>,
    fields: Texts<'a>,
    month: JLongArray<'a>,
) {
    guarded(env, |env| {
        let (options, columns) = sink(env, &options, &fields)?;
        let ids = unique_ids(&options, month_of(env, &month)?);
        let columns: Vec<SinkColumn> = columns.into_iter().map(|(_, column)| column).collect();
        Ok(check_topic(options, &columns, ids)?)
    });
}

/// Begins to send a partition; the handle is valid until `close`. What is `prompt` is sent block by block.
#[unsafe(no_mangle)]
extern "system" fn Java_org_rmqfast_spark_NativeSink_open<'a>(
    env: EnvUnowned<'a>,
    _: JClass<'a>,
    options: Texts<'a>,
    fields: Texts<'a>,
    partition: jint,
    month: JLongArray<'a>,
    prompt: jboolean,
) -> jlong {
    guarded(env, |env| {
        let (options, columns) = sink(env, &options, &fields)?;
        let columns = columns.into_iter().map(|(_, column)| column).collect();
        let writer = TopicWriter::new(options, columns, partition, month_of(env, &month)?, prompt)?;
        // as in `Native.open`
        Ok(Box::into_raw(Box::new(writer)) as jlong)
    })
}

/// Takes the first `length` bytes of a block of rows; false where they have to wait, for `isTaken`.
#[unsafe(no_mangle)]
extern "system" fn Java_org_rmqfast_spark_NativeSink_send<'a>(
    env: EnvUnowned<'a>,
    _: JClass<'a>,
    handle: jlong,
    block: JByteArray<'a>,
    length: jint,
) -> jboolean {
    guarded(env, |env| {
        // SAFETY: Java gives a handle of `open` that it has not closed, from one thread at a time: `TopicRows`, the only one
        // who holds it, gives up its handle before it closes it, and its methods are synchronized.
        let writer = unsafe { &mut *(handle as *mut TopicWriter) };
        let mut rows = env.convert_byte_array(&block)?;
        rows.truncate(length.unsigned_abs() as usize);
        Ok(writer.push(rows, SINK_WAIT)?)
    })
}

/// Whether the last block is taken; waits a little for that.
#[unsafe(no_mangle)]
extern "system" fn Java_org_rmqfast_spark_NativeSink_isTaken<'a>(
    env: EnvUnowned<'a>,
    _: JClass<'a>,
    handle: jlong,
) -> jboolean {
    guarded(env, |_| {
        // SAFETY: as in `send`.
        let writer = unsafe { &mut *(handle as *mut TopicWriter) };
        Ok(writer.push_waiting(SINK_WAIT)?)
    })
}

/// What was sent, once all of it is stored; null where it is not yet, after a little while.
#[unsafe(no_mangle)]
extern "system" fn Java_org_rmqfast_spark_NativeSink_finish<'a>(
    env: EnvUnowned<'a>,
    _: JClass<'a>,
    handle: jlong,
) -> JLongArray<'a> {
    guarded(env, |env| {
        // SAFETY: as in `send`.
        let writer = unsafe { &mut *(handle as *mut TopicWriter) };
        match writer.finish(SINK_WAIT)? {
            Some(written) => longs(env, &written.counts().map(u64::cast_signed)),
            None => Ok(JLongArray::default()),
        }
    })
}

/// Sends no more, and frees what `open` gave.
#[unsafe(no_mangle)]
extern "system" fn Java_org_rmqfast_spark_NativeSink_close<'a>(env: EnvUnowned<'a>, _: JClass<'a>, handle: jlong) {
    guarded(env, |_| {
        // SAFETY: as in `send`; the box is the one that `open` gave away, and Java closes it once.
        drop(unsafe { Box::from_raw(handle as *mut TopicWriter) });
        Ok(())
    });
}

/// Counts in words, as logs have them.
#[unsafe(no_mangle)]
extern "system" fn Java_org_rmqfast_spark_NativeSink_text<'a>(
    env: EnvUnowned<'a>,
    _: JClass<'a>,
    counts: JLongArray<'a>,
) -> JString<'a> {
    guarded(env, |env| {
        let mut numbers = [0; 5];
        counts.get_region(env, 0, &mut numbers)?;
        Ok(env.new_string(Written::of_counts(numbers.map(i64::cast_unsigned)).to_string())?)
    })
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
