//! Fuzz targets for VEL logs.

use std::io::Cursor;

use arbitrary::{Arbitrary, Unstructured};
use rovelog::core::internal::wire::U32Le;
use rovelog::vel_format::declared::Types;
use rovelog::vel_format::velodyne::{Calibration, PointOptions};
use rovelog::vel_format::wire::{
    Counted, GpsData, LaserRange, MARKER_ASCII, ObdData, RobotPose, VelString, VelodynePacket,
    VelodyneRawData,
};
use rovelog::vel_format::{
    Kind, NewMessage, Payload, VelReader, VelStream, VelWriter, WriteOptions, write_log,
};
use rovelog::{Bytes, LogReader, LogStream, ReadOptions, RecoverOptions, Select};
use zerocopy::{FromZeros as _, transmute_ref};

use crate::alike::{Pieces, both, check_stream, decode, read_records};

fn open(data: &[u8]) -> Option<VelReader> {
    VelReader::salvage(Bytes::copy_from_slice(data), &ReadOptions::default()).ok()
}

/// Reads every part of a VEL log.
pub fn vel_read(data: &[u8]) {
    let Some(log) = open(data) else { return };
    if let Some(last) = read_records(&log, decode) {
        assert_eq!(log.seek(last).map(|message| message.nanos), Some(last));
    }
    for kind in Kind::ALL {
        for (_, payload) in log.payloads(kind) {
            if let Payload::Laser(laser) = payload {
                laser.points().into_iter().flatten().for_each(|point| assert!(point.angle.is_finite()));
            }
        }
    }
    if let Ok(mut revolutions) = log.revolutions(None, None, PointOptions::default(), 0) {
        while revolutions.next().is_some() {}
    }
    drop((log.choices(), log.velodyne_calibration()));
}

/// Parses the first half of the input as declarations of message types, and all of it as a
/// calibration file. Checks that a value of a declared type, which is decoded from the second half,
/// is the same after encoding and decoding it again.
pub fn vel_texts(data: &[u8]) {
    drop(Calibration::parse(&String::from_utf8_lossy(data)));
    let (text, payload) = data.split_at(data.len() / 2);
    let Ok(types) = Types::parse(&String::from_utf8_lossy(text)) else { return };
    for declared in types.declared() {
        let Some(value) = declared.value(payload) else { continue };
        let encoded = declared.encode(&value).expect("a decoded value can be encoded");
        assert_eq!(declared.value(&encoded).map(|value| value.to_json()), Some(value.to_json()));
    }
}

/// Checks that every byte of a VEL log belongs to the header, the index, a message or a reported
/// loss. Also checks that payloads have the same bytes after writing them again, and that the
/// recovered log is valid.
pub fn vel_rewrite(data: &[u8]) {
    let Some(log) = open(data) else { return };
    assert_eq!(log.usage().iter().map(|usage| usage.bytes).sum::<u64>(), data.len() as u64);
    for message in log.messages() {
        if let Some(content) = message.payload() {
            assert!(message.data.starts_with(&NewMessage::new(0.0, &content).data));
        }
    }
    let mut out = Vec::new();
    let report = log.recover(&mut out, &RecoverOptions::default()).expect("writing to memory succeeds");
    assert_eq!(report.kept_bytes + report.lost_bytes(), data.len() as u64);
    assert_eq!(report.lost_bytes(), log.info().lost.bytes, "recovery loses what reading reports as lost");
    let recovered = open(&out).expect("a recovered log opens");
    assert!(recovered.info().lost.is_empty(), "{:?}", recovered.diagnostics().list());
    assert_eq!(recovered.info().records, log.info().records + log.info().lost.left_out_records);
    let mut slice = Vec::new();
    log.slice(&Select::all(), &mut slice).expect("writing to memory succeeds");
    open(&slice).expect("a slice opens");
}

/// Checks that a stream returns the same records as the reader, for any division of the input into
/// pieces.
pub fn vel_stream(data: &[u8]) {
    let log = VelReader::new(Bytes::copy_from_slice(data), &ReadOptions::default()).ok();
    let stream = VelStream::new(Pieces(data), &ReadOptions::default());
    let Some((log, mut stream)) = both(log, stream) else { return };
    check_stream(&mut stream, &log, log.records_in_file_order(), |record| record.time);
    assert_eq!(format!("{:?}", stream.info()), format!("{:?}", log.info()));
}

/// Checks that a structure has the same bytes after reading it and writing it again.
pub fn vel_declarations(data: &[u8]) {
    let Some((kind, data)) = data.split_first() else { return };
    let kind = Kind::ALL[usize::from(*kind) % Kind::ALL.len()];
    if let Some(content) = Payload::view(kind, data) {
        let message = NewMessage::new(0.0, &content);
        assert_eq!(message.type_id, kind.type_id());
        assert_eq!(*message.data, data[..message.data.len()]);
    }
}

