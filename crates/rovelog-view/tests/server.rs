//! Tests of the requests that the server accepts, and of the values that it sends.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use rovelog_view::{View, ViewOptions};

/// Port and token of a running server.
struct Running {
    port: u16,
    token: String,
}

fn start(sources: &[&str]) -> Running {
    let view = View::open(sources, ViewOptions::default()).unwrap();
    let address = view.address();
    let rest = address.strip_prefix("http://127.0.0.1:").unwrap();
    let (port, token) = rest.split_once('/').unwrap();
    let running = Running { port: port.parse().unwrap(), token: token.trim_matches('/').to_owned() };
    std::thread::spawn(move || view.run());
    running
}

impl Running {
    /// Sends the text of a request without changes. Returns the status and the whole response.
    fn raw(&self, request: &str) -> (u16, Vec<u8>) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let status = String::from_utf8_lossy(&answer[9..12]).parse().unwrap();
        (status, answer)
    }

    fn request(&self, method: &str, path: &str, host: &str, more: &str) -> (u16, Vec<u8>) {
        self.raw(&format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{more}\r\n"))
    }

    fn get(&self, path: &str) -> (u16, Vec<u8>) {
        let (path, host) = (format!("/{}/{path}", self.token), format!("127.0.0.1:{}", self.port));
        self.request("GET", &path, &host, "")
    }
}

fn corpus(name: &str) -> String {
    rovelog_testing::root().join("corpus").join(name).to_string_lossy().into_owned()
}

fn text(answer: &[u8]) -> String {
    String::from_utf8_lossy(answer).into_owned()
}

fn body(answer: &[u8]) -> &[u8] {
    let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap();
    &answer[end + 4..]
}

#[test]
fn only_the_servers_own_page_gets_a_response() {
    let server = start(&[&corpus("ulog/utc-gps-int32.ulg")]);
    let (own, page) = (format!("127.0.0.1:{}", server.port), format!("/{}/", server.token));
    let (status, answer) = server.request("GET", &page, &own, "");
    assert_eq!(status, 200);
    let answer = text(&answer).to_ascii_lowercase();
    for header in ["content-security-policy: default-src 'none'", "nosniff", "no-referrer", "no-store"] {
        assert!(answer.contains(header), "{header}");
    }
    assert_eq!(server.request("GET", &page, &format!("localhost:{}", server.port), "").0, 200);
    // The host names include another site, whose name could be made to resolve to this machine.
    for host in ["evil.example", "127.0.0.1", "127.0.0.1:1", &format!("evil.example:{}", server.port), ""] {
        assert_eq!(server.request("GET", &page, host, "").0, 403, "{host}");
    }
    for more in ["Origin: http://evil.example\r\n", "Origin: null\r\n", "Sec-Fetch-Site: cross-site\r\n"] {
        assert_eq!(server.request("GET", &page, &own, more).0, 403, "{more}");
    }
    assert_eq!(server.request("GET", &page, &own, &format!("Origin: http://{own}\r\n")).0, 200);
    for path in ["/", "/logs", "/view.js", "/00000000000000000000000000000000/", "/..", "//"] {
        assert_eq!(server.request("GET", path, &own, "").0, 404, "{path}");
    }
    for method in ["POST", "PUT", "DELETE", "OPTIONS"] {
        assert_eq!(server.request(method, &format!("{page}logs"), &own, "").0, 405, "{method}");
    }
}

