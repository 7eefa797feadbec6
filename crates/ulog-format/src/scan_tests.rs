//! Tests of the limit for definitions that lookahead parses. The limit is 4 MiB, plus 16 bytes for
//! each scanned byte.

use rovelog_core::internal::scan::Scan as _;

use super::*;
use crate::wire::FLAG_BITS_AT;

/// Payload of a message that defines the format `u`. `SUBSCRIPTION` and `ROW` use this format.
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

/// Returns a format, a subscription to this format, and a row. These three messages are enough for
/// the scanner to continue after damage. To validate the row, the scanner must parse the format.
fn chain() -> Vec<u8> {
    messages(&[(b'F', FORMAT), (b'A', SUBSCRIPTION), (b'D', ROW)])
}

fn scanner(bytes: &[u8]) -> Scanner {
    Scanner::start(Window::whole(bytes), &ReadOptions::default(), Search::Near).unwrap().unwrap()
}

fn log(parts: &[Vec<u8>]) -> Vec<u8> {
    [b"ULog\x01\x12\x35\x01\0\0\0\0\0\0\0\0".to_vec(), parts.concat()].concat()
}

/// Returns the number of times that lookahead parsed the format while a log was scanned.
///
/// The log is scanned once with a single window, and once with windows that grow byte by byte, as
/// for a pipe. Both scans must parse the same number of bytes.
fn parsed(parts: &[Vec<u8>]) -> u64 {
    let bytes = log(parts);
    let whole = bytes.len()..=bytes.len();
    let [lookahead_bytes, piecewise] = [whole, 16..=bytes.len()].map(|lengths| {
        let mut scanner = scanner(&bytes);
        for len in lengths {
            let window = Window { data: &bytes[..len], base: 0, eof: len == bytes.len() };
            while let Ok(step) = scanner.step(window)
                && !matches!(step, Step::End)
            {}
        }
        scanner.lookahead.parsed_bytes
    });
    assert_eq!((lookahead_bytes, lookahead_bytes % FORMAT.len() as u64), (piecewise, 0));
    lookahead_bytes / FORMAT.len() as u64
}

#[test]
fn definitions_parsed_by_lookahead_are_counted() {
    let text = || messages(&[(b'L', b"6\0\x10\0\0\0\0\0\0ready")]);
    let unknown = || messages(&[(b'x', b"")]);
    assert_eq!(parsed(&[text(), chain()]), 0);
    // Lookahead parses the format twice: before the text is accepted, and before the unknown
    // message is skipped.
    assert_eq!(parsed(&[text(), unknown(), chain()]), 2);
    assert_eq!(parsed(&[unknown(), chain()]), 1);
    // The search for messages after damage parses the format.
    assert_eq!(parsed(&[vec![0xFF; 20], chain()]), 1);
    let wrong = messages(&[(b'F', FORMAT), (b'A', SUBSCRIPTION), (b'D', &ROW[..9])]);
    assert_eq!(parsed(&[vec![0xFF; 20], wrong, vec![0xFF; 20], chain()]), 2);
    // The text contains three valid messages, and no message follows the text.
    let swallowed = [b"6\0\x10\0\0\0\0\0\0".to_vec(), chain()].concat();
    assert_eq!(parsed(&[messages(&[(b'L', &swallowed)]), vec![0xFF; 20]]), 1);
}

#[test]
fn the_lookahead_budget_grows_with_the_log() {
    // The size of the row is wrong. If the budget is too small for parsing the format, the size is
    // not checked, and the scanner accepts the messages.
    let wrong = messages(&[(b'F', FORMAT), (b'A', SUBSCRIPTION), (b'D', &ROW[..9]), (b'A', SUBSCRIPTION)]);
    let bytes = log(&[wrong]);
    let mut scanner = scanner(&bytes);
    let mut is_known = |at: u64, lookahead_bytes: u64| {
        (scanner.position.at, scanner.lookahead.parsed_bytes) = (at, lookahead_bytes);
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
