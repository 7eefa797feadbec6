//! The benchmarks for each log format.
//!
//! An entry starts with the format, the compressions of V2.0 bags, and the packages of the Python
//! library to compare with. It is followed by groups. Each group consists of a heading, the name of
//! the benchmark with which all others are compared, and the benchmarks with their descriptions.

use super::{Bench, Group};
use crate::python::{PYULOG, ROCKETLOGGER, ROSBAGS, VELODYNE_DECODER};

macro_rules! benches {
    ($($format:literal $(of $($compression:literal)+)? [$($package:expr),*] $($heading:literal / $peer:literal: {$($work:literal $what:literal)*})*;)*) => {
        pub(super) const BENCHES: &[Bench] = &[$(Bench {
            format: $format,
            compressions: &[$($($compression),+)?],
            python: &[$($package),*],
            groups: &[$(Group { heading: $heading, peer: $peer, works: &[$(($work, $what)),*] }),*],
        }),*];
    };
}

benches! {
    "ulog" [PYULOG, "numpy"]
    "all topics" / "px4-ulog-kept": {
        "bare-gather" "the limit: a bare loop into reused buffers, nothing validated"
        "px4-ulog-kept" "px4-ulog 0.6.1, typed columns kept"
        "rovelog-streamed" "Arrow batches into reused buffers"
        "rovelog-kept" "Arrow columns kept"
        "yule_log-values" "yule_log 0.4.0, values, no columns"
        "pyulog-kept" "pyulog 1.3.0, numpy columns kept"
    }
    "one topic of 43 (sensor_combined, a quarter of the rows)" / "px4-ulog-one-kept": {
        "bare-gather-one" "the limit: a bare loop into reused buffers, nothing validated"
        "px4-ulog-one-kept" "px4-ulog 0.6.1, callback that keeps typed columns"
        "rovelog-one-streamed" "Arrow batches into reused buffers"
        "rovelog-one-kept" "Arrow columns kept"
        "pyulog-one-kept" "pyulog 1.3.0 with its message filter"
    }
    "three fields of each row of sensor_combined" / "rovelog-rows-by-place": {
        "rovelog-rows-by-place" "fields read in place"
        "rovelog-rows-as-structs" "structs with a derived Deserialize"
    }
    "information" / "pyulog-info": {
        "bare-hop" "the limit: a bare hop from header to header"
        "pyulog-info" "ulog_info of pyulog 1.3.0"
        "rovelog-info" "rovelog::open and its summary"
    };

    "rld" [ROCKETLOGGER, "numpy"]
    "columns" / "py-rocketlogger-load": {
        "py-rocketlogger-load" "rocketlogger 2.1.3, load (mapped; values are not decoded)"
        "rovelog-columns" "Arrow batches of raw integers, bits and times into reused buffers"
        "rovelog-columns-untimed" "the same without times"
        "bare-copy" "the limit: the file copied into a touched buffer"
    }
    "one channel" / "py-rocketlogger-one": {
        "py-rocketlogger-one" "rocketlogger 2.1.3, load and one channel as f64"
        "rovelog-one" "one channel as f64 into a reused buffer"
        "rovelog-one-timed" "the same with its times"
    }
    "all channels as f64" / "py-rocketlogger-f64": {
        "py-rocketlogger-f64" "rocketlogger 2.1.3, load and all channels"
        "rovelog-f64" "Arrow batches of physical values, bits and times into reused buffers"
    }
    "statistics and energy" / "py-rocketlogger-energy": {
        "py-rocketlogger-energy"
            "rocketlogger 2.1.3: load, merge; numpy: min, max, mean, std of voltages and currents, two energies"
        "py-rocketlogger-energy-only" "rocketlogger 2.1.3: load, merge; numpy: two energies, no statistics"
        "rovelog-energy" "the same for all channels, exact, with merged currents, in one pass"
    }
    "information" / "py-rocketlogger-header": {
        "py-rocketlogger-header" "rocketlogger 2.1.3, header_only"
        "rovelog-info" "rovelog::open and its summary"
    };

    // The other readers are Debian's python3-rosbag and librosbag-storage.
    "rosbag" []
    "every message, its payload read" / "pyrosbag-raw": {
        "pyrosbag-raw" "python3-rosbag, raw messages by the index"
        "cpp-view" "librosbag-storage View by the index, payload read"
        "rovelog-scan" "a scan without index, payload read"
        "rovelog-open" "a scan without index, all headers, payloads measured"
        "rovelog-records" "records in time order, payload read"
    }
    "every message decoded" / "pyrosbag-values": {
        "pyrosbag-values" "python3-rosbag, messages as objects"
        "rovelog-values" "values"
        "rovelog-columns" "Arrow batches of all topics"
    };

    // These bags have uncompressed chunks.
    "rosbag" of "none" [ROSBAGS]
    "V2.0, none: every message, its payload read" / "cpp-view": {
        "cpp-view" "librosbag-storage View, payload read"
        "pyrosbag-raw" "python3-rosbag, raw messages"
        "pyrosbags-raw" "rosbags 0.11.9, raw messages"
        "crate-rosbag" "rosbag 0.6.3 (Rust), file order, no connections, payload read"
        "bare-scan" "the limit: plain scan over a fresh map, payload read"
        "rovelog-scan" "a scan in file order, payload read"
        "rovelog-raw" "records in file order, payload read"
        "rovelog-records" "records in time order, payload read"
    }
    "V2.0, none: every message decoded" / "pyrosbags-values": {
        "pyrosbags-values" "rosbags 0.11.9, messages as objects"
        "pyrosbag-values" "python3-rosbag, messages as objects"
        "rovelog-values" "values"
        "rovelog-columns" "Arrow batches of all topics"
    }
    "V2.0, none: information" / "pyrosbag-info": {
        "pyrosbag-info" "python3-rosbag, `rosbag info`"
        "rovelog-info" "rovelog::open and its summary"
    };

    "rosbag" of "lz4" "bz2" [ROSBAGS]
    "V2.0, compressed: every message, its payload read" / "bare-unpack": {
        "bare-unpack" "the limit: every chunk decompressed by lz4_flex or bzip2 on one thread, nothing else"
        "cpp-view" "librosbag-storage View, payload read"
        "pyrosbag-raw" "python3-rosbag, raw messages"
        "pyrosbags-raw" "rosbags 0.11.9, raw messages"
        "crate-rosbag" "rosbag 0.6.3 (Rust), file order, no connections, payload read"
        "rovelog-raw" "records in file order, payload read"
        "rovelog-records" "records in time order, payload read"
    };

    "vel" [VELODYNE_DECODER, "numpy"]
    "information" / "bare-walk": {
        "bare-walk" "the limit: plain scan from header to header over a fresh map"
        "rovelog-info" "rovelog::open and its summary"
    }
    "packets to points, HDL-64E" / "pyvelodyne-points": {
        "pyvelodyne-points" "velodyne-decoder 3.1.0 (C++, from Python)"
        "rovelog-points" "revolutions into one buffer, calibration recovered"
        "rovelog-points-exact" "the same with exact azimuths and corrected intensities"
    }
    "points compared with the sensor itself" / "py-recorded": {
        "py-recorded" "the time that the recording took"
        "rovelog-points" "revolutions into one buffer, one thread"
    }
    "JPEGs" / "rovelog-jpeg-decoded": {
        "rovelog-jpeg-decoded" "every image to pixels"
        "rovelog-jpeg-extracted" "every image, unchanged, to its own file in memory"
    };
}
