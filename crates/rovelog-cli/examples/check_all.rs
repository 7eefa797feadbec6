//! Checks several logs as `rovelog check` does, and says how many are valid:
//! `cargo run -p rovelog-cli --example check_all -- LOG...`
#![allow(clippy::print_stdout, reason = "a program for a terminal")]

fn main() {
    let logs: Vec<_> = std::env::args_os().skip(1).collect();
    // 0 is done, 3 is done with losses, the others are failures.
    let codes = logs.iter().map(|log| rovelog_cli::run(vec!["rovelog".into(), "check".into(), log.clone()]));
    let sound = codes.filter(|code| *code == 0).count();
    println!("{sound} of {} logs are sound", logs.len());
}
