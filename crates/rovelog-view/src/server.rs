//! The HTTP server, with its routes and the checks of each request.
//!
//! Only the page of this server may read logs. Three checks enforce this: the URL must contain a
//! random token, the `Host` header must name this machine, and the `Origin` and `Sec-Fetch-Site`
//! headers must be those of the page.

use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, Query, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rovelog_export::page;
use rovelog_export::plot::Theme;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use crate::logs::{Logs, Opened};
use crate::packed::packed;
use crate::{events, scene, signals, summary};

/// Content security policy of the page. It allows the page to run only scripts of this server, and
/// to send requests only to this server. So texts in logs cannot run as scripts.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Maximum number of requests that can read logs at the same time.
const WORKERS: usize = 4;

/// Maximum time for receiving the header of a request. It also limits the time that a connection
/// may be idle between two requests.
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);

/// Files of the page, each with its name, media type and content.
const FILES: &[(&str, &str, &str)] = &[
    ("", "text/html; charset=utf-8", include_str!("../assets/view.html")),
    ("icon.svg", "image/svg+xml", include_str!("../assets/icon.svg")),
    ("view.css", "text/css", include_str!("../assets/view.css")),
    ("page.css", "text/css", page::STYLE),
    ("uplot.css", "text/css", page::UPLOT_STYLE),
    ("uplot.js", "text/javascript", page::UPLOT),
    ("charts.js", "text/javascript", page::CHARTS),
    ("server.js", "text/javascript", include_str!("../assets/server.js")),
    ("tree.js", "text/javascript", include_str!("../assets/tree.js")),
    ("plots.js", "text/javascript", include_str!("../assets/plots.js")),
    ("measure.js", "text/javascript", include_str!("../assets/measure.js")),
    ("scene.js", "text/javascript", include_str!("../assets/scene.js")),
    ("view.js", "text/javascript", include_str!("../assets/view.js")),
];

/// State that all requests share.
struct Shared {
    logs: Logs,
    /// Command-line options that are part of the commands that the page shows.
    arguments: Vec<String>,
    /// Accepted values of the `Host` header. In a DNS rebinding attack, the name of another site
    /// resolves to 127.0.0.1, but this name is still in the header.
    hosts: [String; 2],
}

/// Parameters of a query. Several parameters may have the same name.
type Pairs = Query<Vec<(String, String)>>;

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

/// Responds to the requests of a connection with HTTP/1. If the header of a request is not received
/// in time, the connection is closed, so that idle connections do not accumulate.
async fn connection(stream: TcpStream, router: Router) {
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT);
    // An error means that the client violated the protocol or closed the connection, for example
    // because the user has left the page.
    let _ = server.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router)).await;
}

/// Returns the routes of the server. All of them start with the token.
fn router(shared: Arc<Shared>, token: &str) -> Router {
    let answers: [(&str, MethodRouter<Arc<Shared>>); 11] = [
        ("logs", get(list)),
        ("logs/{log}", get(log)),
        ("logs/{log}/row", get(row)),
        ("logs/{log}/signals", get(parts)),
        ("logs/{log}/measures", get(measures)),
        ("logs/{log}/spectrum", get(spectrum)),
        ("logs/{log}/events", get(events_of)),
        ("logs/{log}/track", get(track)),
        ("logs/{log}/sources", get(sources)),
        ("logs/{log}/image", get(image)),
        ("logs/{log}/cloud", get(cloud)),
    ];
    let files = FILES.iter().map(|(name, kind, text)| {
        let answer = || async { ([(header::CONTENT_TYPE, *kind)], *text) };
        (*name, get(answer))
    });
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

/// A task that waits for a thread or runs on a thread. If the request is canceled before the task
/// has started, the task is never started.
struct Waiting<T>(JoinHandle<T>);

impl<T> Drop for Waiting<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Runs `run`, which reads logs, on a blocking thread. On the main thread, it would delay all other
/// requests. Errors are returned as responses.
async fn work<T, R>(run: R) -> Response
where
    T: IntoResponse + Send + 'static,
    R: FnOnce() -> Result<T, String> + Send + 'static,
{
    let failed = |status, error: String| {
        let body = json!({ "error": error }).to_string();
        (status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
    };
    let mut waiting = Waiting(tokio::task::spawn_blocking(run));
    match (&mut waiting.0).await {
        Ok(Ok(answer)) => answer.into_response(),
        Ok(Err(error)) => failed(StatusCode::UNPROCESSABLE_ENTITY, error),
        Err(_) => failed(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the request failed; the terminal shows the reason".to_owned(),
        ),
    }
}

/// Returns a JSON response.
fn document(value: &Value) -> impl IntoResponse + use<> {
    json_text(value.to_string())
}

/// Returns a response with JSON text.
fn json_text(text: String) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], text)
}

/// Returns a response with bytes that were encoded by [`packed`].
fn binary(bytes: Vec<u8>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/octet-stream")], bytes)
}

/// Response header that describes which bytes or records of the log could not be read. If a bag was
/// opened by its index, damage of a chunk is only found when the chunk is read.
const LOST: HeaderName = HeaderName::from_static("rovelog-lost");

/// Opens the log with the number `log` and returns the result of `run` as a response. A header of
/// the response describes the bytes or records of the log that could not be read.
async fn on<T, R>(shared: Arc<Shared>, log: usize, run: R) -> Response
where
    T: IntoResponse + Send + 'static,
    R: FnOnce(&Opened) -> Result<T, String> + Send + 'static,
{
    work(move || {
        let opened = shared.logs.open(log)?;
        let answer = opened.run(run)?;
        let losses = opened.log.losses();
        let lost = (!losses.is_empty()).then(|| [(LOST, losses.to_string())]);
        Ok((lost, answer))
    })
    .await
}

