//! Cases of bags of V2.0: records in chunks.

pub(super) mod damage;
pub(super) mod index;
mod log;
mod pack;
pub(super) mod recorded;
pub(super) mod records;
pub(super) mod storage;
