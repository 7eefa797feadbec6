//! Reads exported point clouds again. LAS and LAZ are read with the crate `las`. Files in other
//! formats and network captures are compared byte by byte.

use rovelog::rosbag12::BagWriter;
use rovelog::vel_format::velodyne::{Point, PointOptions};
use rovelog::{AnyLog, LogReader as _, ReadOptions, Select};
use rovelog_export::cloud::VelodyneOptions;
use rovelog_export::cloud::ros::{self, CloudReader};
use rovelog_export::cloud::{Cloud, Format, write};
use rovelog_export::pcap::PcapWriter;

fn points() -> Vec<Point> {
    let point = |i: u16| Point {
        x: f32::from(i) * 0.37 - 50.0,
        y: -f32::from(i) * 0.021,
        z: (f32::from(i) * 0.1).sin(),
        intensity: f32::from(i % 256),
        ring: (i % 128).to_le_bytes()[0],
        nanos: i32::from(i) * 10_000,
        ..Point::default()
    };
    (0..1000).map(point).collect()
}

#[expect(clippy::cast_possible_truncation, reason = "the width of the file")]
fn seconds(point: &Point) -> f32 {
    (f64::from(point.nanos) / 1e9) as f32
}

fn written(points: &[Point], format: Format) -> Vec<u8> {
    let made = || {
        let mut out = Vec::new();
        let left_out = write(&Cloud::from(points), format, "VLP-16\nby a test", &mut out).unwrap();
        assert_eq!(left_out, 0);
        out
    };
    assert_eq!(made(), made(), "{}", format.name());
    made()
}

#[test]
fn formats_are_found_by_name_and_by_extension() {
    for format in Format::ALL {
        assert_eq!(Format::by_name(&format.name().to_uppercase()), Some(format));
        assert_eq!(Format::by_name(format.extension()), Some(format));
    }
    assert_eq!(Format::by_name("e57"), None);
}

#[test]
fn las_and_laz_have_all_fields() {
    for format in [Format::Las, Format::Laz] {
        for points in [points(), Vec::new()] {
            let bytes = written(&points, format);
            let mut reader = las::Reader::new(std::io::Cursor::new(bytes)).unwrap();
            assert_eq!(reader.header().point_format().is_compressed, format == Format::Laz);
            let read: Vec<las::Point> =
                reader.read_all().unwrap().points().collect::<Result<_, _>>().unwrap();
            assert_eq!(read.len(), points.len());
            for (got, want) in read.iter().zip(&points) {
                for (got, want) in [(got.x, want.x), (got.y, want.y), (got.z, want.z)] {
                    assert!((got - f64::from(want)).abs() <= 0.500_1e-4, "{got} {want}");
                }
                assert_eq!(f32::from(got.intensity).to_bits(), want.intensity.to_bits());
                assert_eq!(got.gps_time.map(f64::to_bits), Some(f64::from(seconds(want)).to_bits()));
                assert_eq!(got.extra_bytes, u16::from(want.ring).to_le_bytes());
            }
        }
    }
}

#[test]
fn kitti_is_four_floats_a_point() {
    let points = points();
    let bytes = written(&points, Format::Kitti);
    let fields = points.iter().flat_map(|point| [point.x, point.y, point.z, point.intensity]);
    assert_eq!(bytes, fields.flat_map(f32::to_le_bytes).collect::<Vec<_>>());
}

/// An NPZ archive must have a directory, and the values of each array must start at a multiple of
/// 64 bytes.
#[test]
fn npz_is_an_archive_of_arrays() {
    let points = points();
    let bytes = written(&points, Format::Npz);
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    let half = |at: usize| usize::from(u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap()));
    let end = bytes.len() - 22;
    assert_eq!((&bytes[end..end + 4], half(end + 10)), (&b"PK\x05\x06"[..], 6));
    let mut entry = word(end + 16);
    let mut names = Vec::new();
    for _ in 0..6 {
        assert_eq!(&bytes[entry..entry + 4], b"PK\x01\x02");
        let (len, name_len, at) = (word(entry + 24), half(entry + 28), word(entry + 42));
        let name = std::str::from_utf8(&bytes[entry + 46..entry + 46 + name_len]).unwrap();
        assert_eq!((word(at + 22), half(at + 26)), (len, name_len), "{name}");
        let array = &bytes[at + 30 + name_len..][..len];
        let (head, values) = array.split_at(10 + usize::from(u16::from_le_bytes([array[8], array[9]])));
        assert!(head.starts_with(b"\x93NUMPY\x01\x00") && head.ends_with(b"\n") && head.len() % 64 == 0);
        let want: Vec<u8> = match name {
            "ring.npy" => points.iter().flat_map(|point| u16::from(point.ring).to_le_bytes()).collect(),
            "t.npy" => points.iter().flat_map(|point| seconds(point).to_le_bytes()).collect(),
            "z.npy" => points.iter().flat_map(|point| point.z.to_le_bytes()).collect(),
            _ => values.to_vec(),
        };
        assert_eq!(values, want, "{name}");
        names.push(name.to_owned());
        entry += 46 + name_len;
    }
    assert_eq!(names, ["x.npy", "y.npy", "z.npy", "intensity.npy", "ring.npy", "t.npy"]);
    assert_eq!(entry, end);
}

