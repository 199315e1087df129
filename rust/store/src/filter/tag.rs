//! Tag expressions: `*`, or tags separated by `||`, such as `TagA || TagB`.
//!
//! RocketMQ filters twice: the broker compares the hash in the consume queue, then the consumer compares the tag itself, since two tags can
//! have the same hash.
//!
//! Source: `FilterAPI.buildSubscriptionData`, `DefaultMessageFilter.isMatchedByConsumeQueue`, `PullAPIWrapper`.
use crate::error::{Error, Result};
use crate::format::java::java_hash;

const ALL: &str = "*";
const SEPARATOR: &str = "||";
/// Maximum number of tags to compare one by one. For more tags a table is faster.
const FEW: usize = 8;

/// A tag expression of a subscription. The default is `*`, which selects all messages.
#[derive(Debug, Clone)]
pub struct TagExpression {
    all: bool,
    tags: Vec<String>,
    codes: Vec<i32>,
    table: CodeTable,
}

impl TagExpression {
    /// Creates the expression `*`, which selects every message, even without a tag.
    pub fn all() -> Self {
        Self { all: true, tags: Vec::new(), codes: Vec::new(), table: CodeTable::All }
    }

    /// Parses an expression. `*` and the empty string select all messages, and `TagA || TagB` selects two tags. Blank tags are dropped as
    /// in RocketMQ, so `" "` is valid and selects no message.
    pub fn parse(text: &str) -> Result<Self> {
        if text.is_empty() || text == ALL {
            return Ok(Self::all());
        }
        // Java's `split` returns no parts in this case, and `buildSubscriptionData` throws an error with this text.
        if text.split(SEPARATOR).all(str::is_empty) {
            let reason = "subString split error: expected a tag beside '||', found none".to_owned();
            return Err(Error::Expression { expression: text.to_owned(), position: 0, reason });
        }
        Ok(Self::of(text.split(SEPARATOR).map(java_trim).filter(|tag| !tag.is_empty())))
    }

    /// Creates an expression that selects exactly `tags`; `*` and blanks have no special meaning here. Without tags, no
    /// message matches.
    pub fn of<'a>(tags: impl IntoIterator<Item = &'a str>) -> Self {
        let tags = sort_dedup(tags.into_iter().map(str::to_owned).collect());
        let codes = sort_dedup(tags.iter().map(|tag| java_hash(tag)).collect());
        let table = CodeTable::of(&codes);
        Self { all: false, tags, codes, table }
    }

    /// Returns whether a tag, read as an expression, selects exactly this tag, also as one of several.
    pub fn is_one_tag(tag: &str) -> bool {
        tag == java_trim(tag) && !matches!(tag, "" | ALL) && !tag.contains('|')
    }

    pub fn is_all(&self) -> bool {
        self.all
    }

    /// Returns the tags, sorted and without duplicates. Empty if all messages match.
    pub fn tags(&self) -> &[String] {
        &self.tags
    }

    /// Returns the hashes of the tags, sorted and without duplicates. Empty if all messages match.
    pub fn codes(&self) -> &[i32] {
        &self.codes
    }

    /// Returns whether a selected tag has the tag hash of a consume-queue entry. If so, the record must still pass
    /// [`Self::matches`], since two tags may have the same hash.
    #[inline]
    pub fn codes_match(&self, tags_code: i64) -> bool {
        // RocketMQ compares `tagsCode.intValue()`, which is the lower half.
        let code = tags_code as i32;
        match &self.table {
            CodeTable::All => true,
            CodeTable::One(only) => *only == code,
            // No early exit, since eight comparisons at once are cheaper than a branch for each.
            CodeTable::Few(codes) => codes.iter().fold(false, |is_hit, own| is_hit | (*own == code)),
            CodeTable::Many(bits) => bits.holds(code) && self.codes.binary_search(&code).is_ok(),
        }
    }

    /// Returns whether a message with the TAGS property `tag` matches. Only `*` matches a message without a tag.
    pub fn matches(&self, tag: Option<&[u8]>) -> bool {
        match tag {
            _ if self.all => true,
            None => false,
            Some(tag) if self.tags.len() <= FEW => self.tags.iter().any(|t| t.as_bytes() == tag),
            Some(tag) => self.tags.binary_search_by(|t| t.as_bytes().cmp(tag)).is_ok(),
        }
    }
}

impl Default for TagExpression {
    fn default() -> Self {
        Self::all()
    }
}

/// A set of hashes. Its form depends on the number of hashes, so that searches are fast.
#[derive(Debug, Clone)]
enum CodeTable {
    All,
    One(i32),
    Few([i32; FEW]),
    Many(CodeBits),
}

