//! Images, video and audio that `rovelog extract` writes from ROS bags.

mod common;

use std::fs::File;

use common::Place;
use rovelog::rosbag12::BagWriter;

const HEADER: &str = "
================================================================================
MSG: std_msgs/Header
uint32 seq
time stamp
string frame_id
";

fn text(text: &str) -> Vec<u8> {
    bytes(text.as_bytes())
}

fn bytes(bytes: &[u8]) -> Vec<u8> {
    [&u32::try_from(bytes.len()).unwrap().to_le_bytes()[..], bytes].concat()
}

/// Returns a header with the stamp 7 s and 9 ns.
fn header() -> Vec<u8> {
    [&[0, 7, 9].map(u32::to_le_bytes).concat()[..], &text("eye")].concat()
}

fn compressed(format: &str, data: &[u8]) -> Vec<u8> {
    [header(), text(format), bytes(data)].concat()
}

fn raw(encoding: &str, (width, height, step): (u32, u32, u32), data: &[u8]) -> Vec<u8> {
    let size = [height, width].map(u32::to_le_bytes).concat();
    let layout = [&[0][..], &step.to_le_bytes()].concat();
    [header(), size, text(encoding), layout, bytes(data)].concat()
}

/// Writes `images.bag`. Its messages are one second apart.
fn place() -> Place {
    let place = Place::new("rosbag", &[]);
    let mut bag = BagWriter::new(File::create(place.path("images.bag")).unwrap()).unwrap();
    let image = format!(
        "Header header\nuint32 height\nuint32 width\nstring encoding\nuint8 is_bigendian\nuint32 step\nuint8[] data{HEADER}"
    );
    let file = format!("Header header\nstring format\nuint8[] data{HEADER}");
    let video = "time timestamp\nstring frame_id\nuint8[] data\nstring format\n";
    let mut connect = |topic: &str, name: &str, definition: &str| {
        bag.connect(topic.as_bytes(), name.as_bytes(), &[b'0'; 32], definition.as_bytes()).unwrap()
    };
    let bayer = connect("/bayer", "sensor_msgs/Image", &image);
    let depth = connect("/depth", "sensor_msgs/Image", &image);
    let rvl = connect("/rvl", "sensor_msgs/CompressedImage", &file);
    let mixed = connect("/mixed", "sensor_msgs/CompressedImage", &file);
    let audio = connect("/audio", "audio_common_msgs/AudioData", "uint8[] data\n");
    let foxglove = connect("/foxglove", "foxglove_msgs/CompressedVideo", video);
    let rvl_data = [&[0; 12][..], &[2, 1, 0x1190_1000_u32].map(u32::to_le_bytes).concat()].concat();
    let frame = |data: &[u8], format| {
        [[5, 6].map(u32::to_le_bytes).concat(), text("eye"), bytes(data), text(format)].concat()
    };
    let messages = [
        (bayer, raw("bayer_rggb8", (2, 2, 2), &[10, 20, 30, 40])),
        (depth, raw("32FC1", (1, 1, 4), &1.5_f32.to_le_bytes())),
        (depth, raw("32FC1", (2, 1, 8), &[0; 7])),
        (rvl, compressed("16UC1; compressedDepth rvl", &rvl_data)),
        (mixed, compressed("h264", b"\0\0\0\x01\x67")),
        (mixed, compressed("h264", b"\xff\xd8\xff\xe0...")),
        (mixed, compressed("h264", b"\0\0\0\x01\x65\x88")),
        (mixed, compressed("jpeg", b"hello")),
        (audio, bytes(b"\x01\x02\x03")),
        (audio, bytes(b"\xff\xfb\x90\xc4")),
        (foxglove, frame(b"\0\0\x01\x40", "h265")),
        (foxglove, frame(b"?", "other")),
    ];
    for (second, (topic, message)) in (1..).zip(messages) {
        bag.message(topic, second, 0, None, &message).unwrap();
    }
    bag.finish().unwrap();
    place
}

#[test]
fn images_and_streams_are_written_and_others_reported() {
    let place = place();
    insta::assert_snapshot!(place.shown("extract images.bag -o out"), @r#"
    $ rovelog extract images.bag -o out
    [stderr]
    warning: the image of /depth at byte 5164 cannot be extracted: the data (7 bytes, encoding "32FC1") is not an image of 2 x 1 pixels
    warning: the image of /mixed at byte 6649 cannot be extracted: the data (5 bytes, format "jpeg") is not an image
    warning: the stream of /foxglove at byte 7576 cannot be extracted: its format "other" is unknown
    wrote 4 images, 3 streams to out
    [exit 3]
    "#);
    let index = String::from_utf8(place.read("out/index.csv")).unwrap();
    let rows = index.lines().map(|row| {
        let columns: Vec<_> = row.split(',').collect();
        [0, 2, 6, 7].map(|column| columns[column]).join(" ")
    });
    insta::assert_snapshot!(rows.collect::<Vec<_>>().join("\n"), @"
    t_ns stamp_ns file encoding
    1000000000 7000000009 images/_bayer/0000000001000000000.png bayer_rggb8
    2000000000 7000000009 images/_depth/0000000002000000000.tif 32FC1
    4000000000 7000000009 images/_rvl/0000000004000000000.png 16UC1; compressedDepth rvl
    6000000000 7000000009 images/_mixed/0000000006000000000.jpg h264
    5000000000 7000000009 streams/_mixed.h264 h264
    5000000000 7000000009 streams/_mixed.h264.csv csv
    9000000000  streams/_audio.raw raw
    9000000000  streams/_audio.raw.csv csv
    11000000000 5000000006 streams/_foxglove.h265 h265
    11000000000 5000000006 streams/_foxglove.h265.csv csv
    ");
    assert_eq!(place.read("out/streams/_mixed.h264"), b"\0\0\0\x01\x67\0\0\0\x01\x65\x88");
    insta::assert_snapshot!(String::from_utf8(place.read("out/streams/_mixed.h264.csv")).unwrap(), @"
    t_ns,stamp_ns,offset,length
    5000000000,7000000009,0,5
    7000000000,7000000009,5,6
    ");
    assert_eq!(place.read("out/streams/_audio.raw"), b"\x01\x02\x03\xff\xfb\x90\xc4");
}

#[test]
fn only_and_raw_choose_what_is_written() {
    let place = place();
    let png = |folder: &str| place.read(&format!("{folder}/images/_bayer/0000000001000000000.png"));
    // The color type of a PNG is byte 25: 2 is RGB, 0 is gray.
    place.run("extract images.bag -o color --only images");
    assert_eq!((png("color")[25], place.path("color/streams").exists()), (2, false));
    place.run("extract images.bag -o mosaic --raw");
    assert_eq!(png("mosaic")[25], 0);
    let shown = place.shown("extract images.bag -o streams --only streams");
    assert!(shown.contains("wrote 3 streams") && !place.path("streams/images").exists(), "{shown}");
    let shown = place.shown("extract images.bag -o none --only streams --raw");
    assert!(
        shown.contains("--raw applies only to images of ROS bags") && shown.contains("[exit 2]"),
        "{shown}"
    );
}
