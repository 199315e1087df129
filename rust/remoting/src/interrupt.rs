//! Waits that can be ended, as by Ctrl-C.
use crate::error::Result;
use std::time::Duration;

/// Time between two checks of an interrupt.
pub(crate) const SLICE: Duration = Duration::from_millis(100);

/// Checked now and then during a wait; an error ends the wait.
pub type Interrupt<'a> = &'a (dyn Fn() -> Result<()> + Sync);

/// Never ends a wait.
///
/// # Errors
/// None.
pub fn never() -> Result<()> {
    Ok(())
}
