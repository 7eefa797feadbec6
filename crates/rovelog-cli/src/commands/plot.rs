//! The command `rovelog plot`, which draws signals over time in the terminal or as a picture.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use rovelog::{AnyLog, Select, Timestamp, Topic};
use rovelog_export::Loss;
use rovelog_export::plot::{self, Panel, Picture, Plot, Theme};
use rovelog_export::report;
use rovelog_export::signal::{Signal, Signals, measured_fields};

use crate::context::{Context, Format};
use crate::destination::Destination;
use crate::failure::{Failure, Outcome};
use crate::input::{Input, logs_and_signals};
use crate::outfile::{OutArgs, unless_stdout};
use crate::outputs::Outputs;
use crate::select::{TopicArgs, signal_failure};
use crate::text::{Paint, count, escape};
use crate::times::TimeBase;
use crate::window::{WindowArgs, select_window};

const MORE: &str = "\
Each signal is drawn in its own panel. A signal is TOPIC.FIELD, or FIELD if only one topic has \
this field. Names may contain *, ?, {a,b} and [0..3]. The name of a topic, array or struct selects \
all its fields. Quaternions also have .roll, .pitch and .yaw. In power logs, a current that was \
measured in two ranges is one signal, such as I1.

An expression is a signal, too. It consists of signals, numbers, + - * / ^, comparisons, and the \
functions abs, sqrt, sin, cos, tan, asin, acos, atan, atan2, exp, log, log10, floor, ceil, round, \
min, max, norm, coalesce, roll, pitch, yaw, deg, rad, derivative, difference and integral. \
in(SIGNAL, UNIT) converts a signal to another unit, and NAME=EXPRESSION gives an expression a \
name.

Minima and maxima are always drawn, however long the log is. On/off signals and states with names \
are drawn as lanes, and flight modes as bands. An HTML page can be zoomed; the only data of the \
log in it is the plot. Several logs are plotted one after the other, or as files in a folder.

PNG and PDF need the Cargo feature pictures, which released binaries and the Python package have. \
To build it, run cargo install --path crates/rovelog-cli --features pictures.

Examples:
  rovelog plot flight.ulg battery_status.voltage_v         in the terminal
  rovelog plot flight.ulg vehicle_attitude.q 'sensor_combined.gyro*' -S +1m
  rovelog plot flight.ulg 'deg(vehicle_attitude.q.roll)'
  rovelog plot flight.ulg 'norm(sensor_combined.gyro_rad)' cpuload.load
  rovelog plot power.rld 'P=V1*I1' 'E=integral(V1*I1)'
  rovelog plot flight.ulg cpuload -o load.svg              all fields of a topic
  rovelog plot flight.ulg vehicle_status -o modes.png --theme dark --dpi 192
  rovelog plot flight.ulg --all -o all.html                everything, with zoom
  rovelog plot flights/ cpuload.load -o plots/ --to png    a picture per log";

/// Maximum number of signals that `--all` plots. A large flight log has about 2500 signals.
const MAX_SIGNALS: usize = 10_000;

/// Plot fields over time: terminal, SVG, PNG, PDF or HTML with zoom
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub(crate) struct Args {
    /// Log files, folders (ending with /) and patterns ('*.ulg'), or - for stdin; then signals:
    /// TOPIC.FIELD, FIELD, TOPIC (all its fields) or an expression
    #[arg(value_names = ["FILE", "SIGNAL"], num_args = 1.., required = true)]
    words: Vec<String>,
    /// Plot all fields of all topics
    #[arg(long)]
    all: bool,
    /// Output file, whose extension selects the format (.svg, .png, .pdf or .html); default: plot
    /// in the terminal
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// Output format: svg, png, pdf, html or text; default: by the extension of the output file
    #[arg(long, value_name = "KIND", value_parser = kind)]
    to: Option<Kind>,
    /// Width in pixels at 96 dpi (default 1200), or in columns for text output (default: width of
    /// the terminal)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(40..=20000))]
    width: Option<u32>,
    /// Height in pixels at 96 dpi (default: by the number of panels), or in lines per panel for
    /// text output (default 12)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(4..=20000))]
    height: Option<u32>,
    /// Resolution of PNG output in pixels per inch; default 96
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(24..=1200))]
    dpi: Option<u32>,
    /// Colors: light (default) or dark; by default, an HTML page follows the reader's system
    /// setting
    #[arg(long, value_name = "NAME", value_parser = theme)]
    theme: Option<Theme>,
    #[command(flatten)]
    window: WindowArgs,
    #[command(flatten)]
    out: OutArgs,
}