/// Content of a VEL log to write.
#[derive(Arbitrary, Debug)]
struct Model {
    printed: bool,
    terminator: bool,
    reserve: u8,
    messages: Vec<ModelMessage>,
}

#[derive(Arbitrary, Debug)]
struct ModelMessage {
    millis: u32,
    data: ModelData,
}

#[derive(Arbitrary, Debug)]
enum ModelData {
    Obd([u8; size_of::<ObdData>()]),
    Gps([u8; size_of::<GpsData>()]),
    Pose([u8; size_of::<RobotPose>()]),
    Velodyne(u8),
    Laser(Vec<u8>, Vec<u8>, Vec<u32>),
    /// A message of an unknown type, with its type id, version and data.
    Raw(u32, u8, Vec<u8>),
}

impl ModelMessage {
    fn message(&self) -> NewMessage<'_> {
        let millis = f64::from(self.millis) / 16.0;
        match &self.data {
            ModelData::Obd(bytes) => NewMessage::new(millis, &Payload::Obd(transmute_ref!(bytes))),
            ModelData::Gps(bytes) => NewMessage::new(millis, &Payload::Gps(transmute_ref!(bytes))),
            ModelData::Pose(bytes) => NewMessage::new(millis, &Payload::Pose(transmute_ref!(bytes))),
            ModelData::Velodyne(packets) => {
                let packets = vec![VelodynePacket::new_zeroed(); usize::from(packets % 4)];
                let data = VelodyneRawData { packets: Counted(&packets) };
                NewMessage::new(millis, &Payload::Velodyne(data))
            }
            ModelData::Laser(ty, name, ranges) => {
                let ranges: Vec<_> = ranges.iter().map(|range| U32Le::new(*range)).collect();
                let [sensor_type, sensor_name] = [ty, name].map(|text| VelString(Counted(text)));
                let scan = LaserRange { sensor_type, sensor_name, ranges: Counted(&ranges) };
                NewMessage::new(millis, &Payload::Laser(scan))
            }
            ModelData::Raw(id, version, data) => NewMessage::raw(*id, i32::from(*version), millis, &data[..]),
        }
    }
}

impl Model {
    fn options(&self) -> WriteOptions {
        let mut options = WriteOptions::default().with_reserve(self.reserve.into());
        if !self.printed {
            options = options.with_marker(MARKER_ASCII);
        }
        if self.terminator {
            options = options.with_terminator();
        }
        options
    }
}

/// Generates the content of a log from the input, and writes the log.
pub(crate) fn from_model(data: &mut Unstructured<'_>) -> Option<Vec<u8>> {
    let model = Model::arbitrary(data).ok()?;
    let messages: Vec<_> = model.messages.iter().map(ModelMessage::message).collect();
    let mut bytes = Vec::new();
    write_log(&messages, &model.options(), &mut bytes).expect("writing to memory succeeds");
    Some(bytes)
}

/// Checks that a written log contains the generated messages, both if they are written all together
/// and one by one.
pub fn vel_write(data: &[u8]) {
    let Ok(model) = Model::arbitrary_take_rest(Unstructured::new(data)) else { return };
    // A generated message may have the id of a known type by chance, but be too short for this
    // type.
    let is_known = |message: &ModelMessage| matches!(message.data, ModelData::Raw(id, version, _) if Kind::of(id, version.into()).is_some());
    if model.messages.iter().any(is_known) {
        return;
    }
    let options = model.options();
    let messages: Vec<_> = model.messages.iter().map(ModelMessage::message).collect();
    let mut at_once = Vec::new();
    let written = write_log(&messages, &options, &mut at_once).expect("writing to memory succeeds");
    assert_eq!(written.bytes, at_once.len() as u64);
    let mut recording = VelWriter::new(Cursor::new(Vec::new()), options).expect("writing to memory succeeds");
    for message in &messages {
        recording.write(message).expect("writing to memory succeeds");
    }
    let (one_by_one, written) = recording.finish().expect("writing to memory succeeds");
    let one_by_one = one_by_one.into_inner();
    assert_eq!(written.bytes, one_by_one.len() as u64);
    for bytes in [at_once, one_by_one] {
        let log = open(&bytes).expect("a written log opens");
        assert_eq!(log.info().lost.bytes, 0, "the written log is damaged: {:?}", log.diagnostics().list());
        let read: Vec<_> = log.messages().collect();
        assert_eq!(read.len(), messages.len());
        for (read, message) in read.iter().zip(&messages) {
            let header = read.header;
            assert_eq!((header.type_id.get(), header.version.get()), (message.type_id, message.version));
            assert_eq!(header.timestamp.get().to_bits(), message.millis.to_bits());
            assert_eq!(read.data, &*message.data);
        }
    }
}
