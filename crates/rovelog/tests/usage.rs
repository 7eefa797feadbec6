//! The sizes of all kinds of content must add up to the size of the log.

use rovelog::{State, Usage};
use rovelog_testing::{Log, Logs, RLD, ROSBAG, ULOG, VEL};

#[test]
fn every_byte_belongs_to_a_category() {
    let mut complete = 0;
    for Log { path, .. } in [ULOG, RLD, ROSBAG, VEL].iter().flat_map(Logs::all) {
        let Ok(log) = rovelog::open(&path) else { continue };
        let (info, usage) = (log.info(), log.usage());
        let bytes: u64 = usage.iter().map(|usage| usage.bytes).sum();
        // For a compressed bag, the sizes add up to the size of its decompressed content.
        assert_eq!(bytes, info.size, "{}", path.display());
        let records = usage.iter().filter(|usage| usage.topic.is_some() && usage.kind != "block times");
        assert_eq!(records.map(|usage| usage.count).sum::<u64>(), info.records, "{}", path.display());
        if info.state == State::Complete && info.lost.losses == 0 {
            assert!(
                usage.iter().all(|usage| usage.kind != Usage::UNREADABLE),
                "{}: {usage:?}",
                path.display()
            );
            complete += 1;
        }
    }
    assert!(complete > 150, "only {complete} complete logs");
}

#[test]
fn lost_bytes_of_damaged_chunks_are_not_readable() {
    for name in ["bz2-damaged", "bz2-streams+damaged", "cut-in-lz4", "damaged-bytes-in-a-chunk"] {
        let log = rovelog::open(ROSBAG.case(&format!("v2.0+{name}")).path).unwrap();
        let usage = log.usage();
        let unreadable = usage.iter().filter(|usage| usage.kind == Usage::UNREADABLE);
        assert_eq!(unreadable.map(|usage| usage.bytes).sum::<u64>(), log.info().lost.bytes, "{name}");
    }
}
