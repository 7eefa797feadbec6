//! Remote logs: the requests that a command sends to the server, and its messages.
#![cfg(feature = "remote")]

mod common;

use std::fs::{self, File};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::process::Output;

use rovelog::rld_format::unit::Unit;
use rovelog::rld_format::wire::BlockTimes;
use rovelog::rld_format::{ChannelSpec, LogSpec, RldWriter, set_counts};
use rovelog_testing::{Behavior, Server, real};
use serde_json::Value;
use tempfile::TempDir;

fn run(arguments: &[&str]) -> Output {
    common::rovelog().args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn json(arguments: &[&str]) -> Value {
    let output = run(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Writes an RLD log of 1 GB with 250 blocks of one second at 64 kHz. The file is sparse, so only
/// the header and the block times use disk space.
fn large_rld(path: &Path) -> u64 {
    let analog = (1..16).map(|i| ChannelSpec::analog(format!("V{i}"), Unit::Volt, -8));
    let channels = std::iter::once(ChannelSpec::bit("DI1")).chain(analog).collect();
    let spec = LogSpec { channels, ..LogSpec::new(64_000) };
    let mut header = spec.header().unwrap();
    let empty = RldWriter::new(std::io::Cursor::new(Vec::new()), spec.header().unwrap()).unwrap();
    let (start, row) = (empty.layout().header, empty.layout().row as u64);
    let (blocks, block) = (250, 32 + 64_000 * row);
    set_counts(&mut header, blocks * 64_000).unwrap();
    let mut file = File::create(path).unwrap();
    file.write_all(&header.to_bytes()).unwrap();
    for i in 0..blocks {
        let time = 1_700_000_000_000_000_000 + i128::from(i) * 1_003_520_000;
        file.seek(SeekFrom::Start(start + i * block)).unwrap();
        let times = BlockTimes::new(time, time - 1_600_000_000_000_000_000).unwrap();
        file.write_all(zerocopy::IntoBytes::as_bytes(&times)).unwrap();
        file.write_all(&u32::try_from(i).unwrap().to_le_bytes()).unwrap();
    }
    let size = start + blocks * block;
    file.set_len(size).unwrap();
    size
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn info_needs_at_most_three_requests_and_one_megabyte() {
    let formats = [
        ("ulog", "sample.ulg"),
        ("rld", "test_unsupported.rld"),
        ("rosbag20", "real_joints_2011.bag"),
        ("vel", "index_from_startup.vel"),
    ];
    for (name, file) in formats {
        let Some(folder) = real(name) else { continue };
        let server = Server::start(&folder, Behavior::Ranges);
        let info = json(&["info", "-f", "json", &server.url(file)]);
        let sent = server.served();
        assert!(sent.requests <= 3 && sent.bytes <= 1 << 20, "{name}: {sent:?}");
        let local = json(&["info", "-f", "json", &folder.join(file).to_string_lossy()]);
        for key in ["format", "size", "clock"] {
            assert_eq!(info[key], local[key], "{name}: {key}");
        }
        let unread: u64 = info["unread"].as_u64().unwrap();
        assert_eq!(info["state"] == "not_checked", unread > 0, "{name}");
        if info["at_least"] == false {
            assert_eq!(info["records"], local["records"], "{name}");
        }
        // With --allow-remote-scan, the whole log is downloaded in file order.
        let mut whole = json(&["info", "-f", "json", "--allow-remote-scan", &server.url(file)]);
        whole["file"] = local["file"].clone();
        assert_eq!(whole, local, "{name}");
        let size: u64 = local["size"].as_u64().unwrap();
        assert_eq!(server.served().bytes, size, "{name}: each byte once");
    }
}

/// A bag of 1 TiB whose header claims that nearly the whole file is its index.
#[test]
fn an_index_of_any_size_is_not_fetched_without_consent() {
    let folder = folder();
    let bag = fs::read(rovelog_testing::root().join("corpus/rosbag/v2.0.bag")).unwrap();
    let mut file = File::create(folder.path().join("huge.bag")).unwrap();
    file.write_all(&bag).unwrap();
    file.set_len(1 << 40).unwrap();
    let server = Server::start(folder.path(), Behavior::Ranges);
    let output = run(&["info", &server.url("huge.bag")]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(said.contains("--allow-remote-scan"), "{said}");
    let sent = server.served();
    assert!(sent.bytes <= 1 << 20, "{sent:?}");
}

#[test]
fn a_window_of_a_gigabyte_downloads_less_than_a_hundredth() {
    let folder = folder();
    let size = large_rld(&folder.path().join("large.rld"));
    assert!(size > 1_000_000_000);
    let server = Server::start(folder.path(), Behavior::Ranges);
    let info = json(&["info", "-f", "json", &server.url("large.rld")]);
    assert_eq!(info["records"], 16_000_000);
    let sent = server.served();
    assert!(sent.requests <= 3, "{sent:?}");
    let window = ["-S", "+100s", "-E", "+100.01s", "-f", "csv", "--topics", "samples"];
    let output = run(&[&["cat", &server.url("large.rld")][..], &window].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let moved = server.served();
    assert!(moved.bytes * 100 < size, "{moved:?}");
    let local = folder.path().join("large.rld");
    let local = run(&[&["cat", &*local.to_string_lossy()][..], &window].concat());
    assert_eq!(text(&output.stdout).lines().count(), text(&local.stdout).lines().count());
    // A slice downloads only the records that it contains.
    let out = folder.path().join("part.rld");
    let url = server.url("large.rld");
    let sliced = run(&["slice", &url, "-S", "+10s", "-E", "+11s", "-o", &out.to_string_lossy()]);
    assert!(sliced.status.success(), "{}", text(&sliced.stderr));
    let moved = server.served();
    assert!(moved.bytes < 2 * fs::metadata(&out).unwrap().len() + (1 << 20), "{moved:?}");
}

#[test]
fn commands_that_need_the_whole_log_ask_for_consent() {
    let Some(folder) = real("ulog") else { return };
    let server = Server::start(&folder, Behavior::Ranges);
    let url = server.url("sample.ulg");
    for command in [&["check", &*url][..], &["cat", &url, "-S", "-1s"], &["recover", &url, "-o", "/dev/null"]]
    {
        let output = run(command);
        assert_eq!(output.status.code(), Some(1), "{command:?}");
        let said = text(&output.stderr);
        assert!(said.contains("next: to read the whole log (4.1 MB), use --allow-remote-scan"), "{said}");
    }
    server.served();
    let remote = run(&["cat", &url, "-S", "-1s", "--allow-remote-scan"]);
    let local = run(&["cat", &folder.join("sample.ulg").to_string_lossy(), "-S", "-1s"]);
    assert_eq!(text(&remote.stdout), text(&local.stdout));
    let limited = run(&["check", &url, "--allow-remote-scan", "--max-bytes", "1MB"]);
    assert!(text(&limited.stderr).contains("1000000 are allowed"), "{}", text(&limited.stderr));
}

#[test]
fn a_damaged_chunk_of_a_remote_bag_is_reported() {
    let Some(real) = real("rosbag20") else { return };
    let Ok(bag) = fs::read(real.join("real_imu_navsat_bz2_2015.bag")) else { return };
    let folder = folder();
    fs::write(folder.path().join("bad.bag"), rovelog_testing::with_damaged_chunk(&bag, 2)).unwrap();
    let server = Server::start(folder.path(), Behavior::Ranges);
    let out = folder.path().join("out.bag");
    let (url, out) = (server.url("bad.bag"), out.to_string_lossy());
    for command in [&["cat", &*url, "-f", "ndjson"][..], &["stats", &url], &["slice", &url, "-o", &out]] {
        let output = run(command);
        assert_eq!(output.status.code(), Some(3), "{command:?}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains("1762 records"), "{command:?}: {}", text(&output.stderr));
    }
}

#[test]
fn a_server_without_ranges_is_read_completely_or_not_at_all() {
    let server = Server::start(common::corpus(), Behavior::Whole);
    let url = server.url("arrays-of-all-basic-types.ulg");
    let output = run(&["info", &url]);
    assert!(text(&output.stderr).contains("does not support range requests"), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("--allow-remote-scan"));
    let remote = run(&["cat", &url, "--allow-remote-scan"]);
    assert_eq!(remote.stdout, run(&["cat", "arrays-of-all-basic-types.ulg"]).stdout);
}

#[test]
fn compressed_logs_are_downloaded_completely() {
    let folder = folder();
    let log = fs::read(common::corpus().join("arrays-of-all-basic-types.ulg")).unwrap();
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(&log).unwrap();
    fs::write(folder.path().join("log.ulg.gz"), packer.finish().unwrap()).unwrap();
    let server = Server::start(folder.path(), Behavior::Ranges);
    // This log is so small that the first request downloads it completely.
    let remote = run(&["cat", &server.url("log.ulg.gz")]);
    assert_eq!(remote.stdout, run(&["cat", "arrays-of-all-basic-types.ulg"]).stdout);
}

#[test]
fn secrets_are_not_printed() {
    let server = Server::start(common::corpus(), Behavior::Private);
    let url = server.url_with_password("arrays-of-all-basic-types.ulg");
    for command in [
        &["info", &*url][..],
        &["info", "-f", "json", &url],
        &["check", &url],
        &["cat", &url, "-v"],
        &["info", &url.replace("arrays", "none")],
    ] {
        let output = run(command);
        let said = text(&output.stdout) + &text(&output.stderr);
        assert!(!said.contains("secret"), "{said}");
    }
    assert!(run(&["info", &url]).status.success());
}

#[test]
fn queries_are_not_printed() {
    let folder = folder();
    let lake = folder.path().join("lake").to_string_lossy().into_owned();
    for behavior in [Behavior::Ranges, Behavior::Echoes, Behavior::Redirects("127.0.0.1:9"), Behavior::Whole]
    {
        let server = Server::start(common::corpus(), behavior);
        let url = server.url("arrays-of-all-basic-types.ulg?signature=hunter2");
        let out = server.url("out.ulg?signature=hunter2");
        for command in [
            &["info", &*url][..],
            &["info", "-f", "json", &url],
            &["check", "-v", &url],
            &["cat", &url],
            &["merge", &url, &url, "-o", &out],
            &["recover", &url, "-o", &out, "--allow-remote-scan"],
            &["ingest", &url, "-o", &lake, "-f", "ndjson"],
            &["plot", &url, "none.none"],
            &["view", &url],
            &["info", &url.replace("http://127", "http://[127")],
            &["info", &url.replace("http", "ftp")],
        ] {
            let output = run(command);
            let said = text(&output.stdout) + &text(&output.stderr);
            assert!(!said.contains("hunter2"), "{behavior:?} {command:?}: {said}");
        }
    }
}

#[test]
fn a_lake_takes_no_address_with_a_query() {
    let server = Server::start(common::corpus(), Behavior::Ranges);
    let folder = folder();
    let lake = folder.path().join("lake").to_string_lossy().into_owned();
    let url = server.url("one-topic.ulg");
    let signed = run(&["ingest", &format!("{url}?signature=x"), "-o", &lake]);
    let said = text(&signed.stderr);
    assert_eq!(signed.status.code(), Some(1), "{said}");
    assert!(said.contains("the address has a user, a password or a query"), "{said}");
    let limited = run(&["ingest", &url, "-o", &lake, "--max-bytes", "1"]);
    assert!(text(&limited.stderr).contains("--max-bytes does not apply to ingest"));
    assert_eq!(run(&["ingest", &url, "-o", &lake]).status.code(), Some(0));
}

#[test]
fn a_redirect_to_another_host_asks_for_consent() {
    let target = Server::start(common::corpus(), Behavior::Ranges);
    let host = target.url("").trim_start_matches("http://").trim_end_matches('/').to_owned();
    let server = Server::start(common::corpus(), Behavior::Redirects(host.leak()));
    let url = server.url("one-topic.ulg");
    let output = run(&["info", &url]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(said.contains("redirects to another host") && said.contains("--follow-redirects"), "{said}");
    assert_eq!(target.served().requests, 0);
    assert_eq!(json(&["info", "-f", "json", &url, "--follow-redirects"])["format"]["id"], "ulog");
}

#[test]
fn the_first_request_is_within_the_limit() {
    let server = Server::start(common::corpus(), Behavior::Ranges);
    let url = server.url("arrays-of-all-basic-types.ulg");
    let output = run(&["info", &url, "--max-bytes", "100"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("only 100 are allowed"), "{}", text(&output.stderr));
    assert!(server.served().bytes <= 100);
}

#[test]
fn an_output_is_uploaded_to_a_server() {
    let server = Server::start(common::corpus(), Behavior::Ranges);
    let url = server.url("out.ndjson");
    let output = run(&["export", "arrays-of-all-basic-types.ulg", "-o", &url, "--force"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let folder = folder();
    let local = folder.path().join("out.ndjson");
    run(&["export", "arrays-of-all-basic-types.ulg", "-o", &local.to_string_lossy()]);
    assert_eq!(server.written("out.ndjson"), Some(fs::read(&local).unwrap()));
    // The output must not overwrite the input, even if its URL is spelled differently.
    let input = server.url("arrays-of-all-basic-types.ulg");
    for output in [input.clone(), format!("{input}?version=1")] {
        let over = ["recover", &input, "-o", &output, "--force", "--allow-remote-scan"];
        let refused = run(&over);
        let said = text(&refused.stderr);
        assert!(
            refused.status.code() == Some(2) && said.contains("the output file is also the input file"),
            "{said}"
        );
        assert_eq!(server.written("arrays-of-all-basic-types.ulg"), None);
    }
    // A failed run uploads nothing.
    let failed = run(&["export", "none.ulg", "-o", &server.url("never.ndjson")]);
    assert_eq!(failed.status.code(), Some(1));
    assert_eq!(server.written("never.ndjson"), None);
}

#[test]
fn other_addresses_are_refused() {
    let output = run(&["info", "ftp://me:secret@127.0.0.1/log.ulg"]);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(
        said.contains("ftp:// are not supported")
            && said.contains("next: use an address that starts with s3://"),
        "{said}"
    );
    assert!(!said.contains("secret"));
}
