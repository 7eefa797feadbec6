//! The programs in `examples/` run.

#[test]
fn the_examples_run() {
    rovelog_testing::run_examples(
        env!("CARGO_MANIFEST_DIR"),
        &[("look_rld", &["corpus/rld/v4.rld"], "15 records, complete")],
    );
}
