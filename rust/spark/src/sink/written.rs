//! Counts of sent rows, bytes and requests.
use std::fmt;
use std::iter::Sum;

/// Counts of a task, or of all tasks of a query.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Rows that brokers have stored.
    pub rows: u64,
    /// Bytes of request bodies, including the messages' properties.
    pub bytes: u64,
    pub batches: u64,
    /// Requests that were sent again after a failure. Some of their rows may be stored twice.
    pub retries: u64,
    /// Requests whose flush to disk or copy to a slave was not confirmed in time.
    pub less_safe: u64,
}

impl Written {
    /// Returns the counts, in the order of the fields.
    pub fn counts(&self) -> [u64; 5] {
        [self.rows, self.bytes, self.batches, self.retries, self.less_safe]
    }

    pub fn of_counts([rows, bytes, batches, retries, less_safe]: [u64; 5]) -> Self {
        Self { rows, bytes, batches, retries, less_safe }
    }

    /// Counts a stored request.
    pub fn add(&mut self, rows: usize, bytes: usize, is_safe: bool) {
        self.rows += rows as u64;
        self.bytes += bytes as u64;
        self.batches += 1;
        self.less_safe += u64::from(!is_safe);
    }
}

impl Sum for Written {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        let add = |all: [u64; 5], part: Self| {
            let mut counts = part.counts().into_iter();
            all.map(|count| count + counts.next().unwrap_or_default())
        };
        Self::of_counts(parts.fold([0; 5], add))
    }
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rows, bytes, batches, retries, less_safe } = self;
        write!(f, "{rows} rows, {bytes} bytes in {batches} requests")?;
        if *retries > 0 {
            write!(f, ", {retries} tried again")?;
        }
        if *less_safe > 0 {
            write!(f, ", {less_safe} stored less safely than asked for")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_said_where_there_are_any() {
        let mut written = Written::default();
        written.add(3, 300, true);
        assert_eq!(written.to_string(), "3 rows, 300 bytes in 1 requests");
        written.add(4, 400, false);
        written.retries += 1;
        let more = "1 tried again, 1 stored less safely than asked for";
        assert_eq!(written.to_string(), format!("7 rows, 700 bytes in 2 requests, {more}"));
        assert_eq!(Written::of_counts(written.counts()), written);
        assert_eq!([written, written].into_iter().sum::<Written>().counts(), [14, 1400, 4, 2, 2]);
    }
}
