#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod error;
mod events;
mod logs;
mod packed;
mod ros_points;
mod scene;
mod server;
mod signals;
mod summary;

use std::net::{Ipv4Addr, TcpListener};

use rovelog::ReadOptions;

pub use error::ViewError;
use logs::Logs;

/// Options of the server.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ViewOptions {
    /// Options with which logs are opened.
    pub read: ReadOptions,
    /// Id of the format of all logs; `None` detects it.
    pub format: Option<String>,
    /// Port to listen on; 0 is any free one.
    pub port: u16,
    /// The same options on the command line of `rovelog`, for the commands that the page shows.
    pub arguments: Vec<String>,
}

/// A server that is ready to run.
#[derive(Debug)]
pub struct View {
    logs: Logs,
    listener: TcpListener,
    port: u16,
    token: String,
    arguments: Vec<String>,
}

impl View {
    /// Finds the logs of files, folders and patterns, and starts to listen. Of a folder, all logs in
    /// it and below are found; links that lead out of it are left out.
    ///
    /// # Errors
    /// Returns an error if a source has no logs, or the port is taken.
    pub fn open<S: AsRef<str>>(sources: &[S], options: ViewOptions) -> Result<Self, ViewError> {
        let port = options.port;
        let listen = |error| ViewError::Listen { port, error };
        let logs = Logs::find(sources, options.read, options.format)?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(listen)?;
        listener.set_nonblocking(true).map_err(listen)?;
        let port = listener.local_addr().map_err(listen)?.port();
        Ok(Self { logs, listener, port, token: token()?, arguments: options.arguments })
    }

    /// Returns the address of the page, with its token.
    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}/{}/", self.port, self.token)
    }

    /// Returns the number of logs that were found.
    pub fn logs(&self) -> usize {
        self.logs.list().len()
    }

    /// Answers requests until the program ends.
    ///
    /// # Errors
    /// Returns an error if the connection breaks.
    pub fn run(self) -> Result<(), ViewError> {
        let port = self.port;
        server::run(self.listener, self.logs, self.arguments, &self.token, port)
            .map_err(|error| ViewError::Listen { port, error })
    }
}

/// Returns 128 random bits.
fn token() -> Result<String, ViewError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| ViewError::Random(error.to_string()))?;
    Ok(format!("{:032x}", u128::from_le_bytes(bytes)))
}
