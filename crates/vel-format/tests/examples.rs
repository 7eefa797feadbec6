//! All programs in `examples/` must run without errors.

#[test]
fn the_examples_run() {
    let recovered = concat!(env!("CARGO_TARGET_TMPDIR"), "/example.vel");
    rovelog_testing::run_examples(
        env!("CARGO_MANIFEST_DIR"),
        &[
            ("vel_summary", &["corpus/vel/all-kinds.vel"], "14 records, complete"),
            (
                "vel_records",
                &["corpus/vel/all-kinds.vel", "RobotPoseM"],
                "{\"quaternion\":[1.0,0.0,0.0,0.0],\"acceleration\":[0.0,0.0,9.81]}",
            ),
            ("vel_columns", &["corpus/vel/all-kinds.vel", "OBDDataM"], "version Int32: 2 values"),
            ("vel_images", &["corpus/vel/images-of-three-sources.vel"], "0 ns: 8 x 8, 141 bytes"),
            ("vel_recover", &["corpus/vel/damaged+garbage.vel", recovered], "8 records kept, 77 bytes lost"),
        ],
    );
}
