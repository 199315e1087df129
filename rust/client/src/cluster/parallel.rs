//! Sends requests in parallel, while the calling thread checks for interrupts.
use crate::error::{Error, Result};
use rmqfast_remoting::{self as remoting, Interrupt};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

// Maximum parallel requests.
const THREADS: usize = 16;
const LOOK: Duration = Duration::from_millis(50);

/// Calls `ask` for each item in parallel. Returns the answers in the order of `items`. Only the calling thread calls
/// `interrupt`, which may need the lock of a Python interpreter.
///
/// # Errors
/// The error of `interrupt`. Errors of `ask` are items of the result.
pub fn each<I: Sync, T: Send>(
    items: &[I],
    interrupt: Interrupt<'_>,
    ask: impl Fn(&I, Interrupt<'_>) -> Result<T> + Sync,
) -> Result<Vec<Result<T>>> {
    // a single item needs no further thread, so `ask` can check the interrupt itself
    if let [item] = items {
        return match ask(item, interrupt) {
            Err(Error::Remoting(remoting::Error::Interrupted)) => Err(remoting::Error::Interrupted.into()),
            answer => Ok(vec![answer]),
        };
    }
    let (next, is_stopped) = (&AtomicUsize::new(0), &AtomicBool::new(false));
    let (answers, answered) = channel();
    let ask = &ask;
    let work = move |answers: Sender<_>| {
        let stop = || if is_stopped.load(Ordering::Relaxed) { Err(remoting::Error::Interrupted) } else { Ok(()) };
        while let at = next.fetch_add(1, Ordering::Relaxed)
            && let Some(item) = items.get(at)
        {
            // the receiver is gone after an interrupt
            let _ = answers.send((at, ask(item, &stop)));
        }
    };
    let mut by_place: Vec<Option<Result<T>>> = items.iter().map(|_| None).collect();
    std::thread::scope(|scope| -> Result<()> {
        for _ in 0..THREADS.min(items.len()) {
            let answers = answers.clone();
            scope.spawn(move || work(answers));
        }
        // only the threads hold senders now, so that the receiver disconnects even if they all panic
        drop(answers);
        let mut last_look = Instant::now();
        loop {
            match answered.recv_timeout(LOOK) {
                Ok((at, answer)) => by_place[at] = Some(answer),
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
                Err(RecvTimeoutError::Timeout) => {}
            }
            // also if answers arrive without a pause
            if last_look.elapsed() >= LOOK {
                last_look = Instant::now();
                // the scope waits for its threads, so stop them before returning
                interrupt().inspect_err(|_| is_stopped.store(true, Ordering::Relaxed))?;
            }
        }
    })?;
    Ok(by_place.into_iter().flatten().collect())
}

/// Calls `ask` for each item in parallel, and returns the answers in the order of `items`. After the first error, `ask`
/// is not called for further items, so a broker that does not answer costs only one timeout.
///
/// # Errors
/// The error of `interrupt`, or the first error of `ask`.
pub fn all<I: Sync, T: Send>(
    items: &[I],
    interrupt: Interrupt<'_>,
    ask: impl Fn(&I, Interrupt<'_>) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let has_failed = AtomicBool::new(false);
    let answers = each(items, interrupt, |item, interrupt| {
        let stop = || if has_failed.load(Ordering::Relaxed) { Err(remoting::Error::Interrupted) } else { interrupt() };
        stop()?;
        ask(item, &stop).inspect_err(|_| has_failed.store(true, Ordering::Relaxed))
    })?;
    let mut all = Vec::with_capacity(items.len());
    for answer in answers {
        match answer {
            Ok(answer) => all.push(answer),
            // stopped because of another item, whose error is in the list
            Err(Error::Remoting(remoting::Error::Interrupted)) => {}
            Err(error) => return Err(error),
        }
    }
    if all.len() == items.len() { Ok(all) } else { Err(remoting::Error::Interrupted.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_in_the_order_of_their_questions() {
        for count in [0, 1, 2, 40] {
            let items: Vec<usize> = (0..count).collect();
            let doubled = each(&items, &remoting::never, |item, _| Ok(2 * item)).expect("no interrupt");
            let doubled: Vec<usize> = doubled.into_iter().map(|answer| answer.expect("an answer")).collect();
            assert_eq!(doubled, items.iter().map(|item| 2 * item).collect::<Vec<_>>());
        }
    }

    #[test]
    #[should_panic(expected = "a scoped thread panicked")]
    fn a_panic_ends_the_wait() {
        let _ = each(&[1, 2, 3], &remoting::never, |item, _| if *item == 2 { panic!("a defect") } else { Ok(()) });
    }

    #[test]
    fn the_first_error_ends_all_questions() {
        let asked = AtomicUsize::new(0);
        let items: Vec<usize> = (0..100_000).collect();
        let refused: Result<Vec<()>> = all(&items, &remoting::never, |item, interrupt| {
            asked.fetch_add(1, Ordering::Relaxed);
            if *item == 3 {
                return Err(Error::Argument("no".into()));
            }
            // a broker that never answers the other requests
            loop {
                interrupt()?;
                std::thread::yield_now();
            }
        });
        assert!(matches!(refused, Err(Error::Argument(_))), "{refused:?}");
        assert!(asked.into_inner() <= THREADS);
        let doubled = all(&[1, 2, 3], &remoting::never, |item, _| Ok(2 * item));
        assert_eq!(doubled.expect("answers"), [2, 4, 6]);
    }

    #[test]
    fn whoever_interrupts_ends_all_waits() {
        let looks = AtomicUsize::new(0);
        let interrupt = || {
            if looks.fetch_add(1, Ordering::Relaxed) > 0 { Err(remoting::Error::Interrupted) } else { Ok(()) }
        };
        let wait = |_: &i32, interrupt: Interrupt<'_>| -> Result<()> {
            loop {
                interrupt()?;
                std::thread::yield_now();
            }
        };
        let ended = each(&[1, 2, 3], &interrupt, wait);
        assert!(matches!(ended, Err(Error::Remoting(remoting::Error::Interrupted))), "{ended:?}");
    }
}
