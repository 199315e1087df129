//! Threads that work in parallel. Each thread handles the items of its own queue in order.
use super::failure::{Failure, Stop};
use super::handover::{ClosedAtEnd, Handover, HandoverResult};
use std::thread::{Builder, Scope, ScopedJoinHandle};
use std::time::Duration;

/// Maximum number of items that wait in front of a thread.
const WAITING: usize = 2;
/// Interval at which a waiting thread checks whether another thread has failed.
const SLICE: Duration = Duration::from_millis(100);

/// The queues of the threads of a sink, before the threads are started.
pub struct Lanes<T> {
    queues: Vec<Handover<T>>,
}

impl<T: Send> Lanes<T> {
    pub fn new(count: usize) -> Self {
        Self { queues: (0..count.max(1)).map(|_| Handover::new(WAITING)).collect() }
    }

    /// Prepares threads that call `work` for each item; a thread starts with its first item. After a failure `work` is
    /// not called any more.
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
    /// Adds an item to the queue of a thread. Waits while the queue is full.
    ///
    /// # Errors
    /// The first failure of any lane.
    pub fn put(&mut self, lane: usize, item: T) -> Result<(), Failure> {
        // there may be more queues of topics than lanes
        let lane = lane % self.queues.len();
        let (queue, stop, work) = (&self.queues[lane], self.stop, self.work);
        // started on first use: a partition with one queue needs one thread only
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
                // the thread has ended, by a panic or after a failure
                HandoverResult::Closed => return stop.check().and(Err(defect())),
            }
        }
    }

    /// Waits until all items are done.
    ///
    /// # Errors
    /// The first failure of any lane.
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
        // the scope joins the threads, which end when their queues are closed
        self.queues.iter().for_each(Handover::close);
    }
}

fn drive<T, F: Fn(T) -> Result<(), Failure>>(queue: &Handover<T>, stop: &Stop, work: &F) {
    let _end = ClosedAtEnd(queue);
    while let Some(item) = queue.take() {
        // items after a failure are dropped, so that `put` does not wait forever
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