async fn list(State(shared): State<Arc<Shared>>) -> impl IntoResponse {
    let logs = shared.logs.list().iter();
    let logs: Vec<_> = logs.map(|log| json!([log.name, log.file.size, log.file.changed_us / 1000])).collect();
    document(&json!({
        "version": env!("CARGO_PKG_VERSION"),
        "logs": logs,
        "arguments": shared.arguments,
        "light": page::colors(Theme::Light),
        "dark": page::colors(Theme::Dark),
    }))
}

async fn row(State(shared): State<Arc<Shared>>, Path(log): Path<usize>) -> Response {
    work(move || Ok(json_text(summary::row(&shared.logs, log)))).await
}

async fn log(State(shared): State<Arc<Shared>>, Path(log): Path<usize>) -> Response {
    let all = Arc::clone(&shared);
    on(shared, log, move |opened| {
        let listed = all.logs.list().get(log).ok_or("there is no such log")?;
        let page = summary::log(listed, opened).map_err(|error| error.to_string())?;
        opened.checked(document(&page))
    })
    .await
}

async fn parts(State(shared): State<Arc<Shared>>, Path(log): Path<usize>, Query(pairs): Pairs) -> Response {
    let wanted = wanted(&pairs);
    on(shared, log, move |opened| Ok(binary(signals::parts(opened, &wanted?)?))).await
}

async fn measures(
    State(shared): State<Arc<Shared>>,
    Path(log): Path<usize>,
    Query(pairs): Pairs,
) -> Response {
    let wanted = wanted(&pairs);
    on(shared, log, move |opened| Ok(document(&signals::measures(opened, &wanted?)?))).await
}

async fn spectrum(
    State(shared): State<Arc<Shared>>,
    Path(log): Path<usize>,
    Query(pairs): Pairs,
) -> Response {
    let wanted = wanted(&pairs);
    let is_dark = pairs.iter().any(|(name, value)| name == "theme" && value == "dark");
    let theme = if is_dark { Theme::Dark } else { Theme::Light };
    on(shared, log, move |opened| {
        let signals::Wanted { signals, span, width } = wanted?;
        let (_, text) = signals.first().ok_or("no signal")?;
        let svg = signals::spectrum(opened, text, span, width, theme)?;
        Ok(([(header::CONTENT_TYPE, "image/svg+xml")], svg))
    })
    .await
}

/// Parses the query of a request for signals. For each signal, a parameter `topic` is followed by a
/// parameter `field`. The parameters `from`, `to` and `width` are optional.
fn wanted(pairs: &[(String, String)]) -> Result<signals::Wanted, String> {
    let mut signals: Vec<(String, String)> = Vec::new();
    for pair in pairs.windows(2) {
        if let [(topic, name), (field, path)] = pair
            && (topic.as_str(), field.as_str()) == ("topic", "field")
        {
            signals.push((name.clone(), path.clone()));
        }
    }
    let span = match (number(pairs, "from")?, number(pairs, "to")?) {
        (Some(from), Some(to)) => Some((from, to)),
        _ => None,
    };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    let width = number(pairs, "width")?.map_or(1000, |width| width as usize);
    Ok(signals::Wanted { signals, span, width })
}

/// Parses a parameter as a number. Returns `None` if there is no such parameter.
fn number(pairs: &[(String, String)], name: &str) -> Result<Option<f64>, String> {
    let text = pairs.iter().find(|pair| pair.0 == name);
    let number = text.map(|(_, text)| text.parse::<f64>().ok().filter(|number| number.is_finite()));
    number.map(|number| number.ok_or_else(|| format!("{name} is not a number"))).transpose()
}

/// Parses the parameters `topic` and `at`, which are the name of a topic and a time in seconds.
fn place(pairs: &[(String, String)]) -> Result<(String, f64), String> {
    let topic = pairs.iter().find(|pair| pair.0 == "topic").ok_or("no topic")?;
    Ok((topic.1.clone(), number(pairs, "at")?.ok_or("no time")?))
}

async fn events_of(State(shared): State<Arc<Shared>>, Path(log): Path<usize>) -> Response {
    on(shared, log, |opened| Ok(document(&events::list(opened)?))).await
}

async fn track(State(shared): State<Arc<Shared>>, Path(log): Path<usize>) -> Response {
    on(shared, log, |opened| Ok(binary(scene::track(opened)?))).await
}

async fn sources(State(shared): State<Arc<Shared>>, Path(log): Path<usize>) -> Response {
    on(shared, log, |opened| Ok(binary(scene::sources(opened)?))).await
}

async fn image(State(shared): State<Arc<Shared>>, Path(log): Path<usize>, Query(pairs): Pairs) -> Response {
    let place = place(&pairs);
    on(shared, log, move |opened| {
        let (topic, seconds) = place?;
        let (bytes, kind) = scene::image(opened, &topic, seconds)?;
        Ok(([(header::CONTENT_TYPE, kind)], bytes))
    })
    .await
}

async fn cloud(State(shared): State<Arc<Shared>>, Path(log): Path<usize>, Query(pairs): Pairs) -> Response {
    let place = place(&pairs);
    on(shared, log, move |opened| {
        let (topic, seconds) = place?;
        // If there are no points, the page shows the reason, for example that the calibration of a
        // scanner is missing. The request itself has not failed.
        let points = scene::cloud(opened, &topic, seconds);
        Ok(binary(points.unwrap_or_else(|error| packed(&json!({ "points": 0, "error": error }), []))))
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn work_of_a_closed_request_is_not_started() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(1)
            .build()
            .unwrap();
        let ran = runtime.block_on(async {
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
}
