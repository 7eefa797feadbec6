//! The tools of the server. Each tool stands for a command of Rovelog.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rmcp::model::ToolAnnotations;
use rovelog_export::signal::Condition;
use serde_json::{Map, Value, json};

use crate::input::{logs_and_names, logs_and_signals};

/// A tool: a command and the arguments that agents may give.
pub(super) struct Tool {
    pub(super) name: &'static str,
    about: &'static str,
    /// The command, with the options that it always has.
    command: &'static [&'static str],
    pub(super) form: Form,
    arguments: &'static [Argument],
}

/// Format of the command's output.
#[derive(Clone, Copy)]
pub(super) enum Form {
    Json,
    Csv,
    Png,
}

impl Form {
    /// Returns the option that selects the format.
    const fn option(self) -> [&'static str; 2] {
        match self {
            Self::Json => ["-f", "json"],
            Self::Csv => ["-f", "csv"],
            Self::Png => ["--to", "png"],
        }
    }
}

/// An argument of a tool.
struct Argument {
    name: &'static str,
    about: &'static str,
    kind: Kind,
    is_required: bool,
}

/// Way in which an argument is passed to the command.
enum Kind {
    /// The log, as a path.
    Log,
    /// A folder, which is not passed on.
    Folder,
    /// The value of an option.
    Option(&'static str),
    /// Names, conditions or signals after the log. Commands take some words for further logs, which
    /// may be in any folder. The function returns whether the command takes a word for a name.
    Positional(fn(&str) -> bool),
}

const NAMES: Kind = Kind::Positional(|word| logs_and_names(&[PathBuf::from(word)]).0.is_empty());
const CONDITIONS: Kind =
    Kind::Positional(|word| Condition::looks_like_condition(word) && !Path::new(word).exists());
const SIGNALS: Kind = Kind::Positional(|word| {
    // The first word, stdin, is a log.
    let words = ["-".to_owned(), word.to_owned()];
    logs_and_signals(&words).0.len() == 1 && !Path::new(word).exists()
});

impl Argument {
    const fn optional(name: &'static str, kind: Kind, about: &'static str) -> Self {
        Self { name, about, kind, is_required: false }
    }

    const fn required(name: &'static str, kind: Kind, about: &'static str) -> Self {
        Self { name, about, kind, is_required: true }
    }
}

const FILE: Argument = Argument::required("file", Kind::Log, "path of the log, as the tool logs returns it");
const START: Argument = Argument::optional(
    "start",
    Kind::Option("--start"),
    "+10s (after the log's start), -30s (before its end), 112.5s or 112500000000ns (log clock), or UTC",
);
const END: Argument = Argument::optional("end", Kind::Option("--end"), "end (exclusive), in the same forms");
const TOPICS: Argument =
    Argument::optional("topics", Kind::Option("--topics"), "exact names, separated by commas; default: all");
const FIELDS: Argument = Argument::optional(
    "fields",
    Kind::Option("--fields"),
    "fields (q, q[0..2], pos.*) and expressions (norm(q), p=V1*I1), separated by commas; default: all",
);

/// All tools.
pub(super) const TOOLS: &[Tool] = &[
    Tool::json(
        "logs",
        "List the logs that can be read",
        &[],
        &[Argument::optional("folder", Kind::Folder, "only logs in this folder")],
    ),
    Tool::json(
        "info",
        "Summarize a log: format, times, device, topics, problems, distances, energy",
        &["info", "-v"],
        &[FILE],
    ),
    Tool::json("topics", "List the topics of a log: type, records, rate, size", &["topics"], &[FILE]),
    Tool::json(
        "schema",
        "Show the fields of topics: names, types, units",
        &["schema"],
        &[FILE, Argument::optional("topics", NAMES, "exact names; default: all")],
    ),
    Tool::json(
        "findings",
        "List what went wrong: failures and problems, with their cause and time",
        &["findings"],
        &[FILE, Argument::optional("severity", Kind::Option("--severity"), "at least high, medium or low")],
    ),
    Tool::json(
        "events",
        "Show when conditions hold, such as 'voltage_v < 14'; without conditions, the flight modes, arming and \
         failsafes of an autopilot",
        &["events"],
        &[FILE, Argument::optional("conditions", CONDITIONS, "comparisons of signals"), START, END],
    ),
    Tool::json(
        "messages",
        "Show the console messages that the device logged",
        &["messages", "--fold"],
        &[
            FILE,
            Argument::optional("level", Kind::Option("--level"), "at least error, warning, info or debug"),
            Argument::optional("grep", Kind::Option("--grep"), "regular expression"),
            START,
            END,
        ],
    ),
    Tool::json(
        "params",
        "Show the parameters of a ULog",
        &["params"],
        &[FILE, Argument::optional("names", NAMES, "names or patterns such as MC_*_P")],
    ),
    Tool::json(
        "problems",
        "List damage and other problems of the file, with byte ranges, and gaps of topics",
        &["check"],
        &[FILE],
    ),
    Tool::json(
        "stats",
        "Compute min, max, mean and deviation of fields; charge and energy of power logs",
        &["stats"],
        &[FILE, TOPICS, FIELDS, START, END],
    ),
    Tool {
        name: "rows",
        about: "Print records of one topic as CSV, from the start of the log or the given time",
        command: &["cat"],
        form: Form::Csv,
        arguments: &[
            FILE,
            Argument::required("topic", Kind::Option("--topics"), "exact name"),
            FIELDS,
            START,
            END,
        ],
    },
    Tool {
        name: "plot",
        about: "Draw signals over time as a picture",
        command: &["plot"],
        form: Form::Png,
        arguments: &[
            FILE,
            Argument::required(
                "signals",
                SIGNALS,
                "TOPIC.FIELD, FIELD, TOPIC or an expression; 'a,b' shares an axis",
            ),
            START,
            END,
        ],
    },
];

impl Tool {
    /// Creates a tool whose command prints a JSON document.
    const fn json(
        name: &'static str,
        about: &'static str,
        command: &'static [&'static str],
        arguments: &'static [Argument],
    ) -> Self {
        Self { name, about, command, form: Form::Json, arguments }
    }

