//! All programs in `examples/` must run without errors.

#[test]
fn the_examples_run() {
    rovelog_testing::run_examples(
        env!("CARGO_MANIFEST_DIR"),
        &[("many_logs", &["corpus/vel/all-kinds.vel", "GPSDataM"], "split 0: 2 rows")],
    );
}
