//! The sections about a `RocketLogger` log in a report: statistics, charge and energy of the whole
//! log, and currents and power over time.

use std::fmt::Write as _;

use arrow_array::Array as _;
use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float64Type, Int64Type};
use rovelog::Select;
use rovelog::rld_format::analysis::{Current, MARGIN_SETTLED, StatsOptions, Sums};
use rovelog::rld_format::unit::Scale;
use rovelog::rld_format::{ColumnOptions, Merging, RldReader};

use super::rows::Span;
use crate::ExportError;
use crate::page::Page;
use crate::plot::{Panel, Reducer, Series};
use crate::xml::escape;

/// Writes the table of statistics. It includes the charge of each current and the energy of each
/// power.
pub(super) fn section(log: &RldReader, page: &mut Page) -> Result<(), ExportError> {
    let mut sums = log.accumulator(&StatsOptions::default().with_margin(MARGIN_SETTLED))?;
    let stats = sums.stats(0..log.rows());
    let rate = log.header().lead_in.sample_rate.get();
    page.section("power", "Power and energy", "Power and energy");
    page.push_str("<div class=\"wide\" tabindex=\"0\"><table>\n<tr><th>quantity</th>");
    for head in ["mean", "min", "max", "deviation", "total"] {
        let _ = write!(page, "<th class=\"n\">{head}</th>");
    }
    page.push_str("<th>remark</th></tr>\n");
    for (power, term) in stats.powers.iter().zip(sums.powers()) {
        let total = Scale::new(term.scale).map(|scale| (power.integral(scale, rate), "J"));
        row(page, &format!("power {}", term.name), ("W", Scale::new(term.scale)), power, total, "");
    }
    for (i, (current, of)) in stats.currents.iter().zip(sums.currents()).enumerate() {
        let scale = Scale::new(of.scale);
        let total = scale.map(|scale| (current.integral(scale, rate), "C"));
        let share = stats.from_low[i] as f64 * 100.0 / current.count.max(1) as f64;
        let missing = stats.rows - current.count;
        let mut remark = format!("{share:.1} % in the low range");
        if missing > 0 {
            let _ = write!(remark, ", {missing} of {} missing", stats.rows);
        }
        row(page, &of.name, ("A", scale), current, total, &remark);
    }
    let channels = log.channels().iter().filter(|channel| !channel.is_binary);
    for (channel, of) in channels.zip(&stats.channels) {
        row(page, &channel.name, (&channel.unit_text(), channel.physical()), of, None, "");
    }
    page.push_str("</table></div>\n");
    let bits = log.channels().iter().filter(|channel| channel.is_binary).zip(&stats.ones);
    let bits: Vec<_> = bits
        .map(|(bit, ones)| format!("{} {:.1} %", bit.name, *ones as f64 * 100.0 / stats.rows.max(1) as f64))
        .collect();
    if !bits.is_empty() {
        let _ = writeln!(page, "<p class=\"note\">High: {}.</p>", escape(&bits.join(", ")));
    }
    if !sums.powers().is_empty() {
        let _ = writeln!(
            page,
            "<p class=\"note\">Power is the voltage and the current of the same number, sample by sample; low-range \
             samples within {MARGIN_SETTLED} rows of a range switch are not used.</p>"
        );
    }
    Ok(())
}

