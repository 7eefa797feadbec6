//! The command `rovelog mcp`, a server of the Model Context Protocol (MCP) with which agents read
//! logs. It communicates over stdin and stdout.

mod answer;
mod picture;
mod run;
mod tools;

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use clap::CommandFactory as _;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams,
    ReadResourceResponse, ReadResourceResult, Resource, ResourceContents, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt as _};
use serde_json::Value;

use self::answer::Answer;
use self::tools::TOOLS;
use crate::args::Cli;
use crate::context::{Context, Format};
use crate::failure::{Failure, Outcome, Status};

const MORE: &str = "\
Agents start this server by themselves. Most of them have a file for this, with an entry such as

  \"rovelog\": {\"command\": \"rovelog\", \"args\": [\"mcp\", \"/home/me/logs\"]}

The server reads only logs in the given folders, and writes nothing. An answer has at most 16 kB; \
its second text says what was left out. docs/tools/agents.md lists the tools.

mcp needs the Cargo feature agents, which released binaries and the Python package have.

Examples:
  rovelog mcp flights/
  rovelog mcp flights/ /mnt/power-logs";

/// Start of the addresses of resources. The name of a command follows.
const HELP: &str = "rovelog://help/";

/// Let agents read logs (Model Context Protocol)
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub(crate) struct Args {
    /// Folders that agents may read; default: the current folder
    #[arg(value_name = "FOLDER", default_value = ".", hide_default_value = true)]
    folders: Vec<PathBuf>,
}

pub(super) fn run(args: &Args, context: &Context) -> Outcome {
    context.format(&[Format::Text])?;
    let folder = |path: &PathBuf| {
        let found = path.canonicalize().and_then(|found| {
            if found.is_dir() { Ok(found) } else { Err(std::io::ErrorKind::NotADirectory.into()) }
        });
        found.map_err(|error| Failure::failed(format!("cannot read the folder: {error}")).at(path))
    };
    let folders = args.folders.iter().map(folder).collect::<Result<_, _>>()?;
    let server = Server { folders, options: context.global.read_options() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let failed = |error: String| Failure::failed(format!("the connection to the agent failed: {error}"));
    runtime.block_on(async {
        let service =
            server.serve(rmcp::transport::stdio()).await.map_err(|error| failed(error.to_string()))?;
        service.waiting().await.map_err(|error| failed(error.to_string()))
    })?;
    Ok(Status::Done)
}

/// The server. Each call of a tool runs a command of Rovelog in a process of its own.
struct Server {
    /// Folders that agents may read. The paths are absolute and have no symbolic links.
    folders: Vec<PathBuf>,
    /// Options for reading logs that each command gets.
    options: Vec<String>,
}

impl Server {
    /// Returns the real path of `path` if it is in one of the folders.
    fn inside(&self, path: &Path) -> Option<PathBuf> {
        let path = path.canonicalize().ok()?;
        self.folders.iter().any(|folder| path.starts_with(folder)).then_some(path)
    }

    /// Returns the path of the log `name`, which may be in an archive: `logs.zip/a.ulg`.
    fn find(&self, name: &str) -> Result<PathBuf, String> {
        let found = self.folders.iter().find_map(|folder| {
            let path = folder.join(name);
            let file = path.ancestors().find(|part| part.is_file())?;
            let real = self.inside(file)?;
            let member = path.strip_prefix(file).ok()?;
            let is_plain = member.components().all(|part| matches!(part, Component::Normal(_)));
            let is_whole = member.as_os_str().is_empty();
            is_plain.then(|| if is_whole { real.clone() } else { real.join(member) })
        });
        found.ok_or_else(|| format!("{name} is not a log in {}; call the tool logs", self.names()))
    }

    /// Returns the paths of all logs in the folders of the server, or in `folder`.
    fn logs(&self, folder: Option<&Value>) -> Result<Answer, String> {
        let folders = match folder.map(|folder| folder.as_str().ok_or("the argument folder must be a string"))
        {
            Some(name) => {
                let name = name?;
                let found = self.folders.iter().find_map(|folder| self.inside(&folder.join(name)));
                vec![found.ok_or_else(|| format!("{name} is not a folder in {}", self.names()))?]
            }
            None => self.folders.clone(),
        };
        // A folder without logs is an error only if no folder has logs.
        let (mut logs, mut errors) = (BTreeSet::new(), Vec::new());
        for folder in folders {
            match rovelog_scale::find(&[folder.to_string_lossy()]) {
                Ok(found) => logs.extend(found.into_iter().map(|log| log.uri)),
                Err(error) => errors.push(error.to_string()),
            }
        }
        if logs.is_empty() {
            return Err(errors.join("; "));
        }
        answer::list("logs", logs.into_iter().filter(|log| self.find(log).is_ok()), errors)
    }

    /// Returns the names of the folders for a message.
    fn names(&self) -> String {
        let folders: Vec<_> = self.folders.iter().map(|folder| folder.display().to_string()).collect();
        folders.join(" or ")
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let abilities = ServerCapabilities::builder().enable_tools().enable_resources().build();
        ServerConfig::new(abilities)
            .with_server_info(Implementation::new("rovelog", env!("CARGO_PKG_VERSION")))
            .with_instructions(
                "Reads sensor logs: PX4 ULog, RocketLogger RLD, ROS 1 bags and Koblenz VEL. Start with the \
                 tools logs, info and findings. Values are exact; compute with the tools stats and events \
                 instead of reading rows.",
            )
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(TOOLS.iter().map(tools::Tool::describe).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = TOOLS.iter().find(|tool| tool.name == request.name) else {
            return Err(ErrorData::invalid_params(format!("there is no tool {}", request.name), None));
        };
        let arguments = request.arguments.unwrap_or_default();
        let answer = async {
            let mut words = tool.command_line(&arguments, |name| self.find(name))?;
            if tool.name == "logs" {
                return self.logs(arguments.get("folder"));
            }
            // The first word is the command.
            words.splice(1..1, self.options.iter().cloned());
            run::run(tool, &words).await
        };
        let answer = tokio::select! {
            answer = answer => answer,
            () = context.ct.cancelled() => Err("the call was canceled".to_owned()),
        };
        Ok(match answer {
            Ok(answer) => CallToolResult::success(answer.into_content()),
            // The agent reads this text, and can correct its call.
            Err(text) => CallToolResult::error(vec![ContentBlock::text(text)]),
        }
        .into())
    }

    async fn list_resources(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let line = Cli::command();
        let commands = line.get_subcommands().filter(|command| !command.is_hide_set());
        let resources = commands.map(|command| {
            let mut resource = Resource::new(format!("{HELP}{}", command.get_name()), command.get_name());
            resource.description = command.get_about().map(ToString::to_string);
            resource
        });
        Ok(ListResourcesResult::with_all_items(resources.collect()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let mut line = Cli::command();
        let name = request.uri.strip_prefix(HELP).unwrap_or_default();
        let Some(command) = line.find_subcommand_mut(name) else {
            return Err(ErrorData::resource_not_found(format!("there is no resource {}", request.uri), None));
        };
        let text = answer::shortened(&command.render_long_help().to_string());
        Ok(ReadResourceResult::new(vec![ResourceContents::text(text, request.uri)]).into())
    }
}
