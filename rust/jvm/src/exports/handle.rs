#![allow(unsafe_code, reason = "values that Java holds for us, each as one number")]
//! A value that Java holds.
use jni::sys::jlong;
use std::marker::PhantomData;

/// The handle of a value that Java holds between calls: a number, 0 for none.
///
/// Java gives a handle that it got from [`new`](Self::new) and has not closed, from one thread at a time: `VectorReader`,
/// `SourceStream` and `TopicRows`, which alone hold one, have synchronized methods and give it up before they close it.
#[repr(transparent)]
pub struct Handle<T> {
    address: jlong,
    value: PhantomData<T>,
}

impl<T> Handle<T> {
    /// Gives a value away to Java.
    pub fn new(value: T) -> Self {
        Self { address: Box::into_raw(Box::new(value)) as jlong, value: PhantomData }
    }

    pub fn get(&mut self) -> &mut T {
        // SAFETY: it is the box that `new` gave away; what Java keeps to, it says above.
        unsafe { &mut *(self.address as *mut T) }
    }

    /// Takes the value back; Java has closed it.
    pub fn into_inner(self) -> T {
        // SAFETY: as in `get`, and Java closes it once.
        *unsafe { Box::from_raw(self.address as *mut T) }
    }
}

impl<T> Default for Handle<T> {
    fn default() -> Self {
        Self { address: 0, value: PhantomData }
    }
}
