//! Writes plots and reports of all logs in the corpus and of real logs. The tests check that these
//! files are reproducible and have the required content.

use std::io::Cursor;

use rovelog::rosbag12::BagWriter;
use rovelog::{AnyLog, ReadOptions};
use rovelog_export::Provenance;
use rovelog_export::plot::{self, Band, Panel, Picture, Plot, Series, Theme};
use rovelog_export::report::{self, ReportOptions};
use rovelog_export::signal::{Signal, numeric_fields};
use rovelog_export::track::{self, TrackOptions};

fn logs() -> Vec<(String, AnyLog)> {
    let mut logs = rovelog_testing::corpus("ulog", "ulg", 100);
    if let Some(real) = rovelog_testing::real("ulog") {
        logs.extend(rovelog_testing::logs_in(&real, "ulg"));
    }
    let open = |log: rovelog_testing::Log| {
        Some((log.name, rovelog::from_bytes(log.bytes, &ReadOptions::default()).ok()?))
    };
    logs.into_iter().filter_map(open).collect()
}

fn page(log: &AnyLog, options: &ReportOptions) -> String {
    let mut page = Vec::new();
    report::write(log, &Provenance::new("a <log> & more"), options, &mut page).unwrap();
    String::from_utf8(page).unwrap()
}

#[test]
fn reports_load_nothing_from_the_network() {
    for (name, log) in logs() {
        let options = ReportOptions::default();
        let page = page(&log, &options);
        assert_eq!(page, self::page(&log, &options), "{name}");
        // All pictures must be embedded in the page.
        assert_eq!(page.matches("src=").count(), page.matches("src=\"data:image/").count(), "{name}");
        for outside in ["href=\"http", "url(", "@import", "fetch(", "XMLHttpRequest", "<link"] {
            assert!(!page.contains(outside), "{name}: {outside}");
        }
        assert!(
            page.contains("<title>a &lt;log&gt; &amp; more</title>") && !page.contains("a <log>"),
            "{name}"
        );
        assert!(page.len() < 5_000_000, "{name}: {} bytes", page.len());
        // The page must have a figure for each plot that is in its data.
        let Some(data) = page.split("id=\"data\">").nth(1) else {
            assert!(page.contains("The log has nothing that can be drawn"), "{name}");
            continue;
        };
        let data: serde_json::Value = serde_json::from_str(data.split("</script>").next().unwrap()).unwrap();
        assert_eq!(
            data["panels"].as_array().unwrap().len(),
            page.matches("<figure data-panel").count(),
            "{name}"
        );
    }
}

#[test]
fn a_report_of_a_flight_has_its_parts() {
    let Some(folder) = rovelog_testing::real("ulog") else { return };
    let log = rovelog::open(folder.join("sample_log_small.ulg")).unwrap();
    let whole = page(&log, &ReportOptions::default());
    for part in
        ["Roll angle", "Local position X", "Battery voltage", "id=\"track\"", "id=\"parameters\"", "polyline"]
    {
        assert!(whole.contains(part), "{part}");
    }
    let mut options = ReportOptions::default();
    options.redact = true;
    let redacted = page(&log, &options);
    for part in ["Local position", "<b>Altitude", "id=\"track\"", "id=\"parameters\"", "polyline"] {
        assert!(!redacted.contains(part), "{part}");
    }
}

/// Returns a flight with a failsafe. A console line names a person and the position of the vehicle.
fn flight_with_console() -> AnyLog {
    use rovelog::ulog_format::{FormatBuilder, UlogWriter};

    let mut log = UlogWriter::new(Vec::new(), 1_000_000).unwrap();
    let status = "vehicle_status:uint64_t timestamp;uint8_t arming_state;uint8_t nav_state;bool failsafe;";
    let gps = "vehicle_gps_position:uint64_t timestamp;int32_t lat;int32_t lon;";
    for format in [status, gps] {
        log.define(&FormatBuilder::parse(format).unwrap()).unwrap();
    }
    let (status, gps) =
        (log.subscribe("vehicle_status", 0).unwrap(), log.subscribe("vehicle_gps_position", 0).unwrap());
    for (second, arming_state, failsafe) in [(1, 1, 0), (2, 2, 0), (3, 2, 1), (4, 2, 0), (5, 1, 0)] {
        let time = (second * 1_000_000_u64).to_le_bytes();
        log.write_row_bytes(status, &[&time[..], &[arming_state, 2, failsafe]].concat()).unwrap();
        let place = [473_977_419_i32, 85_455_938].map(i32::to_le_bytes).concat();
        log.write_row_bytes(gps, &[&time[..], &place].concat()).unwrap();
    }
    log.text(4, 3_000_000, "[logger] /home/ann/1.ulg near 47.3977419, 8.5455938").unwrap();
    rovelog::from_bytes(log.finish().unwrap().into(), &ReadOptions::default()).unwrap()
}

