//! Cases of malicious definitions that would exhaust the memory or stack of a reader. Their topic
//! cannot be decoded, but all other topics are read.

use super::prelude::*;

cases! {
    "hostile+circular-subscribed" [D32] "two types that contain each other" =>
        with_plain(&["h:uint64_t timestamp;b b;", "b:uint8_t v;h h;"], [], 12);
    "hostile+self-containing-subscribed" [D32] "a type that contains itself" =>
        with_plain(&["h:uint64_t timestamp;h[2] again;"], [], 8);
    "hostile+undefined-nested-type" [D7 D21] "a subscribed format with a field of a type that is nowhere" =>
        with_plain(&["h:uint64_t timestamp;ghost g;float x;"], [], 20);
    "hostile+60-doubling-levels" [D32] "each of 60 types holds the next one twice: 2^60 leaves" => {
        let levels = (0..59).map(|i| format!("d{i}:d{n} a;d{n} b;", n = i + 1));
        with_plain(&["h:uint64_t timestamp;d0 a;"], levels.chain(["d59:uint8_t v;".to_owned()]), 30)
    };
    "hostile+3000-levels" [D32] "a chain of 3000 types: no reader may walk it by calling itself" => {
        let levels = (0..2999).map(|i| format!("c{i}:c{} v;", i + 1));
        with_plain(&["h:uint64_t timestamp;c0 a;"], levels.chain(["c2999:uint8_t v;".to_owned()]), 9)
    };
    "hostile+size-overflow" [D32] "arrays of arrays whose size does not fit 64 bits" => {
        let levels = (1..6).map(|i| format!("a{i}:a{}[65535] v;", i - 1));
        with_plain(&["h:uint64_t timestamp;a5[65535] v;", "a0:uint8_t[65535] v;"], levels, 40)
    };
    "hostile+huge-array" [D32] "an array of 4294967295" =>
        with_plain(&["h:uint64_t timestamp;uint8_t[4294967295] v;"], [], 20);
    "hostile+row-over-the-limit" [D32] "an array that is allowed in a row that fits no message" =>
        with_plain(&["h:uint64_t timestamp;uint8_t[65535] v;"], [], 20);
    "hostile+leaves-without-size" [D32] "120000 empty arrays in a row of 8 bytes" =>
        with_plain(&["e:uint8_t[0] v;", "h:uint64_t timestamp;e[60000] a;e[60000] b;"], [], 8);
    "nesting-64" [D32] "64 types one inside the other below the topic's own: read" =>
        Log::new().format("n64:float v;").each((1..64).rev(), |log, n| log.format(&format!("n{n}:n{} v;", n + 1)))
            .topic("deep:uint64_t timestamp;n1 a;float x;")
            .each(0..2, |log, i| {
                let nested = (0..64).fold(Value::from(7.0), |value, _| vec![value].into());
                log.row(0, values![time(i), nested, f32::from(i)])
            });
    "hostile+nesting-65" [D32] "one more is too deep" => {
        let levels = (1..65).map(|level| format!("n{level}:n{} v;", level + 1));
        with_plain(&["h:uint64_t timestamp;n1 a;float x;"], levels.chain(["n65:float v;".to_owned()]), 16)
    };
}

/// Returns a log with these formats and alternating rows of two topics: the plain topic with the id
/// 0, and the topic `h` with the id 1. The rows of `h` have `size` bytes and cannot be decoded.
fn with_plain(formats: &[&str], more: impl IntoIterator<Item = String>, size: usize) -> Log {
    let texts = formats.iter().copied().map(str::to_owned).chain(more);
    let log = Log::new().each(texts, |log, text| log.format(&text)).topic(PLAIN);
    let log = log.undecodable("undecodable_topic", "h", 0, 1).rows(0..3);
    log.each(3..8, |log, i| log.lose("undecodable", data(1, vec![1; size])).rows(i..i + 1)).rows(8..11)
}
