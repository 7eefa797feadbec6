//! Runs the programs in `examples/`.

#[test]
fn the_examples_run() {
    rovelog_testing::run_examples(
        env!("CARGO_MANIFEST_DIR"),
        &[("check_all", &["corpus/rld/v4.rld", "corpus/ulog/cut-in-payload.ulg"], "1 of 2 logs are sound")],
    );
}