    /// Returns the description of the tool that agents read.
    pub(super) fn describe(&self) -> rmcp::model::Tool {
        let properties: Map<_, _> = self
            .arguments
            .iter()
            .map(|argument| {
                let about = argument.about;
                let schema = match argument.kind {
                    Kind::Positional(_) => {
                        json!({"type": "array", "items": {"type": "string"}, "description": about})
                    }
                    _ => json!({"type": "string", "description": about}),
                };
                (argument.name.to_owned(), schema)
            })
            .collect();
        let required = self.arguments.iter().filter(|argument| argument.is_required);
        let required: Vec<_> = required.map(|argument| argument.name).collect();
        let mut schema = Map::new();
        schema.insert("type".to_owned(), "object".into());
        schema.insert("properties".to_owned(), properties.into());
        schema.insert("required".to_owned(), required.into());
        schema.insert("additionalProperties".to_owned(), false.into());
        let mut tool = rmcp::model::Tool::new(self.name, self.about, Arc::new(schema));
        tool.annotations = Some(ToolAnnotations::new().read_only(true));
        tool
    }

    /// Returns the arguments of the command for the `values` of an agent. `find` returns the path of
    /// a log that the agent may read.
    pub(super) fn command_line(
        &self,
        values: &Map<String, Value>,
        find: impl Fn(&str) -> Result<PathBuf, String>,
    ) -> Result<Vec<String>, String> {
        let known = |name: &String| self.arguments.iter().any(|argument| argument.name == name);
        if let Some(name) = values.keys().find(|name| !known(name)) {
            return Err(format!("the tool {} has no argument {name}", self.name));
        }
        let command = self.command.iter().copied().chain(self.form.option());
        let mut options: Vec<_> = command.map(str::to_owned).collect();
        let mut words = vec!["--".to_owned()];
        for argument in self.arguments {
            let texts = values.get(argument.name).map(|value| texts(argument.name, value)).transpose()?;
            let texts = texts.unwrap_or_default();
            if texts.is_empty() && argument.is_required {
                return Err(format!("the argument {} is missing", argument.name));
            }
            match argument.kind {
                Kind::Folder => {}
                Kind::Log => match &texts[..] {
                    [name] => words.push(find(name)?.to_string_lossy().into_owned()),
                    _ => return Err(format!("the argument {} must be one path", argument.name)),
                },
                Kind::Option(option) => options.extend(texts.iter().map(|value| format!("{option}={value}"))),
                Kind::Positional(is_name) => {
                    if let Some(word) = texts.iter().find(|word| !is_name(word)) {
                        let name = argument.name;
                        return Err(format!("{word} is no {name}; to read a file, pass it as file"));
                    }
                    words.extend(texts);
                }
            }
        }
        Ok([options, words].concat())
    }
}

/// Returns the value of the argument `name` as texts: one for a string, several for an array.
fn texts(name: &str, value: &Value) -> Result<Vec<String>, String> {
    let values = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
    let texts = values.iter().map(|value| value.as_str().map(str::to_owned)).collect::<Option<_>>();
    texts.ok_or_else(|| format!("the argument {name} must be a string or a list of strings"))
}
