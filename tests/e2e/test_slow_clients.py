"""Clients that keep connections and give nothing: they cost a bounded amount, and others are served all the while."""
import pathlib
import resource
import socket
import ssl
import threading
import unittest

from node import E2eTest, Node, spec, wait_for
from test_tls import Authority, TlsNode

IDLE, SLOW = 2000, 200


def raise_open_files():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class Crowd:
    """IDLE connections that say nothing, and SLOW ones: headers and bodies that come byte by byte, readers that never
    read. Who is cut off comes again. greeting: what each slow one sends first instead, a byte at a time."""

    def __init__(self, port, greeting=None):
        self.port = port
        self.stop = threading.Event()
        self.cut_off = 0
        self.idle = [self.connect() for _ in range(IDLE)]
        self.slow = []
        for number in range(SLOW):
            data = greeting or self.request(number % 3)
            self.slow.append([self.connect(), data, 0])
        self.thread = threading.Thread(target=self.drip)
        self.thread.start()

    def connect(self):
        peer = socket.socket()
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        peer.settimeout(20)
        peer.connect(("127.0.0.1", self.port))
        return peer

    @staticmethod
    def request(kind):
        if kind == 0:
            return b"GET /v1/vms HTTP/1.1\r\nHost: localhost\r\nX-Slow: " + b"a" * 4000
        if kind == 1:
            return (b"POST /v1/vms HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                    b"Idempotency-Key: slow\r\nContent-Length: 5000\r\n\r\n", b" " * 5000)
        return (b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 100, b"")

    def drip(self):
        while not self.stop.wait(0.05):
            for one in self.slow:
                try:
                    self.drip_one(one)
                except OSError:
                    self.cut_off += 1
                    one[0].close()
                    one[0], one[2] = self.connect(), 0

    @staticmethod
    def drip_one(one):
        peer, data, sent = one
        if isinstance(data, tuple):  # At once, and then byte by byte.
            at_once, data = data
            if sent == 0:
                peer.sendall(at_once)
                one[2] = 1
                return
            sent -= 1
        one[2] += peer.send(data[sent:sent + 1])

    def close(self):
        self.stop.set()
        self.thread.join()
        for peer in self.idle + [one[0] for one in self.slow]:
            peer.close()


class SlowClients(E2eTest):
    def start(self, node):
        raise_open_files()
        self.addCleanup(node.close)
        return node.start()

    def crowd(self, node, greeting=None):
        crowd = Crowd(node.port, greeting)
        self.addCleanup(crowd.close)
        return crowd

    def metric(self, node, name):
        for line in node.call("GET", "/metrics").body.decode().splitlines():
            if line.startswith(name + " "):
                return float(line.split()[-1])
        return 0.0

    def resident(self, node):
        status = pathlib.Path(f"/proc/{node.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) >> 10

    def serve_others(self, node, rounds=100):
        """Every client that behaves gets its answer; how fast is not asked, for a busy machine's sake."""
        for number in range(rounds):
            key = f"normal-{number}"
            self.expect(node.create(key, spec(), wait=10), 201)
            self.assertTrue(self.expect(node.create(key, spec()), 200).replayed)
            self.expect(node.call("GET", "/v1/vms?limit=1"), 200)

    def test_others_are_served_beside_a_crowd(self):
        node = self.start(Node())
        before = self.resident(node)
        self.crowd(node)
        self.assertGreaterEqual(wait_for("the crowd is there", lambda: self.metric(node, "vmonce_http_connections")
                                         >= IDLE + SLOW), 1)
        self.serve_others(node)
        self.assertLess(self.resident(node) - before, 150, "MiB more")
        self.assertEqual(self.metric(node, 'vmonce_http_connections_closed_total{reason="refused"}'), 0)
        self.expect(node.call("GET", "/v1/operations?idempotency_key=slow"), 200)
        self.assertEqual(node.get("/v1/operations?idempotency_key=slow")["items"], [])

    def test_others_are_served_where_the_crowd_has_taken_all_places(self):
        # So few open files that the crowd is four times as large as what the service holds.
        node = Node()
        node.program = ["prlimit", "--nofile=1024:1024", *node.program]
        self.start(node)
        crowd = self.crowd(node)
        self.serve_others(node)
        self.assertLessEqual(self.metric(node, "vmonce_http_connections"), 600)
        self.assertGreater(self.metric(node, 'vmonce_http_connections_closed_total{reason="evicted"}'), IDLE // 2)
        # The ledger and the simulated host had files enough.
        self.assertNotIn('"level":"error"', node.log_text())
        crowd.close()
        self.assertEqual(node.stop(), 0)

    def test_others_are_served_beside_half_open_handshakes(self):
        node = TlsNode()
        authority = Authority(node.dir, "authority")
        authority.issue(node.dir + "/server")
        node.sections["server"] = {"listen": "127.0.0.1:0", "tls_cert": node.dir + "/server.pem",
                                   "tls_key": node.dir + "/server.key"}
        node.trusts = authority.file
        self.start(node)
        before = self.resident(node)
        outgoing = ssl.MemoryBIO()
        session = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
        with self.assertRaises(ssl.SSLWantReadError):
            session.do_handshake()
        self.crowd(node, greeting=outgoing.read())
        self.serve_others(node, rounds=30)
        self.assertLess(self.resident(node) - before, 150, "MiB more")


if __name__ == "__main__":
    unittest.main()
