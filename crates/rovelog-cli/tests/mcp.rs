//! The server for agents: `rovelog mcp`. A client sends JSON-RPC lines and reads the answers.

mod common;

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

/// A client and its server.
struct Client {
    server: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    last: u64,
}

impl Client {
    fn new(folder: &Path) -> Self {
        Self::with(folder, &[])
    }

    fn with(folder: &Path, options: &[&str]) -> Self {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("rovelog"));
        command.arg("mcp").args(options).arg(folder).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut server = command.spawn().unwrap();
        let (input, output) = (server.stdin.take().unwrap(), server.stdout.take().unwrap());
        let mut client = Self { server, input, output: BufReader::new(output), last: 0 };
        let hello = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        });
        let answer = client.request("initialize", &hello);
        assert_eq!(answer["result"]["serverInfo"]["name"], "rovelog");
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.input, "{message}").unwrap();
    }

    fn request(&mut self, method: &str, params: &Value) -> Value {
        self.last += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}));
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap();
        let max = if answer["result"]["content"][0]["type"] == "image" { 65_000 } else { 16_000 };
        assert!(line.len() < max, "{} bytes", line.len());
        assert_eq!(answer["id"], self.last);
        answer
    }

    /// Calls a tool. Returns whether it failed, and its texts.
    fn call(&mut self, tool: &str, arguments: &Value) -> (bool, Vec<String>) {
        let answer = self.request("tools/call", &json!({"name": tool, "arguments": arguments}));
        let result = &answer["result"];
        let content = result["content"].as_array().unwrap();
        let texts = content.iter().map(|block| {
            block.get("text").or_else(|| block.get("data")).unwrap().as_str().unwrap().to_owned()
        });
        (result["isError"] == true, texts.collect())
    }

    /// Calls a tool and returns its document.
    fn document(&mut self, tool: &str, arguments: &Value) -> Value {
        let (failed, texts) = self.call(tool, arguments);
        assert!(!failed, "{texts:?}");
        serde_json::from_str(&texts[0]).unwrap()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

#[test]
fn every_tool_answers() {
    let mut client = Client::new(&rovelog_testing::root().join("corpus"));
    let tools = client.request("tools/list", &json!({}));
    let tools = tools["result"]["tools"].as_array().unwrap();
    let list: Vec<_> = tools
        .iter()
        .map(|tool| {
            let arguments = tool["inputSchema"]["properties"].as_object().unwrap();
            format!("{}: {:?}", tool["name"].as_str().unwrap(), arguments.keys().collect::<Vec<_>>())
        })
        .collect();
    insta::assert_snapshot!("mcp_tools", list.join("\n"));
    let logs = client.document("logs", &json!({"folder": "rld"}));
    assert!(logs["logs"].as_array().unwrap().len() > 5, "{logs}");
    let file = json!({"file": "ulog/one-topic.ulg"});
    for tool in tools.iter().map(|tool| tool["name"].as_str().unwrap()) {
        if !matches!(tool, "logs" | "rows" | "plot" | "events") {
            let document = client.document(tool, &file);
            assert!(document["schema"].as_str().unwrap().starts_with("rovelog."), "{tool}");
        }
    }
    let found = client.document("events", &json!({"file": "ulog/one-topic.ulg", "conditions": ["x > 5"]}));
    assert_eq!(found["conditions"][0]["events"].as_array().map(Vec::len), Some(1), "{found}");
    let (failed, rows) =
        client.call("rows", &json!({"file": "ulog/one-topic.ulg", "topic": "t", "start": "+50ms"}));
    assert!(!failed && rows[0].lines().count() == 6, "{rows:?}");
    let (failed, picture) = client.call("plot", &json!({"file": "ulog/one-topic.ulg", "signals": ["x"]}));
    assert!(!failed && picture[0].starts_with("iVBORw0KGgo"), "{failed}");
}

#[test]
fn answers_are_short_and_name_what_they_leave_out() {
    let mut client = Client::new(&rovelog_testing::root().join("corpus"));
    let (failed, texts) = client.call("logs", &json!({}));
    assert!(!failed && texts[1].starts_with("left out: logs has "), "{texts:?}");
    serde_json::from_str::<Value>(&texts[0]).unwrap();
    let Some(real) = rovelog_testing::real("ulog") else { return };
    let mut client = Client::new(&real);
    for tool in ["info", "topics", "schema", "findings", "messages", "params", "problems", "stats"] {
        let document = client.document(tool, &json!({"file": "sample_log_small.ulg"}));
        assert!(document.is_object());
    }
    let (failed, rows) =
        client.call("rows", &json!({"file": "sample_log_small.ulg", "topic": "sensor_combined"}));
    assert!(!failed && rows[1].contains("only the first "), "{}", rows[1]);
    let mut plot =
        |signals| client.call("plot", &json!({"file": "sample_log_small.ulg", "signals": signals}));
    let (failed, picture) = plot(json!(["vehicle_attitude.q.roll", "vehicle_attitude.q"]));
    assert!(!failed && picture[0].len() < 15_000, "{}", picture[0].len());
    // Noise does not compress, so a picture of many noisy signals does not fit.
    let (failed, texts) = plot(json!(["sensor_combined", "vehicle_attitude.q"]));
    assert!(failed && texts[0].contains("select fewer signals"), "{texts:?}");
}

/// Options for reading logs apply to every tool.
#[test]
fn logs_are_read_with_the_options_of_the_server() {
    let corpus = rovelog_testing::root().join("corpus");
    let mut client = Client::with(&corpus, &["--utc-start", "2026-05-20T12:00:00Z"]);
    let document = client.document("info", &json!({"file": "ulog/one-topic.ulg"}));
    assert_eq!(document["start"], "2026-05-20T12:00:00Z", "{document}");
}

#[test]
fn damaged_logs_are_read_and_their_losses_told() {
    let mut client = Client::new(&rovelog_testing::root().join("corpus"));
    assert_eq!(
        client.document("problems", &json!({"file": "ulog/cut-in-payload.ulg"}))["counts"]["E-ULOG-002"],
        1
    );
    let (failed, texts) = client.call("rows", &json!({"file": "ulog/cut-in-payload.ulg", "topic": "t"}));
    assert!(!failed && texts[0].lines().count() == 11 && texts[1].contains("could not be read"), "{texts:?}");
}

/// The server reads nothing outside of its folders, whatever an agent passes.
#[test]
fn other_folders_cannot_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let log = rovelog_testing::root().join("corpus/ulog/one-topic.ulg");
    std::fs::copy(&log, folder.path().join("own.ulg")).unwrap();
    let outside = log.to_str().unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(&log, folder.path().join("link.ulg")).unwrap();
    let mut client = Client::new(folder.path());
    let logs = client.document("logs", &json!({}));
    assert_eq!(logs["logs"].as_array().map(Vec::len), Some(1), "{logs}");
    let corpus = rovelog_testing::root().join("corpus");
    for place in ["..", "/", corpus.to_str().unwrap()] {
        let (failed, texts) = client.call("logs", &json!({"folder": place}));
        assert!(failed && texts[0].contains("is not a folder in"), "{place}: {texts:?}");
    }
    for file in [
        outside,
        "../own.ulg",
        "link.ulg",
        "none.ulg",
        "https://example.org/a.ulg",
        "-",
        ".",
        "",
        "own.ulg/../../x.ulg",
    ] {
        let (failed, texts) = client.call("info", &json!({"file": file}));
        assert!(failed && texts[0].contains("is not a log in"), "{file}: {texts:?}");
    }
    let pattern = format!("{}/*/one-topic*", corpus.display());
    for (tool, name) in
        [("schema", "topics"), ("events", "conditions"), ("plot", "signals"), ("params", "names")]
    {
        for word in [outside, "..", "-", "https://example.org/a.ulg"] {
            let (failed, texts) = client.call(tool, &json!({"file": "own.ulg", name: [word]}));
            let is_refused = texts[0].contains(&format!("is no {name}")) || word == "-";
            assert!(failed && is_refused, "{tool} {word}: {texts:?}");
        }
        let (failed, texts) = client.call(tool, &json!({"file": "own.ulg", name: [pattern]}));
        assert!(failed, "{tool}: {texts:?}");
        let (failed, texts) = client.call(tool, &json!({"file": "own.ulg", name: ["--msgs=/etc"]}));
        assert!(failed || !texts[0].contains("etc"), "{tool}: {texts:?}");
    }
    for (tool, arguments) in [
        ("info", json!({"file": "own.ulg", "output": "x"})),
        ("info", json!({"file": 5})),
        ("rows", json!({"file": "own.ulg"})),
        ("rows", json!({"file": "own.ulg", "topic": "none"})),
        ("info", json!({"file": ["own.ulg", "own.ulg"]})),
        ("logs", json!({"folder": ["x"]})),
        ("logs", json!({"path": "x"})),
    ] {
        let (failed, texts) = client.call(tool, &arguments);
        assert!(failed && !texts[0].is_empty(), "{tool}: {texts:?}");
    }
    let answer = client.request("tools/call", &json!({"name": "none", "arguments": {}}));
    assert_eq!(answer["error"]["message"], "there is no tool none");
}

#[test]
fn the_help_of_commands_is_a_resource() {
    let mut client = Client::new(&rovelog_testing::root().join("corpus"));
    let list = client.request("resources/list", &json!({}));
    let resources = list["result"]["resources"].as_array().unwrap();
    assert!(resources.iter().any(|resource| resource["uri"] == "rovelog://help/plot"));
    for resource in resources {
        let uri = &resource["uri"];
        let answer = client.request("resources/read", &json!({"uri": uri}));
        let text = answer["result"]["contents"][0]["text"].as_str().unwrap().to_owned();
        assert!(text.contains("Usage:"), "{uri}");
    }
    let answer = client.request("resources/read", &json!({"uri": "file:///etc/passwd"}));
    assert!(answer["error"]["message"].as_str().unwrap().contains("no resource"));
}
