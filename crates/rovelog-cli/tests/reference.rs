//! The generated pages in `docs/reference` are up to date. To rewrite them, run
//! `BLESS=1 cargo nextest run -p rovelog-cli --features full --test reference`.

mod common;

use std::fmt::Write as _;
use std::fs;

use rovelog::core::internal::packed;
use rovelog::core::{Rule, span};
use rovelog::{Format, FormatInfo};

/// Compares a generated page with `docs/reference/{name}`, or writes it.
fn check(name: &str, text: &str) {
    let path = rovelog_testing::root().join("docs/reference").join(name);
    if std::env::var_os("BLESS").is_some_and(|bless| bless == "1") {
        fs::write(&path, text).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == text,
        "docs/reference/{name} is out of date: BLESS=1 cargo nextest run -p rovelog-cli --features full --test reference"
    );
}

fn help(command: &str) -> String {
    let args = command.split_whitespace().chain(["--help"]);
    let output = common::rovelog().args(args).env("COLUMNS", "80").output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the names of the commands that a help text lists.
fn commands(help: &str) -> Vec<&str> {
    let list =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names = list.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help").collect()
}

/// Returns a help text without the names of the global options.
fn without_global_options(help: &str) -> String {
    let parts = help.trim_end().split("\n\n").filter(|part| !part.starts_with("Options of all commands"));
    parts.collect::<Vec<_>>().join("\n\n")
}

#[test]
fn the_command_line_reference_is_up_to_date() {
    let top = help("");
    let mut page = format!(
        "# Command line\n\n\
         <!-- generated from the help texts; CONTRIBUTING.md says how to rewrite it -->\n\n\
         The help text of every command. The global options apply to all commands and are listed once,\n\
         under `rovelog`. Which command applies to which format: [commands by format](commands-by-format.md).\n\n\
         ## rovelog\n\n```text\n{}\n```\n",
        top.trim_end()
    );
    for name in commands(&top) {
        let text = help(name);
        let _ = write!(page, "\n## rovelog {name}\n\n```text\n{}\n```\n", without_global_options(&text));
        for inner in commands(&text) {
            let name = format!("{name} {inner}");
            let text = without_global_options(&help(&name));
            let _ = write!(page, "\n## rovelog {name}\n\n```text\n{text}\n```\n");
        }
        if name == "export" {
            for format in ["csv", "parquet", "mcap"] {
                let text = help(&format!("export --to {format}"));
                let options = text.split("\n\n").find(|part| part.starts_with("Options of")).unwrap();
                let _ = write!(page, "\n### rovelog export --to {format}\n\n```text\n{options}\n```\n");
            }
        }
    }
    check("command-line.md", &page);
}

/// A wrapped example could not be copied, and the rest of its line would look like another example.
#[test]
fn no_example_of_the_help_is_wrapped_at_80_columns() {
    let top = help("");
    let names = commands(&top).into_iter().flat_map(|name| {
        let text = help(name);
        let inner: Vec<_> = commands(&text).iter().map(|inner| format!("{name} {inner}")).collect();
        std::iter::once(name.to_owned()).chain(inner)
    });
    let (mut examples, starts) = (0, ["rovelog ", "gzip ", "source "]);
    for name in names {
        let text = help(&name);
        let lines = text.lines().skip_while(|line| *line != "Examples:").skip(1);
        for line in lines.take_while(|line| !line.is_empty()) {
            let is_whole =
                line.starts_with("      ") || starts.iter().any(|start| line[2..].starts_with(start));
            assert!(is_whole, "rovelog {name}: {line}");
            examples += 1;
        }
    }
    assert!(examples > 100, "{examples} examples");
}

/// A longer help is hard to read in a terminal.
#[test]
fn the_help_of_commands_that_write_files_has_at_most_60_lines() {
    for command in ["export", "extract", "track", "scrub"] {
        let lines = help(command).lines().count();
        assert!(lines <= 60, "{command}: {lines} lines");
    }
}

fn table(rules: &[&Rule]) -> String {
    let mut text = String::from("| code | name | severity | meaning |\n|---|---|---|---|\n");
    for rule in rules {
        let _ = writeln!(
            text,
            "| {} | `{}` | {} | {} |",
            rule.code,
            rule.name,
            rule.severity.name(),
            rule.meaning
        );
    }
    text
}

#[test]
fn the_diagnostics_reference_is_up_to_date() {
    let mut page = "# Diagnostics\n\n\
        <!-- generated from the lists in the code; CONTRIBUTING.md says how to rewrite it -->\n\n\
        These tables list the problems that `rovelog check` reports. Codes and names never change. The\n\
        severity, which is also in the JSON output, is one of\n\n\
        - `data_lost`: bytes or records cannot be read. These codes start with E.\n\
        - `left_out`: reading leaves out valid records; `rovelog recover` keeps them.\n\
        - `repaired`: the log has a fault, which was corrected while reading.\n\
        - `note`: the log has something unusual, but nothing is lost.\n\n\
        ## All formats\n\n"
        .to_owned();
    let of_all = [&span::STALE_TIMES].into_iter().chain(packed::ALL.iter().copied());
    page += &table(&of_all.collect::<Vec<_>>());
    let formats: [(FormatInfo, &[&Rule]); 4] = [
        (rovelog::ulog_format::Ulog::INFO, rovelog::ulog_format::diagnostics::ALL),
        (rovelog::rld_format::Rld::INFO, rovelog::rld_format::diagnostics::ALL),
        (rovelog::rosbag12::Rosbag::INFO, rovelog::rosbag12::diagnostics::ALL),
        (rovelog::vel_format::Vel::INFO, rovelog::vel_format::diagnostics::ALL),
    ];
    for (format, rules) in formats {
        let _ = write!(
            page,
            "\n## {}\n\nThe rules behind these: [{id}.md](../formats/{id}.md).\n\n{}",
            format.name,
            table(rules),
            id = format.id
        );
    }
    check("diagnostics.md", &page);
}
