//! The programs in `examples/` run.

#[test]
fn the_examples_run() {
    rovelog_testing::run_examples(env!("CARGO_MANIFEST_DIR"), &[("toy_format", &[], "20 bytes kept of 27")]);
}
