//! Lakes: folders of Parquet files with the content of many logs, in one table for each topic.
//!
//! ```text
//! LAKE/ulog/vehicle_attitude/month=2026-05/<pack>-<columns>.parquet
//! LAKE/ulog/vehicle_attitude/month=2026-05/<pack>.2-<columns>.parquet  the next file of many rows
//! LAKE/_logs/<pack>.parquet             a row for each log
//! LAKE/_text/month=2026-05/...          console lines of all logs
//! LAKE/_events/month=2026-05/...        events of PX4
//! LAKE/_rovelog/                        staging, lock, columns of tables, quarantine
//! ```
//!
//! Logs are added together in packs of about 128 MB. `<pack>` is a hash of the content of the
//! pack's logs. The file of the pack in `_logs` is written last. The other files of the pack belong
//! to the lake only if this file exists.
//!
//! If a program is killed at any time, the next [`ingest`] completes the lake. If it is called
//! again with the same logs, it writes nothing.

mod check;
mod commit;
mod events;
mod grouped;
mod ingest;
mod layout;
mod logs;
mod member;
mod pack;
mod places;
mod rename;
mod tables;
mod work;

pub use check::{Checked, check, clean};
pub use events::{events, line_schema, texts};
pub use ingest::{Ingested, Options, Progress, ingest};
pub use layout::Lake;
pub use logs::{LogRow, Status};
pub use member::{Member, Pack};
pub use pack::{Failure, Packed, write};
pub use places::Split;
pub use work::{Engine, Worker};
