//! Wraps each call from Java, so that errors and panics become Java exceptions.
use crate::task::{Failure, Result};
use jni::errors::{Error, ErrorPolicy};
use jni::strings::JNIString;
use jni::{Env, EnvUnowned, jni_str};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self { kind: "RmqError", text: format!("java native interface: {error}") }
    }
}

/// Runs `call`. If it fails, throws a Java exception; Java then ignores the returned default value.
pub fn run_framed<'a, T: Default>(mut env: EnvUnowned<'a>, call: impl FnOnce(&mut Env<'a>) -> Result<T>) -> T {
    env.with_env(|env| caught(|| call(env))).resolve::<Thrown>()
}

/// Runs `call` and converts a panic to an error, since unwinding into the JVM would abort the executor.
fn caught<T>(call: impl FnOnce() -> Result<T>) -> Result<T> {
    // a panic may leave a value half changed, but Java closes its handle after a failed call
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| Err(defect(&*panic)))
}

fn defect(panic: &(dyn Any + Send)) -> Failure {
    let message = panic.downcast_ref::<String>().map(String::as_str);
    // a panic message with arguments is a `String`, a constant message a `&str`
    let message = message.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no words");
    Failure { kind: "RmqError", text: format!("a defect of rmqfast: {message}") }
}

/// Throws a [`Failure`] as a Java exception.
struct Thrown;

impl<T: Default> ErrorPolicy<T, Failure> for Thrown {
    type Captures<'e: 'm, 'm> = ();

    fn on_error<'e: 'm, 'm>(env: &mut Env<'e>, (): &mut (), failure: Failure) -> jni::errors::Result<T> {
        // an exception that Java has already raised, such as OutOfMemoryError, takes precedence
        if !env.exception_check() {
            // found by the class loader of the native method's class, since the thread's loader may not know it
            let class = env.find_class(jni_str!("org/rmqfast/spark/SourceException"))?;
            // jni-rs reports a successful throw as an error
            let _ = env.throw_new(class, JNIString::from(failure.to_string()));
        }
        Ok(T::default())
    }

    fn on_panic<'e: 'm, 'm>(env: &mut Env<'e>, none: &mut (), panic: Box<dyn Any + Send>) -> jni::errors::Result<T> {
        Self::on_error(env, none, defect(&*panic))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::panic_any;

    fn thrown(call: impl FnOnce() -> Result<i64>) -> String {
        caught(call).expect_err("a failure").to_string()
    }

    #[test]
    fn a_value_and_a_failure_pass_through() {
        assert_eq!(caught(|| Ok(7)).expect("a value"), 7);
        assert_eq!(thrown(|| Err(Failure::argument("no"))), "ArgumentError: no");
    }

    #[test]
    fn a_panic_is_a_failure_that_says_the_same() {
        let nothing: [i64; 0] = [];
        let at = nothing.len();
        let text = thrown(|| Ok(nothing[at]));
        assert_eq!(text, "RmqError: a defect of rmqfast: index out of bounds: the len is 0 but the index is 0");
        assert_eq!(thrown(|| panic!("no words of {}", "mine")), "RmqError: a defect of rmqfast: no words of mine");
        assert_eq!(thrown(|| panic!("plain")), "RmqError: a defect of rmqfast: plain");
        assert_eq!(thrown(|| panic_any(7)), "RmqError: a defect of rmqfast: no words");
    }
}
