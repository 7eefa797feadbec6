//! Cases of payloads that are longer or shorter than their content, and of images.

use super::prelude::*;

cases! {
    "trailing-data" [D9] "messages that are longer than their content" =>
        Log::new().drive(0.0, 2)
            .each([1, 40], |log, more| {
                let surplus = log.at() + log.frame(&Message::obd(250.0, 9)).len();
                let message = Message::obd(250.0, 9).with(|message| message.data.extend(vec![0xAB; more]));
                log.note_at(surplus, "trailing_data").put_obd(&message, 9)
            })
            .drive(300.0, 2);
    "short-fixed" [D10] "a message too short for its fields" =>
        around(&[
            Message { data: vec![1; 27], ..Message::obd(400.0, 0) }, Message { data: Vec::new(), ..Message::obd(500.0, 0) },
        ]);
    "short-image" [D10 D38] "an image that claims 256 MiB" => {
        let data = IMAGE.data(&values![0, true, 8, 8, &jpeg(8, 8)[..]]);
        let claims = data.with(|data| data[16..20].copy_from_slice(&(256_u32 << 20).to_le_bytes()));
        around(&[Message::new(IMAGE.id, 400.0, claims)])
    };
    "short-laser" [D10 D38] "strings and ranges of absurd lengths" =>
        around(&[(0, 400.0), (8, 480.0), (16, 560.0)].map(|(at, millis)| {
            let data = LASER.data(&scan((b"type", "type"), (b"name", "name"), vec![1, 2, 3]));
            Message::new(LASER.id, millis, data.with(|data| data[at..at + 4].fill(0xFF)))
        }));
    "short-velodyne" [D10 D38] "a count of 4 billion packets" =>
        around(&[Message::new(VELODYNE.id, 400.0, vec![0xFF; 4])]);
    "image-size-differs" [D22] "fields that differ from the JPEG" =>
        Log::new().note("image_size").image(10.0, 0, true, [640, 480], &jpeg(16, 8))
            .image(20.0, 0, true, [16, 8], &jpeg(16, 8));
    "image-no-jpeg" [D22] "data that is no JPEG" =>
        Log::new().each([&b"no picture at all"[..], &[], &jpeg(8, 8)[..30]], |log, data| {
            log.note("image_header").image(10.0, 0, true, [8, 8], data)
        });
    "images-of-other-formats" [D22] "files that are no JPEG, each with the header of its format" => {
        let bitmap = [&b"BM"[..], &[0; 12], &40_u32.to_le_bytes(), &[0; 36]].concat();
        let files = [
            &b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"[..], &bitmap, b"RIFF\x10\0\0\0WEBPVP8 ", b"II*\0\x08\0\0\0", b"MM\0*\0\0\0\x08",
        ];
        Log::new().each((0..).zip(files), |log, (i, data)| {
            log.note("image_header").image(100.0 * f64::from(i), 1, true, [8, 8], data)
        })
    };
    "image-uncompressed" [D21] "grey, YUYV, RGB and something else" =>
        Log::new().each([(1, 0), (2, 1), (3, 2), (5, 3)], |log, (bytes, source)| {
            log.image(10.0, source, false, [4, 2], &vec![7; 8 * bytes])
        });
    "images-of-three-sources" [D37] "each source is a topic of its own" =>
        Log::new().each(0..6, |log, i| log.image(33.0 * f64::from(i), i % 3 - 1, true, [8, 8], &jpeg(8, 8)));
}

fn around(bad: &[Message]) -> Log {
    let log = Log::new().drive(0.0, 3);
    log.each(bad, |log, message| log.short(message).obd(message.millis + 1.0, 5)).drive(900.0, 3)
}
