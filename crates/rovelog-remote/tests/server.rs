//! Tests with a local web server. It works as expected, or it fails in a way that the test selects.

use std::fs;
use std::ops::Range;
use std::time::Duration;

use rovelog_core::ErrorKind;
use rovelog_core::internal::partial::{END, Ranges as _};
use rovelog_remote::{Address, Options, RemoteError, RemoteFile, head, upload};
use rovelog_testing::{Behavior, Served, Server};
use tempfile::TempDir;

/// Size of the test file in bytes. A request fetches at most 8 MiB, so this file requires several
/// requests.
const SIZE: usize = 20 << 20;

fn bytes(range: Range<usize>) -> Vec<u8> {
    range.map(|i| u8::try_from((i / 7 + i / 65_537) % 251).unwrap()).collect()
}

fn served(way: Behavior) -> (Server, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("log.bin"), bytes(0..SIZE)).unwrap();
    fs::write(folder.path().join("empty.bin"), b"").unwrap();
    (Server::start(folder.path(), way), folder)
}

fn impatient() -> Options {
    let mut options = Options::default();
    options.timeout = Duration::from_millis(300);
    options
}

fn open(server: &Server, options: &Options) -> Result<RemoteFile, RemoteError> {
    RemoteFile::open(&Address::parse(&server.url("log.bin")).unwrap(), options)
}

fn range(range: Range<u64>) -> Vec<Range<u64>> {
    vec![range]
}

#[test]
fn a_file_is_opened_with_one_request_for_its_end() {
    let (server, _folder) = served(Behavior::Ranges);
    let file = open(&server, &Options::default()).unwrap();
    assert_eq!(file.size(), SIZE as u64);
    assert_eq!(server.served(), Served { requests: 1, bytes: END });
    assert_eq!(file.unread().bytes(), SIZE as u64 - END);
    // Bytes that have already been downloaded are not requested again.
    assert_eq!(file.read(SIZE as u64 - 10..SIZE as u64 + 10).unwrap(), bytes(SIZE - 10..SIZE));
    assert_eq!(server.served().requests, 0);
}

#[test]
fn close_ranges_share_a_request() {
    let (server, _folder) = served(Behavior::Ranges);
    let file = open(&server, &Options::default()).unwrap();
    server.served();
    file.fetch(&[0..10, 50..60, 1_000_000..1_000_010]).unwrap();
    assert_eq!(server.served(), Served { requests: 2, bytes: 70 });
    assert_eq!(file.read(5..55).unwrap(), bytes(5..55));
    assert_eq!(server.served().requests, 0, "the bytes between the two ranges were fetched with them");
    assert_eq!(file.read(999_995..1_000_015).unwrap(), bytes(999_995..1_000_015));
    assert_eq!(server.served(), Served { requests: 1, bytes: 20 }, "one request for both ends");
}

#[test]
fn a_whole_file_is_downloaded_with_several_requests() {
    let (server, _folder) = served(Behavior::Ranges);
    let file = open(&server, &Options::default()).unwrap();
    let mut progress = 0;
    file.fetch_all(|moved| progress = moved).unwrap();
    assert_eq!(progress, SIZE as u64 - END);
    assert!(file.unread().is_empty());
    assert_eq!(server.served().bytes, SIZE as u64);
    assert!(fs::read(file.path()).unwrap() == bytes(0..SIZE));
    let path = file.path().to_owned();
    drop(file);
    assert!(!path.exists());
}

#[test]
fn an_empty_file_is_empty() {
    let (server, _folder) = served(Behavior::Ranges);
    let address = Address::parse(&server.url("empty.bin")).unwrap();
    let file = RemoteFile::open(&address, &Options::default());
    assert_eq!(file.map(|file| file.size()).unwrap(), 0);
}

#[test]
fn a_server_without_ranges_serves_whole_files_only() {
    let (server, _folder) = served(Behavior::Whole);
    let file = open(&server, &Options::default()).unwrap();
    assert!(!file.has_ranges());
    assert_eq!(file.fetch(&range(0..10)).unwrap_err().kind, ErrorKind::PartlyRead);
    file.fetch_all(|_| ()).unwrap();
    assert!(fs::read(file.path()).unwrap() == bytes(0..SIZE));
}

#[test]
fn a_file_that_changes_is_an_error() {
    let (server, _folder) = served(Behavior::Changes(2));
    let file = open(&server, &Options::default()).unwrap();
    file.fetch(&range(0..10)).unwrap();
    let error = file.fetch(&range(1_000_000..1_000_010)).unwrap_err();
    assert!(error.to_string().contains("was changed"), "{error}");
    assert!(file.fetch_all(|_| ()).is_err());
}

#[test]
fn a_stalled_server_is_a_timeout() {
    let (server, _folder) = served(Behavior::Stalls(1));
    let file = open(&server, &impatient()).unwrap();
    let error = file.fetch(&range(0..10)).unwrap_err();
    assert!(error.to_string().contains("sent no data for 0.3 s"), "{error}");
    assert_eq!(server.served().requests, 4, "three attempts, after the first response");
}

#[test]
fn truncated_responses_are_retried() {
    let (server, _folder) = served(Behavior::Cuts);
    let file = open(&server, &impatient()).unwrap();
    assert_eq!(file.read(0..100_000).unwrap(), bytes(0..100_000));
}

#[test]
fn server_errors_are_retried() {
    let (server, _folder) = served(Behavior::Fails(3));
    let file = open(&server, &Options::default()).unwrap();
    assert_eq!(server.served().requests, 4);
    assert_eq!(file.read(0..100).unwrap(), bytes(0..100));
}

