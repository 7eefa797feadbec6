//! The feature `compressed`: with it, compressed chunks are read; without it, a bag that has them is
//! refused with the feature's name. `cargo xtask test` runs this file for both.

mod support;

use rosbag12::{BagOptions, BagReader, BagStream, LogReader, LogStream};
use rovelog_core::Bytes;
#[cfg(not(feature = "compressed"))]
use rovelog_core::ErrorKind;
use support::LOGS;

/// Returns a bag of the corpus.
fn bag(name: &str) -> Bytes {
    LOGS.all().into_iter().find(|log| log.name == name).expect("a bag of the corpus").bytes
}

/// Bags of one chunk each, compressed with lz4 and bz2.
const COMPRESSED: [(&str, &str); 2] = [("v2.0+lz4", "lz4"), ("v2.0+bz2", "bz2")];

/// Opens a bag as a file, by its index, and as a pipe. Returns the number of records of each.
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
fn a_bag_with_compressed_chunks_is_refused_with_the_name_of_the_feature() {
    for (name, compression) in COMPRESSED {
        for error in records(&bag(name)).map(Result::unwrap_err) {
            assert_eq!(error.kind, ErrorKind::Unsupported, "{name}");
            let what = error.to_string();
            assert!(what.contains(&format!("compressed with {compression}")), "{what}");
            assert!(error.next.is_some_and(|next| next.contains("`compressed`")), "{name}");
        }
    }
}
