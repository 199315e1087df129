//! Waits that can be ended, as by Ctrl-C.
use crate::error::Result;
use std::time::Duration;

/// How long whoever waits does not look whether to go on.
pub(crate) const SLICE: Duration = Duration::from_millis(100);

/// Asked now and then by whoever waits; an error ends the wait.
pub type Interrupt<'a> = &'a mut dyn FnMut() -> Result<()>;

/// Never ends a wait.
///
/// # Errors
/// None.
pub fn never() -> Result<()> {
    Ok(())
}
