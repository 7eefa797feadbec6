//! Tests the crate feature `compressed`. Without this feature, a bag with compressed chunks is
//! rejected with an error that names the feature. `cargo xtask test` runs this file with the
//! feature and without it.

mod support;

use rosbag12::{BagOptions, BagReader, BagStream, LogReader, LogStream};
use rovelog_core::Bytes;
#[cfg(not(feature = "compressed"))]
use rovelog_core::ErrorKind;
use support::LOGS;

/// Returns the bag of the corpus with this name.
fn bag(name: &str) -> Bytes {
    LOGS.all().into_iter().find(|log| log.name == name).expect("a bag of the corpus").bytes
}

/// Bags that have one compressed chunk each, with the name of the compression.
const COMPRESSED: [(&str, &str); 2] = [("v2.0+lz4", "lz4"), ("v2.0+bz2", "bz2")];

/// Opens a bag in three ways: by scanning the file, by the index, and as a stream. Returns the
/// number of records that each way returns.
fn records(bytes: &Bytes) -> [rovelog_core::Result<u64>; 3] {
    let (mut all, mut by_index) = (BagOptions::default(), BagOptions::default());
    all.read.read_all = true;
    by_index.indexed_from = 0;
    let opened = |options| Ok(BagReader::new(bytes.clone(), options)?.info().records);
    let streamed = || {
        let mut stream = BagStream::new(&bytes[..], &BagOptions::default())?;
        while stream.next_record()?.is_some() {}
        Ok(stream.info().records)
    };
    [opened(&all), opened(&by_index), streamed()]
}

#[test]
#[cfg(feature = "compressed")]
fn compressed_chunks_are_read() {
    for (name, _) in COMPRESSED {
        for records in records(&bag(name)) {
            assert!(records.unwrap() > 0, "{name}");
        }
    }
}

#[test]
#[cfg(not(feature = "compressed"))]
fn without_the_feature_a_compressed_bag_is_rejected() {
    for (name, compression) in COMPRESSED {
        for error in records(&bag(name)).map(Result::unwrap_err) {
            assert_eq!(error.kind, ErrorKind::Unsupported, "{name}");
            let what = error.to_string();
            assert!(what.contains(&format!("compressed with {compression}")), "{what}");
            assert!(error.next.is_some_and(|next| next.contains("`compressed`")), "{name}");
        }
    }
}
