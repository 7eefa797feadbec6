//! Finds data that the logger could not write.

use rovelog::core::internal::text::count;
use rovelog::ulog_format::{Dropout, UlogReader};

use super::SECOND;
use crate::findings::{Evidence, Finding, Kind, Severity, seconds};

/// Total duration of all dropouts in nanoseconds above which their finding has the severity medium.
const LONG_DROPOUTS: i64 = SECOND;

/// Maximum time in nanoseconds between a dropout and a failure. The missing data may include the
/// cause of the failure.
const NEAR_FAILURE: i64 = SECOND;

/// Adds a finding for all dropouts of the logger. In addition, adds a finding for each failure (a
/// finding of high severity) with a dropout near it.
pub(super) fn dropouts(log: &UlogReader, found: &mut Vec<Finding>) {
    let dropouts = log.dropouts();
    let timed: Vec<_> = dropouts.iter().filter_map(|dropout| Some((dropout, dropout.span()?))).collect();
    let evidence = |dropout: &Dropout, time: i64| {
        // A dropout message has 5 bytes: the length (2), the type (1) and the duration (2).
        Evidence::bytes("dropout", Some(time), dropout.offset..dropout.offset + 5)
    };
    let failures = found.iter().filter(|finding| finding.severity == Severity::High);
    let failures: Vec<_> = failures.map(|finding| (finding.start..finding.end, finding.kind.id())).collect();
    for (failure, id) in failures {
        let near = timed.iter().find(|(_, span)| {
            span.start <= failure.end.saturating_add(NEAR_FAILURE)
                && failure.start.saturating_sub(NEAR_FAILURE) <= span.end
        });
        if let Some((dropout, span)) = near {
            let length = seconds(span.end - span.start);
            let sentence = format!("The logger lost {length} of data at the time of the finding {id}.");
            found.push(Finding::new(
                Kind::Dropout,
                Severity::Medium,
                span.clone(),
                sentence,
                vec![evidence(dropout, span.start)],
            ));
        }
    }
    let total: i64 = timed.iter().map(|(_, span)| span.end - span.start).sum();
    let longest = timed.iter().max_by_key(|(_, span)| span.end - span.start);
    if let (Some((first, last)), Some((dropout, span))) = (timed.first().zip(timed.last()), longest) {
        let severity = if total > LONG_DROPOUTS { Severity::Medium } else { Severity::Low };
        let sentence = format!(
            "The logger missed data in {}: {} in total, the longest {}.",
            count(timed.len(), "dropout"),
            seconds(total),
            seconds(span.end - span.start)
        );
        let range = first.1.start..last.1.end;
        let evidence = vec![evidence(dropout, span.start)];
        found.push(Finding::new(Kind::Dropout, severity, range, sentence, evidence));
    }
}
