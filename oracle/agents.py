"""Calls every tool of `rovelog mcp` with the client of fastmcp, for each real log.

usage: agents.py ROVELOG REAL

A document of a tool must be that of the command, or a shorter one with a note. Rows must be the first rows of the
command. Answers have at most 16 kB.
"""

import asyncio
import base64
import json
import pathlib
import subprocess
import sys

from fastmcp import Client
from fastmcp.client.transports import StdioTransport

program, real = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
COMMANDS = {
    "info": ["info", "-v"],
    "topics": ["topics"],
    "schema": ["schema"],
    "findings": ["findings"],
    "messages": ["messages", "--fold"],
    "params": ["params"],
    "problems": ["check"],
    "events": ["events"],
    "stats": ["stats"],
}
EXTENSIONS = {".ulg", ".rld", ".bag", ".vel"}
counts = {"equal": 0, "shortened": 0, "refused": 0, "rows": 0, "pictures": 0}
faults = []


def output(*words: str) -> str:
    return subprocess.run([program, *words], capture_output=True, text=True, check=False).stdout


async def check(client: Client, log: pathlib.Path) -> None:
    async def call(tool: str, **arguments: object) -> tuple[bool, list]:
        result = await client.call_tool(tool, {"file": str(log), **arguments}, raise_on_error=False)
        size = sum(len(block.model_dump_json()) for block in result.content)
        if size > 16_000:
            faults.append(f"{tool} {log}: {size} bytes")
        return not result.is_error, result.content

    for tool, command in COMMANDS.items():
        works, content = await call(tool)
        expected = output(*command, str(log), "-f", "json")
        if not works:
            counts["refused"] += 1
            if expected and "the answer is too large" not in content[0].text:
                faults.append(f"{tool} {log}: {content[0].text}")
            continue
        notes = "\n".join(block.text for block in content[1:])
        if "left out: " in notes:
            counts["shortened"] += 1
            if len(expected) < 12_000:
                faults.append(f"{tool} {log}: shortened without need")
        elif json.loads(content[0].text) == json.loads(expected):
            counts["equal"] += 1
        else:
            faults.append(f"{tool} {log}: differs from the command")
    works, content = await call("topics")
    topics = json.loads(content[0].text)["topics"] if works else []
    for topic in [topic["name"] for topic in topics if topic["count"] > 0][:3]:
        works, content = await call("rows", topic=topic)
        lines = content[0].text.splitlines() if works else []
        if lines != output("cat", str(log), "--topics", topic, "-f", "csv").splitlines()[: len(lines)]:
            faults.append(f"rows {log} {topic}: differ from the command")
        counts["rows"] += max(len(lines) - 1, 0)
        works, content = await call("plot", signals=[topic])
        if works and not base64.b64decode(content[0].data).startswith(b"\x89PNG"):
            faults.append(f"plot {log} {topic}: no PNG")
        counts["pictures"] += works


async def main() -> None:
    logs = sorted(path for path in real.rglob("*") if path.suffix in EXTENSIONS and path.stat().st_size < 20 << 20)
    async with Client(StdioTransport(program, ["mcp", str(real)])) as client:
        tools = {tool.name for tool in await client.list_tools()}
        if missing := tools - {*COMMANDS, "logs", "rows", "plot"}:
            faults.append(f"not called: {missing}")
        for log in logs:
            await check(client, log)
        await client.call_tool("logs", {})
        for resource in await client.list_resources():
            await client.read_resource(resource.uri)
    print(f"{len(logs)} logs: {counts}; {len(faults)} faults")
    print("\n".join(faults[:40]))
    sys.exit(bool(faults) or not counts["equal"])


asyncio.run(main())
