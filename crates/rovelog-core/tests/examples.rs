//! The programs in `examples/` run.

#[test]
fn the_examples_run() {
    rovelog_testing::run_examples(env!("CARGO_MANIFEST_DIR"), &[("toy_format", &[], "28 bytes kept of 28")]);
}
