//! `rovelog plot`: signals over time, in the terminal or as a picture.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use rovelog::{AnyLog, Timestamp, Topic};
use rovelog_export::plot::{self, Panel, Plot, Signal, Size};
use rovelog_export::report::{self, ReportOptions};

use crate::context::{Context, Format};
use crate::destination::Destination;
use crate::failure::{Failure, Outcome};
use crate::input::{Input, Need};
use crate::outfile::OutArgs;
use crate::select::{TopicArgs, glob, near, unknown_topic};
use crate::text::{count, escape};
use crate::when::{WindowArgs, within};

const MORE: &str = "\
Each signal, TOPIC.FIELD, is drawn in its own panel. FIELD may contain * and ?; the name of an \
array or struct selects all its fields. Minima and maxima are always drawn, however long the log \
is.

Examples:
  rovelog plot flight.ulg battery_status.voltage_v         in the terminal
  rovelog plot flight.ulg vehicle_attitude.q 'sensor_combined.gyro*' -S +1m
  rovelog plot flight.ulg cpuload -o load.svg              all fields of a topic
  rovelog plot flight.ulg --all -o all.html                everything, with zoom";

/// Maximum number of signals for `--all`: a large flight log has about 2500.
const MOST_SIGNALS: usize = 10_000;

/// Plot fields over time: terminal, SVG, PNG or HTML with zoom
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub(crate) struct Args {
    /// Log file; - for stdin
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// TOPIC.FIELD, or a topic for all its fields
    #[arg(value_name = "SIGNAL")]
    signals: Vec<String>,
    /// Plot all topics
    #[arg(long, conflicts_with = "signals")]
    all: bool,
    /// Output file, format by extension: .svg, .png or .html
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// Output format: svg, png, html or text
    #[arg(long, value_name = "KIND", value_parser = kind)]
    to: Option<Kind>,
    /// Width in pixels, or in columns of the terminal
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(40..=20000))]
    width: Option<u32>,
    /// Height in pixels, or in lines per panel of the terminal
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(4..=20000))]
    height: Option<u32>,
    #[command(flatten)]
    window: WindowArgs,
    #[command(flatten)]
    out: OutArgs,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Svg,
    Png,
    Html,
}

fn kind(name: &str) -> Result<Kind, String> {
    match name.to_ascii_lowercase().as_str() {
        "text" => Ok(Kind::Text),
        "svg" => Ok(Kind::Svg),
        "png" => Ok(Kind::Png),
        "html" | "htm" => Ok(Kind::Html),
        _ => Err("expected svg, png, html or text".to_owned()),
    }
}

pub(super) fn run(args: &Args, context: &Context) -> Outcome {
    context.format(&[Format::Text])?;
    let path = args.output.as_deref().filter(|path| *path != Path::new("-"));
    let by_name = path.and_then(|path| path.extension()?.to_str()).and_then(|name| kind(name).ok());
    let kind = match (args.to.or(by_name), path) {
        (Some(kind), _) => kind,
        (None, None) => Kind::Text,
        (None, Some(path)) => {
            return Err(Failure::usage("unknown output format")
                .next("use .svg, .png or .html, or name the format: --to svg")
                .at(path));
        }
    };
    if args.signals.is_empty() && !args.all {
        return Err(Failure::usage("no signal selected")
            .next("name one: rovelog plot FILE battery_status.voltage_v; or plot all: --all")
            .at(&args.file));
    }
    let input = Input::new(Some(&args.file))?;
    let select = |log: &AnyLog| within(log, &TopicArgs::default(), &args.window, context);
    let (log, provenance) = input.open_with_provenance(context, &Need::Part(&select), kind == Kind::Html)?;
    let here = |failure: Failure| failure.at(&input.path);
    let times = context.times(log.info()).map_err(here)?;
    let all = report::span(&log).ok_or_else(|| here(Failure::failed("no record in this log has a time")))?;
    let window = args.window.resolve(&times, Some(all)).map_err(here)?;
    let start = window.start.unwrap_or(all.0);
    let end = window.end.map_or(all.1, |end| end - 1);
    let size = size(args, kind);
    let mut panels = Vec::new();
    let wanted = wanted(args, &log, context).map_err(here)?;
    if args.window.is_open() {
        say_what_is_outside(&log, &wanted, context);
    }
    let signals: Vec<Signal> = wanted.iter().flat_map(|(_, signals)| signals).cloned().collect();
    let mut series = plot::read(&*log, &signals, (start, end), size.width as usize, start)
        .map_err(|error| here(error.into()))?
        .into_iter();
    for (title, signals) in wanted {
        let of_units = Panel::by_unit(&title, series.by_ref().take(signals.len()).flatten().collect());
        panels.extend(
            of_units.into_iter().filter(|panel| panel.series.iter().any(|line| line.range().is_some())),
        );
    }
    if panels.is_empty() {
        return Err(here(
            Failure::failed("no values to plot: the selected signals have no records")
                .next("list the topics: rovelog topics FILE"),
        ));
    }
    let name = input.path.file_name().map_or_else(|| "stdin".into(), |name| name.to_string_lossy());
    let span = (0.0, (end - start).max(1) as f64 / 1e9);
    let clock = times.clock();
    let zero = Timestamp::new(start, clock);
    let zero = match zero.to_unix(log.info().utc.as_ref()).and_then(Timestamp::rfc3339) {
        Some(utc) => utc,
        None => format!("{clock} + {} s", zero.seconds()),
    };
    let plot = Plot::new(name, panels, span, format!("seconds since {zero}"));
    if kind == Kind::Text && path.is_none() {
        let mut out = context.out();
        let height = args.height.unwrap_or(12) as usize;
        std::io::Write::write_all(&mut out, text(plot, size.width as usize, height).as_bytes())?;
        std::io::Write::flush(&mut out)?;
        return Ok(context.notices.loss(&log.info().lost, &input.path));
    }
    let mut out = Destination::create(path, "plot.svg", &input.files(context), args.out, context)?;
    match kind {
        Kind::Svg => plot::svg(&plot, grown(args, size, &plot), &mut out)?,
        Kind::Png => plot::png(&plot, grown(args, size, &plot), &mut out)?,
        Kind::Text => {
            let height = args.height.unwrap_or(12) as usize;
            std::io::Write::write_all(&mut out, text(plot.clone(), size.width as usize, height).as_bytes())?;
        }
        Kind::Html => {
            let mut options = ReportOptions::default();
            options.panels = Some(plot.panels.clone());
            options.shown = Some((start, end));
            report::write(&log, &provenance, &options, &mut out)?;
        }
    }
    if let Some(path) = out.finish()? {
        let values: u64 = plot.panels.iter().flat_map(|panel| &panel.series).map(|series| series.count).sum();
        context.note(&format!("wrote {} to {}", count(values, "value"), path.display()));
    }
    Ok(context.notices.loss(&log.info().lost, &input.path))
}

