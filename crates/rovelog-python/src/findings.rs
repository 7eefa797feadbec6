//! Findings of logs, which Python code gets from `log.findings`.

use pyo3::prelude::*;
use rovelog_export::findings::findings;

use crate::errors::from_export;
use crate::reader::Reader;

/// A finding: kind, severity, start, end, sentence and evidence.
type FindingRow = (&'static str, &'static str, i64, i64, String, Vec<EvidenceRow>);

/// Evidence of a finding: signal, time, value, limit and byte range.
type EvidenceRow = (String, Option<i64>, Option<f64>, Option<f64>, Option<(u64, u64)>);

/// Returns the findings of a log, sorted by their start. Times are in nanoseconds of the log's
/// clock.
#[pyfunction]
pub(crate) fn log_findings(py: Python<'_>, reader: &Reader) -> PyResult<Vec<FindingRow>> {
    let log = reader.whole_log(py)?;
    let found = reader.run(py, || findings(log).map_err(from_export(log.format().id)))?;
    let row = |finding: rovelog_export::findings::Finding| {
        let evidence = finding.evidence.into_iter().map(|evidence| {
            let bytes = evidence.bytes.map(|bytes| (bytes.start, bytes.end));
            (evidence.signal, evidence.time, evidence.value, evidence.limit, bytes)
        });
        let (kind, severity) = (finding.kind.id(), finding.severity.name());
        (kind, severity, finding.start, finding.end, finding.sentence, evidence.collect())
    };
    Ok(found.into_iter().map(row).collect())
}
