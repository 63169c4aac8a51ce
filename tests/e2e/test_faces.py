"""What the service shows: contract, metrics, logs; what it must never show; whom it does not serve; the demonstration
of `make run`."""
import base64
import json
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import unittest

from node import BIN, GUEST, E2eTest, Node, in_parallel, needs_guest, spec, wait_for

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Faces(E2eTest):
    @classmethod
    def setUpClass(cls):
        cls.shared = Node()
        cls.addClassCleanup(cls.shared.close)
        cls.shared.start()

    def test_the_contract_is_served_and_kept(self):
        node = self.shared
        contract = node.get("/openapi.json")
        self.assertTrue(contract["openapi"].startswith("3.1"))
        vm = self.expect(node.create("contract", spec("contract"), wait=10), 201)
        ids = {"/v1/vms/{id}": vm.vm["id"], "/v1/operations/{id}": vm.operation["id"]}
        for path, methods in contract["paths"].items():
            if "get" not in methods:
                continue
            real = path
            for prefix, value in ids.items():
                if path.startswith(prefix):
                    real = path.replace("{id}", value)
            answer = node.call("GET", real)
            self.assertIn(str(answer.status), methods["get"]["responses"], real)
            self.assertEqual(answer.status, 200, real)
            content = methods["get"]["responses"]["200"]["content"]
            self.assertIn(answer.headers["Content-Type"].split(";")[0], content, real)
        # What is served is exactly what is told.
        self.assertEqual(node.call("GET", "/v1/absent").code, "route_not_found")
        wrong = self.expect(node.call("PUT", "/v1/vms", {}), 405, "method_not_allowed")
        self.assertEqual(sorted(wrong.headers["Allow"].replace(",", " ").split()), ["GET", "HEAD", "OPTIONS", "POST"])

    def test_health_and_readiness(self):
        self.assertEqual(self.shared.get("/healthz")["status"], "ok")
        self.assertEqual(self.shared.get("/readyz")["status"], "ready")

    def test_the_capabilities_tell_every_figure_of_a_key_s_life(self):
        idempotency = self.shared.get("/v1/capabilities")["idempotency"]
        self.assertEqual((idempotency["key_header"], idempotency["key_bytes"]), ("Idempotency-Key", 255))
        self.assertEqual((idempotency["retention_s"], idempotency["tombstone_retention_s"], idempotency["key_ttl_s"]),
                         (30 * 86400, 365 * 86400, 86400))
        self.assertEqual((idempotency["mismatch_status"], idempotency["expired_status"]), (422, 410))

    def test_the_metrics_hold_the_promise(self):
        node = self.shared
        self.expect(node.create("metrics", spec(), wait=10), 201)
        self.expect(node.create("metrics", spec()), 200)
        self.expect(node.create("metrics", spec(cpus=2)), 422)
        node.reconcile()
        answer = node.call("GET", "/metrics")
        text = answer.body.decode()
        samples = dict(line.rsplit(" ", 1) for line in text.splitlines() if line and not line.startswith("#"))
        self.assertEqual(float(samples["vmonce_domains_unowned"]), 0)
        self.assertEqual(float(samples["vmonce_operations_with_multiple_domains"]), 0)
        outcomes = {name: float(value) for name, value in samples.items()
                    if name.startswith("vmonce_idempotency_requests_total{")}
        self.assertGreaterEqual(len(outcomes), 3, outcomes)
        for name in ("vmonce_operations_total", "vmonce_operation_duration_seconds_count",
                     "vmonce_operation_step_duration_seconds_count", "vmonce_operations_in_state",
                     "vmonce_operation_oldest_unfinished_age_seconds", "vmonce_http_request_duration_seconds_count",
                     "vmonce_reconcile_last_success_timestamp_seconds"):
            self.assertTrue(any(sample.split("{")[0] == name for sample in samples), name)
        # No id, key or name is a label.
        for vm in node.vms():
            self.assertNotIn(vm["id"], text)
            self.assertNotIn(vm["name"], text)

    def test_secrets_are_nowhere(self):
        # Report 68: neither answers nor logs nor the ledger's bytes hold user data or a raw key.
        node = self.node(latency_ms=100)
        secret = "pa55word-" + "zyxw" * 8
        encoded = "b4se-" + "vuts" * 8
        key = "raw-key-" + "rqpo" * 8
        bodies = [spec("secret-0", user_data=f"#cloud-config\npassword: {secret}\n"),
                  spec("secret-1", user_data_base64=base64.b64encode(encoded.encode()).decode())]
        firsts = [self.expect(node.create(f"{key}-{n}", body), 202) for n, body in enumerate(bodies)]
        texts = [secret, encoded, base64.b64encode(secret.encode()).decode()[:24],
                 base64.b64encode(encoded.encode()).decode()[:24], key]

        def nowhere(where, data):
            for text in texts:
                self.assertNotIn(text.encode(), data, f"{text[:12]}... in {where}")
        # While it is being made it is kept sealed.
        nowhere("the ledger, early", node.ledger_bytes())
        sealed = "SELECT count(*) FROM operations WHERE sealed_secrets IS NOT NULL"
        self.assertEqual(node.query(sealed), [(2,)])
        # A crash in between loses it as little as it shows it.
        node.kill()
        node.start()
        for first in firsts:
            node.succeeded(first.operation["id"])
        self.assertEqual(node.query(sealed), [(0,)])
        for n, body in enumerate(bodies):
            nowhere("a replay", self.expect(node.create(f"{key}-{n}", body), 200).body)
            wrong = self.expect(node.create(f"{key}-{n}", body | {"cpus": 3}), 422)
            nowhere("a mismatch", wrong.body)
            # It is compared, all the same.
            other = {k: v for k, v in body.items() if not k.startswith("user_data")} | {"user_data": "other"}
            self.expect(node.create(f"{key}-{n}", other), 422)
        for path in ("/v1/vms", "/v1/operations", "/metrics", f"/v1/operations/{firsts[0].operation['id']}/timeline"):
            nowhere(path, node.call("GET", path).body)
        self.assertEqual(node.stop(), 0)
        nowhere("the ledger", node.ledger_bytes())
        nowhere("the log", node.log_text().encode())
        self.assertEqual(os.stat(node.state).st_mode & 0o777, 0o700)
        self.assertEqual(os.stat(node.state + "/server.key").st_mode & 0o777, 0o600)

    def test_the_log_is_one_json_object_a_line(self):
        for line in self.shared.log_text().splitlines():
            entry = json.loads(line)
            self.assertLessEqual({"time", "level", "event"}, set(entry))

    # ---- Whom it does not serve

    def test_foreign_names_origins_and_types(self):
        node = self.shared
        before = node.query("SELECT count(*) FROM operations")
        for host in ("evil.example", "127.0.0.1.evil.example", f"evil.example:{node.port}", "localhost.evil"):
            for method, path in (("GET", "/v1/vms"), ("POST", "/v1/vms"), ("GET", "/metrics"), ("GET", "/healthz")):
                answer = node.call(method, path, spec() if method == "POST" else None, "host", {"Host": host})
                self.expect(answer, 421, "host_not_allowed")
        for host in ("localhost", f"localhost:{node.port}", "127.0.0.1", "[::1]", "LOCALHOST"):
            self.assertEqual(node.call("GET", "/v1/vms", headers={"Host": host}).status, 200, host)
        for media in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "", None):
            self.expect(node.call("POST", "/v1/vms", spec(), "media", {"Content-Type": media}), 415,
                        "unsupported_media_type")
        self.expect(node.call("POST", "/v1/vms", spec(), None,
                              {"Content-Type": "application/json; charset=utf-8"}), 400, "idempotency_key_required")
        vm = self.expect(node.create("guarded", spec("guarded"), wait=10), 201).vm["id"]
        for origin in ("http://evil.example", "null", "https://localhost.evil.example", "file://"):
            for method, path in (("DELETE", f"/v1/vms/{vm}"), ("POST", f"/v1/vms/{vm}/stop"), ("POST", "/v1/reconcile"),
                                 ("POST", f"/v1/vms/{vm}/reboot")):
                answer = node.call(method, path, None, None, {"Origin": origin, "Content-Type": None})
                refused = [(403, "origin_not_allowed"), (415, "unsupported_media_type")]
                self.assertIn((answer.status, answer.code), refused, f"{method} {path} {origin}: {answer}")
        deletion = node.call("DELETE", f"/v1/vms/{vm}", None, None, {"Origin": "http://evil.example"})
        self.expect(deletion, 403, "origin_not_allowed")
        self.assertEqual(node.vm(vm)["state"], "ready")
        self.assertEqual(node.query("SELECT count(*) FROM operations")[0][0], before[0][0] + 1)

    def test_it_listens_on_loopback_only(self):
        found = set()
        for table in ("/proc/net/tcp", "/proc/net/tcp6"):
            for line in pathlib.Path(table).read_text().splitlines()[1:]:
                local, state = line.split()[1], line.split()[3]
                if state == "0A" and int(local.split(":")[1], 16) == self.shared.port:
                    found.add(local.split(":")[0])
        self.assertEqual(found, {"0100007F"})

    def test_what_is_no_http_ends_no_service(self):
        node = self.shared
        begin = node.log_size()
        junk = [b"\0" * 100, b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03",
                b"POST /v1/vms HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n12345",
                b"POST /v1/vms HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
                b"0\r\n\r\n",
                b"GET / HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n",
                b"GET /" + b"a" * 20000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
                b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 20000 + b"\r\n\r\n",
                b"GET /v1/vms?name=%00%ff%0a HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
                b"GET /v1/vms/..%2f..%2fetc%2fpasswd HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
                b"POST /v1/vms HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                b"Idempotency-Key: big\r\nContent-Length: 1073741824\r\n\r\n"]

        def send(data):
            with socket.create_connection(("127.0.0.1", node.port), 15) as connection:
                connection.sendall(data)
                connection.shutdown(socket.SHUT_WR)
                answer = b""
                try:
                    while part := connection.recv(65536):
                        answer += part
                except OSError:
                    pass
                return answer.split(b"\r\n")[0]
        for data, line in zip(junk, in_parallel(send, junk), strict=True):
            self.assertRegex(line, rb"^$|^HTTP/1\.[01] (4\d\d|50[15]) ", data[:60])
        self.assertEqual(node.get("/healthz")["status"], "ok")
        for line in node.log_text(begin).splitlines():
            json.loads(line)
        self.assertEqual(node.query("SELECT count(*) FROM operations WHERE key_prefix LIKE 'big%'"), [(0,)])

    def test_a_flood_of_bodies_is_bounded(self):
        # Report 91: refused before the claim, with bounded memory.
        node = self.shared

        def resident():
            status = pathlib.Path(f"/proc/{node.process.pid}/status").read_text()
            return int(status.split("VmRSS:")[1].split()[0])
        before = resident()
        with socket.create_connection(("127.0.0.1", node.port), 15) as connection:
            connection.sendall(b"POST /v1/vms HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                               b"Idempotency-Key: flood\r\nTransfer-Encoding: chunked\r\n\r\n")
            try:
                for _ in range(2000):  # 128 MiB, if it is let.
                    connection.sendall(b"10000\r\n" + b" " * 65536 + b"\r\n")
            except OSError:
                pass
        self.assertLess(resident() - before, 32 << 10, "KiB more")
        self.assertEqual(node.get("/v1/operations?idempotency_key=flood")["items"], [])
        self.expect(node.create("flood", spec(), wait=10), 201)


@needs_guest
class Demonstration(E2eTest):
    def test_the_demonstration_shows_what_it_says(self):
        home = tempfile.mkdtemp(prefix="vm", dir="/tmp")
        self.addCleanup(shutil.rmtree, home, ignore_errors=True)
        shutil.copytree(ROOT / "packaging", home + "/packaging")
        os.makedirs(home + "/build")
        os.makedirs(home + "/.run")
        os.symlink(os.path.abspath(BIN), home + "/build/vmonce")
        shutil.copytree(GUEST, home + "/.run/guest")
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.addCleanup(subprocess.run, [home + "/packaging/demo", "--clean"], capture_output=True, timeout=60)
        done = subprocess.run([home + "/packaging/demo", "--once"], env=os.environ | {"VMONCE_PORT": str(port)},
                              capture_output=True, text=True, timeout=200, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 0, done.stderr)
        for words in ("HTTP 202", "Idempotent-Replayed: true", "HTTP 422", "QEMU processes with this id: 1",
                      "vmonce-guest: user-data: hello from vmonce", "vmonce-guest: ready"):
            self.assertIn(words, done.stderr)
        wait_for("the demonstration's machine is gone", lambda: not self.machines(home), 20)

    def machines(self, home):
        found = []
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                line = path.read_bytes()
            except OSError:
                continue
            if line.startswith(b"/usr/bin/qemu-system") and home.encode() in line:
                found.append(path)
        return found


if __name__ == "__main__":
    unittest.main()
