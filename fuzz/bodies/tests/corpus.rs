//! Runs the functions of all fuzz targets on all test logs and on parts of these logs. So the fuzz
//! targets keep working, and bugs that they have found do not return.

use std::path::Path;

#[test]
fn every_body_returns_for_every_corpus_log() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus");
    let mut logs = 0;
    let folders = |folder: &Path| std::fs::read_dir(folder).expect("the corpus is part of the repository");
    for folder in folders(&corpus).map(|entry| entry.expect("a readable folder").path()) {
        if !folder.is_dir() || folder.ends_with("expected") || folder.ends_with("generator") {
            continue;
        }
        for entry in folders(&folder) {
            let bytes = std::fs::read(entry.expect("a readable folder").path()).expect("a readable file");
            logs += 1;
            for (_, body) in fuzz_bodies::ALL {
                body(&bytes);
                body(&bytes[..bytes.len() * 2 / 3]);
                body(&bytes[bytes.len() / 3..]);
            }
        }
    }
    assert!(logs >= 100, "only {logs} logs");
}
