//! The bodies of a task that could not be decoded: an error at the first, or one warning at the end.
use crate::task::Result;
use rmqfast_client::ranges::Warning;
use rmqfast_store::scan::ScanRequest;
use rmqfast_store::scan::decode::BadBodies;

pub struct BadBodyLog {
    bodies: BadBodies,
    fails: bool,
    is_told: bool,
}

impl BadBodyLog {
    pub fn new(request: &ScanRequest) -> Self {
        let fails = request.decode.as_ref().is_some_and(|decode| decode.fails);
        Self { bodies: BadBodies::default(), fails, is_told: false }
    }

    /// Adds the bad bodies of a batch.
    ///
    /// # Errors
    /// There are some, and the read fails at the first.
    pub fn add(&mut self, bodies: BadBodies) -> Result<()> {
        self.bodies.append(bodies);
        match self.bodies.error().filter(|_| self.fails) {
            Some(error) => Err(error.into()),
            None => Ok(()),
        }
    }

    pub fn count(&self) -> u64 {
        self.bodies.count()
    }

    /// Returns the warning of all bad bodies, once.
    pub fn take_warning(&mut self) -> Option<String> {
        let is_due = self.count() > 0 && !self.fails && !self.is_told;
        self.is_told |= is_due;
        is_due.then(|| format!("{}; their value is null", Warning::BadBodies(self.bodies.clone())))
    }
}
