"""Answers that get lost, and clients that hang up."""
import json
import re
import socket
import struct
import threading
import time

from node import spec


class LosingProxy:
    """Passes connections on to a node; of the first `lose` POSTs the answer is swallowed and the connection reset. None: of
    every request, when it is sent for the first time."""

    def __init__(self, node, lose=None):
        self.node = node
        self.lose = lose
        self.posts = []  # Their keys.
        self.known = set()  # Requests: first line and key.
        self.lost = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self.listener.close()

    def _accept(self):
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self._pass, args=(client,), daemon=True).start()

    def _pass(self, client):
        with client, socket.create_connection(("127.0.0.1", self.node.port)) as server:
            while True:
                request = self._message(client)
                if request is None:
                    return
                server.sendall(request)
                answer = self._message(server)
                if answer is None:
                    return
                if self._is_lost(request):
                    self.lost += 1
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    return
                client.sendall(answer)

    def _is_lost(self, request):
        key = re.search(rb"(?i)idempotency-key: *([^\r]*)", request)
        is_create = request.startswith(b"POST /v1/vms ")
        if is_create:
            self.posts.append(key.group(1))
        if self.lose is not None:
            return is_create and len(self.posts) <= self.lose
        name = (request.partition(b"\r\n")[0], key and key.group(1))
        is_new = name not in self.known
        self.known.add(name)
        return is_new

    @staticmethod
    def _message(peer):
        data = b""
        while b"\r\n\r\n" not in data:
            part = peer.recv(65536)
            if not part:
                return None
            data += part
        head, _, body = data.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: *(\d+)", head)
        while length and len(body) < int(length.group(1)):
            body += peer.recv(65536)
        return head + b"\r\n\r\n" + body


def hang_up(node, number, **more):
    """Sends a create that waits for its end, and resets the connection at one of twenty moments of it: (key, body, whether
    all of the request was sent)."""
    key, body = f"reset-{number}", spec(f"reset-{number}", **more)
    text = json.dumps(body).encode()
    request = (b"POST /v1/vms HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
               b"Prefer: wait=30\r\nIdempotency-Key: %s\r\nContent-Length: %d\r\n\r\n" %
               (key.encode(), len(text)) + text)
    # The first ones hang up within the request, the others at moments of the work.
    sent = request[:len(request) * (number + 1) // 5] if number < 4 else request
    connection = socket.create_connection(("127.0.0.1", node.port))
    connection.sendall(sent)
    if number >= 4:
        time.sleep((number - 4) * 0.015)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()
    return key, body, len(sent) == len(request)
