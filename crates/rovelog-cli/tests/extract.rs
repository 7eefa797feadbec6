//! Files that `rovelog extract` writes for ROS bags.

mod common;

use std::io::Cursor;

use common::{Place, snapshot};
use rovelog::rosbag12::BagWriter;

const HEADER: &str = "================\nMSG: std_msgs/Header\nuint32 seq\ntime stamp\nstring frame_id\n";

const POINT_CLOUD: &str = "Header header\nuint32 height\nuint32 width\nsensor_msgs/PointField[] fields\n\
    bool is_bigendian\nuint32 point_step\nuint32 row_step\nuint8[] data\nbool is_dense\n\
    ================\nMSG: sensor_msgs/PointField\nstring name\nuint32 offset\nuint8 datatype\nuint32 count\n";

const GRID: &str = "Header header\nnav_msgs/MapMetaData info\nint8[] data\n\
    ================\nMSG: nav_msgs/MapMetaData\ntime map_load_time\nfloat32 resolution\nuint32 width\n\
    uint32 height\ngeometry_msgs/Pose origin\n\
    ================\nMSG: geometry_msgs/Pose\np/V position\np/Q orientation\n\
    ================\nMSG: p/V\nfloat64 x\nfloat64 y\nfloat64 z\n\
    ================\nMSG: p/Q\nfloat64 x\nfloat64 y\nfloat64 z\nfloat64 w\n";

/// The bytes of a ROS message.
#[derive(Default)]
struct Payload(Vec<u8>);

impl Payload {
    /// Starts a message with a header, which has the time stamp 1.5 s.
    fn stamped(frame: &str) -> Self {
        Self::default().words(&[0, 1, 500_000_000]).text(frame)
    }

    fn words(self, words: &[u32]) -> Self {
        self.bytes(&words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>())
    }

    fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    fn text(self, text: &str) -> Self {
        let len = u32::try_from(text.len()).unwrap();
        self.words(&[len]).bytes(text.as_bytes())
    }
}

/// Returns a cloud of big-endian points, of which the second has no position. `len` is the number
/// of bytes that the message has.
fn cloud(len: usize) -> Vec<u8> {
    let mut payload = Payload::stamped("lidar").words(&[1, 2, 4]);
    for (i, name) in (0..).zip(["x", "y", "z", "ring"]) {
        payload = payload.text(name).words(&[4 * i]).bytes(if i == 3 { &[4] } else { &[7] }).words(&[1]);
    }
    let point = |place: [f32; 3], ring: u16| {
        [place.iter().flat_map(|axis| axis.to_be_bytes()).collect(), ring.to_be_bytes().to_vec()].concat()
    };
    let points = [point([1.0, -2.0, 0.5], 7), point([f32::NAN; 3], 8)].concat();
    let payload = payload.bytes(&[1]).words(&[14, 28, u32::try_from(len).unwrap()]);
    payload.bytes(&points[..len]).bytes(&[0]).0
}

fn map() -> Vec<u8> {
    let origin = [-1.0, 2.5, 0.0, 0.0, 0.0, 0.0, 1.0_f64].iter().flat_map(|v| v.to_le_bytes());
    let origin: Vec<u8> = origin.collect();
    let info = Payload::stamped("map").words(&[0, 0]).bytes(&0.05_f32.to_le_bytes()).words(&[2, 1]);
    info.bytes(&origin).words(&[2]).bytes(&[100, 255]).0
}

fn bag() -> Vec<u8> {
    let mut bag = BagWriter::new(Cursor::new(Vec::new())).unwrap();
    let mut connect = |topic: &str, ty: &str, definition: &str| {
        let definition = format!("{definition}{HEADER}");
        bag.connect(
            topic.as_bytes(),
            ty.as_bytes(),
            b"0123456789abcdef0123456789abcdef",
            definition.as_bytes(),
        )
        .unwrap()
    };
    let points = connect("/lidar/points", "sensor_msgs/PointCloud2", POINT_CLOUD);
    let grid = connect("/map", "nav_msgs/OccupancyGrid", GRID);
    bag.message(points, 1, 500_000_005, None, &cloud(28)).unwrap();
    bag.message(points, 1, 600_000_005, None, &cloud(20)).unwrap();
    bag.message(grid, 2, 0, None, &map()).unwrap();
    bag.finish().unwrap().into_inner()
}

#[test]
fn point_clouds_and_maps_of_bags() {
    let place = Place::new("rosbag", &[]);
    std::fs::write(place.path("robot.bag"), bag()).unwrap();
    let runs = [
        "extract robot.bag -o all --name stamp",
        "extract robot.bag -o npz --name index --only clouds --cloud npz -E +50ms",
        "extract robot.bag -o las --only clouds --cloud las -E +50ms",
        "extract robot.bag -o maps --only maps -f json",
        "extract robot.bag -o images --only images",
        "extract robot.bag -o images --only maps --cloud ply",
        "extract robot.bag -o images --model VLP-16",
    ];
    let runs = runs.map(|line| place.shown(line)).join("\n");
    let index = ["all", "npz", "las"]
        .map(|folder| String::from_utf8(place.read(&format!("{folder}/index.csv"))).unwrap());
    snapshot!("extract_bag", format!("{runs}\n{}", index.join("\n")));
    let text = |name: &str| String::from_utf8(place.read(name)).unwrap();
    assert_eq!(
        text("all/maps/_map/0000000001500000000.yaml"),
        "image: 0000000001500000000.pgm\nresolution: 0.05\norigin: [-1.0, 2.5, 0.0]\nnegate: 0\n\
         occupied_thresh: 0.65\nfree_thresh: 0.196\nmode: trinary\n"
    );
    let ply = place.read("all/clouds/_lidar_points/0000000001500000000.ply");
    let point =
        [1.0_f32, -2.0, 0.5].iter().flat_map(|axis| axis.to_le_bytes()).chain([7, 0]).collect::<Vec<_>>();
    assert_eq!(ply[ply.len() - 28..ply.len() - 14], point);
}

/// Real bags of other recorders. The expected numbers of points are those of the messages.
#[test]
fn point_clouds_of_real_bags() {
    let Some(folder) = rovelog_testing::real("rosbag20") else { return };
    for (bag, count, kind) in [
        ("real_pointcloud_lz4_2018.bag", 1, "cloud"),
        ("real_multiecho_bz2_2014.bag", 222, "cloud"),
        ("real_map_bz2_2013.bag", 1, "map"),
    ] {
        let place = Place::new("rosbag", &[]);
        let output = place.run(&format!("extract {} -o out --cloud pcd", folder.join(bag).display()));
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{bag}: {said}");
        let end = if count == 1 { "" } else { "s" };
        assert!(said.contains(&format!("{count} {kind}{end}")), "{bag}: {said}");
    }
}
