"""Runs commands on a terminal. Each line of stdin is a JSON object: `argv`, and `hold`, the seconds for which the
command's stdin stays open after `stdin` (the path of a file) was written to it. Each line of stdout is one: `code`,
and `output`, everything that the terminal got, as Latin-1."""

import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import termios
import threading


def run(argv, stdin=None, hold=0.0):
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=theirs, stderr=theirs)
    os.close(theirs)

    def feed():
        try:
            if stdin is not None:
                with open(stdin, "rb") as file:
                    child.stdin.write(file.read())
                child.stdin.flush()
            threading.Event().wait(hold)
            child.stdin.close()
        except BrokenPipeError:
            pass

    threading.Thread(target=feed, daemon=True).start()
    output = b""
    while True:
        try:
            piece = os.read(ours, 1 << 16)
        except OSError:  # Linux: the other end is closed
            piece = b""
        if not piece:
            break
        output += piece
    os.close(ours)
    return {"code": child.wait(), "output": output.decode("latin-1")}


for line in sys.stdin:
    print(json.dumps(run(**json.loads(line))), flush=True)