#[test]
fn only_the_logs_that_were_found_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let (inside, outside) = (folder.path().join("logs"), folder.path().join("secret.ulg"));
    std::fs::create_dir(&inside).unwrap();
    std::fs::copy(corpus("ulog/utc-gps-int32.ulg"), inside.join("a.ulg")).unwrap();
    std::fs::copy(corpus("ulog/utc-gps-int32.ulg"), &outside).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(&outside, inside.join("link.ulg")).unwrap();
    let server = start(&[inside.to_str().unwrap()]);
    let (status, answer) = server.get("logs");
    assert_eq!(status, 200);
    let listed: serde_json::Value = serde_json::from_slice(body(&answer)).unwrap();
    assert_eq!(listed["logs"].as_array().unwrap().len(), 1, "links that lead out are left out: {listed}");
    assert_eq!(listed["logs"][0][0], "a.ulg");
    assert_eq!(server.get("logs/0").0, 200);
    assert_eq!(server.get("logs/1").0, 422);
    // If a different log is named, the result is the same.
    let other = folder.path().join("b.ulg");
    std::fs::copy(corpus("ulog/utc-gps-int32.ulg"), &other).unwrap();
    for named in [&other, &outside] {
        let server = start(&[inside.to_str().unwrap(), named.to_str().unwrap()]);
        let listed: serde_json::Value = serde_json::from_slice(body(&server.get("logs").1)).unwrap();
        assert_eq!(listed["logs"].as_array().unwrap().len(), 2, "{listed}");
        assert!(!listed.to_string().contains("link.ulg"), "{listed}");
    }
    for path in
        ["logs/-1", "logs/../../secret.ulg", "logs/0/..%2f..%2fsecret.ulg", "secret.ulg", "%2e%2e/secret.ulg"]
    {
        let status = server.get(path).0;
        assert!((400..500).contains(&status), "{path}: {status}");
    }
}

#[test]
fn invalid_requests_get_an_error() {
    let server = start(&[&corpus("vel/all-kinds.vel")]);
    let topic = "topic=GPSDataM&field=";
    for (path, status) in [
        (format!("logs/0/signals?{topic}altitude&from=NaN&to=1"), 422),
        (format!("logs/0/signals?{topic}altitude&from=1e300&to=-1e300&width=1e300"), 200),
        (format!("logs/0/signals?{topic}nothing"), 200),
        (format!("logs/0/signals?{}", format!("{topic}altitude&").repeat(300)), 422),
        ("logs/0/signals?topic=a".to_owned(), 200),
        ("logs/0/signals?topic=&field=psd(speed".to_owned(), 200),
        (format!("logs/0/measures?{topic}nothing&from=1&to=0"), 200),
        (format!("logs/0/measures?{topic}altitude&from=NaN&to=1"), 422),
        ("logs/0/image?topic=GPSDataM&at=0".to_owned(), 422),
        ("logs/0/cloud?topic=%00%ff&at=0".to_owned(), 200),
        ("logs/0/cloud?topic=VelodyneRawDataM&at=x".to_owned(), 422),
        ("logs/99999999999999999999/row".to_owned(), 400),
    ] {
        assert_eq!(server.get(&path).0, status, "{path}");
    }
    // The server must still respond.
    assert_eq!(server.get("logs/0").0, 200);
}

/// The measures must come from all samples, not from the drawn points.
#[test]
fn measures_are_exact() {
    let path = corpus("rld/v4.rld");
    let server = start(&[&path]);
    let ask = |query: &str| -> serde_json::Value {
        let (status, answer) = server.get(&format!("logs/0/measures?{query}"));
        assert_eq!(status, 200, "{query}");
        serde_json::from_slice::<serde_json::Value>(body(&answer)).unwrap()["series"].take()
    };
    let log = rovelog::open(&path).unwrap();
    let charge = rovelog_export::signal::Signals::new(&*log).one("integral(samples.I1)").unwrap();
    let mut expected = f64::NAN;
    rovelog_export::signal::each(&*log, &charge, &rovelog::Select::all(), &mut |_, value| expected = value)
        .unwrap();
    let found = ask("topic=samples&field=I1&topic=&field=V1*I1&topic=&field=nothing(V1)&topic=a&field=b");
    let integral = found[0]["integral"][0].as_f64().unwrap();
    assert!((integral - expected).abs() <= 1e-12 * expected.abs(), "{integral} {expected}");
    assert!(found[0]["integral"][1].as_str().unwrap().contains("Ah"), "{found}");
    assert_eq!(found[0]["count"], log.info().records);
    assert!(found[1]["integral"][1].as_str().unwrap().ends_with('J'), "{found}");
    assert!(found[2]["error"].as_str().unwrap().contains("nothing"), "{found}");
    assert!(found[3].is_null(), "{found}");
}

