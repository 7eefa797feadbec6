//! Tests that chunks whose time spans overlap are read in time order and in bounded memory.

use std::sync::Mutex;

use peak_alloc::PeakAlloc;
use rosbag12::v2::wire::ConnectionHeader;
use rosbag12::v2::{self, Compression};
use rosbag12::{BagError, BagOptions, BagReader};
use rovelog_core::{LogReader, Select};

#[global_allocator]
static PEAK: PeakAlloc = PeakAlloc;

/// Memory is measured for the whole process, so only one test may run at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// Number of chunks in the bag. The writer closes each chunk at 768 KiB.
const CHUNKS: u32 = 64;
const CHUNK: usize = 768 << 10;

/// Writes a bag in which chunk `c` has messages at `c`, `c + CHUNKS`, `c + 2 * CHUNKS`, ...
/// seconds, so that the time spans of all chunks overlap. Each message has `bytes` bytes.
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

/// Reads a bag whose chunks all overlap, and checks that at most `limit` bytes of memory are
/// allocated.
fn check(compression: Compression, bytes: usize, limit: usize) {
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
    assert!(held < limit, "{held} bytes");
    let one = Select::all().between(Some(70 * 1_000_000_000), Some(75 * 1_000_000_000));
    assert_eq!(bag.records(&one).count(), 5);
}

#[test]
fn overlapping_compressed_chunks_are_kept_in_part() {
    // The decompressed bag has 48 MiB. Chunks in memory may use 8 MiB, which is an eighth of the
    // decompression limit, and their buffers are reused.
    check(Compression::Lz4, 4 << 10, 20 << 20);
}

#[test]
fn uncompressed_chunks_are_not_copied() {
    check(Compression::None, 4 << 10, 20 << 20);
}

/// At least one message of each chunk is kept in memory. These messages alone exceed the memory
/// limit here.
#[test]
fn chunks_with_few_large_messages_are_kept_in_part() {
    check(Compression::Lz4, 384 << 10, 40 << 20);
}
