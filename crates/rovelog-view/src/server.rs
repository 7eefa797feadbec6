//! The server: which requests get an answer, and what it is.

use std::io;
use std::net::TcpListener;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, Query, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use rovelog_export::page;
use rovelog_export::plot::Theme;
use serde_json::{Value, json};

use crate::logs::{Logs, Opened};
use crate::packed::packed;
use crate::{events, scene, signals, summary};

/// What the page may do: run the scripts of this server, ask this server, and nothing else.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Requests that read logs at the same time.
const WORKERS: usize = 4;

/// The files of the page.
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
    ("scene.js", "text/javascript", include_str!("../assets/scene.js")),
    ("view.js", "text/javascript", include_str!("../assets/view.js")),
];

/// What all requests share.
struct Shared {
    logs: Logs,
    /// Options of the commands that the page shows.
    arguments: Vec<String>,
    /// Values of the header `Host` that are answered.
    hosts: [String; 2],
}

/// Names and values of a query; a name may appear several times.
type Pairs = Query<Vec<(String, String)>>;

pub(crate) fn run(
    listener: TcpListener,
    logs: Logs,
    arguments: Vec<String>,
    token: &str,
    port: u16,
) -> io::Result<()> {
    let hosts = ["127.0.0.1", "localhost"].map(|name| format!("{name}:{port}"));
    let shared = Arc::new(Shared { logs, arguments, hosts });
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_io().max_blocking_threads(WORKERS).build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        axum::serve(listener, router(shared, token)).await
    })
}

fn router(shared: Arc<Shared>, token: &str) -> Router {
    let answers: [(&str, MethodRouter<Arc<Shared>>); 9] = [
        ("logs", get(list)),
        ("logs/{log}", get(log)),
        ("logs/{log}/row", get(row)),
        ("logs/{log}/signals", get(parts)),
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

/// Refuses requests of other pages, and requests that reached this machine by another name; adds
/// the headers that all answers have.
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

fn refused(shared: &Shared, headers: &HeaderMap) -> Option<&'static str> {
    let text = |name: HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let host = text(header::HOST).unwrap_or("");
    if !shared.hosts.iter().any(|known| known == host) {
        return Some("this server answers 127.0.0.1 only");
    }
    let own = |origin: &str| origin.strip_prefix("http://") == Some(host);
    if text(header::ORIGIN).is_some_and(|origin| !own(origin)) {
        return Some("this server answers its own page only");
    }
    let site = text(HeaderName::from_static("sec-fetch-site")).unwrap_or("none");
    (!matches!(site, "none" | "same-origin")).then_some("this server answers its own page only")
}

/// Runs work that reads logs; its errors become answers.
async fn work<T, R>(run: R) -> Response
where
    T: IntoResponse + Send + 'static,
    R: FnOnce() -> Result<T, String> + Send + 'static,
{
    let failed = |status, error: String| {
        let body = json!({ "error": error }).to_string();
        (status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
    };
    match tokio::task::spawn_blocking(run).await {
        Ok(Ok(answer)) => answer.into_response(),
        Ok(Err(error)) => failed(StatusCode::UNPROCESSABLE_ENTITY, error),
        Err(_) => {
            failed(StatusCode::INTERNAL_SERVER_ERROR, "this request failed; look at the terminal".to_owned())
        }
    }
}

fn document(value: &Value) -> impl IntoResponse + use<> {
    json_text(value.to_string())
}

fn json_text(text: String) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], text)
}

fn binary(bytes: Vec<u8>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/octet-stream")], bytes)
}

/// Runs work on an open log.
async fn on<T, R>(shared: Arc<Shared>, log: usize, run: R) -> Response
where
    T: IntoResponse + Send + 'static,
    R: FnOnce(&Opened) -> Result<T, String> + Send + 'static,
{
    work(move || shared.logs.open(log)?.run(run)).await
}

async fn list(State(shared): State<Arc<Shared>>) -> impl IntoResponse {
    let logs = shared.logs.list().iter();
    let logs: Vec<_> = logs.map(|log| json!([log.name, log.file.size, log.file.changed_us / 1000])).collect();
    document(&json!({
        "version": env!("CARGO_PKG_VERSION"),
        "logs": logs,
        "arguments": shared.arguments,
        "light": page::colours(Theme::Light),
        "dark": page::colours(Theme::Dark),
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

/// Parses `topic=..&field=..`, several times, `from`, `to` and `width`.
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

fn number(pairs: &[(String, String)], name: &str) -> Result<Option<f64>, String> {
    let text = pairs.iter().find(|pair| pair.0 == name);
    let number = text.map(|(_, text)| text.parse::<f64>().ok().filter(|number| number.is_finite()));
    number.map(|number| number.ok_or_else(|| format!("{name} is not a number"))).transpose()
}

/// Parses `topic` and `at`.
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
        // Points that cannot be computed, as of a scanner without its calibration, are no error of the page.
        let points = scene::cloud(opened, &topic, seconds);
        Ok(binary(points.unwrap_or_else(|error| packed(&json!({ "points": 0, "error": error }), []))))
    })
    .await
}
