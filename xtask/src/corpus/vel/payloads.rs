//! Payloads that are longer or shorter than their content, and images.

use super::kinds::{image_data, jpeg, laser_data, obd_data, velodyne_data};
use super::log::{IMAGE, LASER, Log, Message, OBD, VELODYNE};
use super::{Case, Made};

pub(super) const CASES: &[Case] = &[
    Case::vel("trailing-data", "messages that are longer than their content", &["D9"], trailing),
    Case::vel("short-fixed", "a message too short for its fields", &["D10"], short_fixed),
    Case::vel("short-image", "an image that claims 256 MiB", &["D10", "D38"], short_image),
    Case::vel("short-laser", "strings and ranges of absurd lengths", &["D10", "D38"], short_laser),
    Case::vel("short-velodyne", "a count of 4 billion packets", &["D10", "D38"], short_velodyne),
    Case::vel("image-size-differs", "fields that differ from the JPEG", &["D22"], image_size),
    Case::vel("image-no-jpeg", "data that is no JPEG", &["D22"], image_no_jpeg),
    Case::vel("image-uncompressed", "grey, YUYV, RGB and something else", &["D21"], uncompressed),
    Case::vel("images-of-three-sources", "each source is a topic of its own", &["D37"], three_sources),
];

fn trailing() -> Made {
    let mut log = Log::new();
    log.drive(0.0, 2);
    for more in [1, 40] {
        let mut data = obd_data(9, 1500, 12.5);
        log.note("trailing_data", log.at() + 21 + data.len());
        data.extend(vec![0xAB; more]);
        log.put_obd(&Message::new(OBD, 250.0, data), 9);
    }
    log.drive(300.0, 2);
    log.finish()
}

fn around(bad: &[Message]) -> Made {
    let mut log = Log::new();
    log.drive(0.0, 3);
    for message in bad {
        log.short(message);
        log.obd(message.millis + 1.0, 5);
    }
    log.drive(900.0, 3);
    log.finish()
}

fn short_fixed() -> Made {
    around(&[Message::new(OBD, 400.0, vec![1; 27]), Message::new(OBD, 500.0, Vec::new())])
}

fn short_image() -> Made {
    let mut data = image_data(0, 1, 8, 8, &jpeg(8, 8));
    data[16..20].copy_from_slice(&(256_u32 << 20).to_le_bytes());
    around(&[Message::new(IMAGE, 400.0, data)])
}

fn short_laser() -> Made {
    let whole = laser_data(b"type", b"name", &[1, 2, 3]);
    let with = |at: usize| {
        let mut data = whole.clone();
        data[at..at + 4].fill(0xFF);
        Message::new(LASER, 400.0 + 10.0 * f64::from(u8::try_from(at).expect("small")), data)
    };
    around(&[with(0), with(8), with(16)])
}

fn short_velodyne() -> Made {
    let mut data = velodyne_data(&[]);
    data.fill(0xFF);
    around(&[Message::new(VELODYNE, 400.0, data)])
}

fn image_size() -> Made {
    let mut log = Log::new();
    log.note("image_size", log.at());
    log.image(10.0, 0, 1, (640, 480), &jpeg(16, 8));
    log.image(20.0, 0, 1, (16, 8), &jpeg(16, 8));
    log.finish()
}

fn image_no_jpeg() -> Made {
    let mut log = Log::new();
    for data in [&b"no picture at all"[..], &[], &jpeg(8, 8)[..30]] {
        log.note("image_header", log.at());
        log.image(10.0, 0, 1, (8, 8), data);
    }
    log.finish()
}

fn uncompressed() -> Made {
    let mut log = Log::new();
    for (bytes, source) in [(1, 0), (2, 1), (3, 2), (5, 3)] {
        log.image(10.0, source, 0, (4, 2), &vec![7; 8 * bytes]);
    }
    log.finish()
}

fn three_sources() -> Made {
    let mut log = Log::new();
    for i in 0..6 {
        log.image(33.0 * f64::from(i), i % 3 - 1, 1, (8, 8), &jpeg(8, 8));
    }
    log.finish()
}
