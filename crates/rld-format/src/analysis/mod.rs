//! Analysis of power logs: currents of two ranges merged into one, statistics, charge and energy.
//! They cover the whole log, windows, events, or the states of digital channels. Summaries in
//! levels serve plots of any size.
//!
//! All sums are exact integers, so every method gives the same digits. Each method takes one pass
//! and bounded memory.

mod accumulate;
mod currents;
mod events;
mod levels;
mod stats;
mod windows;

pub use accumulate::{Accumulator, PowerTerm, StatsOptions};
#[cfg(feature = "arrow")]
pub(crate) use currents::Merger;
pub use currents::{Current, MARGIN_SETTLED, Source, currents};
pub use events::{Event, Events, StateRun, StateRuns, Threshold};
pub use levels::Levels;
pub use stats::{Stats, Sums};
pub use windows::{Phase, Window, Windows};
