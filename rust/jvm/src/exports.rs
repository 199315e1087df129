//! Native methods of `org.rmqfast.spark.Native` and `NativeSink`: each converts arguments, calls, and throws errors.
mod frame;
mod handle;

/// Exports functions as static methods of a Java class. Each body runs in the [`frame`](frame::run_framed).
macro_rules! exports {
    ($class:literal
    $($(#[$doc:meta])* fn $name:ident($env:pat $(, $argument:pat => $type:ty)*) $(-> $value:ty)? $body:block)*) => {$(
        $(#[$doc])*
        #[jni::jni_mangle($class)]
        pub fn $name<'a>(env: jni::EnvUnowned<'a>, _: jni::objects::JClass<'a> $(, $argument: $type)*) $(-> $value)? {
            $crate::exports::frame::run_framed(env, |$env| $body)
        }
    )*};
}

mod reads;
mod sinks;
mod streams;
