//! Runs the programs in `examples/`.

#[test]
fn the_examples_run() {
    rovelog_testing::run_examples(
        env!("CARGO_MANIFEST_DIR"),
        &[(
            "look_log",
            &["corpus/ulog/one-topic+multi-id+sync+dropout+texts+appended.ulg"],
            "ULog: 11 records, complete",
        )],
    );
}
