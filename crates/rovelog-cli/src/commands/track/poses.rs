//! Reads the poses of a log, and writes them as a trajectory file.

use std::path::Path;

use rovelog::AnyLog;
use rovelog_export::track::TrackOptions;
use rovelog_export::trajectory::{self, Format, Trajectory};

use super::{Args, no_fix_failure, skipped_rows};
use crate::context::Context;
use crate::failure::Failure;
use crate::outfile::OutFile;
use crate::text::count;
use crate::times::Times;

/// Reads the poses of a log. Their times are converted to the time base that the user selected.
pub(super) fn read(
    log: &AnyLog,
    args: &Args,
    options: &TrackOptions,
    times: &Times,
) -> Result<Trajectory, Failure> {
    let mut trajectory = match &args.tf[..] {
        [parent, child] => trajectory::between_frames(log, [parent, child], options)?,
        _ => trajectory::of(log, options)?,
    };
    let before = trajectory.poses.len();
    trajectory.poses.retain_mut(|timed| {
        let nanos = times.in_base(timed.nanos);
        timed.nanos = nanos.unwrap_or_default();
        nanos.is_some()
    });
    trajectory.tally.untimed += (before - trajectory.poses.len()) as u64;
    if trajectory.poses.is_empty() {
        let failure = no_fix_failure("trajectory", &trajectory.tally, args);
        let has_transforms =
            log.topics().iter().any(|topic| topic.type_name.to_lowercase().ends_with("/tfmessage"));
        return Err(if has_transforms && args.tf.is_empty() {
            failure.next("name two frames of the transforms, such as --tf map base_link")
        } else {
            failure
        });
    }
    Ok(trajectory)
}

/// Writes a trajectory to a file, or to stdout if `file` is `None`.
pub(super) fn write(
    trajectory: &Trajectory,
    format: Format,
    file: Option<(OutFile, &Path)>,
    context: &Context,
) -> Result<(), Failure> {
    if let Some((mut out, path)) = file {
        trajectory::write(trajectory, format, &mut out)?;
        out.finish()?;
        let (path, poses) = (path.display(), count(trajectory.poses.len() as u64, "pose"));
        context.note(&format!("wrote {path}: {poses} of {}", trajectory.source));
    } else {
        trajectory::write(trajectory, format, &mut context.out())?;
    }
    let skipped = skipped_rows(&trajectory.tally);
    if !skipped.is_empty() {
        context.note(&format!("left out: {skipped}"));
    }
    trajectory.notes.iter().for_each(|note| context.note(note));
    Ok(())
}
