//! The command `rovelog plot`, which draws signals over time in the terminal or as a picture.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap_complete::ArgValueCompleter;
use rovelog::{AnyLog, Select, Timestamp, Topic};
use rovelog_export::Loss;
use rovelog_export::plot::spectrum::{MIN_WINDOW, requested};
use rovelog_export::plot::{self, Panel, Picture, Plot, Series, Theme, Wanted};
use rovelog_export::report;
use rovelog_export::signal::{Signal, Signals, measured_fields};

use crate::context::{Context, Format};
use crate::destination::Destination;
use crate::failure::{Failure, Outcome, Status};
use crate::input::{Input, logs_and_signals};
use crate::outfile::{OutArgs, unless_stdout};
use crate::outputs::Outputs;
use crate::select::{TopicArgs, signal_failure, signal_names};
use crate::text::{Paint, count, escape, terminal_columns};
use crate::times::{TimeBase, Times};
use crate::window::{WindowArgs, select_window};

const MORE: &str = "\
Each argument is drawn in its own panel. Signals that are joined by a comma share a panel, which \
has an axis for each of two units. Without signals, the panels of rovelog report are drawn. A \
signal is TOPIC.FIELD, or FIELD if only one topic has this field. Names may contain *, ?, {a,b} \
and [0..3]. The name of a topic, array or struct selects all its fields. Quaternions also have \
.roll, .pitch and .yaw. In power logs, a current that was measured in two ranges is one signal, \
such as I1.

An expression is a signal, too. It consists of signals, numbers, + - * / ^, comparisons, and the \
functions abs, sqrt, sin, cos, tan, asin, acos, atan, atan2, exp, log, log10, floor, ceil, round, \
min, max, norm, coalesce, roll, pitch, yaw, deg, rad, derivative, difference and integral. \
in(SIGNAL, UNIT) converts a signal to another unit, and NAME=EXPRESSION gives an expression a \
name. psd(SIGNAL) draws the power spectral density over the frequency, and spectrogram(SIGNAL) draws \
it over time and frequency.

Minima and maxima are always drawn, however long the log is. On/off signals and states with names \
are drawn as lanes, and flight modes as bands. An HTML page can be zoomed; the only data of the \
log in it is the plot. Several logs are plotted one after the other, as files in a folder, or in \
one plot with --overlay.

PNG and PDF need the Cargo feature pictures, which released binaries and the Python package have. \
To build it, run cargo install --path crates/rovelog-cli --features pictures.

Examples:
  rovelog plot flight.ulg battery_status.voltage_v         in the terminal
  rovelog plot power.rld -o power.html                     panels of a report
  rovelog plot flight.ulg 'voltage_v,current_a'            one panel, two axes
  rovelog plot idle.rld busy.rld 'V1*I1' --overlay         two logs in one panel
  rovelog plot flight.ulg vehicle_attitude.q 'sensor_combined.gyro*' -S +1m
  rovelog plot flight.ulg 'deg(vehicle_attitude.q.roll)'
  rovelog plot flight.ulg 'norm(sensor_combined.gyro_rad)' cpuload.load
  rovelog plot power.rld 'P=V1*I1' 'E=integral(V1*I1)'
  rovelog plot flight.ulg 'psd(gyro_rad)' -o spectrum.png  spectrum of vibration
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
    #[arg(add = ArgValueCompleter::new(signal_names))]
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
    /// Draw the lines of all logs in the same panels, each log from its own start
    #[arg(long)]
    overlay: bool,
    /// With --overlay: what the logs have in common at the same place, start (default) or utc
    #[arg(long, value_name = "BY", requires = "overlay", value_parser = align)]
    align: Option<Align>,
    #[command(flatten)]
    window: WindowArgs,
    #[command(flatten)]
    out: OutArgs,
}

/// Alignment of several logs in one plot.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Align {
    /// All logs start at the left end of the plot.
    Start,
    /// Each log is drawn at its UTC time.
    Utc,
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
        let options = [
            ("--width", self.width.is_some() && is_page),
            ("--height", self.height.is_some() && is_page),
            ("--dpi", self.dpi.is_some() && kind != Kind::Png),
            ("--theme", self.theme.is_some() && kind == Kind::Text),
        ];
        options.into_iter().find(|(_, is_useless)| *is_useless).map(|(option, _)| option)
    }
}

