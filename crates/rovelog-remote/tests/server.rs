//! Remote files on a web server that behaves, and on ones that do not.

use std::fs;
use std::ops::Range;
use std::time::Duration;

use rovelog_core::ErrorKind;
use rovelog_core::partial::{END, Ranges as _};
use rovelog_remote::{Address, Options, RemoteError, RemoteFile, upload};
use rovelog_testing::{Served, Server, Way};
use tempfile::TempDir;

/// Bytes of the file: more than several requests.
const SIZE: usize = 20 << 20;

fn bytes(range: Range<usize>) -> Vec<u8> {
    range.map(|i| u8::try_from((i / 7 + i / 65_537) % 251).unwrap()).collect()
}

fn served(way: Way) -> (Server, TempDir) {
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
    let (server, _folder) = served(Way::Ranges);
    let file = open(&server, &Options::default()).unwrap();
    assert_eq!(file.size(), SIZE as u64);
    assert_eq!(server.served(), Served { requests: 1, bytes: END });
    assert_eq!(file.unread().bytes(), SIZE as u64 - END);
    // What is there is not fetched again.
    assert_eq!(file.read(SIZE as u64 - 10..SIZE as u64 + 10).unwrap(), bytes(SIZE - 10..SIZE));
    assert_eq!(server.served().requests, 0);
}

#[test]
fn close_ranges_are_one_request_and_far_ones_two() {
    let (server, _folder) = served(Way::Ranges);
    let file = open(&server, &Options::default()).unwrap();
    server.served();
    file.fetch(&[0..10, 50..60, 1_000_000..1_000_010]).unwrap();
    assert_eq!(server.served(), Served { requests: 2, bytes: 70 });
    assert_eq!(file.read(5..55).unwrap(), bytes(5..55));
    assert_eq!(server.served().requests, 0, "what lies between was fetched with them");
    assert_eq!(file.read(999_995..1_000_015).unwrap(), bytes(999_995..1_000_015));
    assert_eq!(server.served(), Served { requests: 1, bytes: 20 }, "one request for both ends");
}

#[test]
fn all_of_a_file_is_fetched_piece_by_piece() {
    let (server, _folder) = served(Way::Ranges);
    let file = open(&server, &Options::default()).unwrap();
    let mut told = 0;
    file.fetch_all(|moved| told = moved).unwrap();
    assert_eq!(told, SIZE as u64 - END);
    assert!(file.unread().is_empty());
    assert_eq!(server.served().bytes, SIZE as u64);
    assert!(fs::read(file.path()).unwrap() == bytes(0..SIZE));
    let path = file.path().to_owned();
    drop(file);
    assert!(!path.exists());
}

#[test]
fn an_empty_file_is_empty() {
    let (server, _folder) = served(Way::Ranges);
    let address = Address::parse(&server.url("empty.bin")).unwrap();
    let file = RemoteFile::open(&address, &Options::default());
    assert_eq!(file.map(|file| file.size()).unwrap(), 0);
}

#[test]
fn a_server_without_ranges_gives_whole_files_only() {
    let (server, _folder) = served(Way::Whole);
    let file = open(&server, &Options::default()).unwrap();
    assert!(!file.has_ranges());
    assert_eq!(file.fetch(&range(0..10)).unwrap_err().kind, ErrorKind::PartlyRead);
    file.fetch_all(|_| ()).unwrap();
    assert!(fs::read(file.path()).unwrap() == bytes(0..SIZE));
}

#[test]
fn a_file_that_changes_is_an_error() {
    let (server, _folder) = served(Way::Changes(2));
    let file = open(&server, &Options::default()).unwrap();
    file.fetch(&range(0..10)).unwrap();
    let error = file.fetch(&range(1_000_000..1_000_010)).unwrap_err();
    assert!(error.to_string().contains("was changed"), "{error}");
    assert!(file.fetch_all(|_| ()).is_err());
}

#[test]
fn a_server_that_stalls_is_given_up() {
    let (server, _folder) = served(Way::Stalls(1));
    let file = open(&server, &impatient()).unwrap();
    let error = file.fetch(&range(0..10)).unwrap_err();
    assert!(error.to_string().contains("sent nothing for 0.3 s"), "{error}");
    assert_eq!(server.served().requests, 4, "three times, after the first answer");
}

