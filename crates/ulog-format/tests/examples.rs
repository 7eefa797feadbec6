//! The programs in `examples/` run.

#[test]
fn the_examples_run() {
    rovelog_testing::run_examples(
        env!("CARGO_MANIFEST_DIR"),
        &[("look_ulog", &["corpus/ulog/default-parameters.ulg"], "5 records, complete")],
    );
}
