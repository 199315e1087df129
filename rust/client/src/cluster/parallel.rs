//! Asks many at once, while one thread looks whether to stop.
use crate::error::{Error, Result};
use rmqfast_remoting::{self as remoting, Interrupt};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Requests at a time, at most.
const THREADS: usize = 16;
/// Between two looks whether to stop.
const LOOK: Duration = Duration::from_millis(50);

/// What `ask` says of each item, in their order. `interrupt` is called by this thread alone: it may belong to an interpreter.
///
/// # Errors
/// What `interrupt` says; what `ask` says is an item of the result.
pub fn each<I: Sync, T: Send>(
    items: &[I],
    interrupt: Interrupt<'_>,
    ask: impl Fn(&I, Interrupt<'_>) -> Result<T> + Sync,
) -> Result<Vec<Result<T>>> {
    // one question is asked by this thread itself, which may interrupt at once
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
        let mut stop = || if is_stopped.load(Ordering::Relaxed) { Err(remoting::Error::Interrupted) } else { Ok(()) };
        while let at = next.fetch_add(1, Ordering::Relaxed)
            && let Some(item) = items.get(at)
        {
            // nobody listens any more once it is stopped
            let _ = answers.send((at, ask(item, &mut stop)));
        }
    };
    let mut by_place: Vec<Option<Result<T>>> = items.iter().map(|_| None).collect();
    std::thread::scope(|scope| -> Result<()> {
        for _ in 0..THREADS.min(items.len()) {
            let answers = answers.clone();
            scope.spawn(move || work(answers));
        }
        // only the threads have one now: a panic of theirs ends the wait, and is one of this thread's
        drop(answers);
        loop {
            match answered.recv_timeout(LOOK) {
                Ok((at, answer)) => by_place[at] = Some(answer),
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
                Err(RecvTimeoutError::Timeout) => {
                    // the scope waits for its threads, so they have to be stopped before this one leaves
                    interrupt().inspect_err(|_| is_stopped.store(true, Ordering::Relaxed))?;
                }
            }
        }
    })?;
    Ok(by_place.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_in_the_order_of_their_questions() {
        for count in [0, 1, 2, 40] {
            let items: Vec<usize> = (0..count).collect();
            let doubled = each(&items, &mut remoting::never, |item, _| Ok(2 * item)).expect("no interrupt");
            let doubled: Vec<usize> = doubled.into_iter().map(|answer| answer.expect("an answer")).collect();
            assert_eq!(doubled, items.iter().map(|item| 2 * item).collect::<Vec<_>>());
        }
    }

    #[test]
    #[should_panic(expected = "a scoped thread panicked")]
    fn a_panic_ends_the_wait() {
        let _ = each(&[1, 2, 3], &mut remoting::never, |item, _| if *item == 2 { panic!("a defect") } else { Ok(()) });
    }

    #[test]
    fn whoever_interrupts_ends_all_waits() {
        let mut looks = 0;
        let mut interrupt = || {
            looks += 1;
            if looks > 1 { Err(remoting::Error::Interrupted) } else { Ok(()) }
        };
        let wait = |_: &i32, interrupt: Interrupt<'_>| -> Result<()> {
            loop {
                interrupt()?;
                std::thread::yield_now();
            }
        };
        let ended = each(&[1, 2, 3], &mut interrupt, wait);
        assert!(matches!(ended, Err(Error::Remoting(remoting::Error::Interrupted))), "{ended:?}");
    }
}