/// Format of the plot.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Svg,
    Png,
    Pdf,
    Html,
}

impl Kind {
    fn extension(self) -> &'static str {
        match self {
            Self::Text => "txt",
            Self::Svg => "svg",
            Self::Png => "png",
            Self::Pdf => "pdf",
            Self::Html => "html",
        }
    }
}

impl Args {
    /// Returns the first option given by the user that has no effect on the output format `kind`.
    fn without_effect(&self, kind: Kind) -> Option<&'static str> {
        let is_page = kind == Kind::Html;
        let given = [
            ("--width", self.width.is_some() && is_page),
            ("--height", self.height.is_some() && is_page),
            ("--dpi", self.dpi.is_some() && kind != Kind::Png),
            ("--theme", self.theme.is_some() && kind == Kind::Text),
        ];
        given.into_iter().find(|(_, given)| *given).map(|(option, _)| option)
    }
}

pub(super) fn theme(name: &str) -> Result<Theme, String> {
    match name {
        "light" => Ok(Theme::Light),
        "dark" => Ok(Theme::Dark),
        _ => Err("expected light or dark".to_owned()),
    }
}

fn kind(name: &str) -> Result<Kind, String> {
    match name.to_ascii_lowercase().as_str() {
        "text" => Ok(Kind::Text),
        "svg" => Ok(Kind::Svg),
        "png" => Ok(Kind::Png),
        "pdf" => Ok(Kind::Pdf),
        "html" | "htm" => Ok(Kind::Html),
        _ => Err("expected svg, png, pdf, html or text".to_owned()),
    }
}

/// Returns true if `format` is the name of an output format of `rovelog plot`.
pub(super) fn writes(format: &str) -> bool {
    kind(format).is_ok()
}

pub(super) fn run(args: &Args, context: &Context) -> Outcome {
    context.format(&[Format::Text])?;
    let path = unless_stdout(args.output.as_deref());
    let by_name = path.and_then(|path| path.extension()?.to_str()).and_then(|name| kind(name).ok());
    let kind = match (args.to.or(by_name), path) {
        (Some(kind), _) => kind,
        (None, None) => Kind::Text,
        (None, Some(path)) => {
            return Err(Failure::usage("the extension of the output file does not belong to a plot format")
                .next("use .svg, .png, .pdf or .html, or name the format, such as --to svg")
                .at(path));
        }
    };
    if matches!(kind, Kind::Png | Kind::Pdf) && !plot::PICTURES {
        return Err(Failure::not_built_in("cannot write PNG and PDF, only SVG and HTML", "pictures"));
    }
    if let Some(option) = args.without_effect(kind) {
        return Err(Failure::usage(format!("{option} has no effect on this output format"))
            .next(format!("leave out {option}, or name another output, such as -o plot.png")));
    }
    let (logs, signals) = logs_and_signals(&args.words);
    match (signals.is_empty(), args.all) {
        (true, false) => {
            return Err(Failure::usage("no signal is selected")
                .next(
                    "name a signal after the file, such as battery_status.voltage_v, or plot all signals \
                     with --all",
                )
                .at(&logs[0]));
        }
        (false, true) => {
            let cause =
                format!("--all plots all signals, so the signal {} cannot be named as well", signals[0]);
            return Err(Failure::usage(cause).next("leave out --all or the signals"));
        }
        _ => {}
    }
    let outputs = Outputs {
        path,
        is_file: by_name.is_some(),
        extension: Some(kind.extension()),
        folder: (kind != Kind::Text).then(|| format!("-o plots/ --to {}", kind.extension())),
        out: args.out,
    };
    outputs.each(&logs, context, |input, path| one(args, &signals, input, kind, path, context))
}

