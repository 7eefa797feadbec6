//! Every byte of every log is in a region, and every byte of a region is in a field. Real logs are
//! in the folder `ROVELOG_REAL`, or in `../shared/real` next to the checkout.

use rovelog::core::{Around, FieldPlace, Region, Structure};
use rovelog::{AnyLog, ReadOptions};
use rovelog_testing::{Log, Logs, RLD, ROSBAG, ULOG, VEL, logs_in, real};

/// Number of offsets that are checked in each log.
const OFFSETS: u64 = 40;

fn all_logs() -> Vec<Log> {
    let mut logs: Vec<_> = [ULOG, RLD, ROSBAG, VEL].iter().flat_map(Logs::all).collect();
    logs.extend(real("rosbag20").iter().flat_map(|folder| logs_in(folder, "bag")));
    logs
}

fn assert_adjacent<'a>(name: &str, regions: impl Iterator<Item = &'a Region>) {
    let mut end = None;
    for region in regions {
        assert!(end.is_none_or(|end| end == region.range.start), "{name}: {region:?}");
        end = Some(region.range.end);
    }
}

/// Fields that no other field contains must fill the region, and each field must be inside the
/// field that contains it.
fn assert_complete(name: &str, region: &Region, fields: &[FieldPlace]) {
    let mut outer: Vec<&FieldPlace> = Vec::new();
    let mut end = region.range.start;
    for field in fields {
        outer.truncate(field.depth);
        assert_eq!(outer.len(), field.depth, "{name}: {field:?} is not in a structure");
        let within = outer.last().map_or(&region.range, |outer| &outer.range);
        assert!(within.start <= field.range.start && field.range.end <= within.end, "{name}: {field:?}");
        if field.depth == 0 && region.is_readable() {
            assert_eq!(field.range.start, end, "{name}: {field:?}");
            end = field.range.end;
        }
        outer.push(field);
    }
    assert!(!region.is_readable() || end == region.range.end, "{name}: {region:?} ends at {end}");
}

fn check(name: &str, log: &AnyLog, at: u64) {
    let name = format!("{name} at {at}");
    let found: Structure = log.structure_at(Around { at, context: 3 });
    let Structure { before, region, after, fields, .. } = &found;
    assert!(region.range.contains(&at), "{name}: {region:?}");
    assert!(before.len() <= 3 && after.len() <= 3, "{name}");
    assert_adjacent(&name, before.iter().chain([region]).chain(after));
    let is_text = region.kind.contains("line") || region.kind.contains("bytes after");
    if !is_text {
        assert_complete(&name, region, fields);
    }
    assert!(found.field_at(at).is_some(), "{name}: {region:?} {fields:#?}");
    if !region.is_readable() {
        let mut problems = log.diagnostics().list().iter().map(|problem| &problem.range);
        let is_named = problems.any(|range| range.start <= at && at < range.end.max(range.start + 1));
        assert!(is_named, "{name}: {region:?} has no diagnostic");
    }
}

#[test]
fn every_byte_is_in_a_field_or_in_a_damaged_region() {
    let (mut opened, mut damaged) = (0, 0);
    for log in all_logs() {
        let mut options = ReadOptions::default();
        options.read_all = true;
        let Ok(opened_log) = rovelog::from_bytes(log.bytes.clone(), &options) else { continue };
        opened += 1;
        damaged += u64::from(!opened_log.info().lost.is_empty());
        let size = opened_log.info().size;
        let name = log.path.display().to_string();
        let step = (size / OFFSETS).max(1);
        (0..size).step_by(usize::try_from(step).unwrap()).chain([size - 1]).for_each(|at| {
            check(&name, &opened_log, at);
        });
        let beyond = opened_log.structure_at(Around { at: u64::MAX, context: 1 });
        assert_eq!((beyond.region.range, beyond.fields.len()), (size..size, 0), "{name}");
    }
    assert!(opened > 480 && damaged > 100, "{opened} logs, {damaged} of them damaged");
}
