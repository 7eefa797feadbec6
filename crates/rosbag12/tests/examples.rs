//! Runs the example programs in the folder `examples/`.

#[test]
fn the_examples_run() {
    let recovered = concat!(env!("CARGO_TARGET_TMPDIR"), "/example.bag");
    rovelog_testing::run_examples(
        env!("CARGO_MANIFEST_DIR"),
        &[
            ("bag_summary", &["corpus/rosbag/recorded+two-topics.bag"], "4 records, complete"),
            ("bag_records", &["corpus/rosbag/recorded+two-topics.bag", "/a"], "{\"data\":\"a0\"}"),
            ("bag_columns", &["corpus/rosbag/recorded+two-topics.bag", "/a"], "data Utf8: 2 values"),
            ("bag_messages", &["corpus/rosbag/console.bag"], "debug: line 0"),
            (
                "bag_recover",
                &["corpus/rosbag/damaged-data-length.bag", recovered],
                "6 records kept, 205 bytes lost",
            ),
        ],
    );
}
