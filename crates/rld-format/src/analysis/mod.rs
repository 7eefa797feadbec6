//! Analysis of power logs. The two ranges of a current are merged, and statistics, charge and
//! energy are computed. They can cover the whole log, time windows, events, or ranges in which
//! digital channels do not change. Summaries at several levels of detail serve plots of any size.
//!
//! All sums are exact integers, so every method gives the same digits. Each method takes one pass
//! and bounded memory.

mod accumulate;
mod currents;
mod dispatch;
mod events;
mod group;
mod levels;
mod stats;
mod windows;

pub use accumulate::{Accumulator, PowerTerm, StatsOptions};
#[cfg(feature = "arrow")]
pub(crate) use currents::Merger;
pub use currents::{Current, MARGIN_SETTLED, Source, currents};
pub use events::{Events, StateRun, StateRuns, Threshold};
pub use levels::Levels;
pub use stats::{Stats, Sums};
pub use windows::{Phase, Window, Windows};