/// Console lines are masked in the console, and where a finding quotes them as a cause.
#[test]
fn a_redacted_report_names_no_person_and_no_place() {
    let log = flight_with_console();
    let whole = page(&log, &ReportOptions::default());
    assert_eq!(whole.matches("/home/ann/1.ulg near 47.3977419, 8.5455938").count(), 2, "{whole}");
    let mut options = ReportOptions::default();
    options.redact = true;
    let redacted = page(&log, &options);
    assert_eq!(redacted.matches("/home/xxx/1.ulg near 00.0000000, 0.0000000").count(), 2, "{redacted}");
    for part in ["ann", "47.39", "8.545"] {
        assert!(!redacted.contains(&format!("/{part}")) && !redacted.contains(&format!(" {part}")), "{part}");
    }
}

/// Returns the report of a log in the corpus. `name` is the file name.
fn page_of(name: &str) -> String {
    let log = rovelog::open(rovelog_testing::root().join("corpus").join(name)).unwrap();
    page(&log, &ReportOptions::default())
}

#[test]
fn report_lists_scans_that_cannot_be_drawn() {
    let said = page_of("vel/velodyne-hdl64-s2.vel");
    assert!(said.contains("Not drawn: the points of an HDL-64E cannot be computed without its calibration"));
    let said = page_of("vel/laser-same-name.vel");
    assert!(said.contains("Not drawn: the angles of the scanner &quot;B&quot; are unknown"));
    assert!(!page_of("vel/all-kinds.vel").contains("Not drawn"));
    assert!(!page_of("vel/index-absent.vel").contains("Laser scans"), "a log without scans");
}

/// Returns a bag with positions. The message with the second position is truncated.
fn positions() -> rovelog::AnyLog {
    let mut bag = BagWriter::new(Cursor::new(Vec::new())).unwrap();
    let definition = b"sensor_msgs/NavSatStatus status\nfloat64 latitude\nfloat64 longitude
================================================================================
MSG: sensor_msgs/NavSatStatus
int8 status
";
    let topic = bag.connect(b"/fix", b"sensor_msgs/NavSatFix", &[b'0'; 32], definition).unwrap();
    for (second, degrees) in [50.0_f64, 50.1, 50.2].into_iter().enumerate() {
        let place = [&[0][..], &degrees.to_le_bytes(), &degrees.to_le_bytes()].concat();
        let place = if second == 1 { &place[..5] } else { &place };
        bag.message(topic, 1 + u32::try_from(second).unwrap(), 0, None, place).unwrap();
    }
    rovelog::from_bytes(bag.finish().unwrap().into_inner().into(), &ReadOptions::default()).unwrap()
}

/// A message that cannot be decoded must not hide the positions in other messages.
#[test]
fn positions_that_cannot_be_decoded_are_skipped() {
    let log = positions();
    let (track, tally) = track::of(&log, &TrackOptions::default()).unwrap();
    assert_eq!((track.points().count(), tally.rows, tally.undecodable), (2, 3, 1));
    let page = page(&log, &ReportOptions::default());
    assert!(page.contains("1 record with a position cannot be decoded") && page.contains("<polyline"));
    assert!(!page_of("rld/v4.rld").contains("with a position"), "a log without positions");
}

fn ramp() -> Plot {
    let points = (0..1000).map(|i| (f64::from(i) / 10.0, f64::from(i % 100)));
    let mut series = Series::new("t.<x>", points.collect());
    series.unit = Some("V".to_owned());
    Plot::new("a & b", vec![Panel::new("t.x", vec![series])], (0.0, 100.0), "s since the start")
}

const PICTURE: Picture = Picture { width: 600, height: None, dpi: 96, theme: Theme::Light };

#[test]
fn svg_has_texts_and_lines() {
    let svg = plot::svg(&ramp(), &PICTURE);
    let document = roxmltree::Document::parse(&svg).unwrap();
    let texts: Vec<_> = document.descendants().filter_map(|node| node.text()).collect();
    for text in ["a & b", "t.x", "[V]", "s since the start", "100"] {
        assert!(texts.contains(&text), "{text}: {texts:?}");
    }
    let longest = document.descendants().filter_map(|node| node.attribute("d")).map(str::len).max();
    assert!(longest > Some(5000), "{longest:?}");
}

