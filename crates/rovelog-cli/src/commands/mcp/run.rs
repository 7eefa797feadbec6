//! Runs a command of Rovelog for a tool, in a process of its own.

use std::process::Stdio;

use base64::Engine as _;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;

use super::answer::{self, Answer, MAX_CONTENT, shortened};
use super::tools::{Form, Tool};
use crate::interpreter::this_program;

/// Maximum number of bytes of JSON that a command may print.
const MAX_JSON: u64 = 64 << 20;

/// Maximum size of a picture in base64. It is larger than that of a text, because agents pay for the
/// pixels of a picture and not for its bytes.
const MAX_PICTURE: usize = 64_000;

/// Sizes of plots in pixels, largest first. Pictures that are too large are drawn again.
const PLOT_SIZES: [[&str; 2]; 4] = [["900", "420"], ["700", "320"], ["520", "260"], ["380", "200"]];

/// Runs the command of `tool` with the arguments `words`.
pub(super) async fn run(tool: &Tool, words: &[String]) -> Result<Answer, String> {
    match tool.form {
        Form::Json => {
            let (text, notes) = output(words, MAX_JSON).await?;
            let document = serde_json::from_slice(&text).map_err(|_| {
                format!("the answer has more than {MAX_JSON} bytes; select topics, fields or a time range")
            })?;
            Ok(answer::fit(&document, notes))
        }
        Form::Rows => {
            let (rows, notes) = output(words, MAX_CONTENT as u64 + 1).await?;
            Ok(answer::rows(&String::from_utf8_lossy(&rows), notes))
        }
        Form::Png => {
            for [width, height] in PLOT_SIZES {
                let size = [format!("--width={width}"), format!("--height={height}")];
                let [command, options @ ..] = words else { break };
                let words = [std::slice::from_ref(command), &size, options].concat();
                let (picture, _) = output(&words, MAX_JSON).await?;
                let picture = base64::engine::general_purpose::STANDARD.encode(picture);
                if picture.len() <= MAX_PICTURE {
                    return Ok(Answer::Png(picture));
                }
            }
            Err("the picture has more than 64 kB; select fewer signals or a shorter time range".to_owned())
        }
    }
}

/// Runs a command. Returns its first `max` bytes of output, and the lines of its messages. If the
/// command fails without an output, its messages are the error. The process is killed when it has written `max` bytes,
/// or when the returned future is dropped.
async fn output(words: &[String], max: u64) -> Result<(Vec<u8>, Vec<String>), String> {
    let (program, first) = this_program().map_err(|error| format!("cannot start a process: {error}"))?;
    let mut command = Command::new(program);
    command.args(first).args(words).env("NO_COLOR", "1").kill_on_drop(true);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let failed = |error: std::io::Error| format!("cannot run a command: {error}");
    let mut child = command.spawn().map_err(failed)?;
    let (out, said) = (child.stdout.take(), child.stderr.take());
    let (out, said) = tokio::join!(read(out, max), read(said, MAX_CONTENT as u64));
    let (out, said) = (out.map_err(failed)?, said.map_err(failed)?);
    let said = String::from_utf8_lossy(&said).into_owned();
    if out.len() as u64 >= max {
        child.kill().await.map_err(failed)?;
        return Ok((out, Vec::new()));
    }
    let status = child.wait().await.map_err(failed)?;
    // Exit code 3 means that some data of the log was lost, and the messages say which. `check` ends
    // with exit code 1 if the log is damaged.
    if matches!(status.code(), Some(0 | 3)) || !out.is_empty() {
        return Ok((out, said.lines().map(str::to_owned).collect()));
    }
    Err(if said.is_empty() { format!("the command ended with {status}") } else { shortened(&said) })
}

/// Reads at most `max` bytes.
async fn read(from: Option<impl AsyncRead + Unpin>, max: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(from) = from {
        from.take(max).read_to_end(&mut bytes).await?;
    }
    Ok(bytes)
}
