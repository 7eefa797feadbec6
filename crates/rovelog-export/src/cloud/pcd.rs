//! PCD 0.7, unorganised.

use std::io::{self, Write};

pub(super) fn header(points: usize, comment: &str, out: &mut impl Write) -> io::Result<()> {
    write!(
        out,
        "# .PCD v0.7 - {comment}\nVERSION 0.7\nFIELDS x y z intensity ring t\nSIZE 4 4 4 4 2 4\n\
         TYPE F F F F U F\nCOUNT 1 1 1 1 1 1\nWIDTH {points}\nHEIGHT 1\nVIEWPOINT 0 0 0 1 0 0 0\n\
         POINTS {points}\nDATA binary\n"
    )
}
