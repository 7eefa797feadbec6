//! Cases about the meaning of message sizes, the marker byte, versions, and unknown types.

use super::prelude::*;

cases! {
    "all-kinds" [D1 D2 D18] "the six messages, in the literal conventions of the text" => fill(Log::new());
    "all-kinds+0x31" [D2] "the same, marked with the character 1" =>
        fill(Log::new().with(|log| log.own.marker = 0x31));
    "all-kinds+inclusive" [D1] "sizes that count the whole header" =>
        fill(Log::new().sizes(Sizes::INCLUSIVE));
    "all-kinds+inclusive+0x31" [D1 D2] "both other readings at once" =>
        fill(Log::new().sizes(Sizes::INCLUSIVE).with(|log| log.own.marker = 0x31));
    "data-only-sizes" [D3] "sizes that count the data alone" =>
        fill(Log::new().sizes(Sizes::DATA_ONLY).note("data_only_sizes"));
    "mixed-markers" [D2 D4] "both markers in one log: each is kept" =>
        Log::new().each(0..6, |log, i| {
            let marker = Some(if i % 2 == 0 { 0x49 } else { 0x31 });
            log.put_obd(&Message { marker, ..Message::obd(100.0 * f64::from(i), i) }, i)
        });
    "one-message+inclusive" [D1] "one message settles the size rule" =>
        Log::new().sizes(Sizes::INCLUSIVE).obd(50.0, 7);
    "one-message" [D1] "one message settles the size rule" => Log::new().obd(50.0, 7);
    "one-short-message+inclusive" [D1 D10] "a message that is too short settles the size rule by its end" =>
        Log::new().sizes(Sizes::INCLUSIVE).short(&Message { data: vec![0; 24], ..Message::obd(1000.0, 0) });
    "unknown-types-only" [D1 D8] "the chain of messages settles the size rule" =>
        unknown_only(Sizes::EXCLUSIVE);
    "unknown-types-only+inclusive" [D1 D8] "the same for the other rule" => unknown_only(Sizes::INCLUSIVE);
    "data-like-an-end-mark" [D1 D15] "an end mark before further bytes counts less than a chain of messages" =>
        Log::new().note("unknown_type").assumed("size_rule", "exclusive").each(0..70_u8, |log, i| {
            log.unknown(&Message::new((0x0777_1234, 100), 10.0 * f64::from(i), vec![0xFF; 4]), "0x07771234")
        });
    "unknown-type" [D8 D36] "a type that is not described: its name is suggested" =>
        Log::new().drive(0.0, 2).note("unknown_type")
            .unknown(&Message::new((0x0001_806E, 100), 250.0, vec![1, 2, 3]), "0x0001806E").drive(300.0, 2);
    "unknown-versions" [D8] "versions that are not described, also of the laser" =>
        Log::new().drive(0.0, 2)
            .note("unknown_type").unknown(&Message::new((0x0001_4043, 101), 250.0, vec![9; 32]), "OBDDataM@101")
            .note("unknown_type").unknown(&Message::new((0x0003_0910, 100), 260.0, vec![8; 5]), "LaserRange2DDataM@100")
            .drive(300.0, 2);
    "own-type" [D36] "a type that is declared reads like a built-in one" => {
        let fields = "float32 heading;uint32 n;float32[] samples;string name";
        let shape = Shape::parse("CompassM", fields, Words::Ros, &|_| unreachable!("plain types"));
        // The number of samples is stored in a separate field.
        let samples = Value::As(lay![1.5_f32, -2.0_f32], json!([1.5, -2.0]));
        let row = values![90.25, 2, samples, "north"];
        let put = |log: Log, millis: f64| {
            let message = Message::new((0x0001_806E, 100), millis, shape.full(&row));
            log.put(&message, ["CompassM", "CompassM"], shape.fields(), &shape.data(&row))
        };
        Log::new().drive(0.0, 2).each([250.0, 251.0], put).drive(300.0, 2)
            .fact("declarations", "message CompassM 100\n  float heading deg\n  unsigned int n\n  float samples[n] uT\n  \
                                   string name\n")
    };
    "version-1.2" [D11] "another minor version" =>
        Log::new().with(|log| log.own.version = (1, 2)).drive(0.0, 3);
    "version-2.0" [D11] "another major version" =>
        Log::new().with(|log| log.own.version = (2, 0)).drive(0.0, 3);
    "invalid-message" [D7] "messages that are marked as not valid" =>
        Log::new().drive(0.0, 2).invalid(&Message::obd(150.0, 99))
            .invalid(&Message::new((0x0707_0707, 3), 160.0, vec![1; 9])).drive(200.0, 2);
}

/// Adds the six messages twice.
fn fill(log: Log) -> Log {
    log.each(0..2, |log, round| {
        let at = 7322.625 + 1000.0 * f64::from(round);
        let urg = (&b"Hokuyo_URG-04LX"[..], "Hokuyo_URG-04LX");
        log.pose(at, [1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 9.81])
            .obd(at + 1.5, 18 + round)
            .gps(at + 2.0, position(56 + round))
            .image(at + 3.0, 0, true, [16, 8], &jpeg(16, 8))
            .image(at + 3.5, 1, true, [8, 8], &jpeg(8, 8))
            .laser(at + 4.0, urg, (b"front", "front"), &[1724, 0, 3000])
            .velodyne(at + 5.0, &[])
    })
    .assumed("position_unit", "degrees")
    .assumed("quaternion", "wxyz body_to_world")
    .choice("acceleration_unit", "m/s2")
    // In both cases, the start is 7324.625 ms before 2010-06-14T12:34:56Z.
    .utc(1_276_518_896_000_000_000 - 7_324_625_000)
}

fn unknown_only(sizes: Sizes) -> Log {
    let log = Log::new().sizes(sizes).note("unknown_type").assumed("size_rule", sizes.rule);
    log.each(0..5_u8, |log, i| {
        let data = vec![i; 10 + usize::from(i)];
        log.unknown(&Message::new((0x0777_1234, 100), 10.0 * f64::from(i), data), "0x07771234")
    })
}
