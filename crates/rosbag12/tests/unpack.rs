//! Bags that are compressed as a whole: cut, damaged, too large.
#![cfg(feature = "compressed")]

use std::io::Write as _;

use rosbag12::unpack::first_bytes;
use rosbag12::wire::VERSION_LINE;
use rosbag12::{BagError, BagOptions, BagReader, BagStream, LogReader as _, LogStream as _};
use rovelog_core::Bytes;
use rovelog_core::info::State;

/// Returns the compressed bags of the corpus that are whole.
fn compressed() -> impl Iterator<Item = rovelog_testing::Log> {
    let whole = ["compressed-gzip", "compressed-bzip2", "compressed-gzip+header-fields"];
    let logs = rovelog_testing::corpus("rosbag", "bag", 40).into_iter();
    logs.filter(move |log| whole.contains(&&*log.name))
}

/// Records and state of a bag, from a file and from a pipe: both must say the same.
fn read(bytes: &[u8], what: &str) -> Result<(u64, State), BagError> {
    let options = BagOptions::default();
    let file = BagReader::new(Bytes::copy_from_slice(bytes), &options);
    let file = file.map(|bag| (bag.info().records, bag.info().state));
    let pipe = BagStream::new(bytes, &options).and_then(|mut bag| {
        loop {
            match bag.next_record() {
                Ok(Some(_)) => {}
                Ok(None) => return Ok((bag.info().records, bag.info().state)),
                Err(error) => return Err(BagError::Unpack { what: "", why: error.to_string() }),
            }
        }
    });
    match (&file, &pipe) {
        (Ok(file), Ok(pipe)) => assert_eq!(file, pipe, "{what}"),
        _ => assert!(file.is_err() && pipe.is_err(), "{what}: {file:?}, from a pipe {pipe:?}"),
    }
    file
}

#[test]
fn a_compressed_file_that_is_cut_is_never_complete() {
    let mut truncated = 0;
    for log in compressed() {
        let (all, state) = read(&log.bytes, &log.name).unwrap();
        assert_eq!(state, State::Complete);
        for len in 4..log.bytes.len() {
            let what = format!("{} cut at {len}", log.name);
            if let Ok((records, state)) = read(&log.bytes[..len], &what) {
                assert_eq!(state, State::Truncated, "{what}");
                assert!(records <= all, "{what}");
                truncated += 1;
            }
        }
    }
    assert!(truncated > 500, "only {truncated} were read");
}

#[test]
fn a_compressed_file_with_a_wrong_byte_is_complete_only_where_it_does_not_matter() {
    let (mut free, mut found) = (0, 0);
    for log in compressed() {
        let whole = first_bytes(&log.bytes, u64::MAX);
        for at in 4..log.bytes.len() {
            for mask in [1, 0x80, 0xff] {
                let mut bytes = log.bytes.to_vec();
                bytes[at] ^= mask;
                let what = format!("{} byte {at} ^ {mask:#x}", log.name);
                // The time in the header of gzip, for one, says nothing about the data.
                if let Ok((_, State::Complete)) = read(&bytes, &what) {
                    assert!(first_bytes(&bytes, u64::MAX) == whole, "{what}");
                    free += 1;
                } else {
                    found += 1;
                }
            }
        }
    }
    assert!(free < 40 && found > 1000, "{free} bytes do not matter, {found} do");
}

/// What cannot be unpacked is called the same from a pipe as from a file; the limit is one of
/// memory, which a pipe does not need.
#[test]
fn what_cannot_be_unpacked_says_why() {
    for log in compressed() {
        let mut few = BagOptions::default();
        few.read.limits.unpacked = 10;
        let file = BagReader::new(log.bytes.clone(), &few).map(drop);
        assert!(matches!(file, Err(BagError::UnpacksTooLarge { limit: 10, .. })), "{}: {file:?}", log.name);
        assert!(BagStream::new(&log.bytes[..], &few).is_ok());
        let mut noise = log.bytes.to_vec();
        noise[4..].fill(0x55);
        let pipe = BagStream::new(&noise[..], &BagOptions::default()).map(drop);
        assert!(matches!(pipe, Err(BagError::Unpack { .. })), "{}: {pipe:?}", log.name);
    }
}

/// No more than the limit is ever in memory, and what fits is read.
#[test]
fn a_bomb_is_refused_at_the_limit() {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(VERSION_LINE).unwrap();
    for _ in 0..64 {
        packer.write_all(&vec![0; 1 << 20]).unwrap();
    }
    let one = packer.finish().unwrap();
    let many = Bytes::from(one.repeat(80));
    let mut options = BagOptions::default();
    options.read.limits.unpacked = 8 << 20;
    for bomb in [Bytes::from(one.clone()), many] {
        let read = BagReader::new(bomb, &options).map(drop);
        assert!(matches!(read, Err(BagError::UnpacksTooLarge { limit: 0x80_0000, .. })), "{read:?}");
    }
    options.read.limits.unpacked = 65 << 20;
    assert!(BagReader::new(one.into(), &options).is_ok());
}
