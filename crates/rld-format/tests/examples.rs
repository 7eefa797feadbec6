//! All programs in `examples/` must run without errors.

#[test]
fn the_examples_run() {
    let recovered = concat!(env!("CARGO_TARGET_TMPDIR"), "/example.rld");
    rovelog_testing::run_examples(
        env!("CARGO_MANIFEST_DIR"),
        &[
            ("rld_summary", &["corpus/rld/v4.rld"], "15 records, complete"),
            ("rld_records", &["corpus/rld/analog-only.rld", "samples"], "{\"V1\":0.00001}"),
            ("rld_columns", &["corpus/rld/v4.rld", "samples"], "V1 Float64: 15 values"),
            ("rld_messages", &["corpus/rld/comment-utf8.rld"], "info: 5 °C x"),
            ("rld_recover", &["corpus/rld/byte-lost.rld", recovered], "20 records kept, 131 bytes lost"),
        ],
    );
}
