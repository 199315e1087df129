//! What a fault test did, case by case: a line of JSON in the file that `RMQFAST_FIGURES` names, of which `make faults` makes a
//! table.
//!
//! A case has a number, its seed; it fails if it panics, or if a message was lost or is there twice. The others are tried all the
//! same, up to a few failures; `RMQFAST_SEED` runs one alone.
use std::fs::OpenOptions;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

/// Failures after which a test ends.
const ENOUGH: usize = 5;

/// What a case found.
#[derive(Clone, Copy, Debug, Default)]
pub struct Found {
    /// Messages that had been acknowledged and are gone.
    pub lost: u64,
    /// Messages that are there twice, or have the offset of another.
    pub duplicates: u64,
    /// Stores that were not opened, with a reason.
    pub refused: u64,
}

/// The figures of one fault.
pub struct Figures {
    fault: &'static str,
    started: Instant,
    runs: u64,
    sum: Found,
    failed: Vec<u64>,
}

impl Figures {
    /// No case yet.
    pub fn new(fault: &'static str) -> Self {
        Self { fault, started: Instant::now(), runs: 0, sum: Found::default(), failed: Vec::new() }
    }

    /// Runs a case.
    pub fn run(&mut self, seed: u64, case: impl FnOnce() -> Found) {
        self.runs += 1;
        let result = catch_unwind(AssertUnwindSafe(case));
        let Found { lost, duplicates, refused } = result.as_ref().map_or(Found::default(), |result| *result);
        self.sum.lost += lost;
        self.sum.duplicates += duplicates;
        self.sum.refused += refused;
        if result.is_err() || lost + duplicates > 0 {
            println!("{}: seed {seed} fails: {lost} lost, {duplicates} twice", self.fault);
            self.failed.push(seed);
        }
        if self.failed.len() == ENOUGH {
            self.tell();
        }
    }

    /// Tells the figures, and fails if a case did.
    pub fn tell(&self) {
        let thread = std::thread::current();
        let line = serde_json::json!({
            "fault": self.fault, "runs": self.runs, "lost": self.sum.lost, "duplicates": self.sum.duplicates,
            "refused": self.sum.refused, "seconds": self.started.elapsed().as_secs_f64(), "failed": self.failed,
            "test": thread.name(),
        });
        if let Some(path) = std::env::var_os("RMQFAST_FIGURES") {
            let file = OpenOptions::new().create(true).append(true).open(path);
            file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes())).expect("the figures are written");
        }
        assert!(self.failed.is_empty(), "seeds that fail: {:?}; RMQFAST_SEED=n runs one again", self.failed);
    }
}

/// The seeds to try: the one of `RMQFAST_SEED`, or as many as the variable `count` says.
pub fn seeds(count: &str, default: u64) -> Vec<u64> {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    match number("RMQFAST_SEED") {
        Some(seed) => vec![seed],
        None => (0..number(count).unwrap_or(default)).collect(),
    }
}