/// Plots the signals of one log.
fn one(
    args: &Args,
    signals: &[String],
    input: &Input,
    kind: Kind,
    path: Option<&Path>,
    context: &Context,
) -> Outcome {
    let log = input
        .open_records(context, &|log| select_window(log, &TopicArgs::default(), &args.window, context))?;
    let here = |failure: Failure| failure.at(&input.path);
    let times = context.times(log.info()).map_err(here)?;
    let all = report::span(&log).ok_or_else(|| here(Failure::failed("no record in this log has a time")))?;
    let window = args.window.resolve(&times, Some(all)).map_err(here)?;
    let start = window.start.unwrap_or(all.0);
    // The time window does not include its end, but the time range of the plot does.
    let end = window.end.map_or(all.1, |end| end.saturating_sub(1));
    let width = width(args, kind);
    let mut panels = Vec::new();
    let wanted = wanted(args, signals, &log, context).map_err(here)?;
    // If the user gave a time window, the user does not expect records outside of it in the plot,
    // so no warning is needed.
    if args.window.is_open() {
        warn_outside(&log, &wanted, context);
    }
    let signals: Vec<Signal> = wanted.iter().flat_map(|(_, signals)| signals).cloned().collect();
    let mut series = plot::read(&*log, &signals, (start, end), columns(args, kind, width), start)
        .map_err(|error| here(error.into()))?
        .into_iter();
    let drawn =
        Select::topics(signals.iter().flat_map(Signal::topics)).between(Some(start), end.checked_add(1));
    let losses = Loss::of_columns(&*log, &drawn);
    let lost = || context.notices.losses(&losses).max(context.notices.end_of_log(log.as_log(), &input.path));
    for (title, signals) in wanted {
        let of_units = Panel::by_unit(&title, series.by_ref().take(signals.len()).flatten().collect());
        panels.extend(
            of_units.into_iter().filter(|panel| panel.series.iter().any(|line| line.range().is_some())),
        );
    }
    if panels.is_empty() {
        return Err(here(
            Failure::failed("the selected signals have no values to plot")
                .next("list the topics: rovelog topics FILE"),
        ));
    }
    let name = input.path.file_name().map_or_else(|| "stdin".into(), |name| name.to_string_lossy());
    let span = (0.0, end.saturating_sub(start).max(1) as f64 / 1e9);
    let clock = times.clock();
    let from = Timestamp::new(start, clock).seconds();
    let label = match times.base {
        TimeBase::Relative if Some(start) == times.start => "seconds since the start of the log".to_owned(),
        _ => format!("seconds since {clock} + {from} s"),
    };
    let mut plot = Plot::new(name, panels, span, label);
    plot.utc = times.axis_start(start);
    plot.bands = report::bands(&log, (start, end));
    if kind == Kind::Text && path.is_none() {
        let mut out = context.out();
        let text = text(plot, width as usize, args.height.unwrap_or(12) as usize, out.paint);
        std::io::Write::write_all(&mut out, text.as_bytes())?;
        std::io::Write::flush(&mut out)?;
        return Ok(lost());
    }
    let mut out = Destination::create(path, "plot.svg", &input.files(context), args.out, context)?;
    let theme = args.theme.unwrap_or_default();
    let picture = Picture { width, height: args.height, dpi: args.dpi.unwrap_or(96), theme };
    match kind {
        Kind::Svg => plot::svg(&plot, &picture, &mut out)?,
        Kind::Png => plot::png(&plot, &picture, &mut out)?,
        Kind::Pdf => plot::pdf(&plot, &picture, &mut out)?,
        Kind::Text => {
            let text = text(plot.clone(), width as usize, args.height.unwrap_or(12) as usize, Paint(false));
            std::io::Write::write_all(&mut out, text.as_bytes())?;
        }
        Kind::Html => report::plot(&plot, args.theme, &mut out)?,
    }
    if let Some(path) = out.finish()? {
        let values: u64 = plot.panels.iter().flat_map(|panel| &panel.series).map(|series| series.count).sum();
        context.note(&format!("wrote {} to {}", count(values, "value"), path.display()));
    }
    Ok(lost())
}

