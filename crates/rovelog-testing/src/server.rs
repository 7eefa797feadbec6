//! A local web server that counts its traffic and misbehaves on request.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Behavior of the test server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behavior {
    /// The server supports range requests.
    Ranges,
    /// The server ignores ranges and always sends whole files.
    Whole,
    /// The server sends changed files after this number of responses.
    Changes(u64),
    /// The server sends nothing more after this number of responses.
    Stalls(u64),
    /// The server closes the connection in the middle of every second response, starting with the
    /// first response.
    Cuts,
    /// The server responds to this number of initial requests with status 500.
    Fails(u64),
    /// The server responds with status 400. The body contains the path and query of the request.
    Echoes,
    /// The server redirects every request to this host. The host may have a port.
    Redirects(&'static str),
    /// The server redirects every request to `moved.bin` on the same host.
    Moved,
    /// The server requires a user name and a password.
    Private,
}

/// Traffic of a server since the previous measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Number of requests.
    pub requests: u64,
    /// Number of file bytes sent.
    pub bytes: u64,
}

/// A running server. Dropping it stops the server.
#[derive(Debug)]
pub struct Server {
    /// Address on which the server listens.
    address: SocketAddr,
    /// State that is shared with the threads of the server.
    shared: Arc<Shared>,
}

/// State that is shared by all threads of a server.
#[derive(Debug)]
struct Shared {
    /// Folder that contains the files of the server.
    folder: PathBuf,
    /// Behavior of the server.
    behavior: Behavior,
    /// Number of requests since the last call of [`Server::served`].
    requests: AtomicU64,
    /// Number of file bytes sent since the last call of [`Server::served`].
    bytes: AtomicU64,
    /// Number of responses to requests for files.
    answers: AtomicU64,
    /// True if the server should end.
    ended: AtomicBool,
    /// Uploaded files by name.
    put: Mutex<BTreeMap<String, Vec<u8>>>,
}

impl Shared {
    /// Blocks without sending anything until the server ends.
    fn stall(&self) {
        while !self.ended.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// The `Authorization` header of user `me` with password `secret`.
const CREDENTIALS: &str = "Basic bWU6c2VjcmV0";

impl Server {
    /// Starts a server for the files in a folder, on a free port.
    pub fn start(folder: impl AsRef<Path>, behavior: Behavior) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("a bound socket");
        let shared = Arc::new(Shared {
            folder: folder.as_ref().to_owned(),
            behavior,
            requests: AtomicU64::default(),
            bytes: AtomicU64::default(),
            answers: AtomicU64::default(),
            ended: AtomicBool::default(),
            put: Mutex::default(),
        });
        let server = Self { address, shared: Arc::clone(&shared) };
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                if shared.ended.load(Ordering::SeqCst) {
                    break;
                }
                let shared = Arc::clone(&shared);
                // Errors are ignored, because a client may disconnect at any time.
                std::thread::spawn(move || connection.map(|connection| serve(&connection, &shared)));
            }
        });
        server
    }

    /// Returns the URL of a file on this server.
    pub fn url(&self, name: &str) -> String {
        format!("http://{}/{name}", self.address)
    }

    /// Returns the URL of a file on this server, including the user name and the password.
    pub fn url_with_password(&self, name: &str) -> String {
        format!("http://me:secret@{}/{name}", self.address)
    }

    /// Returns the traffic since the last call of this function.
    pub fn served(&self) -> Served {
        let take = |count: &AtomicU64| count.swap(0, Ordering::SeqCst);
        Served { requests: take(&self.shared.requests), bytes: take(&self.shared.bytes) }
    }

    /// Returns the contents of the uploaded file with this name.
    pub fn written(&self, name: &str) -> Option<Vec<u8>> {
        self.shared.put.lock().expect("no thread panics").get(name).cloned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::SeqCst);
        // The listener blocks until the next connection. So connect once to unblock it.
        drop(TcpStream::connect(self.address));
    }
}

