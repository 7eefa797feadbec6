//! The programs in `examples/` run.

#[test]
fn the_examples_run() {
    rovelog_testing::run_examples(
        env!("CARGO_MANIFEST_DIR"),
        &[("look_vel", &["corpus/vel/all-kinds.vel"], "14 records, complete")],
    );
}
