//! Chunks that all overlap in time come in time order, and memory stays bounded.

use peak_alloc::PeakAlloc;
use rosbag12::v2::wire::ConnectionHeader;
use rosbag12::v2::{Compression, Totals, Writer};
use rosbag12::{BagOptions, BagReader};
use rovelog_core::{LogReader, Select};

#[global_allocator]
static PEAK: PeakAlloc = PeakAlloc;

/// Chunks, messages of each, bytes of each message: a chunk is closed at 768 KiB.
const CHUNKS: u32 = 64;
const EACH: u32 = 192;
const BYTES: usize = 4096;

/// Writes a bag whose chunk `c` has the messages at `c`, `c + CHUNKS`, `c + 2 * CHUNKS` ... seconds.
fn interleaved(compression: Compression) -> Vec<u8> {
    let lay = |out: &mut Vec<u8>, totals| {
        let mut writer = Writer::new(out, compression, totals).unwrap();
        let header = ConnectionHeader {
            topic: Some(b"/t"),
            ty: Some(b"std_msgs/String"),
            md5sum: Some(b"992ce8a1687cec8c8bd883ec73ca41d1"),
            message_definition: Some(b"string data\n"),
            ..ConnectionHeader::default()
        };
        let id = writer.connect(b"/t", &header.to_data()).unwrap();
        for number in 0..CHUNKS * EACH {
            let sec = number % EACH * CHUNKS + number / EACH;
            let mut payload = vec![0; BYTES];
            payload[..4].copy_from_slice(&sec.to_le_bytes());
            assert!(writer.message(id, (sec, 0), &payload).unwrap());
        }
        writer.finish().unwrap()
    };
    let totals = lay(&mut Vec::new(), Totals::default());
    let mut bag = Vec::new();
    lay(&mut bag, totals);
    bag
}

fn check(compression: Compression) {
    let bag = interleaved(compression);
    let mut options = BagOptions::default();
    options.read.limits.unpacked = 64 << 20;
    let bag = BagReader::new(bag.into(), &options).unwrap();
    assert_eq!(bag.info().records, u64::from(CHUNKS * EACH));
    let before = PEAK.current_usage();
    PEAK.reset_peak_usage();
    for (number, record) in bag.records(&Select::all()).enumerate() {
        let record = record.unwrap();
        let sec = u32::try_from(number).unwrap();
        assert_eq!(record.time.unwrap().nanos, i64::from(sec) * 1_000_000_000);
        assert_eq!((record.payload.len(), &record.payload[..4]), (BYTES, &sec.to_le_bytes()[..]));
    }
    // All of it is 48 MiB; an eighth of the limit is 8 MiB, and buffers are used again.
    let held = PEAK.peak_usage() - before;
    assert!(held < 20 << 20, "{held} bytes");
    let one = Select::all().between(Some(70 * 1_000_000_000), Some(75 * 1_000_000_000));
    assert_eq!(bag.records(&one).count(), 5);
}

#[test]
fn compressed_chunks_that_overlap_are_held_in_part() {
    check(Compression::Lz4);
}

#[test]
fn chunks_of_the_file_are_not_copied() {
    check(Compression::None);
}