#[test]
fn the_byte_limit_is_enforced() {
    let (server, _folder) = served(Behavior::Ranges);
    let mut options = Options::default();
    options.max_bytes = Some(1_000_000);
    let file = open(&server, &options).unwrap();
    server.served();
    file.fetch(&range(0..700_000)).unwrap();
    let error = file.fetch(&range(1_000_000..1_100_000)).unwrap_err();
    assert_eq!(error.kind, ErrorKind::LimitExceeded);
    assert_eq!(server.served().bytes, 700_000);
}

#[test]
fn the_byte_limit_is_enforced_for_the_first_request() {
    let (server, _folder) = served(Behavior::Ranges);
    let mut options = Options::default();
    options.max_bytes = Some(1000);
    let file = open(&server, &options).unwrap();
    assert_eq!((server.served().bytes, file.moved().bytes), (1000, 1000));
    assert_eq!(file.fetch(&range(0..1)).unwrap_err().kind, ErrorKind::LimitExceeded);
    options.max_bytes = Some(0);
    assert!(matches!(open(&server, &options).unwrap_err(), RemoteError::TooMany { .. }));
    assert_eq!(server.served(), Served::default());
}

#[test]
fn messages_do_not_contain_the_body_of_an_error() {
    let (server, _folder) = served(Behavior::Echoes);
    let address = Address::parse(&format!("{}?signature=hunter2", server.url("log.bin"))).unwrap();
    let error = rovelog_core::Error::from(RemoteFile::open(&address, &impatient()).unwrap_err());
    assert_eq!(error.to_string(), "cannot read from the server: it responded with status 400 Bad Request");
    assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
}

#[test]
fn redirects_to_other_hosts_are_followed_only_on_request() {
    let (target, _target_folder) = served(Behavior::Ranges);
    let host = target.url("").trim_start_matches("http://").trim_end_matches('/').to_owned();
    let (server, _folder) = served(Behavior::Redirects(host.clone().leak()));
    // Another port counts as another host.
    let address = Address::parse(&format!("{}?signature=hunter2", server.url("log.bin"))).unwrap();
    let error = RemoteFile::open(&address, &Options::default()).unwrap_err();
    assert!(matches!(error, RemoteError::Redirects { .. }), "{error:?}");
    let expected = format!("cannot read from the server: the server redirects to another host, {host}");
    assert_eq!(error.to_string(), expected);
    assert_eq!((server.served().requests, target.served().requests), (1, 0));
    let mut options = Options::default();
    options.follow_redirects = true;
    assert_eq!(open(&server, &options).unwrap().size(), SIZE as u64);
    // Even on request, a redirect to a narrower network is refused.
    let (server, _folder) = served(Behavior::Redirects("169.254.169.254"));
    let error = open(&server, &options).unwrap_err();
    assert!(error.to_string().contains("redirects to this machine or a private network"), "{error}");
}

#[test]
fn redirects_within_a_host_are_followed() {
    let (server, folder) = served(Behavior::Moved);
    let error = open(&server, &Options::default()).unwrap_err();
    assert!(matches!(error, RemoteError::NotFound), "{error:?}");
    fs::rename(folder.path().join("log.bin"), folder.path().join("moved.bin")).unwrap();
    assert_eq!(open(&server, &Options::default()).unwrap().size(), SIZE as u64);
}

#[test]
fn addresses_with_secrets_are_not_listed() {
    for url in ["https://h/log.ulg?signature=x", "https://me:secret@h/log.ulg", "https://token@h/log.ulg"] {
        let error = head(&Address::parse(url).unwrap(), &Options::default()).unwrap_err();
        assert!(matches!(error, RemoteError::SecretAddress), "{error:?}");
    }
}

#[test]
fn secrets_open_a_file_and_are_not_shown_in_messages() {
    let (server, _folder) = served(Behavior::Private);
    let good = Address::parse(&server.url_with_password("log.bin")).unwrap();
    assert_eq!(RemoteFile::open(&good, &Options::default()).unwrap().size(), SIZE as u64);
    let bad = server.url_with_password("log.bin").replace("secret", "hunter2");
    let error = RemoteFile::open(&Address::parse(&bad).unwrap(), &Options::default()).unwrap_err();
    assert!(matches!(error, RemoteError::Denied), "{error:?}");
    let missing = Address::parse(&server.url_with_password("none.bin")).unwrap();
    let error = RemoteFile::open(&missing, &Options::default()).unwrap_err();
    assert!(matches!(error, RemoteError::NotFound), "{error:?}");
    // No server listens on port 9, so the connection fails.
    let nobody = Address::parse("http://me:secret@127.0.0.1:9/log.bin?key=secret").unwrap();
    let error = rovelog_core::Error::from(RemoteFile::open(&nobody, &impatient()).unwrap_err());
    for text in [error.to_string(), format!("{error:?}"), format!("{nobody:?}")] {
        assert!(!text.contains("secret"), "{text}");
    }
}

#[test]
fn a_file_is_uploaded() {
    let (server, folder) = served(Behavior::Ranges);
    let from = folder.path().join("out.bin");
    fs::write(&from, b"content").unwrap();
    let to = Address::parse(&server.url("new.bin")).unwrap();
    upload(&from, &to, true, &Options::default()).unwrap();
    assert_eq!(server.written("new.bin").unwrap(), b"content");
}

#[test]
fn an_upload_without_a_response_is_a_timeout() {
    let (server, folder) = served(Behavior::Stalls(0));
    let from = folder.path().join("out.bin");
    fs::write(&from, b"content").unwrap();
    let to = Address::parse(&server.url("new.bin")).unwrap();
    let error = upload(&from, &to, true, &impatient()).unwrap_err();
    assert!(matches!(error, RemoteError::Stalled { .. }), "{error:?}");
}
