#![allow(unsafe_code, reason = "values that Java holds for us, each as one number")]
//! A pointer to a Rust value. Java holds the pointer as a number.
use jni::sys::jlong;
use std::marker::PhantomData;

/// A Rust value that Java keeps between calls, as a number. The number 0 stands for no value.
///
/// Safe because Java passes only open handles from [`new`](Self::new), and each handle from one thread at a time. The
/// only owners, `VectorReader`, `SourceStream` and `TopicRows`, have synchronized methods and clear the handle before
/// they close it.
#[repr(transparent)]
pub struct Handle<T> {
    address: jlong,
    value: PhantomData<T>,
}

impl<T> Handle<T> {
    /// Moves a value to the heap and returns its handle.
    pub fn new(value: T) -> Self {
        Self { address: Box::into_raw(Box::new(value)) as jlong, value: PhantomData }
    }

    pub fn get(&mut self) -> &mut T {
        // SAFETY: the pointer is from `new` and not closed, and no other thread uses it; see `Handle`.
        unsafe { &mut *(self.address as *mut T) }
    }

    /// Removes the value from the heap and returns it. Called when Java closes the handle.
    pub fn into_inner(self) -> T {
        // SAFETY: as in `get`; Java closes a handle only once.
        *unsafe { Box::from_raw(self.address as *mut T) }
    }
}

impl<T> Default for Handle<T> {
    fn default() -> Self {
        Self { address: 0, value: PhantomData }
    }
}
