//! Runs a command of Rovelog for a tool, in a process of its own.

use std::process::Stdio;

use base64::Engine as _;
use rmcp::model::ContentBlock;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;

use super::answer::{self, Answer, MAX_CONTENT, shortened};
use super::picture;
use super::tools::{Form, Tool};
use crate::interpreter::this_program;

/// Maximum number of bytes of JSON that a command may print.
const MAX_JSON: u64 = 64 << 20;

/// Sizes of plots in pixels, largest first. Pictures that are too large are drawn again.
const PLOT_SIZES: [[&str; 2]; 5] =
    [["900", "420"], ["700", "320"], ["520", "260"], ["380", "200"], ["300", "130"]];

/// Runs the command of `tool` with the arguments `words`.
pub(super) async fn run(tool: &Tool, words: &[String]) -> Result<Answer, String> {
    match tool.form {
        Form::Json => {
            let done = output(words, MAX_JSON).await?;
            if done.output.len() as u64 >= MAX_JSON {
                return Err(answer::TOO_LARGE.to_owned());
            }
            answer::fit(String::from_utf8_lossy(&done.output).into_owned(), done.messages)
        }
        Form::Csv => {
            // A record that is cut at the end is left out.
            let done = output(words, MAX_CONTENT as u64 + 1).await?;
            Ok(answer::rows(&String::from_utf8_lossy(&done.output), done.messages))
        }
        Form::Png => {
            for [width, height] in PLOT_SIZES {
                let size = [format!("--width={width}"), format!("--height={height}")];
                let [command, options @ ..] = words else { break };
                let words = [std::slice::from_ref(command), &size, options].concat();
                let done = output(&words, MAX_JSON).await?;
                let picture = picture::with_few_colors(&done.output)?;
                let picture = base64::engine::general_purpose::STANDARD.encode(picture);
                if picture.len() <= MAX_CONTENT {
                    let content = ContentBlock::image(picture, "image/png");
                    return Ok(Answer { content, notes: done.messages });
                }
            }
            Err("the picture has more than 16 kB; select fewer signals or a shorter time range".to_owned())
        }
    }
}

/// The output of a command.
struct Done {
    output: Vec<u8>,
    /// Lines of stderr.
    messages: Vec<String>,
}

/// Runs a command. Returns at most `max` bytes of stdout. The process ends when it writes more, and
/// it is killed when the returned future is dropped.
///
/// # Errors
/// Returns the text of stderr if the command fails and has written nothing to stdout.
async fn output(words: &[String], max: u64) -> Result<Done, String> {
    let (program, first) = this_program().map_err(|error| format!("cannot start a process: {error}"))?;
    let mut command = Command::new(program);
    command.args(first).args(words).env("NO_COLOR", "1").kill_on_drop(true);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let failed = |error: std::io::Error| format!("cannot run a command: {error}");
    let mut child = command.spawn().map_err(failed)?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (output, messages) = tokio::join!(read(stdout, max), read(stderr, MAX_CONTENT as u64));
    let (output, messages) = (output.map_err(failed)?, messages.map_err(failed)?);
    let messages = String::from_utf8_lossy(&messages).into_owned();
    let status = child.wait().await.map_err(failed)?;
    // `check` fails if the log is damaged, but prints its result.
    if matches!(status.code(), Some(0 | 3)) || !output.is_empty() {
        return Ok(Done { output, messages: messages.lines().map(str::to_owned).collect() });
    }
    Err(if messages.is_empty() { format!("the command ended with {status}") } else { shortened(&messages) })
}

/// Reads at most `max` bytes, and then closes the pipe.
async fn read(from: Option<impl AsyncRead + Unpin>, max: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(from) = from {
        from.take(max).read_to_end(&mut bytes).await?;
    }
    Ok(bytes)
}
