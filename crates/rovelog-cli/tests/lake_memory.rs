//! The memory of a worker of `ingest` must not grow with the size of the logs.
#![cfg(target_os = "linux")]

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const ROVELOG: &str = env!("CARGO_BIN_EXE_rovelog");
const TOPICS: u16 = 8;
const FIELDS: u32 = 40;
const MIB: u64 = 1 << 20;

fn message(out: &mut impl Write, kind: u8, payload: &[u8]) {
    let size = u16::try_from(payload.len()).expect("a short message");
    out.write_all(&size.to_le_bytes()).and_then(|()| out.write_all(&[kind])).expect("space");
    out.write_all(payload).expect("space");
}

/// Writes a log of about `size` bytes. It has many topics with many fields, and enough rows to fill
/// the pages of all columns at the same time.
fn log(path: &Path, size: u64) {
    let mut out = BufWriter::new(File::create(path).expect("a folder"));
    out.write_all(b"ULog\x01\x12\x35\x01\0\0\0\0\0\0\0\0").expect("space");
    let fields = (0..FIELDS).map(|field| format!("float f{field};")).collect::<Vec<_>>().concat();
    for topic in 0..TOPICS {
        message(&mut out, b'F', format!("topic_{topic}:uint64_t timestamp;{fields}").as_bytes());
        let mut subscription = vec![0];
        subscription.extend(topic.to_le_bytes());
        subscription.extend(format!("topic_{topic}").into_bytes());
        message(&mut out, b'A', &subscription);
    }
    let row = 3 + 2 + 8 + 4 * u64::from(FIELDS);
    let mut noise = 1_u32;
    for time in 0..size / row / u64::from(TOPICS) {
        for topic in 0..TOPICS {
            let mut data = topic.to_le_bytes().to_vec();
            data.extend((1000 * (time + 1)).to_le_bytes());
            for _ in 0..FIELDS {
                noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                data.extend(f32::from(u16::try_from(noise >> 16).expect("16 bits")).to_le_bytes());
            }
            message(&mut out, b'D', &data);
        }
    }
    out.flush().expect("space");
}

/// Returns the anonymous memory of a process in bytes, which excludes memory-mapped files.
fn anonymous(process: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? * 1024)
}

/// Returns the peak memory in bytes of the worker that adds the log `log` to a lake.
fn peak(log: &Path, lake: &Path) -> u64 {
    let mut run = Command::new(ROVELOG)
        .args(["ingest", "--jobs", "1", "-q", "-o"])
        .args([lake, log])
        .stdout(Stdio::null())
        .spawn()
        .expect("it starts");
    let mut most = 0;
    while run.try_wait().expect("our own process").is_none() {
        for thread in fs::read_dir(format!("/proc/{}/task", run.id())).into_iter().flatten().flatten() {
            let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            most = children.split_whitespace().filter_map(anonymous).fold(most, u64::max);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    assert_eq!(run.wait().expect("it ended").code(), Some(0));
    most
}

#[test]
fn the_memory_of_a_worker_does_not_grow_with_its_log() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("log.ulg");
    let peaks: Vec<u64> = [96 * MIB, 288 * MIB]
        .into_iter()
        .map(|size| {
            log(&path, size);
            peak(&path, &folder.path().join(format!("lake-{size}")))
        })
        .collect();
    // Both logs are large enough to fill all buffers for rows.
    assert!(peaks[0] > 32 * MIB, "{peaks:?}: the worker was not seen");
    assert!(peaks[1] < peaks[0] * 5 / 4, "{peaks:?}");
    assert!(peaks[1] < 160 * MIB, "{peaks:?}");
}