pub(super) fn theme(name: &str) -> Result<Theme, String> {
    match name {
        "light" => Ok(Theme::Light),
        "dark" => Ok(Theme::Dark),
        _ => Err("expected light or dark".to_owned()),
    }
}

fn align(name: &str) -> Result<Align, String> {
    match name {
        "start" => Ok(Align::Start),
        "utc" => Ok(Align::Utc),
        _ => Err("expected start or utc".to_owned()),
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
    if let (true, Some(signal)) = (args.all, signals.first()) {
        let cause = format!("--all plots all signals, so the signal {signal} cannot be named as well");
        return Err(Failure::usage(cause).next("leave out --all or the signals"));
    }
    if args.overlay {
        return overlay(args, &signals, &logs, kind, context);
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

/// A log that is plotted.
struct Source<'i> {
    input: &'i Input,
    log: AnyLog,
    times: Times,
    /// Time range of the plot in nanoseconds of the log's clock.
    span: (i64, i64),
}

impl<'i> Source<'i> {
    fn open(args: &Args, input: &'i Input, context: &Context) -> Result<Self, Failure> {
        let here = |failure: Failure| failure.at(&input.path);
        let window = |log: &AnyLog| select_window(log, &TopicArgs::default(), &args.window, context);
        let log = input.open_records(context, &window)?;
        let times = context.times(log.info()).map_err(here)?;
        let all =
            report::span(&log).ok_or_else(|| here(Failure::failed("no record in this log has a time")))?;
        let window = args.window.resolve(&times, Some(all)).map_err(here)?;
        // The time window does not include its end, but the time range of the plot does.
        let span = (window.start.unwrap_or(all.0), window.end.map_or(all.1, |end| end.saturating_sub(1)));
        Ok(Self { input, log, times, span })
    }

    /// Reads the lines for each element of `wanted`, and warns about records that are not drawn. The
    /// times of the lines are in seconds since `zero`, which is in nanoseconds of the log's clock.
    fn lines(
        &self,
        args: &Args,
        wanted: &[Wanted],
        zero: i64,
        columns: usize,
        context: &Context,
    ) -> Result<Vec<Vec<Series>>, Failure> {
        self.warn_outside(args, &topics_of(wanted), context);
        let signals: Vec<Signal> = wanted.iter().flat_map(|wanted| &wanted.signals).cloned().collect();
        let series = plot::read(&*self.log, &signals, self.span, columns, zero);
        let mut series = series.map_err(|error| Failure::from(error).at(&self.input.path))?.into_iter();
        let of_panel = |wanted: &Wanted| series.by_ref().take(wanted.signals.len()).flatten().collect();
        Ok(wanted.iter().map(of_panel).collect())
    }

    /// Warns about topics with records whose times are far outside the time range of all other
    /// records. These records are not drawn. `drawn` selects the drawn topics.
    fn warn_outside(&self, args: &Args, drawn: &Select, context: &Context) {
        // If the user gave a time window, no warning is needed, because the user does not expect
        // records outside of the window.
        if !args.window.is_open() {
            return;
        }
        for outside in self.log.info().outside() {
            let topic = self.log.topics().get(outside.topic.index());
            if let Some(topic) = topic.filter(|topic| drawn.keeps_topic(topic)) {
                let sentence = outside.sentence(&topic.name);
                let text = format!("some records are not drawn: {sentence}; use -S and -E to draw them");
                context.notices.warn("topics with values that are not drawn", &text);
            }
        }
    }

    /// Reports the losses among the drawn records, and the damage of the log.
    fn report_losses(&self, topics: Select, context: &Context) -> Status {
        let drawn = topics.between(Some(self.span.0), self.span.1.checked_add(1));
        let lost = context.notices.losses(&Loss::of_columns(&*self.log, &drawn));
        lost.max(context.notices.end_of_log(self.log.as_log(), &self.input.path))
    }
}

/// Returns a selection of the topics that contain the signals.
fn topics_of(wanted: &[Wanted]) -> Select {
    Select::topics(wanted.iter().flat_map(|wanted| &wanted.signals).flat_map(Signal::topics))
}

/// Plots the signals of one log. Without signals, plots the panels of a report.
fn one(
    args: &Args,
    signals: &[String],
    input: &Input,
    kind: Kind,
    path: Option<&Path>,
    context: &Context,
) -> Outcome {
    let source = Source::open(args, input, context)?;
    let here = |failure: Failure| failure.at(&input.path);
    let Source { log, times, span: (start, end), .. } = &source;
    let (mut plot, drawn) = if signals.is_empty() && !args.all {
        source.warn_outside(args, &Select::all(), context);
        let panels = report::panels(log, source.span, columns(args, kind));
        let panels = panels.map_err(|error| here(error.into()))?;
        (Plot::new("", panels, seconds(*start, *end), ""), Select::all())
    } else {
        let wanted = wanted(args, signals, log, context).map_err(here)?;
        let drawn = topics_of(&wanted);
        source.warn_outside(args, &drawn, context);
        let plot = plot::draw(&**log, &wanted, source.span, columns(args, kind));
        (plot.map_err(|error| here(error.into()))?, drawn)
    };
    plot.title = input.title();
    if !plot.shows_frequencies() {
        let clock = times.clock;
        plot.time_label = match times.base {
            TimeBase::Relative if Some(*start) == times.start => {
                "seconds since the start of the log".to_owned()
            }
            _ => format!("seconds since {clock} + {} s", Timestamp::new(*start, clock).seconds()),
        };
        plot.utc = times.axis_start(*start);
        plot.bands = report::bands(log, source.span);
    }
    write(args, plot, kind, path, &input.files(context), context).map_err(here)?;
    Ok(source.report_losses(drawn, context))
}

/// Plots the same signals of several logs in the same panels. Second 0 of the plot is the start of
/// the time range of each log. With `--align utc`, it is the earliest of these starts, and the other
/// logs are drawn later. The name of each line starts with the name of its log.
fn overlay(args: &Args, signals: &[String], logs: &[PathBuf], kind: Kind, context: &Context) -> Outcome {
    if signals.is_empty() {
        return Err(Failure::usage("--overlay draws named signals, but no signal is named")
            .next("name a signal after the files, such as 'V1*I1'"));
    }
    let inputs = Input::all(logs)?;
    let sources = inputs.iter().map(|input| Source::open(args, input, context));
    let sources = sources.collect::<Result<Vec<_>, Failure>>()?;
    let unix = |source: &Source<'_>| {
        let no_utc =
            || Failure::failed("the UTC times of this log are unknown").next("leave out --align utc");
        source.times.axis_start(source.span.0).ok_or_else(|| no_utc().at(&source.input.path))
    };
    let is_utc = args.align == Some(Align::Utc);
    let unix = if is_utc { sources.iter().map(unix).collect::<Result<Vec<_>, _>>()? } else { Vec::new() };
    let first = unix.iter().min().copied();
    let mut groups: Vec<Vec<Series>> = vec![Vec::new(); signals.len()];
    let (mut length, mut status) = (0, Status::Done);
    for (number, source) in sources.iter().enumerate() {
        let path = &source.input.path;
        let wanted = wanted(args, signals, &source.log, context).map_err(|failure| failure.at(path))?;
        if let Some(spectrum) = wanted.iter().find(|wanted| wanted.spectrum.is_some()) {
            return Err(Failure::usage(format!("--overlay cannot draw the spectrum {}", spectrum.title))
                .next("leave out --overlay to plot the spectrum of each log"));
        }
        let later = unix.get(number).zip(first).map_or(0, |(unix, first)| unix.saturating_sub(first));
        let zero = source.span.0.saturating_sub(later);
        length = length.max(source.span.1.saturating_sub(zero));
        let name = source.input.stem().unwrap_or_else(|| source.input.title());
        let found = source.lines(args, &wanted, zero, columns(args, kind), context)?;
        for (group, mut lines) in groups.iter_mut().zip(found) {
            for line in &mut lines {
                line.name = format!("{name}: {}", line.name);
            }
            group.append(&mut lines);
        }
        status = status.max(source.report_losses(topics_of(&wanted), context));
    }
    let panels = signals.iter().zip(groups).flat_map(|(title, lines)| Panel::overlay(title, lines)).collect();
    let names: Vec<_> = inputs.iter().map(Input::title).collect();
    let label = if args.window.is_open() {
        "seconds since the start of each log"
    } else {
        "seconds since the start of the time window in each log"
    };
    let mut plot = Plot::new(names.join(", "), panels, seconds(0, length), label);
    plot.utc = first;
    let files: Vec<_> = inputs.iter().flat_map(|input| input.files(context)).collect();
    write(args, plot, kind, unless_stdout(args.output.as_deref()), &files, context)?;
    Ok(status)
}

/// Converts a time range to seconds since its start.
fn seconds(start: i64, end: i64) -> (f64, f64) {
    (0.0, end.saturating_sub(start).max(1) as f64 / 1e9)
}

/// Writes the plot to the terminal or to the output file.
fn write(
    args: &Args,
    mut plot: Plot,
    kind: Kind,
    path: Option<&Path>,
    files: &[PathBuf],
    context: &Context,
) -> Result<(), Failure> {
    plot.panels.retain(Panel::has_values);
    if plot.panels.is_empty() {
        let text = if args.words.iter().any(|word| requested(word).is_some()) {
            format!("the selected signals have too few samples for a spectrum, which needs {MIN_WINDOW}")
        } else {
            "the selected signals have no values to plot".to_owned()
        };
        return Err(Failure::failed(text).next("list the topics: rovelog topics FILE"));
    }
    let width = width(args, kind);
    let text_height = args.height.unwrap_or(12) as usize;
    if kind == Kind::Text && path.is_none() {
        let mut out = context.out();
        let text = text(plot, width as usize, text_height, out.paint);
        out.write_all(text.as_bytes())?;
        return Ok(out.flush()?);
    }
    let mut out = Destination::create(path, "plot.svg", files, args.out, context)?;
    let theme = args.theme.unwrap_or_default();
    let picture = Picture { width, height: args.height, dpi: args.dpi.unwrap_or(96), theme };
    match kind {
        Kind::Svg => out.write_all(plot::svg(&plot, &picture).as_bytes())?,
        Kind::Png => plot::png(&plot, &picture, &mut out)?,
        Kind::Pdf => plot::pdf(&plot, &picture, &mut out)?,
        Kind::Text => {
            let text = text(plot.clone(), width as usize, text_height, Paint(false));
            out.write_all(text.as_bytes())?;
        }
        Kind::Html => report::plot(&plot, args.theme, &mut out)?,
    }
    if let Some(path) = out.finish()? {
        let values: u64 = plot.panels.iter().flat_map(|panel| &panel.series).map(|series| series.count).sum();
        context.note(&format!("wrote {} to {}", count(values, "value"), path.display()));
    }
    Ok(())
}

/// Returns the plot as text. Titles, names and units are escaped, because they come from the log
/// and may contain control characters.
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

/// Returns the width of the plot: the width given by the user, or the default.
fn width(args: &Args, kind: Kind) -> u32 {
    let terminal = || terminal_columns().and_then(|columns| u32::try_from(columns).ok()).unwrap_or(100);
    args.width.unwrap_or_else(|| if kind == Kind::Text { terminal() } else { 1200 })
}

/// Returns the number of steps on the time axis to which each signal is reduced before drawing. It
/// is the finest resolution that the output can show. A terminal shows two dots per character, and
/// a bitmap has one step per pixel. A vector format gets two steps per pixel, because the plot can
/// be magnified.
fn columns(args: &Args, kind: Kind) -> usize {
    let width = width(args, kind);
    match kind {
        Kind::Text => width as usize * 2,
        Kind::Png => width as usize * args.dpi.unwrap_or(96).div_ceil(96) as usize,
        Kind::Svg | Kind::Pdf | Kind::Html => 2 * width.max(1000) as usize,
    }
}

/// Returns the titles and signals to draw, by the arguments in `names`. With `--all`, returns the
/// signals of each topic, but at most [`MAX_SIGNALS`] signals.
fn wanted(args: &Args, names: &[String], log: &AnyLog, context: &Context) -> Result<Vec<Wanted>, Failure> {
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
            drawn.push(Wanted::of(&topic.name, signals));
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
    let wanted = names.iter().map(|name| Wanted::new(&signals, name).map_err(signal_failure));
    wanted.collect()
}

/// Returns the fields of a topic that contain measured values.
fn whole(log: &AnyLog, topic: &Topic) -> Result<Vec<Signal>, Failure> {
    let fields = measured_fields(&**log, topic)?;
    Ok(fields.iter().map(|field| Signal::of(&topic.name, field)).collect())
}
