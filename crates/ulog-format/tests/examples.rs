//! Tests that the programs in `examples/` run.

#[test]
fn the_examples_run() {
    let recovered = concat!(env!("CARGO_TARGET_TMPDIR"), "/example.ulg");
    rovelog_testing::run_examples(
        env!("CARGO_MANIFEST_DIR"),
        &[
            ("ulog_summary", &["corpus/ulog/default-parameters.ulg"], "5 records, complete"),
            (
                "ulog_records",
                &["corpus/ulog/one-topic+multi-id+sync+dropout+texts+appended.ulg", "t"],
                "{\"timestamp\":\"1000000\",\"x\":0.0}",
            ),
            (
                "ulog_columns",
                &["corpus/ulog/one-topic+multi-id+sync+dropout+texts+appended.ulg", "t"],
                "x Float32: 5 values",
            ),
            (
                "ulog_messages",
                &["corpus/ulog/one-topic+multi-id+sync+dropout+texts+appended.ulg"],
                "warning: from seven",
            ),
            (
                "ulog_recover",
                &["corpus/ulog/damaged+garbage.ulg", recovered],
                "10 records kept, 17 bytes lost",
            ),
        ],
    );
}
