//! Filters of pulls. They first see the tag hash of a consume-queue entry, then the message. The client compares the
//! tag itself.
//!
//! Source: `MessageFilter`, `ExpressionMessageFilter.isMatchedByConsumeQueue`, `isMatchedByCommitLog`.
use crate::filter::TagExpression;
use crate::filter::sql92::Sql92;
use crate::format::message::Message;

pub trait PullFilter {
    /// Returns whether a message with this tag hash may match.
    #[inline]
    fn matches_code(&self, _tags_code: i64) -> bool {
        true
    }

    /// Returns whether [`matches_message`](Self::matches_message) must decide, because tag hashes are not enough.
    #[inline]
    fn reads_messages(&self) -> bool {
        false
    }

    fn matches_message(&self, _message: &Message<'_>) -> bool {
        true
    }

    /// Returns the cost of [`matches_message`](Self::matches_message) for a message with `properties` bytes of
    /// properties. A cost of 1 is the evaluation of one part of an expression on a short message.
    fn cost(&self, _properties: usize) -> usize {
        0
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Every;

impl PullFilter for Every {}

/// A filter for messages whose tag has one of these hashes, like the `codeSet` of a subscription.
#[derive(Clone, Debug, Default)]
pub struct TagCodes(Box<[i32]>);

impl TagCodes {
    pub fn new(codes: impl IntoIterator<Item = i32>) -> Self {
        let mut codes: Vec<i32> = codes.into_iter().collect();
        codes.sort_unstable();
        codes.dedup();
        Self(codes.into())
    }
}

impl PullFilter for TagCodes {
    #[inline]
    fn matches_code(&self, tags_code: i64) -> bool {
        match &*self.0 {
            // A broker compares only the lower half of the code (`tagsCode.intValue()`).
            [only] => *only == tags_code as i32,
            codes => codes.binary_search(&(tags_code as i32)).is_ok(),
        }
    }
}

impl PullFilter for TagExpression {
    #[inline]
    fn matches_code(&self, tags_code: i64) -> bool {
        self.codes_match(tags_code)
    }
}

/// Bytes of properties that a part of an expression can search at a cost of 1.
const SHORT: usize = 256;

impl PullFilter for Sql92 {
    fn reads_messages(&self) -> bool {
        true
    }

    fn cost(&self, properties: usize) -> usize {
        // Each part searches its property from the start, and may parse all of it as a number.
        self.parts().saturating_mul(1 + properties / SHORT)
    }

    fn matches_message(&self, message: &Message<'_>) -> bool {
        self.matches(|name| std::str::from_utf8(message.property(name)?).ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_compared_in_32_bits() {
        let codes = TagCodes::new([7, -3, 7, 2_598_919]);
        assert!([7, -3, 2_598_919, 7 + (1 << 40)].iter().all(|code| codes.matches_code(*code)));
        assert!([0, 8, 3].iter().all(|code| !codes.matches_code(*code)));
        assert!(!TagCodes::default().matches_code(0) && TagCodes::new([5]).matches_code(5));
        assert!(Every.matches_code(i64::MIN) && !Every.reads_messages());
    }
}
