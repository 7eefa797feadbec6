//! Channels: kinds, units, scales, links, names, sizes of values, bits.

use super::super::{Case, Made};
use super::log::{Log, Row};
use super::{plain, single};

pub(super) const CASES: &[Case] = &[
    Case::rld("binary-only", "bits and no values", &["D8"], || {
        Log::new(1000, 4).bit("DI1").bit("DI2").blocks(2).made()
    }),
    Case::rld("analog-only", "values and no bits: no word before them", &["D8"], || {
        single().blocks(3).made()
    }),
    Case::rld("binary-32", "a full word", &["D8"], || bits(32).blocks(1).made()),
    Case::rld("binary-33", "the 33rd bit is bit 0 of the second word", &["D8"], || bits(33).blocks(2).made()),
    Case::rld("binary-70", "three words", &["D8"], || bits(70).blocks(1).made()),
    Case::rld("dirty-bits", "bits that belong to no channel: masked", &["D8"], || {
        let mut log = plain().blocks(2);
        log.blocks[0].rows[1].words[0] |= 0xB6DB_E8C0;
        let at = log.block_at(0) + 32 + log.row_len();
        log.note("dirty_bits", at).made()
    }),
    Case::rld("kind-mismatch", "the place decides what is binary, not the unit", &["D7"], || {
        let mut log = plain();
        log.binary[0].unit = 1;
        log.analog[1].unit = 3;
        let log = log.blocks(2);
        let (a, b) = (log.channel_at(0), log.channel_at(4));
        log.note("kind_mismatch", a).note("kind_mismatch", b).made()
    }),
    Case::rld("units", "every unit of version 4", &["D3"], || {
        let mut log = Log::new(1000, 2);
        for (unit, name) in [
            (0, "n"),
            (1, "v"),
            (2, "a"),
            (5, "lx"),
            (6, "degC"),
            (7, "int"),
            (8, "pct"),
            (9, "Pa"),
            (10, "s"),
            (u32::MAX, "adc"),
        ] {
            log = log.analog(name, unit, 0, 0xFFFF);
        }
        log.blocks(1).made()
    }),
    Case::rld("unit-0-in-v2", "unit 0 was undefined before version 3", &["D3"], || {
        let mut log = Log::new(1000, 2).analog("V1", 0, 0, 0xFFFF);
        log.version = 2;
        log.blocks(1).made()
    }),
    Case::rld("unit-unknown", "a code of no version is kept", &["D3"], || {
        let mut log = single();
        log.analog[0].unit = 77;
        let log = log.blocks(1);
        let at = log.channel_at(0);
        log.note("unknown_unit", at).note("table_implausible", at).made()
    }),
    Case::rld("data-sizes", "values of one to eight bytes, sign extended", &["D9"], || {
        let mut log = Log::new(1000, 3);
        for size in 1..=8u16 {
            log = log.analog(&format!("x{size}"), 7, 0, 0xFFFF);
            log.analog[usize::from(size) - 1].size = size;
        }
        log.blocks(2).made()
    }),
    Case::rld("extremes", "the greatest and smallest values of 32 bits", &["D9", "D10"], || {
        let mut log = plain().blocks(1);
        for (row, value) in log.blocks[0].rows.iter_mut().zip([i32::MAX, i32::MIN, 0, -1, 1]) {
            *row = Row { words: vec![7], values: vec![value.into(); 4] };
        }
        log.made()
    }),
    Case::rld("scales", "powers of ten from -12 to 6, correctly rounded", &["D10"], || {
        let mut log = Log::new(1000, 4);
        for scale in [-12, -11, -9, -8, -6, -3, 0, 3, 6, -30, 24] {
            log = log.analog(&format!("e{scale}"), 1, scale, 0xFFFF);
        }
        log.note("table_implausible", 64).blocks(1).made()
    }),
    Case::rld("scale-refused", "a scale beyond 30: raw values", &["D10"], || {
        let mut log = single();
        log.analog[0].scale = -31;
        let log = log.blocks(1);
        let at = log.channel_at(0);
        log.note("scale_refused", at).note("table_implausible", at).made()
    }),
    Case::rld("link-to-nothing", "a link outside of the table", &["D11"], || {
        let mut log = plain();
        log.analog[2].link = 99;
        let log = log.blocks(1);
        let at = log.channel_at(5);
        log.note("bad_link", at).note("table_implausible", 64).made()
    }),
    Case::rld("link-to-analog", "a link to a channel that is not binary", &["D11"], || {
        let mut log = plain();
        log.analog[2].link = 3;
        let log = log.blocks(1);
        let at = log.channel_at(5);
        log.note("bad_link", at).made()
    }),
    Case::rld("link-0-in-v2", "links count from 1 there: 0 is nothing", &["D2", "D11"], || {
        let mut log = plain();
        log.version = 2;
        log.analog[2].link = 0;
        let log = log.blocks(1);
        let at = log.channel_at(5);
        log.note("bad_link", at).note("table_implausible", 64).made()
    }),
    Case::rld("range-switches", "values out of range are null", &["D12"], || {
        let mut log = plain().blocks(2);
        for (i, row) in log.blocks.iter_mut().flat_map(|block| &mut block.rows).enumerate() {
            row.words[0] = if (3..7).contains(&i) { 0b001 } else { 0b100 };
        }
        log.made()
    }),
    Case::rld("name-of-16", "a name of 16 bytes has no NUL", &["D13"], || {
        let mut log = single();
        log.analog[0].name = b"sixteen-bytes-in".to_vec();
        log.blocks(1).made()
    }),
    Case::rld("name-repeated", "a second channel of a name", &["D13"], || {
        let mut log = single().analog("V1", 1, -8, 0xFFFF);
        log.shown = vec![(1, "V1#2")];
        let log = log.blocks(1);
        let at = log.channel_at(1);
        log.note("name_repeated", at).made()
    }),
    Case::rld("name-corrupt", "a name that is no text", &["D13"], || {
        let mut log = single();
        log.analog[0].name = vec![b'V', 0xff, b'1'];
        log.shown = vec![(0, "V\u{fffd}1")];
        let log = log.blocks(1);
        let at = log.channel_at(0);
        log.note("name_corrupt", at).note("table_implausible", at).made()
    }),
    Case::rld("ambient", "the file of sensors beside a log: one stamp for each row", &["D31"], ambient),
    Case::rld("ambient-misspelt", "releases 1.1 to 1.1.5: BME280_preas", &["D13", "D31"], || {
        let mut log = Log::new(1, 1).analog("BME280_preas", 9, -3, 0xFFFF).blocks(2);
        log.version = 3;
        log.topic = "ambient";
        log.shown = vec![(0, "BME280_press")];
        let at = log.channel_at(0);
        log.note("name_alias", at).made()
    }),
];

fn bits(count: usize) -> Log {
    (0..count).fold(Log::new(1000, 6), |log, i| log.bit(&format!("b{i}"))).analog("V1", 1, -8, 0xFFFF)
}

/// Stamps of their own for each row, 1.00352 s apart and a little late: none of it is smoothed.
fn ambient() -> Made {
    let mut log = Log::new(1, 1)
        .analog("TSL4531_left", 5, 0, 0xFFFF)
        .analog("TSL4531_right", 5, 0, 0xFFFF)
        .analog("BME280_temp", 6, -3, 0xFFFF)
        .analog("BME280_rh", 7, -6, 0xFFFF)
        .analog("BME280_press", 9, -3, 0xFFFF);
    log.topic = "ambient";
    for late in [300_000, 0, 20_000, 1_000] {
        log.block_late(1, late).truth = None;
        let at = log.since(log.rows() - 1);
        let block = log.blocks.last_mut().expect("a block");
        block.truth = Some(super::log::T0 + at + late);
    }
    log.made()
}
