//! Requests as text, and the function that answers each of them.

use std::ops::Range;

use rovelog_export::plot::Theme;
use serde_json::{Value, json};

use crate::packed::packed;
use crate::signals::Wanted;
use crate::{Answer, Explore, events, scene, signals, summary};

/// Answers a request. [`Explore::answer`] lists the requests.
pub(crate) fn answer(log: &Explore, request: &str) -> Result<Answer, String> {
    let (name, query) = request.split_once('?').unwrap_or((request, ""));
    let pairs = Pairs::parse(query);
    match name {
        "" => Ok(document(&summary::log(log).map_err(|error| error.to_string())?)),
        "row" => Ok(document(&summary::row(log))),
        "signals" => Ok(binary(signals::parts(log, &pairs.wanted()?)?)),
        "measures" => Ok(document(&signals::measures(log, &pairs.wanted()?)?)),
        "spectrum" => {
            let theme = if pairs.text("theme") == Some("dark") { Theme::Dark } else { Theme::Light };
            let svg = signals::spectrum(log, &pairs.wanted()?, theme)?;
            Ok(Answer { media_type: "image/svg+xml", bytes: svg })
        }
        "events" => Ok(document(&events::list(log))),
        "findings" => Ok(document(&events::findings(log)?)),
        "problems" => Ok(document(&events::problems(log))),
        "track" => Ok(binary(scene::track(log))),
        "sources" => Ok(binary(scene::sources(log))),
        "image" => {
            let (topic, seconds) = pairs.place()?;
            let (bytes, media_type) = scene::image(log, topic, seconds)?;
            Ok(Answer { media_type, bytes })
        }
        "cloud" => {
            let (topic, seconds) = pairs.place()?;
            // If there are no points, the page shows the reason, for example that the calibration
            // of a scanner is missing. The request itself has not failed.
            let points = scene::cloud(log, topic, seconds);
            Ok(binary(points.unwrap_or_else(|error| packed(&json!({ "points": 0, "error": error }), []))))
        }
        _ => Err(format!("there is no request {name}")),
    }
}

/// Returns the byte ranges that an answer still needs. [`Explore::needed`] describes the result.
pub(crate) fn needed(log: &Explore, request: &str) -> Option<Vec<Range<u64>>> {
    let (name, query) = request.split_once('?').unwrap_or((request, ""));
    let selections = match name {
        "" | "row" => Vec::new(),
        "signals" => signals::selections(log, &Pairs::parse(query).wanted().ok()?).ok()?,
        _ => return None,
    };
    let needed: Option<Vec<_>> = selections.iter().map(|select| log.log.needed(select)).collect();
    let mut needed = needed?.concat();
    // Several selections may need the same block times.
    needed.sort_unstable_by_key(|range| (range.start, range.end));
    needed.dedup();
    Some(needed)
}

/// Returns a JSON answer.
fn document(value: &Value) -> Answer {
    Answer { media_type: "application/json", bytes: value.to_string().into_bytes() }
}

/// Returns an answer with bytes that were encoded by [`packed`].
fn binary(bytes: Vec<u8>) -> Answer {
    Answer { media_type: "application/octet-stream", bytes }
}

/// Parameters of a request. Several parameters may have the same name.
struct Pairs(Vec<(String, String)>);

impl Pairs {
    /// Parses the query of a URL.
    fn parse(query: &str) -> Self {
        Self(form_urlencoded::parse(query.as_bytes()).into_owned().collect())
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|pair| pair.0 == name).map(|(_, text)| &**text)
    }

    /// Parses a parameter as a number. Returns `None` if there is no such parameter.
    fn number(&self, name: &str) -> Result<Option<f64>, String> {
        let number = self.text(name).map(|text| text.parse::<f64>().ok().filter(|number| number.is_finite()));
        number.map(|number| number.ok_or_else(|| format!("{name} is not a number"))).transpose()
    }

    /// Parses the parameters `topic` and `at`, which are the name of a topic and a time in seconds.
    fn place(&self) -> Result<(&str, f64), String> {
        Ok((self.text("topic").ok_or("no topic")?, self.number("at")?.ok_or("no time")?))
    }

    /// Parses the parameters of a request for signals. For each signal, a parameter `topic` is
    /// followed by a parameter `field`. The parameters `from`, `to`, `width` and `preview` are
    /// optional.
    fn wanted(&self) -> Result<Wanted, String> {
        let mut signals: Vec<(String, String)> = Vec::new();
        for pair in self.0.windows(2) {
            if let [(topic, name), (field, path)] = pair
                && (topic.as_str(), field.as_str()) == ("topic", "field")
            {
                signals.push((name.clone(), path.clone()));
            }
        }
        let span = match (self.number("from")?, self.number("to")?) {
            (Some(from), Some(to)) => Some((from, to)),
            _ => None,
        };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
        let width = self.number("width")?.map_or(1000, |width| width as usize);
        Ok(Wanted { signals, span, width, is_preview: self.text("preview").is_some() })
    }
}
