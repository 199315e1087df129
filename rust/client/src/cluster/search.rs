//! Finds the first message of a queue that was stored at a given time or later, by binary search.
//!
//! Brokers of 4.9 return the message nearest to the time, any of several of the same millisecond, and possibly an
//! offset in the wrong file if files were copied. So their answer is only a hint where the search begins.
//!
//! Source: `ConsumeQueue.getOffsetInQueueByTime`, `MappedFileQueue.getMappedFileByTime`.

/// Returns the offset of the first message that was stored at `when` or later, or the queue's end if all messages are
/// older.
///
/// # Arguments
/// * `bounds` - first offset of the queue, and its end (exclusive).
/// * `hint` - offset at which the search begins.
/// * `store_time` - returns the store time of the message at an offset, or `None` if it has expired.
///
/// # Errors
/// The error of `store_time`.
pub fn first_offset_at<E>(
    when: i64,
    bounds: (i64, i64),
    hint: i64,
    mut store_time: impl FnMut(i64) -> Result<Option<i64>, E>,
) -> Result<i64, E> {
    // invariant: messages before `low` are older than `when`, messages from `high` on are not
    let (mut low, mut high) = bounds;
    let mut probe = hint.max(low).min((high - 1).max(low));
    let (mut step, mut turns, mut was_older) = (1, 0, None);
    while low < high {
        // expired messages are older than all others
        let is_older = store_time(probe)?.is_none_or(|stored| stored < when);
        if is_older {
            low = probe + 1;
        } else {
            high = probe;
        }
        // after a change of direction the offset lies between two probes
        turns += i32::from(was_older == Some(!is_older));
        was_older = Some(is_older);
        // first in doubling steps from the hint
        probe = if is_older { low + step - 1 } else { high - step };
        step *= 2;
        // then by bisection
        if turns > 0 || !(low..high).contains(&probe) {
            (turns, probe) = (1, low + (high - low) / 2);
        }
    }
    Ok(low)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::convert::Infallible;

    proptest! {
        #[test]
        fn it_is_the_first_message_of_that_time_or_later(
            mut times in prop::collection::vec(0_i64..60, 0..40),
            when in -1_i64..61,
            hint in -5_i64..60,
            first in 0_i64..10,
            expired in 0_usize..5,
        ) {
            times.sort_unstable();
            let bounds = (first, first + times.len() as i64);
            let offset = first_offset_at(when, bounds, hint, |offset| {
                assert!((bounds.0..bounds.1).contains(&offset));
                let at = (offset - first) as usize;
                Ok::<_, Infallible>((at >= expired).then(|| times[at]))
            });
            let expected = times.iter().enumerate().position(|(at, stored)| at >= expired && *stored >= when);
            prop_assert_eq!(offset, Ok(first + expected.unwrap_or(times.len()) as i64));
        }
    }

    #[test]
    fn a_right_hint_takes_two_looks() {
        let mut looks = Vec::new();
        let offset = first_offset_at(5000, (0, 1 << 30), 5000, |offset| {
            looks.push(offset);
            Ok::<_, Infallible>(Some(offset))
        });
        assert_eq!((offset, looks), (Ok(5000), vec![5000, 4999]));
    }
}