/// The points of a `VelodyneScan` are those of a VEL log with the same packets.
#[test]
fn packets_of_a_bag_have_the_points_of_a_vel_log() {
    let log = rovelog::open(rovelog_testing::root().join("corpus/vel/velodyne-vlp16.vel")).unwrap();
    let AnyLog::Vel(reader) = &log else { panic!("a VEL log") };
    let packets: Vec<_> = reader.packets().flat_map(|(_, packets)| packets).collect();
    let definition = "p/Packet[] packets\n================\nMSG: p/Packet\ntime stamp\nuint8[1206] data\n";
    let mut bag = BagWriter::new(std::io::Cursor::new(Vec::new())).unwrap();
    let md5 = b"0123456789abcdef0123456789abcdef";
    let topic = bag.connect(b"/packets", ros::VELODYNE_SCAN.as_bytes(), md5, definition.as_bytes()).unwrap();
    let mut payload = u32::try_from(packets.len()).unwrap().to_le_bytes().to_vec();
    for (i, packet) in (0_u32..).zip(&packets) {
        payload.extend([5, 1_000_000 * i].iter().flat_map(|part| part.to_le_bytes()));
        payload.extend(zerocopy::IntoBytes::as_bytes(*packet));
    }
    bag.message(topic, 5, 0, None, &payload).unwrap();
    let bytes = bag.finish().unwrap().into_inner();
    let bag = rovelog::from_bytes(bytes.into(), &ReadOptions::default()).unwrap();
    let AnyLog::Rosbag(bag) = &bag else { panic!("a bag") };
    let record = bag.records(&Select::topic("/packets")).next().unwrap().unwrap();
    let mut clouds = CloudReader::new(bag, record.topic, &VelodyneOptions::default()).unwrap();
    let cloud = clouds.read(&record.value().unwrap()).unwrap();
    let got: Vec<_> = cloud.positions().unwrap().collect();
    let mut want = Vec::new();
    let mut revolutions = reader.revolutions(None, None, PointOptions::default(), 0).unwrap();
    while let Some(revolution) = revolutions.next() {
        want.extend(Cloud::from(revolution.points).positions().unwrap());
    }
    assert!(got == want && got.len() > 100, "{} and {} points", got.len(), want.len());
}

#[test]
fn capture_has_all_packets() {
    let log = rovelog::open(rovelog_testing::root().join("corpus/vel/velodyne-vlp16.vel")).unwrap();
    let AnyLog::Vel(reader) = &log else { panic!("a VEL log") };
    let mut capture = PcapWriter::new(Vec::new()).unwrap();
    let mut packets = Vec::new();
    for (_, some) in reader.packets() {
        for packet in some {
            let second = i64::try_from(packets.len()).unwrap();
            assert!(capture.packet(second * 1_000_000_000 + 7_999, packet).unwrap());
            packets.push(packet);
        }
    }
    assert!(!capture.packet(-1, packets[0]).unwrap(), "a time before 1970");
    let bytes = capture.finish().unwrap();
    assert_eq!(bytes.len(), 24 + (packets.len() + 1) * (16 + 42 + 1206));
    for (number, (record, packet)) in bytes[24..].chunks(16 + 42 + 1206).zip(&packets).enumerate() {
        let word = |at: usize| u32::from_le_bytes(record[at..at + 4].try_into().unwrap());
        assert_eq!(([word(0) as usize, word(4) as usize], [word(8), word(12)]), ([number, 7], [1248, 1248]));
        // If the checksum is right, all bits of the one's complement sum of an IPv4 header are set.
        let halves = record[30..50].chunks(2).map(|half| u32::from(half[0]) << 8 | u32::from(half[1]));
        let sum: u32 = halves.sum();
        assert_eq!((sum >> 16) + (sum & 0xFFFF), 0xFFFF);
        assert_eq!(record[58..60], [0xFF, 0xEE]);
        assert_eq!(&record[58..], zerocopy::IntoBytes::as_bytes(*packet));
    }
}