/// Returns the plot as text. Names are escaped, because they come from the log and may contain
/// control characters.
fn text(mut plot: Plot, width: usize, height: usize, paint: Paint) -> String {
    let plain = |text: &mut String| *text = escape(text).replace('\t', "\\t");
    for panel in &mut plot.panels {
        plain(&mut panel.title);
        for series in &mut panel.series {
            plain(&mut series.name);
            series.unit.iter_mut().for_each(plain);
        }
    }
    let colorize = |line: usize, text: &str| paint.line(line, text);
    plot::terminal(&plot, width, height, paint.0.then_some(&colorize))
}

/// Warns about topics that have times far outside the time range of all other records. Such records
/// are not drawn.
fn warn_outside(log: &AnyLog, wanted: &[(String, Vec<Signal>)], context: &Context) {
    let drawn: HashSet<&str> =
        wanted.iter().flat_map(|(_, signals)| signals).flat_map(Signal::topics).collect();
    for outside in log.info().outside() {
        let name = log.topics().get(outside.topic.index()).map_or("", |topic| topic.name.as_str());
        if drawn.contains(name) {
            let text =
                format!("some records are not drawn: {}; use -S and -E to draw them", outside.sentence(name));
            context.notices.warn("topics with values that are not drawn", &text);
        }
    }
}

/// Returns the width of the plot, which is given by the user or the default.
fn width(args: &Args, kind: Kind) -> u32 {
    let terminal = || std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok()).unwrap_or(100);
    args.width.unwrap_or_else(|| if kind == Kind::Text { terminal() } else { 1200 })
}

/// Returns the number of steps on the time axis to which each signal is reduced before drawing. It
/// is the finest resolution that the output can show. A terminal shows two dots per character, and
/// a bitmap has one step per pixel. A vector format gets two steps per pixel, because the plot can
/// be magnified.
fn columns(args: &Args, kind: Kind, width: u32) -> usize {
    match kind {
        Kind::Text => width as usize * 2,
        Kind::Png => width as usize * args.dpi.unwrap_or(96).div_ceil(96) as usize,
        Kind::Svg | Kind::Pdf | Kind::Html => 2 * width.max(1000) as usize,
    }
}

/// Returns the title and the signals of each panel in the plot. With `--all`, the number of signals
/// is limited to [`MAX_SIGNALS`].
fn wanted(
    args: &Args,
    names: &[String],
    log: &AnyLog,
    context: &Context,
) -> Result<Vec<(String, Vec<Signal>)>, Failure> {
    if args.all {
        let topics = log.topics().iter().filter(|topic| topic.count > 0);
        let (mut drawn, mut free, mut left_out) = (Vec::new(), MAX_SIGNALS, 0_usize);
        for topic in topics {
            if free == 0 {
                left_out += 1;
                continue;
            }
            let mut signals = whole(log, topic)?;
            left_out += usize::from(signals.len() > free);
            signals.truncate(free);
            free -= signals.len();
            drawn.push((topic.name.clone(), signals));
        }
        if left_out > 0 {
            let text = format!(
                "only the first {MAX_SIGNALS} signals are drawn ({} incomplete or missing); name the \
                 signals to draw",
                count(left_out, "topic")
            );
            context.notices.warn("topics that are not drawn", &text);
        }
        return Ok(drawn);
    }
    let signals = Signals::new(&**log);
    let found = names.iter().map(|text| Ok((text.clone(), signals.find(text).map_err(signal_failure)?)));
    found.collect()
}

/// Returns the fields of a topic that contain measured values.
fn whole(log: &AnyLog, topic: &Topic) -> Result<Vec<Signal>, Failure> {
    let fields = measured_fields(&**log, topic)?;
    Ok(fields.iter().map(|field| Signal::of(&topic.name, field)).collect())
}
