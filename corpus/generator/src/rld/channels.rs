//! Cases about channels: kinds, units, scales, links, names, sizes of values, and bits.

use super::prelude::*;

cases! {
    "binary-only" [D8] "bits and no values" => Log::new(1000, 4).bit("DI1").bit("DI2").blocks(2);
    "analog-only" [D8] "values and no bits: no word before them" => single().blocks(3);
    "binary-32" [D8] "a full word" => bits(32).blocks(1);
    "binary-33" [D8] "the 33rd bit is bit 0 of the second word" => bits(33).blocks(2);
    "binary-70" [D8] "three words" => bits(70).blocks(1);
    "dirty-bits" [D8] "bits that belong to no channel: masked" =>
        plain().blocks(2).with(|log| log.blocks[0].rows[1].words[0] |= 0xB6DB_E8C0)
            .note_at("dirty_bits", |log| log.row_at(1));
    "kind-mismatch" [D7] "the place decides what is binary, not the unit" =>
        plain().with(|log| (log.binary[0].unit, log.analog[1].unit) = (1, 3)).blocks(2)
            .note_at("kind_mismatch", |log| log.channel_at(0)).note_at("kind_mismatch", |log| log.channel_at(4));
    "units" [D3] "every unit of version 4" =>
        [
            (0, "n"), (1, "v"), (2, "a"), (5, "lx"), (6, "degC"), (7, "int"), (8, "pct"), (9, "Pa"), (10, "s"),
            (u32::MAX, "adc"),
        ]
        .into_iter().fold(Log::new(1000, 2), |log, (unit, name)| log.analog(name, unit, 0, NONE)).blocks(1);
    "unit-0-in-v2" [D3] "unit 0 was undefined before version 3" =>
        Log::new(1000, 2).analog("V1", 0, 0, NONE).with(|log| log.version = 2).blocks(1);
    "unit-unknown" [D3] "a code of no version is kept" =>
        odd(single().with(|log| log.analog[0].unit = 77), "unknown_unit");
    "data-sizes" [D9] "values of one to eight bytes, sign extended" =>
        (1..=8).fold(Log::new(1000, 3), |log, size| {
            let log = log.analog(&format!("x{size}"), 7, 0, NONE);
            log.with(|log| log.analog.last_mut().expect("a channel").size = size)
        })
        .blocks(2);
    "extremes" [D9 D10] "the greatest and smallest values of 32 bits" => {
        let values = [i32::MAX, i32::MIN, 0, -1, 1].map(i64::from);
        plain().blocks(1).change_rows(|i, row| *row = Row { words: vec![7], values: vec![values[i]; 4] })
    };
    "scales" [D10] "powers of ten from -12 to 6, correctly rounded" =>
        [-12, -11, -9, -8, -6, -3, 0, 3, 6, -30, 24].into_iter()
            .fold(Log::new(1000, 4), |log, scale| log.analog(&format!("e{scale}"), 1, scale, NONE))
            .note("table_implausible", 64).blocks(1);
    "scale-refused" [D10] "a scale beyond 30: raw values" =>
        odd(single().with(|log| log.analog[0].scale = -31), "scale_refused");
    "link-to-nothing" [D11] "a link outside of the table" => linked(4, 99).note("table_implausible", 64);
    "link-to-analog" [D11] "a link to a channel that is not binary" => linked(4, 3);
    "link-of-a-bit" [D11] "a binary channel with a link to one that is false: it has a value all the same" =>
        plain().with(|log| log.binary[0].link = 1).blocks(2).change_rows(|_, row| row.words[0] = 0b101);
    "link-0-in-v2" [D2 D11] "links count from 1 there: 0 is nothing" => linked(2, 0).note("table_implausible", 64);
    "range-switches" [D12] "values out of range are null" =>
        plain().blocks(2)
            .change_rows(|i, row| row.words[0] = if (3..7).contains(&i) { 0b001 } else { 0b100 });
    "name-of-16" [D13] "a name of 16 bytes has no NUL" =>
        single().with(|log| log.analog[0].name = b"sixteen-bytes-in".to_vec()).blocks(1);
    "name-repeated" [D13] "a second channel of a name" =>
        single().analog("V1", 1, -8, NONE).with(|log| log.shown = vec![(1, "V1#2")]).blocks(1)
            .note_at("name_repeated", |log| log.channel_at(1));
    "name-corrupt" [D13] "a name that is no text" =>
        odd(single().with(|log| log.analog[0].name = vec![b'V', 0xff, b'1']), "name_corrupt");
    "ambient" [D31] "the file of sensors beside a log: one stamp for each row" => {
        // Each row has its own timestamp, about 1.00352 s after the previous one. A reader must not
        // smooth these times.
        let log = Log::new(1, 1).analog("TSL4531_left", 5, 0, NONE).analog("TSL4531_right", 5, 0, NONE)
            .analog("BME280_temp", 6, -3, NONE).analog("BME280_rh", 7, -6, NONE).analog("BME280_press", 9, -3, NONE)
            .with(|log| log.topic = "ambient");
        [300_000, 0, 20_000, 1_000].into_iter().fold(log, |log, late| log.block(1, late, late))
    };
    "ambient-misspelt" [D13 D31] "releases 1.1 to 1.1.5: BME280_preas" =>
        Log::new(1, 1).analog("BME280_preas", 9, -3, NONE).blocks(2)
            .with(|log| (log.version, log.topic, log.shown) = (3, "ambient", vec![(0, "BME280_press")]))
            .note_at("name_alias", |log| log.channel_at(0));
}

fn bits(count: usize) -> Log {
    let log = (0..count).fold(Log::new(1000, 6), |log, i| log.bit(&format!("b{i}")));
    log.analog("V1", 1, -8, NONE)
}

/// Returns a log of one block whose first channel is implausible.
fn odd(log: Log, code: &'static str) -> Log {
    let log = log.blocks(1).note_at(code, |log| log.channel_at(0));
    log.note_at("table_implausible", |log| log.channel_at(0))
}

/// Returns a log of this version in which a channel links to a bit that does not exist.
fn linked(version: u16, link: u16) -> Log {
    let log = plain().with(|log| (log.version, log.analog[2].link) = (version, link)).blocks(1);
    log.note_at("bad_link", |log| log.channel_at(5))
}
