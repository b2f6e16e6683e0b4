"""A page over HTTP, and events that a live page follows.  It listens on the loopback unless another host is given."""

import errno
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from ..model.errors import PsdynError

LOOPBACK = '127.0.0.1'
PORT = 8008
PORTS_TRIED = 20
KEEP_ALIVE_S = 5.0


class ServerError(PsdynError):
    """No port to listen on."""


class Server:
    """Serves one page from a thread of its own until `close`; to be used in a `with` statement.

    page  text of the page
    host  address to listen on
    port  first one that is tried; 0: any

    url   of the page
    busy  whether `port` was taken by somebody else, so that it is another one
    """

    def __init__(self, page, host=LOOPBACK, port=PORT):
        self._page, self._latest, self._count = page.encode('utf-8', 'replace'), None, 0
        self._changed, self._closed = threading.Condition(), False
        self._http = self._listen(host, port)
        self._http.daemon_threads = True
        found = self._http.server_address[1]
        self.busy = port not in (0, found)
        self.url = f"http://{f'[{host}]' if ':' in host else host}:{found}/"
        self._thread = threading.Thread(target=self._http.serve_forever, daemon=True)
        self._thread.start()

    def _listen(self, host, port):
        handler = type('Handler', (_Handler,), {'server_of_page': self})
        for number in range(port, min(port + PORTS_TRIED, 65536)) if port else (0,):
            try:
                return ThreadingHTTPServer((host, number), handler)
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise ServerError(f"cannot listen on '{host}', port {number}: {error.strerror}") from None
        raise ServerError(f"ports {port} to {min(port + PORTS_TRIED, 65536) - 1} of '{host}' are all in use; "
                          'choose another by --port')

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def publish(self, state):
        """Send a dict to all pages that are open; a page that is slow misses some, never the last."""
        text = json.dumps(state, allow_nan=False)
        with self._changed:
            self._latest, self._count = text, self._count + 1
            self._changed.notify_all()

    def close(self):
        """Stop serving."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._http.shutdown()
        self._http.server_close()

    def events(self):
        """Yield the texts that are published, the newest first known at once; '' when nothing came for a while."""
        seen = 0
        while True:
            with self._changed:
                if not self._closed and self._count == seen:
                    self._changed.wait(KEEP_ALIVE_S)
                if self._closed:
                    return
                text = self._latest if self._count > seen else ''
                seen = self._count
            yield text

    @property
    def page(self):
        """Bytes of the page."""
        return self._page


class _Handler(BaseHTTPRequestHandler):
    server_of_page = None

    def do_GET(self):
        path = self.path.split('?')[0]
        if path in ('/', '/index.html'):
            self._send('text/html; charset=utf-8', self.server_of_page.page)
        elif path == '/events':
            self._stream()
        else:
            self.send_error(404)

    def _send(self, kind, content):
        self.send_response(200)
        self.send_header('Content-Type', kind)
        self.send_header('Content-Length', str(len(content)))
        self.send_header('Cache-Control', 'no-store')
        self.end_headers()
        self._write(content)

    def _stream(self):
        self.send_response(200)
        self.send_header('Content-Type', 'text/event-stream')
        self.send_header('Cache-Control', 'no-store')
        self.end_headers()
        for text in self.server_of_page.events():
            if not self._write(f'data: {text}\n\n'.encode() if text else b': nothing new\n\n'):
                return

    def _write(self, content):
        """Return whether the browser is still there."""
        try:
            self.wfile.write(content)
            return True
        except (BrokenPipeError, ConnectionResetError):
            return False

    def log_message(self, *_):
        """A request is no news."""