/// In a panel with many lines, the legend must have an entry for each line with the color and
/// dashes of the line. All entries must differ.
#[test]
fn legends_name_each_line_with_its_own_stroke() {
    let line = |i: u32| Series::new(format!("field {i}"), vec![(0.0, f64::from(i)), (1.0, f64::from(i))]);
    let plot = Plot::new("", Panel::by_unit("t", (0..40).map(line).collect()), (0.0, 1.0), "s");
    assert!(plot.panels.len() > 1 && plot.panels.iter().all(|panel| panel.series.len() <= 12));
    let svg = plot::svg(&plot, &PICTURE);
    let document = roxmltree::Document::parse(&svg).unwrap();
    let stroke = |node: roxmltree::Node<'_, '_>| {
        let dashes = node.attribute("stroke-dasharray").unwrap_or("").to_owned();
        (node.attribute("stroke").unwrap().to_owned(), dashes)
    };
    for i in 0..40 {
        let name = format!("field {i}");
        let drawn = document.descendants().find(|node| {
            node.has_tag_name("path") && node.children().any(|title| title.text() == Some(&name))
        });
        let entry =
            document.descendants().find(|node| node.has_tag_name("text") && node.text() == Some(&name));
        // In the SVG, the stroke of a legend entry is directly before the text of the entry.
        let entry = entry.unwrap().prev_sibling_element().unwrap();
        assert_eq!(stroke(drawn.unwrap()), stroke(entry), "{name}");
    }
    for panel in &plot.panels {
        let names: Vec<_> = panel.series.iter().map(|series| series.name.as_str()).collect();
        let lines = document.descendants().filter(|node| {
            node.first_element_child()
                .and_then(|title| title.text())
                .is_some_and(|title| names.contains(&title))
        });
        let strokes: std::collections::BTreeSet<_> = lines.map(stroke).collect();
        assert_eq!(strokes.len(), names.len(), "{names:?}");
    }
}

#[test]
fn flight_modes_are_named_and_states_have_corners() {
    let mut plot = ramp();
    plot.utc = Some(1_619_049_560_000_000_000);
    plot.bands = vec![
        Band { span: (0.0, 60.0), name: "Mission <1>".to_owned() },
        Band { span: (60.0, 60.5), name: "Return".to_owned() },
        Band { span: (60.5, 100.0), name: "Land".to_owned() },
    ];
    for theme in [Theme::Light, Theme::Dark] {
        let svg = plot::svg(&plot, &Picture { theme, ..PICTURE });
        // The band of the short flight mode is too narrow for its name, so the name must be in the
        // legend.
        for name in [">Mission &lt;1&gt;<", ">Return<", ">Land<", ">2021-04-21<", ">2021-04-22<", ">UTC<"] {
            assert!(svg.contains(name), "{name}");
        }
    }
}

#[cfg(feature = "pictures")]
#[test]
fn a_png_has_its_size_and_a_pdf_its_font() {
    let decoded = |picture: &Picture| {
        let mut bytes = Vec::new();
        plot::png(&ramp(), picture, &mut bytes).unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(bytes)).read_info().unwrap();
        let mut dots = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut dots).unwrap();
        (info.width, info.height, dots)
    };
    let (width, height, dots) = decoded(&Picture { height: Some(300), ..PICTURE });
    assert_eq!((width, height, &dots[..3]), (600, 300, &[255, 255, 255][..]));
    let blue = dots.chunks(3).filter(|dot| *dot == [11, 107, 184]).count();
    assert!(blue > 500, "{blue} dots of the line");
    let (width, height, dots) =
        decoded(&Picture { height: Some(300), dpi: 192, theme: Theme::Dark, ..PICTURE });
    assert_eq!((width, height, &dots[..3]), (1200, 600, &[20, 24, 31][..]));
    let mut bytes = Vec::new();
    plot::pdf(&ramp(), &PICTURE, &mut bytes).unwrap();
    assert!(bytes.starts_with(b"%PDF-") && bytes.windows(5).any(|part| part == b"Inter"));
    let huge = Picture { width: 20_000, height: Some(20_000), dpi: 1200, theme: Theme::Light };
    assert!(plot::png(&ramp(), &huge, Vec::new()).is_err());
}

/// All numeric fields of all logs must be readable. Reducing a series must preserve its minimum and
/// maximum.
#[test]
fn reduced_series_have_the_same_extremes() {
    let mut drawn = 0;
    for (name, log) in logs() {
        let Some(span) = report::span(&log) else { continue };
        for topic in log.topics().iter().filter(|topic| topic.count > 0 && topic.count < 5000).take(20) {
            let fields = numeric_fields(&*log, topic).unwrap().into_iter().take(3);
            let signals: Vec<_> = fields.map(|field| Signal::of(&topic.name, &field)).collect();
            let read =
                |width| plot::read(&*log, &signals, span, width, span.0).unwrap().into_iter().flatten();
            for (coarse, fine) in read(7).zip(read(100_000)) {
                assert!(coarse.points.len() <= 7 * 6, "{name} {}", coarse.name);
                assert_eq!(coarse.range(), fine.range(), "{name} {}", coarse.name);
                assert_eq!(coarse.count, fine.count, "{name} {}", coarse.name);
                drawn += 1;
            }
        }
    }
    assert!(drawn > 100, "{drawn}");
}
