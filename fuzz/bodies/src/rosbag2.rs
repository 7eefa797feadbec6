//! Fuzz targets for V2.0 bags.

use arbitrary::{Arbitrary, Unstructured};
use rovelog::core::internal::wire::U32Le;
use rovelog::rosbag12::v2::wire::{Chunk, ConnectionHeader, Header};
use rovelog::rosbag12::v2::{self, Compression};
use rovelog::rosbag12::wire::RecordHead;
use rovelog::rosbag12::{BagError, BagOptions, BagReader};
use rovelog::{Bytes, LogReader};

use crate::rosbag::{rosbag_read, rosbag_rewrite, rosbag_stream};

/// Version line of a V2.0 bag.
const LINE: &[u8] = b"#ROSBAG V2.0\n";

/// Reads a chunk whose data is the input. Its first byte selects the compression. Also checks that
/// a header is the same after writing it and reading it again.
pub fn rosbag_chunk(data: &[u8]) {
    if let Some(header) = Header::read(data) {
        let written = header.to_head(0);
        let head = RecordHead::read(&written).expect("a written header can be read");
        assert_eq!(Header::read(head.header), Some(header));
    }
    let Some((kind, records)) = data.split_first() else { return };
    let compression = Compression::ALL[usize::from(*kind) % Compression::ALL.len()];
    let Ok(len) = u32::try_from(records.len()) else { return };
    let size = U32Le::new(len);
    let chunk = Header::Chunk(Chunk { compression: compression.name().as_bytes(), size: &size });
    let bag = [LINE, &chunk.to_head(len), records].concat();
    rosbag_read(&bag);
    rosbag_stream(&bag);
    rosbag_rewrite(&bag);
}

/// Content of a V2.0 bag to write.
#[derive(Arbitrary, Debug)]
struct Model {
    compression: u8,
    /// Topic and message type of each connection.
    connections: Vec<(Vec<u8>, Vec<u8>)>,
    /// Connection, time in seconds and nanoseconds, and payload of each message.
    messages: Vec<(u8, u32, u32, Vec<u8>)>,
}

/// Checks that a written bag is undamaged and contains the generated messages.
pub fn rosbag_chunk_write(data: &[u8]) {
    let Ok(model) = Model::arbitrary_take_rest(Unstructured::new(data)) else { return };
    let bytes = write(&model);
    let bag = BagReader::new(Bytes::from(bytes), &BagOptions::default()).expect("a written log opens");
    assert_eq!(bag.info().lost.losses, 0, "the written bag is damaged: {:?}", bag.diagnostics().list());
    let known = |connection: u8| usize::from(connection) < model.connections.len();
    let want = model.messages.iter().filter(|message| known(message.0));
    let got: Vec<_> = bag.records_in_file_order().collect();
    assert_eq!(got.len(), want.clone().count());
    for (record, (_, sec, nsec, payload)) in got.iter().zip(want) {
        let nanos = i64::from(*sec) * 1_000_000_000 + i64::from(*nsec);
        assert_eq!((record.time.map(|time| time.nanos), &record.payload[..]), (Some(nanos), &payload[..]));
    }
}

fn write(model: &Model) -> Vec<u8> {
    let compression = Compression::ALL[usize::from(model.compression) % Compression::ALL.len()];
    let mut out = Vec::new();
    let written = v2::write(&mut out, compression, |bag| {
        let connect = |(topic, ty): &(Vec<u8>, Vec<u8>)| {
            let data = ConnectionHeader { topic: Some(topic), ty: Some(ty), ..ConnectionHeader::default() };
            bag.connect(topic, &data.to_data()).expect("few connections")
        };
        let ids: Vec<_> = model.connections.iter().map(connect).collect();
        for (connection, sec, nsec, payload) in &model.messages {
            if let Some(id) = ids.get(usize::from(*connection)) {
                assert!(bag.message(*id, (*sec, *nsec), payload).expect("writing to memory succeeds"));
            }
        }
        Ok::<_, BagError>(())
    });
    assert_eq!(written.expect("writing to memory succeeds").1, out.len() as u64);
    out
}