#[test]
fn answers_that_break_off_are_asked_for_again() {
    let (server, _folder) = served(Way::Cuts);
    let file = open(&server, &impatient()).unwrap();
    assert_eq!(file.read(0..100_000).unwrap(), bytes(0..100_000));
}

#[test]
fn errors_of_the_server_are_waited_for() {
    let (server, _folder) = served(Way::Fails(3));
    let file = open(&server, &Options::default()).unwrap();
    assert_eq!(server.served().requests, 4);
    assert_eq!(file.read(0..100).unwrap(), bytes(0..100));
}

#[test]
fn the_limit_of_bytes_holds() {
    let (server, _folder) = served(Way::Ranges);
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
fn the_limit_of_bytes_holds_for_the_first_request() {
    let (server, _folder) = served(Way::Ranges);
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
fn the_body_of_an_error_is_in_no_message() {
    let (server, _folder) = served(Way::Echoes);
    let address = Address::parse(&format!("{}?signature=hunter2", server.url("log.bin"))).unwrap();
    let error = rovelog_core::Error::from(RemoteFile::open(&address, &impatient()).unwrap_err());
    assert_eq!(error.to_string(), "the server cannot be read: it answered 400 Bad Request");
    assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
}

#[test]
fn a_redirect_to_a_narrower_network_is_refused() {
    let (server, folder) = served(Way::Redirects("169.254.169.254"));
    let error = open(&server, &impatient()).unwrap_err();
    assert!(error.to_string().contains("redirects to this machine or a private network"), "{error}");
    // Within the network of the address that was named, redirects are followed.
    let other = Server::start(folder.path(), Way::Ranges);
    let host = other.url("").trim_start_matches("http://").trim_end_matches('/').to_owned();
    let (server, _folder) = served(Way::Redirects(host.leak()));
    assert_eq!(open(&server, &Options::default()).unwrap().size(), SIZE as u64);
}

#[test]
fn secrets_open_a_file_and_are_in_no_message() {
    let (server, _folder) = served(Way::Private);
    let good = Address::parse(&server.url_with_password("log.bin")).unwrap();
    assert_eq!(RemoteFile::open(&good, &Options::default()).unwrap().size(), SIZE as u64);
    let bad = server.url_with_password("log.bin").replace("secret", "hunter2");
    let error = RemoteFile::open(&Address::parse(&bad).unwrap(), &Options::default()).unwrap_err();
    assert!(matches!(error, RemoteError::Denied), "{error:?}");
    let missing = Address::parse(&server.url_with_password("none.bin")).unwrap();
    let error = RemoteFile::open(&missing, &Options::default()).unwrap_err();
    assert!(matches!(error, RemoteError::NotFound), "{error:?}");
    // Nobody listens there.
    let nobody = Address::parse("http://me:secret@127.0.0.1:9/log.bin?key=secret").unwrap();
    let error = rovelog_core::Error::from(RemoteFile::open(&nobody, &impatient()).unwrap_err());
    for text in [error.to_string(), format!("{error:?}"), format!("{nobody:?}")] {
        assert!(!text.contains("secret"), "{text}");
    }
}

#[test]
fn a_file_is_written_to_a_server() {
    let (server, folder) = served(Way::Ranges);
    let from = folder.path().join("out.bin");
    fs::write(&from, b"content").unwrap();
    let to = Address::parse(&server.url("new.bin")).unwrap();
    upload(&from, &to, true, &Options::default()).unwrap();
    assert_eq!(server.written("new.bin").unwrap(), b"content");
}

#[test]
fn an_upload_that_is_not_answered_ends() {
    let (server, folder) = served(Way::Stalls(0));
    let from = folder.path().join("out.bin");
    fs::write(&from, b"content").unwrap();
    let to = Address::parse(&server.url("new.bin")).unwrap();
    let error = upload(&from, &to, true, &impatient()).unwrap_err();
    assert!(matches!(error, RemoteError::Stalled { .. }), "{error:?}");
}
