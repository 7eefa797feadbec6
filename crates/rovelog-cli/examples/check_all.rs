//! Checks several logs like `rovelog check`, and prints the number of valid logs:
//! `cargo run -p rovelog-cli --example check_all -- LOG...`
#![allow(clippy::print_stdout, reason = "a program for a terminal")]

fn main() {
    let logs: Vec<_> = std::env::args_os().skip(1).collect();
    // Exit code 0 is success, and 3 is success with losses. All other codes are failures.
    let codes = logs.iter().map(|log| rovelog_cli::run(vec!["rovelog".into(), "check".into(), log.clone()]));
    let sound = codes.filter(|code| *code == 0).count();
    println!("{sound} of {} logs are sound", logs.len());
}
