//! Logs that stay open while a query reads them several times.

use std::sync::{Arc, Mutex};

use rovelog::AnyLog;
use rovelog::core::internal::parallel::lock;

use crate::{LogFile, ScaleError};

/// Cache of open logs, so that the workers of a process need not open the same log again. If two
/// workers open a log at the same time, both open it. Clones share the cache.
#[derive(Clone, Default)]
pub struct OpenLogs {
    /// Maximum number of logs that stay open. An open log needs memory for its index.
    limit: usize,
    logs: Arc<Mutex<Vec<OpenLog>>>,
}

/// A log that stays open, and its file.
type OpenLog = (LogFile, Arc<AnyLog>);

impl OpenLogs {
    /// Creates a cache for at most `limit` logs. Once it is full, other logs are not kept. The default
    /// keeps no log.
    pub fn new(limit: usize) -> Self {
        Self { limit, ..Self::default() }
    }

    /// Opens a log, or returns the log if it is open already.
    ///
    /// # Errors
    /// Returns an error if the file has changed since it was found, or cannot be read as a log.
    pub fn open(&self, file: &LogFile) -> Result<Arc<AnyLog>, ScaleError> {
        let logs = || lock(&self.logs);
        if let Some((_, log)) = logs().iter().find(|(known, _)| known == file) {
            file.verify()?;
            return Ok(Arc::clone(log));
        }
        // Other workers can open other logs at the same time.
        let log = Arc::new(file.open()?);
        let mut logs = logs();
        if logs.len() < self.limit {
            logs.push((file.clone(), Arc::clone(&log)));
        }
        Ok(log)
    }
}
