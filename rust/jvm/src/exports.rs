#![allow(unsafe_code, reason = "names that the JVM looks up, and the handles that Java holds for us")]
//! What `org.rmqfast.spark.Native` declares: each takes apart what Java gives, calls, and throws what fails. A panic is
//! thrown, too: it never unwinds into the JVM.
use crate::failure::{Failure, Result};
use crate::java;
use crate::java::{TextLists, Texts};
use crate::task::Task;
use jni::errors::{Error, ErrorPolicy};
use jni::objects::{JBooleanArray, JClass, JLongArray, JString};
use jni::strings::JNIString;
use jni::sys::{jint, jlong};
use jni::{Env, EnvUnowned, jni_str};
use rmqfast_spark::schema::{columns_of_schema, row, spark_type};
use rmqfast_spark::store_read::{StoreRead, resolve};
use rmqfast_spark::{Kind, Options};
use rmqfast_store::scan::{Listed, Piece, Way};
use std::any::Any;

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
            let class = env.find_class(jni_str!("org/rmqfast/spark/StoreException"))?;
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

/// Columns that the options ask for: names and types that take turns.
#[unsafe(no_mangle)]
extern "system" fn Java_org_rmqfast_spark_Native_row<'a>(
    env: EnvUnowned<'a>,
    _: JClass<'a>,
    options: Texts<'a>,
) -> Texts<'a> {
    guarded(env, |env| {
        let row = row(&Options::of(Kind::Columnar, &java::pairs(env, &options)?)?)?;
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
        let words: Vec<String> = resolve(&pairs, columns)?.into_iter().flat_map(|(name, text)| [name, text]).collect();
        Ok(java::string_array(env, &words)?)
    })
}

/// Which filters the scan does itself.
#[unsafe(no_mangle)]
extern "system" fn Java_org_rmqfast_spark_Native_push<'a>(
    env: EnvUnowned<'a>,
    _: JClass<'a>,
    options: Texts<'a>,
    filters: TextLists<'a>,
) -> JBooleanArray<'a> {
    guarded(env, |env| {
        // without columns: which of them Spark will want is not known yet
        let mut read = StoreRead::of(&java::pairs(env, &options)?, &[], &[])?;
        let taken = read.take(&java::filters(env, &filters)?);
        let array = JBooleanArray::new(env, taken.len())?;
        array.set_region(env, 0, &taken)?;
        Ok(array)
    })
}

/// What the consume queues alone tell: messages, 1 if there are any, the least queue offset, the largest. Null where they
/// do not.
#[unsafe(no_mangle)]
extern "system" fn Java_org_rmqfast_spark_Native_listed<'a>(
    env: EnvUnowned<'a>,
    _: JClass<'a>,
    options: Texts<'a>,
    filters: TextLists<'a>,
) -> JLongArray<'a> {
    guarded(env, |env| {
        let read = StoreRead::of(&java::pairs(env, &options)?, &[], &java::filters(env, &filters)?)?;
        let Some(Listed { messages, min_offset, max_offset }) = read.listed()? else {
            // null, which Java takes for "look at the messages"
            return Ok(JLongArray::default());
        };
        let [min, max] = [min_offset, max_offset].map(Option::unwrap_or_default);
        longs(env, &[messages, i64::from(messages > 0), min, max])
    })
}

/// Partitions: for each way (1 by queue), first byte, the byte behind the last, 1 to check every body.
#[unsafe(no_mangle)]
extern "system" fn Java_org_rmqfast_spark_Native_plan<'a>(
    env: EnvUnowned<'a>,
    _: JClass<'a>,
    options: Texts<'a>,
    columns: Texts<'a>,
    filters: TextLists<'a>,
    cores: jint,
) -> JLongArray<'a> {
    guarded(env, |env| {
        let pieces = read(env, &options, &columns, &filters)?.partitions(cores.unsigned_abs().into())?;
        let numbers: Vec<i64> = pieces.iter().flat_map(numbers).collect();
        longs(env, &numbers)
    })
}