/// Writes a row of the statistics table. `scale` converts raw values to `unit`. `total` is the text
/// for the charge or energy.
fn row(
    page: &mut Page,
    name: &str,
    (unit, scale): (&str, Option<Scale>),
    sums: &Sums,
    total: Option<(f64, &str)>,
    remark: &str,
) {
    let of = |value: fn(&Sums, Scale) -> Option<f64>| {
        let value = scale.and_then(|scale| value(sums, scale));
        value.map_or_else(String::new, |value| crate::plot::with_prefix(value, unit))
    };
    let total = total
        .filter(|_| sums.count > 0)
        .map_or_else(String::new, |(total, unit)| crate::plot::with_prefix(total, unit));
    // The accumulator sums up products of raw voltages and currents, but not the squares of the
    // products. The standard deviation of power is therefore unknown.
    let deviation = if unit == "W" { String::new() } else { of(Sums::std) };
    let _ = write!(page, "<tr><td>{}</td>", escape(name));
    for cell in [of(Sums::mean), of(Sums::min), of(Sums::max), deviation, total] {
        let _ = write!(page, "<td class=\"n\">{}</td>", escape(&cell));
    }
    let _ = writeln!(page, "<td>{}</td></tr>", escape(remark));
}

/// A current and its power, with their columns in the log.
struct CurrentLines<'a> {
    /// Name of the current.
    current: &'a str,
    /// Index of the column of the current.
    column: usize,
    /// Name of the voltage that belongs to the current, and the index of its column.
    voltage: Option<(&'a str, usize)>,
    /// Values of the current.
    amperes: Reducer,
    /// Products of the current and the voltage.
    watts: Reducer,
}

/// Returns the panels of power and currents. The low and high range of each current are merged.
pub(super) fn panels(log: &RldReader, at: Span) -> Result<Vec<Panel>, ExportError> {
    let sums = log.accumulator(&StatsOptions::default().with_margin(MARGIN_SETTLED))?;
    if sums.currents().is_empty() {
        return Ok(Vec::new());
    }
    let mut merging = Merging::instant();
    merging.margin = MARGIN_SETTLED;
    let options = ColumnOptions::physical().with_merged(merging);
    let columns = log.columns_with(&Select::all(), &options)?;
    let schema = arrow_array::RecordBatchReader::schema(&columns);
    let mut lines = Vec::new();
    for (number, Current { name: current, .. }) in sums.currents().iter().enumerate() {
        let Ok(column) = schema.index_of(current) else { continue };
        let power = sums.powers().iter().find(|power| power.current == number);
        let voltage = power.map(|power| &*log.channels()[power.plus].name);
        let voltage = voltage.and_then(|name| Some((name, schema.index_of(name).ok()?)));
        let [amperes, watts] = [(); 2].map(|()| Reducer::new(at.times, at.width));
        lines.push(CurrentLines { current, column, voltage, amperes, watts });
    }
    // A log may have billions of rows, so each batch is reduced before the next batch is read.
    for batch in columns {
        let batch = batch?;
        let times = batch.column(0).as_primitive::<Int64Type>();
        for CurrentLines { column, voltage, amperes, watts, .. } in &mut lines {
            let values = |column: usize| batch.column(column).as_primitive_opt::<Float64Type>();
            let Some(current) = values(*column) else { continue };
            let voltage = voltage.and_then(|(_, column)| values(column));
            for row in (0..batch.num_rows()).filter(|row| times.is_valid(*row)) {
                let value = if current.is_valid(row) { current.value(row) } else { f64::NAN };
                amperes.push(times.value(row), value);
                if let Some(voltage) = voltage.filter(|voltage| voltage.is_valid(row)) {
                    watts.push(times.value(row), value * voltage.value(row));
                }
            }
        }
    }
    let line = |name: String, unit: &str, values: &Reducer| {
        let mut series = Series::new(name, values.points(at.times.0));
        series.unit = Some(unit.to_owned());
        series.range().is_some().then_some(series)
    };
    let power = lines.iter().filter_map(|lines| {
        let (voltage, _) = lines.voltage?;
        line(format!("{voltage} × {}", lines.current), "W", &lines.watts)
    });
    let current = lines.iter().filter_map(|lines| line(lines.current.to_owned(), "A", &lines.amperes));
    let panels = [Panel::new("Power", power.collect()), Panel::new("Current", current.collect())];
    Ok(panels.into_iter().filter(|panel| !panel.series.is_empty()).collect())
}