impl CodeTable {
    fn of(codes: &[i32]) -> Self {
        match codes {
            [only] => Self::One(*only),
            [first, ..] if codes.len() <= FEW => {
                // Fill up with the first code, since a fixed length lets the compiler compare all eight at once.
                let mut few = [*first; FEW];
                few[..codes.len()].copy_from_slice(codes);
                Self::Few(few)
            }
            // Also without any codes: an empty bitmap matches no message.
            _ => Self::Many(CodeBits::of(codes)),
        }
    }
}

/// A bitmap of the low bits of the hashes. It rejects nearly every hash that is not in the set without a search.
#[derive(Debug, Clone)]
struct CodeBits {
    words: Box<[u64]>,
    mask: u32,
}

impl CodeBits {
    // With 16 bits per code at most one of 16 other codes passes the bitmap.
    const BITS_PER_CODE: usize = 16;
    // 128 KiB, which fits into the processor's cache.
    const MAX_BITS: usize = 1 << 20;

    fn of(codes: &[i32]) -> Self {
        let bits = (codes.len() * Self::BITS_PER_CODE).next_power_of_two().clamp(64, Self::MAX_BITS);
        let mut table = Self { words: vec![0; bits / 64].into(), mask: bits as u32 - 1 };
        for code in codes {
            let (word, bit) = table.place(*code);
            table.words[word] |= bit;
        }
        table
    }

    fn holds(&self, code: i32) -> bool {
        let (word, bit) = self.place(code);
        self.words[word] & bit != 0
    }

    fn place(&self, code: i32) -> (usize, u64) {
        let slot = code as u32 & self.mask;
        ((slot / 64) as usize, 1 << (slot % 64))
    }
}

fn sort_dedup<T: Ord>(mut values: Vec<T>) -> Vec<T> {
    values.sort_unstable();
    values.dedup();
    values
}

/// Trims like Java's `String.trim`: removes characters up to the space, but no other Unicode blanks.
fn java_trim(text: &str) -> &str {
    text.trim_matches(|c| c <= ' ')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> TagExpression {
        TagExpression::parse(text).expect("a legal tag expression")
    }

    #[test]
    fn star_and_empty_take_messages_with_and_without_a_tag() {
        for text in ["*", ""] {
            let all = parse(text);
            assert!(all.is_all() && all.codes_match(0) && all.codes_match(-7));
            assert!(all.matches(None) && all.matches(Some(b"TagA")));
            assert!(all.tags().is_empty() && all.codes().is_empty());
        }
    }

    #[test]
    fn tags_are_trimmed_sorted_and_held_once() {
        let tags = parse(" TagB || TagA||TagB|| ");
        assert_eq!(tags.tags(), ["TagA", "TagB"]);
        assert_eq!(tags.codes(), [2_598_919, 2_598_920]);
        assert!(!tags.is_all());
    }

    #[test]
    fn a_star_among_tags_or_in_blanks_is_a_tag_of_that_name() {
        assert_eq!(parse("* || A").tags(), ["*", "A"]);
        assert!(!parse(" * ").matches(Some(b"A")));
    }

    #[test]
    fn separators_alone_are_an_error_with_the_expression() {
        let error = TagExpression::parse("||||").expect_err("no tag");
        assert!(matches!(error, Error::Expression { expression, position: 0, .. } if expression == "||||"));
    }

    #[test]
    fn blanks_alone_match_no_message() {
        let none = parse(" || ");
        assert!(!none.is_all() && none.tags().is_empty());
        assert!(!none.codes_match(0) && !none.matches(None) && !none.matches(Some(b"")));
    }

    #[test]
    fn a_message_without_tag_matches_no_tag() {
        assert!(!parse("TagA").matches(None));
        assert!(!parse("TagA").codes_match(0));
    }

    #[test]
    fn tags_of_one_hash_pass_the_first_stage_and_not_the_second() {
        // "Aa" and "BB" share Java's hash 2112.
        let tags = parse("Aa");
        assert!(tags.codes_match(2112));
        assert!(tags.matches(Some(b"Aa")) && !tags.matches(Some(b"BB")));
        assert_eq!(parse("Aa || BB").codes(), [2112]);
    }

    #[test]
    fn only_the_low_32_bits_of_a_tags_code_count() {
        assert!(parse("TagA").codes_match(2_598_919 + (1 << 40)));
    }

    proptest! {
        #[test]
        fn every_table_finds_its_own_codes_and_no_other(count in 1_usize..200, probe in any::<i32>()) {
            let names: Vec<String> = (0..count).map(|i| format!("tag-{i}")).collect();
            let tags = TagExpression::of(names.iter().map(String::as_str));
            for name in &names {
                prop_assert!(tags.codes_match(i64::from(java_hash(name))));
                prop_assert!(tags.matches(Some(name.as_bytes())));
            }
            prop_assert_eq!(tags.codes_match(i64::from(probe)), tags.codes().contains(&probe));
        }

        #[test]
        fn any_text_parses_or_fails_without_a_panic(text in "[|* a-c\\PC]{0,40}") {
            let _ = TagExpression::parse(&text);
        }
    }
}
