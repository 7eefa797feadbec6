//! Runs the programs in `examples/`.

#[test]
fn the_examples_run() {
    rovelog_testing::run_examples(
        env!("CARGO_MANIFEST_DIR"),
        &[("to_parquet", &["corpus/vel/all-kinds.vel", env!("CARGO_TARGET_TMPDIR")], "GPSDataM: 2 rows")],
    );
}
