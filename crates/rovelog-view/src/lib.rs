#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod error;
mod logs;
mod server;

use std::net::{Ipv4Addr, TcpListener};

use rovelog::ReadOptions;

pub use error::ViewError;
use logs::Logs;

/// Options for the server that shows logs in a browser.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ViewOptions {
    /// Options for opening the logs.
    pub read: ReadOptions,
    /// Format id that is used for all logs. If it is `None`, the format of each log is detected.
    pub format: Option<String>,
    /// Port to listen on. 0 selects a free port.
    pub port: u16,
    /// Command-line options of `rovelog` that are equivalent to these options. The page in the
    /// browser shows commands to copy, and the commands contain them.
    pub arguments: Vec<String>,
}

/// A server that listens on a port but does not respond until [`run`](Self::run) is called.
#[derive(Debug)]
pub struct View {
    logs: Logs,
    listener: TcpListener,
    port: u16,
    /// Secret random part of the URL. Without it, other programs and web pages cannot send
    /// requests.
    token: String,
    /// Command-line options of `rovelog`. The page in the browser shows commands to copy, and the
    /// commands contain these options.
    arguments: Vec<String>,
}

impl View {
    /// Finds the logs of all sources and starts to listen on the port.
    ///
    /// Sources are files, folders and patterns. Folders are searched recursively. Links that lead
    /// out of a folder are not followed.
    ///
    /// # Errors
    /// Returns an error if a source has no logs, or if the port is in use.
    pub fn open<S: AsRef<str>>(sources: &[S], options: ViewOptions) -> Result<Self, ViewError> {
        let port = options.port;
        let listen = |error| ViewError::Listen { port, error };
        let logs = Logs::find(sources, options.read, options.format)?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(listen)?;
        // Tokio requires a nonblocking socket.
        listener.set_nonblocking(true).map_err(listen)?;
        let port = listener.local_addr().map_err(listen)?.port();
        Ok(Self { logs, listener, port, token: token()?, arguments: options.arguments })
    }

    /// Returns the URL of the page, including its token.
    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}/{}/", self.port, self.token)
    }

    /// Returns the number of logs that were found.
    pub fn logs(&self) -> usize {
        self.logs.list().len()
    }

    /// Responds to requests until the program ends.
    ///
    /// # Errors
    /// Returns an error if the server cannot be started.
    pub fn run(self) -> Result<(), ViewError> {
        let port = self.port;
        server::run(self.listener, self.logs, self.arguments, &self.token, port)
            .map_err(|error| ViewError::Listen { port, error })
    }
}

/// Returns a page that reads logs in the browser without a server, or `None` if this build does not
/// contain it. It is a single HTML file.
pub fn page() -> Option<&'static [u8]> {
    const PAGE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/page.html"));
    (!PAGE.is_empty()).then_some(PAGE)
}

/// Returns 128 random bits as hexadecimal digits, for use in the URL.
fn token() -> Result<String, ViewError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| ViewError::Random(error.to_string()))?;
    Ok(format!("{:032x}", u128::from_le_bytes(bytes)))
}
