//! The properties that a store itself looks at: what it lists a message under.
use super::properties::{DELAY, KEYS, MULTI_DISPATCH, TAGS, UNIQ_KEY, iter};

/// Values by name; of a repeated one the last.
#[derive(Clone, Copy, Debug, Default)]
pub struct Named<'a> {
    pub tags: Option<&'a [u8]>,
    pub keys: Option<&'a [u8]>,
    pub uniq_key: Option<&'a [u8]>,
    /// The delay level as text.
    pub delay: Option<&'a [u8]>,
    /// The names of further queues.
    pub multi_dispatch: Option<&'a [u8]>,
}

impl<'a> Named<'a> {
    /// Those of a property string.
    #[inline]
    pub fn of(properties: &'a [u8]) -> Self {
        let mut named = Self::default();
        iter(properties).for_each(|(name, value)| named.note(name, value));
        named
    }

    /// Notes a property, if it is one of these.
    #[inline]
    pub fn note(&mut self, name: &[u8], value: &'a [u8]) {
        match name {
            _ if name == KEYS.as_bytes() => self.keys = Some(value),
            _ if name == TAGS.as_bytes() => self.tags = Some(value),
            _ if name == UNIQ_KEY.as_bytes() => self.uniq_key = Some(value),
            _ if name == DELAY.as_bytes() => self.delay = Some(value),
            _ if name == MULTI_DISPATCH.as_bytes() => self.multi_dispatch = Some(value),
            _ => {}
        }
    }

    /// What the index lists the message under: its id, then its keys, which spaces separate.
    ///
    /// Source: `IndexService.buildIndex`.
    #[inline]
    pub fn index_keys(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let keys = self.keys.into_iter().flat_map(|keys| keys.split(|b| *b == b' '));
        self.uniq_key.into_iter().chain(keys.filter(|key| !key.is_empty()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_comes_before_the_keys_and_the_last_of_a_name_counts() {
        let named = Named::of(b"KEYS\x01old\x02UNIQ_KEY\x01U\x02KEYS\x01k1  k2 \x02TAGS\x01A\x02b\x011");
        assert_eq!(named.index_keys().collect::<Vec<_>>(), [&b"U"[..], b"k1", b"k2"]);
        assert_eq!((named.tags, named.delay, named.multi_dispatch), (Some(&b"A"[..]), None, None));
        assert_eq!(Named::of(b"").index_keys().count(), 0);
    }
}
