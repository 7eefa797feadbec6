//! Modules for the crates of this workspace. They may change in any release.

#[cfg(feature = "arrow")]
pub mod buffer;
pub mod cancel;
#[cfg(feature = "arrow")]
pub mod columns;
pub mod edit;
pub mod index;
pub mod layout;
pub mod limits;
pub mod media;
pub mod memory;
pub mod names;
pub mod order;
pub mod output;
pub mod packed;
pub mod parallel;
pub mod partial;
pub mod ranges;
pub mod scan;
pub mod splice;
pub mod structure;
pub mod text;
pub mod topic;
pub mod usage;
pub mod wire;
