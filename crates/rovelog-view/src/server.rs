//! The HTTP server, with its routes and the checks of each request.
//!
//! Only the page of this server may read logs. Three checks enforce this: the URL must contain a
//! random token, the `Host` header must name this machine, and the `Origin` and `Sec-Fetch-Site`
//! headers must be those of the page.

use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, RawQuery, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rovelog::core::internal::cancel;
use rovelog_explore::page;
use serde_json::json;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_io_timeout::TimeoutStream;

use crate::logs::Logs;

/// Content security policy of the page. It allows the page to run only scripts of this server, and
/// to send requests only to this server. So texts in logs cannot run as scripts.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Maximum number of requests that can read logs at the same time.
const WORKERS: usize = 4;

/// Maximum time for receiving the header of a request, and maximum time in which a client reads no
/// byte of a response. The first limit includes the time that a connection is idle between two
/// requests.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The script that passes the requests of the page to this server.
const SOURCE: &str = include_str!("../assets/source.js");

/// State that all requests share.
struct Shared {
    logs: Logs,
    /// Command-line options that are part of the commands that the page shows.
    arguments: Vec<String>,
    /// Accepted values of the `Host` header. In a DNS rebinding attack, the name of another site
    /// resolves to 127.0.0.1, but this name is still in the header.
    hosts: [String; 2],
}

/// Accepts connections and responds to their requests until the program ends.
pub(crate) fn run(
    listener: TcpListener,
    logs: Logs,
    arguments: Vec<String>,
    token: &str,
    port: u16,
) -> io::Result<()> {
    let hosts = ["127.0.0.1", "localhost"].map(|name| format!("{name}:{port}"));
    let shared = Arc::new(Shared { logs, arguments, hosts });
    // One thread handles all connections. Logs are read on up to `WORKERS` blocking threads.
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(WORKERS).build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let router = router(shared, token);
        loop {
            match listener.accept().await {
                Ok((stream, _)) => drop(tokio::spawn(connection(stream, router.clone()))),
                // The client has closed the connection, or too many files are open. Accepting the
                // next connection may succeed.
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
    })
}

/// Responds to the requests of a connection with HTTP/1. If the client is idle for too long, the
/// connection is closed, so that idle connections do not accumulate.
async fn connection(stream: TcpStream, router: Router) {
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(TIMEOUT);
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(TIMEOUT));
    let stream = TokioIo::new(Box::pin(stream));
    // An error means that the client violated the protocol or closed the connection, for example
    // because the user has left the page.
    let _ = server.serve_connection(stream, TowerToHyperService::new(router)).await;
}

/// Returns the routes of the server. All of them start with the token.
fn router(shared: Arc<Shared>, token: &str) -> Router {
    let file = |kind, text| get(move || async move { ([(header::CONTENT_TYPE, kind)], text) });
    let files = page::FILES.iter().map(|page| (page.name, file(page.media_type, page.text)));
    let answers: [(&str, MethodRouter<Arc<Shared>>); 5] = [
        ("source.js", file("text/javascript", SOURCE)),
        ("logs", get(list)),
        ("logs/{log}", get(summary)),
        ("logs/{log}/row", get(row)),
        ("logs/{log}/{request}", get(answer)),
    ];
    let add = |all: Router<_>, (path, answer): (&str, _)| all.route(&format!("/{token}/{path}"), answer);
    let all = answers.into_iter().chain(files).fold(Router::new(), add);
    all.layer(middleware::from_fn_with_state(Arc::clone(&shared), guard)).with_state(shared)
}

/// Rejects requests from other pages, and requests with an unexpected host name. Adds the headers
/// that are equal in all responses.
async fn guard(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let mut response = match refused(&shared, request.headers()) {
        Some(why) => (StatusCode::FORBIDDEN, why).into_response(),
        None => next.run(request).await,
    };
    let fixed: [(HeaderName, &str); 6] = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ];
    for (name, value) in fixed {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Returns the reason for rejecting a request, or `None` if the request is accepted.
fn refused(shared: &Shared, headers: &HeaderMap) -> Option<&'static str> {
    let text = |name: HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let host = text(header::HOST).unwrap_or("");
    if !shared.hosts.iter().any(|known| known == host) {
        return Some("this server answers only requests to 127.0.0.1");
    }
    let own = |origin: &str| origin.strip_prefix("http://") == Some(host);
    if text(header::ORIGIN).is_some_and(|origin| !own(origin)) {
        return Some("this server answers only requests from its own page");
    }
    // Browsers set this header, and scripts cannot change it. Programs such as curl do not send it.
    let site = text(HeaderName::from_static("sec-fetch-site")).unwrap_or("none");
    (!matches!(site, "none" | "same-origin")).then_some("this server answers only requests from its own page")
}

/// A task that waits for a thread or runs on a thread. Dropping the `Task`, for example because the
/// client has closed the connection, cancels the task. If it has not started yet, it never starts.
struct Task<T> {
    handle: JoinHandle<T>,
    /// Becomes true when the task is canceled.
    is_canceled: Arc<AtomicBool>,
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.is_canceled.store(true, Ordering::Relaxed);
        self.handle.abort();
    }
}

/// Runs `run`, which reads logs, on a blocking thread. On the main thread, it would delay all other
/// requests. Errors are returned as responses.
async fn work<T, R>(run: R) -> Response
where
    T: IntoResponse + Send + 'static,
    R: FnOnce() -> Result<T, String> + Send + 'static,
{
    let failed =
        |status, error: String| (status, JSON, json!({ "error": error }).to_string()).into_response();
    let is_canceled = Arc::new(AtomicBool::new(false));
    let flag = Some(Arc::clone(&is_canceled));
    let handle = tokio::task::spawn_blocking(move || cancel::with_flag(flag, run));
    let mut task = Task { handle, is_canceled };
    match (&mut task.handle).await {
        Ok(Ok(answer)) => answer.into_response(),
        Ok(Err(error)) => failed(StatusCode::UNPROCESSABLE_ENTITY, error),
        Err(_) => failed(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the request failed; the terminal shows the reason".to_owned(),
        ),
    }
}