/// Begins to read a partition of `plan`; the handle is valid until `close`.
#[unsafe(no_mangle)]
extern "system" fn Java_org_rmqfast_spark_Native_open<'a>(
    env: EnvUnowned<'a>,
    _: JClass<'a>,
    options: Texts<'a>,
    columns: Texts<'a>,
    filters: TextLists<'a>,
    partition: JLongArray<'a>,
    limit: jlong,
) -> jlong {
    guarded(env, |env| {
        let read = read(env, &options, &columns, &filters)?;
        let mut numbers = [0; 4];
        partition.get_region(env, 0, &mut numbers)?;
        let task = Task::open(read, piece(numbers), limit.unsigned_abs())?;
        // Java holds it as a number and gives it back with each call
        Ok(Box::into_raw(Box::new(task)) as jlong)
    })
}

/// Fills the next batch and writes the addresses of its arrays; rows, or -1 at the end.
#[unsafe(no_mangle)]
extern "system" fn Java_org_rmqfast_spark_Native_next<'a>(
    env: EnvUnowned<'a>,
    _: JClass<'a>,
    handle: jlong,
    addresses: JLongArray<'a>,
) -> jlong {
    guarded(env, |env| {
        // SAFETY: Java gives a handle of `open` that it has not closed, from one thread at a time: `StoreReader`, the
        // only one who holds it, gives up its handle before it closes it, and its methods are synchronized.
        let task = unsafe { &mut *(handle as *mut Task) };
        let Some(rows) = task.advance()? else { return Ok(-1) };
        // Java reads the values from these addresses itself: one call for each batch, not for each value
        addresses.set_region(env, 0, task.addresses())?;
        Ok(rows as jlong)
    })
}

/// What the log shall say of a partition that was read to its end; null as a rule.
#[unsafe(no_mangle)]
extern "system" fn Java_org_rmqfast_spark_Native_warning<'a>(
    env: EnvUnowned<'a>,
    _: JClass<'a>,
    handle: jlong,
) -> JString<'a> {
    guarded(env, |env| {
        // SAFETY: as in `next`.
        let task = unsafe { &mut *(handle as *mut Task) };
        Ok(task.take_warning().map(|text| env.new_string(text)).transpose()?.unwrap_or_default())
    })
}

/// Frees what `open` gave.
#[unsafe(no_mangle)]
extern "system" fn Java_org_rmqfast_spark_Native_close<'a>(env: EnvUnowned<'a>, _: JClass<'a>, handle: jlong) {
    guarded(env, |_| {
        // SAFETY: as in `next`; the box is the one that `open` gave away, and Java closes it once.
        drop(unsafe { Box::from_raw(handle as *mut Task) });
        Ok(())
    });
}

fn longs<'a>(env: &mut Env<'a>, numbers: &[i64]) -> Result<JLongArray<'a>> {
    let array = JLongArray::new(env, numbers.len())?;
    array.set_region(env, 0, numbers)?;
    Ok(array)
}

fn read(env: &mut Env<'_>, options: &Texts<'_>, columns: &Texts<'_>, filters: &TextLists<'_>) -> Result<StoreRead> {
    let pairs = java::pairs(env, options)?;
    Ok(StoreRead::of(&pairs, &java::words(env, columns)?, &java::filters(env, filters)?)?)
}

fn numbers(piece: &Piece) -> [i64; 4] {
    let way = i64::from(piece.way == Way::Queue);
    // Java has no unsigned numbers: the same bits come back
    [way, piece.from.cast_signed(), piece.end.cast_signed(), i64::from(piece.verify_crc)]
}

fn piece([way, from, end, verify_crc]: [i64; 4]) -> Piece {
    let way = if way == 1 { Way::Queue } else { Way::Log };
    Piece { way, from: from.cast_unsigned(), end: end.cast_unsigned(), verify_crc: verify_crc == 1 }
}
