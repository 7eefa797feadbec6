//! The programs in `examples/` run.

#[test]
fn the_examples_run() {
    rovelog_testing::run_examples(
        env!("CARGO_MANIFEST_DIR"),
        &[("look_bag", &["corpus/rosbag/recorded+two-topics.bag"], "4 records, complete")],
    );
}