/// Returns the plot as text. Names come from the log, and may contain control characters.
fn text(mut plot: Plot, width: usize, height: usize) -> String {
    let plain = |text: &mut String| *text = escape(text).replace('\t', "\\t");
    for panel in &mut plot.panels {
        plain(&mut panel.title);
        for series in &mut panel.series {
            plain(&mut series.name);
            series.unit.iter_mut().for_each(plain);
        }
    }
    plot::braille(&plot, width, height)
}

/// Reports the signals with values far outside of all others, which are not drawn.
fn say_what_is_outside(log: &AnyLog, wanted: &[(String, Vec<Signal>)], context: &Context) {
    let drawn: HashSet<&str> =
        wanted.iter().flat_map(|(_, signals)| signals).map(|signal| &*signal.topic).collect();
    for outside in log.info().outside() {
        let name = log.topics().get(outside.topic.index()).map_or("", |topic| topic.name.as_str());
        if drawn.contains(name) {
            let text = format!("not drawn: {}; use -S and -E to draw them", outside.sentence(name));
            context.notices.warn("topics with values that are not drawn", &text);
        }
    }
}

/// Returns the requested size, or a default.
fn size(args: &Args, kind: Kind) -> Size {
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok()).unwrap_or(100);
    let width = match kind {
        Kind::Text => columns,
        Kind::Html => 2000,
        Kind::Svg | Kind::Png => 1200,
    };
    Size { width: args.width.unwrap_or(width), height: args.height.unwrap_or(0) }
}

/// Increases the height with the number of panels, if no height was requested.
fn grown(args: &Args, size: Size, plot: &Plot) -> Size {
    let panels = u32::try_from(plot.panels.len()).unwrap_or(1).clamp(1, 60);
    Size { height: args.height.unwrap_or(80 + 220 * panels), ..size }
}

/// Returns the signals of each panel, with its title. With `--all`, at most as many as the limit.
fn wanted(args: &Args, log: &AnyLog, context: &Context) -> Result<Vec<(String, Vec<Signal>)>, Failure> {
    if args.all {
        let topics = log.topics().iter().filter(|topic| topic.count > 0);
        let (mut drawn, mut free, mut left_out) = (Vec::new(), MOST_SIGNALS, 0_usize);
        for topic in topics {
            if free == 0 {
                left_out += 1;
                continue;
            }
            let mut signals = whole(log, topic);
            left_out += usize::from(signals.len() > free);
            signals.truncate(free);
            free -= signals.len();
            drawn.push((topic.name.clone(), signals));
        }
        if left_out > 0 {
            let text = format!(
                "only the first {MOST_SIGNALS} signals are drawn; not drawn or incomplete: {}; name the signals to draw",
                count(left_out, "topic")
            );
            context.notices.warn("topics that are not drawn", &text);
        }
        return Ok(drawn);
    }
    args.signals.iter().map(|text| Ok((text.clone(), signal(log, text)?))).collect()
}

/// Returns the measured fields of a topic that can be drawn.
fn whole(log: &AnyLog, topic: &Topic) -> Vec<Signal> {
    let fields = plot::measured_fields(&**log, topic).into_iter();
    fields.map(|field| Signal { topic: topic.name.clone(), field }).collect()
}

/// Parses `TOPIC.FIELD`; topic names may contain dots.
fn signal(log: &AnyLog, text: &str) -> Result<Vec<Signal>, Failure> {
    if let Some(topic) = log.topic(text) {
        return Ok(whole(log, topic.get()));
    }
    let mut topic = None;
    for (at, _) in text.match_indices('.') {
        if let Some(found) = log.topic(&text[..at]) {
            topic = Some((found.get(), &text[at + 1..]));
        }
    }
    let Some((topic, field)) = topic else {
        let name = text.split('.').next().unwrap_or(text);
        return Err(unknown_topic(name, log.topics()));
    };
    let there = plot::numeric_fields(&**log, topic);
    let regex = glob(field).map_err(Failure::usage)?;
    let fields: Vec<_> = there.iter().filter(|name| regex.is_match(name)).cloned().collect();
    if fields.is_empty() {
        let all = format!("rovelog schema FILE {}", topic.name);
        let near = near(field, there.iter().map(String::as_str), &all);
        return Err(
            Failure::usage(format!("topic {} has no field {field} that can be drawn", topic.name)).next(near)
        );
    }
    Ok(fields.into_iter().map(|field| Signal { topic: topic.name.clone(), field }).collect())
}
