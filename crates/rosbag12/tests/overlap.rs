//! Chunks that all overlap in time come in time order, and memory stays bounded.

use std::sync::Mutex;

use peak_alloc::PeakAlloc;
use rosbag12::v2::wire::ConnectionHeader;
use rosbag12::v2::{self, Compression};
use rosbag12::{BagError, BagOptions, BagReader};
use rovelog_core::{LogReader, Select};

#[global_allocator]
static PEAK: PeakAlloc = PeakAlloc;

/// Memory is counted for the whole process, so one test runs at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// A chunk is closed at 768 KiB.
const CHUNKS: u32 = 64;
const CHUNK: usize = 768 << 10;

/// Writes a bag whose chunk `c` has the messages at `c`, `c + CHUNKS`, `c + 2 * CHUNKS` ... seconds,
/// each of so many bytes.
fn interleaved(compression: Compression, bytes: usize) -> Vec<u8> {
    let each = u32::try_from(CHUNK / bytes).unwrap();
    let mut bag = Vec::new();
    let written = v2::write(&mut bag, compression, |writer| {
        let header = ConnectionHeader {
            topic: Some(b"/t"),
            ty: Some(b"std_msgs/String"),
            md5sum: Some(b"992ce8a1687cec8c8bd883ec73ca41d1"),
            message_definition: Some(b"string data\n"),
            ..ConnectionHeader::default()
        };
        let id = writer.connect(b"/t", &header.to_data()).unwrap();
        for number in 0..CHUNKS * each {
            let sec = number % each * CHUNKS + number / each;
            let mut payload = vec![0; bytes];
            payload[..4].copy_from_slice(&sec.to_le_bytes());
            assert!(writer.message(id, (sec, 0), &payload).unwrap());
        }
        Ok::<_, BagError>(())
    });
    assert_eq!(written.unwrap().1, bag.len() as u64);
    bag
}

/// Reads such a bag; at most so many bytes of memory are allowed.
fn check(compression: Compression, bytes: usize, most: usize) {
    let _alone = ALONE.lock();
    let bag = interleaved(compression, bytes);
    let mut options = BagOptions::default();
    options.read.limits.unpacked = 64 << 20;
    let bag = BagReader::new(bag.into(), &options).unwrap();
    let all = CHUNKS as usize * (CHUNK / bytes);
    assert_eq!(bag.info().records, all as u64);
    let before = PEAK.current_usage();
    PEAK.reset_peak_usage();
    for (number, record) in bag.records(&Select::all()).enumerate() {
        let record = record.unwrap();
        let sec = u32::try_from(number).unwrap();
        assert_eq!(record.time.unwrap().nanos, i64::from(sec) * 1_000_000_000);
        assert_eq!((record.payload.len(), &record.payload[..4]), (bytes, &sec.to_le_bytes()[..]));
    }
    let held = PEAK.peak_usage() - before;
    assert!(held < most, "{held} bytes");
    let one = Select::all().between(Some(70 * 1_000_000_000), Some(75 * 1_000_000_000));
    assert_eq!(bag.records(&one).count(), 5);
}

#[test]
fn compressed_chunks_that_overlap_are_held_in_part() {
    // All of it is 48 MiB; an eighth of the limit is 8 MiB, and buffers are used again.
    check(Compression::Lz4, 4 << 10, 20 << 20);
}

#[test]
fn chunks_of_the_file_are_not_copied() {
    check(Compression::None, 4 << 10, 20 << 20);
}

/// One message of each chunk is held in any case, here more than the limit.
#[test]
fn chunks_of_few_large_messages_are_held_in_part() {
    check(Compression::Lz4, 384 << 10, 40 << 20);
}
