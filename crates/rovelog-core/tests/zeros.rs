//! Tests of [`Window::zeros_end`], which a search for records uses to skip zeros.

use rovelog_core::internal::scan::Window;

#[test]
fn a_run_of_zeros_ends_at_the_first_other_byte() {
    for zeros in [0, 1, 2, 63, 64, 65, 127, 128, 200, 5000] {
        for before in [0, 1, 63, 64, 65] {
            let mut data = vec![7; before];
            data.resize(before + zeros, 0);
            let end = (10 + data.len()) as u64;
            let from = 10 + before as u64;
            let to_the_end = Window { data: &data, base: 10, eof: true };
            assert_eq!(to_the_end.zeros_end(from), end, "{zeros} zeros behind {before} bytes");
            let more = [&data[..], b"\x01\0\0\0"].concat();
            let followed = Window { data: &more, base: 10, eof: false };
            assert_eq!(followed.zeros_end(from), end, "{zeros} zeros behind {before} bytes, then others");
        }
    }
}

#[test]
fn there_are_no_zeros_after_the_window() {
    let window = Window { data: b"\0\0", base: 0, eof: false };
    assert_eq!((window.zeros_end(1), window.zeros_end(2), window.zeros_end(9)), (2, 2, 9));
}
