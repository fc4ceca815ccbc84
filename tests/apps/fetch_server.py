#!/usr/bin/env python3
"""Runs a command while a server of this machine stands in for the hosts that data sets are on.

  fetch_server.py FOLDER COMMAND    in COMMAND, a line for sh, {host} is the server's address

  {host}/plain/FILE     the file, always from its beginning
  {host}/ranges/FILE    the file, from where it is asked for
  {host}/cut/FILE       the same; the connection breaks after 2000 bytes
  {host}/once/FILE      the file from its beginning, of which 2000 bytes are sent
  {host}/page/FILE      a page of HTML, as a proxy answers that wants a login
  {host}/refused/FILE   a page of HTML, with an error
"""

import http.server
import subprocess
import sys
import threading
from pathlib import Path

PAGE = b"<!DOCTYPE html>\n<html>Please log in.</html>\n"
CUT = 2000


class Host(http.server.BaseHTTPRequestHandler):
    folder = Path()

    def do_GET(self):
        way, name = self.path.strip("/").split("/", 1)
        if way in ("page", "refused"):
            return self.answer(200 if way == "page" else 503, PAGE)
        body = (self.folder / name).read_bytes()
        first = 0
        if way in ("ranges", "cut") and (asked := self.headers.get("Range", "")).startswith("bytes="):
            first = int(asked[len("bytes="):].split("-")[0])
        if first >= len(body) > 0:
            return self.answer(416, b"")
        self.answer(206 if first else 200, body[first:], first, len(body), CUT if way in ("cut", "once") else None)

    def answer(self, status, body, first=0, size=0, most=None):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        if status == 206:
            self.send_header("Content-Range", f"bytes {first}-{size - 1}/{size}")
        self.end_headers()
        self.wfile.write(body[:most])
        self.close_connection = True

    def log_message(self, *_):
        pass


Host.folder = Path(sys.argv[1])
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Host)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.exit(subprocess.run(sys.argv[2].replace("{host}", f"http://127.0.0.1:{server.server_port}"), shell=True).returncode)