/// Response header that describes which bytes or records of the log could not be read. If a bag was
/// opened by its index, damage of a chunk is only found when the chunk is read.
const LOST: HeaderName = HeaderName::from_static("rovelog-lost");

/// Media type of JSON responses.
const JSON: [(HeaderName, &str); 1] = [(header::CONTENT_TYPE, "application/json")];

async fn list(State(shared): State<Arc<Shared>>) -> impl IntoResponse {
    let logs = shared.logs.list().iter();
    let logs: Vec<_> = logs.map(|log| json!([log.name, log.file.size, log.file.changed_us / 1000])).collect();
    (JSON, page::start(&logs, &shared.arguments).to_string())
}

async fn row(State(shared): State<Arc<Shared>>, Path(log): Path<usize>) -> Response {
    work(move || Ok((JSON, shared.logs.row(log)?))).await
}

async fn summary(State(shared): State<Arc<Shared>>, Path(log): Path<usize>) -> Response {
    respond(shared, log, String::new()).await
}

async fn answer(
    State(shared): State<Arc<Shared>>,
    Path((log, request)): Path<(usize, String)>,
    RawQuery(query): RawQuery,
) -> Response {
    respond(shared, log, format!("{request}?{}", query.unwrap_or_default())).await
}

/// Opens the log with the number `log` and returns its answer to a request.
async fn respond(shared: Arc<Shared>, log: usize, request: String) -> Response {
    work(move || {
        let (answer, lost) = shared.logs.open(log)?.answer(&request)?;
        Ok((lost.map(|lost| [(LOST, lost)]), [(header::CONTENT_TYPE, answer.media_type)], answer.bytes))
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use rovelog::{ReadOptions, Select};
    use tokio::io::AsyncWriteExt as _;
    use tokio::runtime::{Builder, Runtime};

    use super::*;

    /// Returns a runtime with a single thread for tasks that read logs.
    fn runtime() -> Runtime {
        Builder::new_current_thread().enable_all().max_blocking_threads(1).build().unwrap()
    }

    fn corpus(name: &str) -> String {
        rovelog_testing::root().join("corpus").join(name).to_string_lossy().into_owned()
    }

    #[test]
    fn idle_connections_are_closed() {
        let logs = Logs::find(&[corpus("ulog/one-topic.ulg")], ReadOptions::default(), None).unwrap();
        let hosts = [String::from("127.0.0.1:1"), String::new()];
        let large = get(|| async { vec![0_u8; 64 << 20] });
        let router =
            router(Arc::new(Shared { logs, arguments: Vec::new(), hosts }), "token").route("/large", large);
        // If all tasks wait, Tokio advances the paused clock to the next timeout. The clock may also
        // advance while a connection still transfers bytes, so the test allows 10 times the timeout.
        let runtime = Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            for request in [
                "",
                "GET /token/logs HTTP/1.1\r\nHost:",
                "GET /token/logs HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n",
                "GET /large HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n",
            ] {
                let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
                client.write_all(request.as_bytes()).await.unwrap();
                let (stream, _) = listener.accept().await.unwrap();
                let started = tokio::time::Instant::now();
                tokio::time::timeout(10 * TIMEOUT, connection(stream, router.clone())).await.unwrap();
                assert!(started.elapsed() >= TIMEOUT, "{request}");
                drop(client);
            }
        });
    }

    #[test]
    fn work_of_a_closed_request_is_not_started() {
        let ran = runtime().block_on(async {
            let (release, released) = mpsc::channel::<()>();
            let (note, ran) = mpsc::channel();
            let job = |name: &'static str| {
                let note = note.clone();
                move || {
                    note.send(name).unwrap();
                    Ok::<_, String>("answer")
                }
            };
            let first = tokio::spawn(work(move || {
                released.recv().unwrap();
                Ok::<_, String>("answer")
            }));
            tokio::task::yield_now().await;
            // This request is closed while its work waits for the only thread.
            let closed = tokio::spawn(work(job("closed")));
            let open = tokio::spawn(work(job("open")));
            tokio::task::yield_now().await;
            closed.abort();
            tokio::task::yield_now().await;
            release.send(()).unwrap();
            assert_eq!(first.await.unwrap().status(), StatusCode::OK);
            assert_eq!(open.await.unwrap().status(), StatusCode::OK);
            ran.try_iter().collect::<Vec<_>>()
        });
        assert_eq!(ran, ["open"]);
    }

    #[test]
    fn work_of_a_closed_request_ends() {
        let log = rovelog::open(corpus("ulog/one-topic.ulg")).unwrap();
        let (note, notes) = mpsc::channel();
        runtime().block_on(async {
            // This work only ends if its request is closed.
            let closed = tokio::spawn(work(move || -> Result<&'static str, String> {
                loop {
                    for batch in log.batches(&Select::all()) {
                        let read = batch.map(drop).map_err(|error| error.to_string());
                        note.send(read.clone()).unwrap();
                        read?;
                    }
                }
            }));
            tokio::task::yield_now().await;
            notes.recv().unwrap().unwrap();
            closed.abort();
            tokio::task::yield_now().await;
            while notes.recv_timeout(Duration::from_secs(30)).unwrap().is_ok() {}
        });
    }
}
