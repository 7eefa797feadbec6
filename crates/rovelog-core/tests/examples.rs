//! Runs the programs in `examples/`.

#[test]
fn the_examples_run() {
    let line = "20 bytes kept of 27; 2 records from 1 s on, with the last before";
    rovelog_testing::run_examples(env!("CARGO_MANIFEST_DIR"), &[("toy_format", &[], line)]);
}
