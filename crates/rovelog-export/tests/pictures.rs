//! Plots and reports of every log of the corpus and of real ones: deterministic bytes and required
//! content.

use rovelog::{AnyLog, ReadOptions};
use rovelog_export::Provenance;
use rovelog_export::plot::{self, Panel, Plot, Series, Signal, Size};
use rovelog_export::report::{self, ReportOptions};

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
fn reports_ask_for_nothing_from_outside() {
    for (name, log) in logs() {
        let options = ReportOptions::default();
        let page = page(&log, &options);
        assert_eq!(page, self::page(&log, &options), "{name}");
        for outside in ["src=", "href=\"http", "url(", "@import", "fetch(", "XMLHttpRequest", "<link"] {
            assert!(!page.contains(outside), "{name}: {outside}");
        }
        assert!(
            page.contains("<title>a &lt;log&gt; &amp; more</title>") && !page.contains("a <log>"),
            "{name}"
        );
        assert!(page.len() < 5_000_000, "{name}: {} bytes", page.len());
        // As many plots as there are data for.
        let data = page.split("id=\"data\">").nth(1).unwrap().split("</script>").next().unwrap();
        let data: serde_json::Value = serde_json::from_str(data).unwrap();
        assert_eq!(data["panels"].as_array().unwrap().len(), page.matches("<canvas").count(), "{name}");
    }
}

#[test]
fn a_report_of_a_flight_has_its_parts() {
    let Some(folder) = rovelog_testing::real("ulog") else { return };
    let log = rovelog::open(folder.join("sample_log_small.ulg")).unwrap();
    let whole = page(&log, &ReportOptions::default());
    for part in [
        "Attitude (",
        "Local position (",
        "Battery voltage (",
        "id=\"track\"",
        "id=\"parameters\"",
        "polyline",
    ] {
        assert!(whole.contains(part), "{part}");
    }
    let mut options = ReportOptions::default();
    options.redact = true;
    let redacted = page(&log, &options);
    for part in ["Local position (", "id=\"track\"", "id=\"parameters\"", "polyline"] {
        assert!(!redacted.contains(part), "{part}");
    }
}

fn ramp() -> Plot {
    let points = (0..1000).map(|i| (f64::from(i) / 10.0, f64::from(i % 100)));
    let mut series = Series::new("t.<x>", points.collect());
    series.unit = Some("V".to_owned());
    Plot::new("a & b", vec![Panel::new("t.x", vec![series])], (0.0, 100.0), "s since the start")
}

#[test]
fn pictures_are_what_they_say() {
    let size = Size { width: 600, height: 300 };
    let mut svg = Vec::new();
    plot::svg(&ramp(), size, &mut svg).unwrap();
    let svg = String::from_utf8(svg).unwrap();
    let document = roxmltree::Document::parse(&svg).unwrap();
    let texts: Vec<_> = document.descendants().filter_map(|node| node.text()).collect();
    for text in ["a & b", "t.x [V]", "s since the start", "100"] {
        assert!(texts.contains(&text), "{text}: {texts:?}");
    }
    let longest = document.descendants().filter_map(|node| node.attribute("points")).map(str::len).max();
    assert!(longest > Some(5000), "{longest:?}");

    let mut bytes = Vec::new();
    plot::png(&ramp(), size, &mut bytes).unwrap();
    let mut reader = png::Decoder::new(std::io::Cursor::new(bytes)).read_info().unwrap();
    let mut dots = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut dots).unwrap();
    assert_eq!((info.width, info.height), (600, 300));
    let blue = dots.chunks(3).filter(|dot| *dot == [0, 114, 178]).count();
    assert!(blue > 1000, "{blue} dots of the line");
}

/// Every numeric field of every log can be read, and its extremes are kept.
#[test]
fn thin_series_keep_their_extremes() {
    let mut drawn = 0;
    for (name, log) in logs() {
        let Some(span) = report::span(&log) else { continue };
        for topic in log.topics().iter().filter(|topic| topic.count > 0 && topic.count < 5000).take(20) {
            let fields = plot::numeric_fields(&*log, topic).into_iter().take(3);
            let signals: Vec<_> = fields.map(|field| Signal { topic: topic.name.clone(), field }).collect();
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