/// Serves the requests of a connection until it is closed.
fn serve(connection: &TcpStream, shared: &Shared) -> std::io::Result<()> {
    let mut input = BufReader::new(connection);
    loop {
        let mut first = String::new();
        if input.read_line(&mut first)? == 0 {
            return Ok(());
        }
        let mut headers = BTreeMap::new();
        loop {
            let mut line = String::new();
            input.read_line(&mut line)?;
            match line.trim_end().split_once(": ") {
                Some((name, value)) => headers.insert(name.to_ascii_lowercase(), value.to_owned()),
                None => break,
            };
        }
        shared.requests.fetch_add(1, Ordering::SeqCst);
        let mut words = first.split(' ');
        let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let name = path.trim_start_matches('/').split('?').next().unwrap_or_default().to_owned();
        if method == "PUT" {
            let len = headers.get("content-length").and_then(|len| len.parse().ok()).unwrap_or(0);
            let mut body = vec![0; len];
            input.read_exact(&mut body)?;
            if shared.behavior == Behavior::Stalls(0) {
                shared.stall();
                return Ok(());
            }
            shared.put.lock().expect("no thread panics").insert(name, body);
            (&mut &*connection)
                .write_all(b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\nETag: \"1\"\r\n\r\n")?;
            continue;
        }
        if shared.behavior == Behavior::Echoes {
            let head = format!("HTTP/1.1 400 Bad Request\r\nContent-Length: {}\r\n\r\n", path.len());
            (&mut &*connection).write_all((head + path).as_bytes())?;
            continue;
        }
        let location = match shared.behavior {
            Behavior::Redirects(host) => Some(format!("http://{host}{path}")),
            Behavior::Moved if name != "moved.bin" => Some("/moved.bin".to_owned()),
            _ => None,
        };
        if let Some(location) = location {
            let head = format!("HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n");
            (&mut &*connection).write_all(head.as_bytes())?;
            continue;
        }
        if !answer(connection, shared, method, &name, &headers)? {
            return Ok(());
        }
    }
}

/// Responds to a request for a file. Returns false if the connection must be closed.
fn answer(
    mut out: &TcpStream,
    shared: &Shared,
    method: &str,
    name: &str,
    headers: &BTreeMap<String, String>,
) -> std::io::Result<bool> {
    let number = shared.answers.fetch_add(1, Ordering::SeqCst);
    let status = |out: &mut &TcpStream, status: &str| {
        out.write_all(format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n").as_bytes())
    };
    let credentials = headers.get("authorization").map(String::as_str);
    if shared.behavior == Behavior::Private && credentials != Some(CREDENTIALS) {
        status(&mut out, "401 Unauthorized")?;
        return Ok(true);
    }
    if matches!(shared.behavior, Behavior::Fails(first) if number < first) {
        status(&mut out, "500 Internal Server Error")?;
        return Ok(true);
    }
    let Ok(mut file) = File::open(shared.folder.join(name)) else {
        status(&mut out, "404 Not Found")?;
        return Ok(true);
    };
    let size = file.metadata()?.len();
    let range = headers.get("range").filter(|_| shared.behavior != Behavior::Whole);
    let range = range.and_then(|range| range.strip_prefix("bytes=")?.split_once('-'));
    let (from, to) = match range {
        // The range `-100` requests the last 100 bytes.
        Some(("", last)) => (size.saturating_sub(last.parse().unwrap_or(0)), size),
        Some((from, to)) => {
            (from.parse().unwrap_or(0), to.parse().map_or(size, |last: u64| (last + 1).min(size)))
        }
        None => (0, size),
    };
    // A client detects by the ETag that a file has changed.
    let version = match shared.behavior {
        Behavior::Changes(first) if number >= first => 2,
        _ => 1,
    };
    let head = match range {
        Some(_) => {
            format!("HTTP/1.1 206 Partial Content\r\nContent-Range: bytes {from}-{}/{size}\r\n", to - 1)
        }
        None => "HTTP/1.1 200 OK\r\n".to_owned(),
    };
    let length = to - from;
    let version = format!("ETag: \"v{version}\"\r\nContent-Length: {length}\r\n");
    out.write_all((head + &version).as_bytes())?;
    out.write_all(b"Last-Modified: Fri, 01 May 2026 10:00:00 GMT\r\n\r\n")?;
    if method == "HEAD" {
        return Ok(true);
    }
    if matches!(shared.behavior, Behavior::Stalls(first) if number >= first) {
        shared.stall();
        return Ok(false);
    }
    let is_cut = shared.behavior == Behavior::Cuts && number.is_multiple_of(2);
    let len = if is_cut { (to - from) / 2 } else { to - from };
    file.seek(SeekFrom::Start(from))?;
    // The bytes are counted before they are sent, because a client may call `served` as soon as it
    // has the response.
    shared.bytes.fetch_add(len, Ordering::SeqCst);
    std::io::copy(&mut file.take(len), &mut out)?;
    Ok(!is_cut)
}
