//! Threads that work side by side, each in the order in which it was given its work.
use super::failure::{Failure, Stop};
use super::handover::{ClosedAtEnd, Handover, HandoverResult};
use std::thread::{Builder, Scope, ScopedJoinHandle};
use std::time::Duration;

/// Work that waits for a thread.
const WAITING: usize = 2;
/// Between two looks whether other work has failed.
const SLICE: Duration = Duration::from_millis(100);

/// Lanes without threads yet.
pub struct Lanes<T> {
    queues: Vec<Handover<T>>,
}

impl<T: Send> Lanes<T> {
    pub fn new(count: usize) -> Self {
        Self { queues: (0..count.max(1)).map(|_| Handover::new(WAITING)).collect() }
    }

    /// Lanes that run in a scope: `work` is done with each item; after the first failure nothing more is done.
    pub fn run<'scope, 'env, F>(
        &'env self,
        scope: &'scope Scope<'scope, 'env>,
        stop: &'env Stop,
        work: &'env F,
    ) -> Running<'scope, 'env, T, F>
    where
        F: Fn(T) -> Result<(), Failure> + Sync,
    {
        let threads = self.queues.iter().map(|_| None).collect();
        Running { queues: &self.queues, threads, scope, stop, work }
    }
}

pub struct Running<'scope, 'env, T, F> {
    queues: &'env [Handover<T>],
    threads: Vec<Option<ScopedJoinHandle<'scope, ()>>>,
    scope: &'scope Scope<'scope, 'env>,
    stop: &'env Stop,
    work: &'env F,
}

impl<'scope, 'env, T, F> Running<'scope, 'env, T, F>
where
    T: Send + 'env,
    F: Fn(T) -> Result<(), Failure> + Sync,
{
    /// Gives a lane work; waits while it has enough.
    ///
    /// # Errors
    /// What made some work fail.
    pub fn put(&mut self, lane: usize, item: T) -> Result<(), Failure> {
        let lane = lane % self.queues.len();
        let (queue, stop, work) = (&self.queues[lane], self.stop, self.work);
        // a partition with one queue needs one thread
        if self.threads[lane].is_none() {
            let thread = Builder::new().name("rmqfast-lane".into());
            let thread = thread.spawn_scoped(self.scope, move || drive(queue, stop, work));
            let failed = |error| Failure { text: format!("a thread cannot be started: {error}"), code: -1 };
            self.threads[lane] = Some(thread.map_err(failed)?);
        }
        let mut item = item;
        loop {
            stop.check()?;
            match queue.push(item, SLICE) {
                HandoverResult::Done => return Ok(()),
                HandoverResult::Full(back) => item = back,
                // its thread has ended: by a panic, or as everything does
                HandoverResult::Closed => return stop.check().and(Err(defect())),
            }
        }
    }

    /// Waits until all is done.
    ///
    /// # Errors
    /// What made some work fail.
    pub fn finish(&mut self) -> Result<(), Failure> {
        self.queues.iter().for_each(Handover::close);
        let mut has_panicked = false;
        for thread in self.threads.iter_mut().filter_map(Option::take) {
            has_panicked |= thread.join().is_err();
        }
        self.stop.check()?;
        if has_panicked { Err(defect()) } else { Ok(()) }
    }
}

impl<T, F> Drop for Running<'_, '_, T, F> {
    fn drop(&mut self) {
        // the scope waits for its threads, which wait for work
        self.queues.iter().for_each(Handover::close);
    }
}

fn drive<T, F: Fn(T) -> Result<(), Failure>>(queue: &Handover<T>, stop: &Stop, work: &F) {
    let _end = ClosedAtEnd(queue);
    while let Some(item) = queue.take() {
        // what is left is dropped: whoever puts must not wait for ever
        if !stop.is_set()
            && let Err(failure) = work(item)
        {
            stop.fail(failure);
        }
    }
}

fn defect() -> Failure {
    Failure { text: "a defect of rmqfast: a thread that sends has ended".to_owned(), code: -1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn each_lane_keeps_its_order() {
        let (lanes, stop, done) = (Lanes::new(2), Stop::default(), Mutex::new(Vec::new()));
        let work = |number: usize| {
            done.lock().expect("no panic").push(number);
            Ok(())
        };
        std::thread::scope(|scope| {
            let mut running = lanes.run(scope, &stop, &work);
            (0..100).for_each(|number| running.put(number, number).expect("no failure"));
            running.finish().expect("no failure");
        });
        let done = done.into_inner().expect("no panic");
        for lane in 0..2 {
            let of_lane: Vec<_> = done.iter().copied().filter(|number| number % 2 == lane).collect();
            assert_eq!(of_lane, (lane..100).step_by(2).collect::<Vec<_>>());
        }
    }

    #[test]
    fn after_a_failure_nothing_more_is_done() {
        let (lanes, stop, done) = (Lanes::new(1), Stop::default(), Mutex::new(Vec::new()));
        let work = |number: usize| {
            done.lock().expect("no panic").push(number);
            if number == 3 { Err(Failure { text: "three".to_owned(), code: 13 }) } else { Ok(()) }
        };
        std::thread::scope(|scope| {
            let mut running = lanes.run(scope, &stop, &work);
            let failure = (0..100).find_map(|number| running.put(0, number).err()).expect("it fails");
            assert_eq!((failure.text.as_str(), failure.code), ("three", 13));
            assert_eq!(running.finish(), Err(failure));
        });
        assert_eq!(done.into_inner().expect("no panic"), [0, 1, 2, 3]);
    }
}