#[test]
fn every_log_of_the_corpus_can_be_shown_or_has_a_reason() {
    let (done, finished) = mpsc::channel();
    std::thread::spawn(move || {
        let server = start(&[&corpus("")]);
        let listed: serde_json::Value = serde_json::from_slice(body(&server.get("logs").1)).unwrap();
        let logs = listed["logs"].as_array().unwrap();
        assert!(logs.len() > 300, "{}", logs.len());
        // Every fifth log is sufficient, because other tests open all of them.
        for (number, log) in logs.iter().enumerate().step_by(5) {
            for what in ["", "/row", "/events", "/track", "/sources", "/measures"] {
                let status = server.get(&format!("logs/{number}{what}")).0;
                assert!(matches!(status, 200 | 422), "{log}{what}: {status}");
                if what.is_empty() {
                    let opens = rovelog::open(corpus(log[0].as_str().unwrap())).is_ok();
                    assert_eq!(status == 200, opens, "{log}");
                }
            }
        }
        done.send(()).unwrap();
    });
    finished.recv_timeout(Duration::from_mins(2)).expect("the server answers all questions");
}

#[test]
fn a_source_without_logs_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let error = View::open(&[folder.path().to_str().unwrap()], ViewOptions::default()).unwrap_err();
    assert!(error.to_string().contains("no log"), "{error}");
    assert!(View::open(&["nothing.ulg"], ViewOptions::default()).is_err());
}

/// The bag is so large that it is opened by its index. The index does not show the damage.
#[test]
fn a_loss_found_while_reading_is_reported() {
    let Some(folder) = rovelog_testing::real("rosbag20") else { return };
    let Ok(bag) = std::fs::read(folder.join("real_imu_navsat_bz2_2015.bag")) else { return };
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("bad.bag"), rovelog_testing::with_damaged_chunk(&bag, 2)).unwrap();
    let server = start(&[place.path().to_str().unwrap()]);
    let summary = |server: &Running| -> serde_json::Value {
        serde_json::from_slice(body(&server.get("logs/0").1)).unwrap()
    };
    let before = summary(&server);
    assert!(before["lost"].is_null(), "{before}");
    let topics = before["topics"].as_array().unwrap().iter();
    let asked = topics
        .filter_map(|topic| Some(format!("topic={}&field={}", topic[0].as_str()?, topic[4][0].as_str()?)));
    let asked = asked.collect::<Vec<_>>().join("&");
    let (status, answer) = server.get(&format!("logs/0/signals?{asked}"));
    let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap();
    let headers = text(&answer[..end]);
    assert!(
        status == 200 && headers.contains("rovelog-lost: ") && headers.contains("1762 records"),
        "{headers}"
    );
    assert!(summary(&server)["lost"].as_str().unwrap().contains("1762 records"));
}

/// Writes a ULog with one topic, which has an array of `fields` floats.
fn wide_log(path: &Path, fields: usize) {
    let message = |kind: u8, body: &[u8]| {
        let len = u16::try_from(body.len()).unwrap().to_le_bytes();
        [&len[..], &[kind], body].concat()
    };
    let format = format!("wide:uint64_t timestamp;float[{fields}] a;");
    let mut log = [&b"ULog\x01\x12\x35\x01"[..], &[0; 8]].concat();
    log.extend(message(b'F', format.as_bytes()));
    log.extend(message(b'A', b"\0\0\0wide"));
    for time in 1..4_u64 {
        let row = [&[0; 2], &time.to_le_bytes()[..], &vec![0; 4 * fields]].concat();
        log.extend(message(b'D', &row));
    }
    std::fs::write(path, log).unwrap();
}

#[test]
fn many_signals_of_a_topic_with_many_fields_are_read_by_one_request() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wide.ulg");
    wide_log(&path, 16_000);
    let server = start(&[path.to_str().unwrap()]);
    let names = (0..200).map(|i| format!("topic=wide&field=a%5B{i}%5D&"));
    let (status, answer) = server.get(&format!("logs/0/signals?{}width=100", names.collect::<String>()));
    assert_eq!(status, 200, "{}", text(&answer));
    assert!(!text(&answer).contains("error"), "{}", text(&answer));
}

#[test]
fn only_http_1_is_supported() {
    let running = start(&[&corpus("ulog/one-topic.ulg")]);
    let mut stream = TcpStream::connect(("127.0.0.1", running.port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    // The server closes the connection. It may send a response first, but never in HTTP/2.
    let _ = stream.read_to_end(&mut answer);
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 4"), "{answer:?}");
}
