//! How much looking ahead may parse: 4 MiB of definitions, and 16 bytes for each byte that was
//! scanned.

use rovelog_core::scan::Scan as _;

use super::*;
use crate::wire::FLAG_BITS_AT;

/// A format that looking ahead parses, its subscription and a row of it.
const FORMAT: &[u8] = b"u:uint64_t timestamp;uint8_t v;";
const SUBSCRIPTION: &[u8] = b"\0\x05\0u";
const ROW: &[u8] = b"\x05\0\0\x10\0\0\0\0\0\0\x07";

fn messages(messages: &[(u8, &[u8])]) -> Vec<u8> {
    let message = |(msg_type, payload): &(u8, &[u8])| {
        let len = u16::try_from(payload.len()).unwrap();
        [&len.to_le_bytes()[..], &[*msg_type], payload].concat()
    };
    messages.iter().flat_map(message).collect()
}

/// Three messages that make a chain, for which the format is parsed.
fn chain() -> Vec<u8> {
    messages(&[(b'F', FORMAT), (b'A', SUBSCRIPTION), (b'D', ROW)])
}

fn scanner(bytes: &[u8]) -> Scanner {
    Scanner::start(Window::whole(bytes), &ReadOptions::default(), Search::Near).unwrap().unwrap()
}

fn log(parts: &[Vec<u8>]) -> Vec<u8> {
    [b"ULog\x01\x12\x35\x01\0\0\0\0\0\0\0\0".to_vec(), parts.concat()].concat()
}

/// Returns how often the format was parsed to look ahead, while a log was scanned: whole, and as it
/// comes from a pipe, byte by byte.
fn parsed(parts: &[Vec<u8>]) -> u64 {
    let bytes = log(parts);
    let whole = bytes.len()..=bytes.len();
    let [used, piecewise] = [whole, 16..=bytes.len()].map(|lengths| {
        let mut scanner = scanner(&bytes);
        for len in lengths {
            let window = Window { data: &bytes[..len], base: 0, eof: len == bytes.len() };
            while let Ok(step) = scanner.step(window)
                && !matches!(step, Step::End)
            {}
        }
        scanner.used
    });
    assert_eq!((used, used % FORMAT.len() as u64), (piecewise, 0));
    used / FORMAT.len() as u64
}

#[test]
fn definitions_that_looking_ahead_parses_are_counted() {
    let text = || messages(&[(b'L', b"6\0\x10\0\0\0\0\0\0ready")]);
    let unknown = || messages(&[(b'x', b"")]);
    assert_eq!(parsed(&[text(), chain()]), 0);
    // Before the text is taken, and before the unknown message is passed.
    assert_eq!(parsed(&[text(), unknown(), chain()]), 2);
    assert_eq!(parsed(&[unknown(), chain()]), 1);
    // The search behind damage.
    assert_eq!(parsed(&[vec![0xFF; 20], chain()]), 1);
    let wrong = messages(&[(b'F', FORMAT), (b'A', SUBSCRIPTION), (b'D', &ROW[..9])]);
    assert_eq!(parsed(&[vec![0xFF; 20], wrong, vec![0xFF; 20], chain()]), 2);
    // A text that contains the messages, and is followed by none.
    let swallowed = [b"6\0\x10\0\0\0\0\0\0".to_vec(), chain()].concat();
    assert_eq!(parsed(&[messages(&[(b'L', &swallowed)]), vec![0xFF; 20]]), 1);
}

#[test]
fn what_looking_ahead_may_parse_grows_with_the_log() {
    // With a row of another size there is a chain only as long as the size is not known.
    let wrong = messages(&[(b'F', FORMAT), (b'A', SUBSCRIPTION), (b'D', &ROW[..9]), (b'A', SUBSCRIPTION)]);
    let bytes = log(&[wrong]);
    let mut scanner = scanner(&bytes);
    let mut is_known = |at: u64, used: u64| {
        (scanner.at, scanner.used) = (at, used);
        let window = Window::whole(&bytes);
        let found =
            scanner.validator(window, window.end()).scan(&mut Scan::from(FLAG_BITS_AT), FLAG_BITS_AT + 1);
        found.unwrap().is_none()
    };
    let len = FORMAT.len() as u64;
    for at in [0, 1, 1000, 1 << 30] {
        let budget = (4 << 20) + 16 * at;
        assert!(is_known(at, budget - len), "{at}");
        assert!(!is_known(at, budget - len + 1), "{at}");
        assert!(!is_known(at, budget + 1), "{at}");
    }
}
