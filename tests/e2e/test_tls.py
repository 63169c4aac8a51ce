"""The service over TLS, and the command line as its client: certificates that fit and that do not, SIGHUP, ports that
are spoken to in the wrong way."""
import http.client
import os
import signal
import ssl
import subprocess

from node import BIN, E2eTest, Node, spec, wait_for


class Authority:
    """Certificates by the openssl program, in a directory of the test's."""

    def __init__(self, directory, name):
        self.base = f"{directory}/{name}"
        self.file = f"{self.base}.pem"
        self.openssl("req", "-x509", "-subj", f"/CN={name}", "-days", "30", "-keyout", f"{self.base}.key",
                     "-out", self.file)

    def openssl(self, *arguments):
        newkey = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
        command = ["openssl", arguments[0], *(newkey if arguments[0] == "req" else ()), *arguments[1:]]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
        assert done.returncode == 0, f"{command}: {done.stderr}"

    def issue(self, path, names="DNS:localhost,IP:127.0.0.1", common_name="server"):
        """path.pem and path.key."""
        self.openssl("req", "-subj", f"/CN={common_name}", "-addext", f"subjectAltName={names}",
                     "-keyout", path + ".key.new", "-out", path + ".csr")
        self.openssl("x509", "-req", "-in", path + ".csr", "-CA", self.file, "-CAkey", self.base + ".key",
                     "-CAcreateserial", "-days", "30", "-copy_extensions", "copy", "-out", path + ".pem.new")
        os.chmod(path + ".key.new", 0o600)
        os.replace(path + ".key.new", path + ".key")
        os.replace(path + ".pem.new", path + ".pem")


class TlsNode(Node):
    """Speaks to itself over TLS; `trusts` is a file of authorities, `shows` a client's certificate."""
    trusts = ""
    shows = ""

    def connect(self, timeout):
        context = ssl.create_default_context(cafile=self.trusts)
        if self.shows:
            context.load_cert_chain(self.shows + ".pem", self.shows + ".key")
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=timeout, context=context)


class Tls(E2eTest):
    def setUp(self):
        self.node = TlsNode()
        self.addCleanup(self.node.close)
        self.dir = self.node.dir
        self.authority = Authority(self.dir, "authority")
        self.authority.issue(self.dir + "/server")
        self.node.sections["server"] = {"listen": "127.0.0.1:0", "tls_cert": self.dir + "/server.pem",
                                        "tls_key": self.dir + "/server.key"}
        self.node.trusts = self.authority.file

    def cli(self, *arguments, scheme="https", host="localhost", **environment):
        """The command line, in a world of its own. A read is given up after ten seconds."""
        clean = {"PATH": os.environ["PATH"], "HOME": self.dir, "XDG_STATE_HOME": self.dir + "/state"}
        done = subprocess.run([BIN, "--url", f"{scheme}://{host}:{self.node.port}", *arguments], timeout=60,
                              capture_output=True, text=True, stdin=subprocess.DEVNULL, env=clean | environment)
        return done.returncode, done.stdout, done.stderr

    def test_a_machine_is_created_over_tls(self):
        self.node.start()
        self.assertIn('"url":"https://127.0.0.1:', self.node.log_text())
        created = self.expect(self.node.create("tls", spec("tls"), wait=10), 201)
        self.assertTrue(self.expect(self.node.create("tls", spec("tls")), 200).replayed)
        code, out, said = self.cli("get", "tls", "-o", "name", VMONCE_CACERT=self.authority.file)
        self.assertEqual((code, out.strip()), (0, created.vm["name"]), said)
        code, out, said = self.cli("--cacert", self.authority.file, "list", "-o", "name", host="127.0.0.1")
        self.assertEqual((code, out.strip()), (0, "tls"), said)

    def test_a_server_that_is_not_believed_is_told_with_its_repair(self):
        self.authority.issue(self.dir + "/server", names="DNS:other.example")
        self.node.trusts = ""
        self.node.spawn()
        self.node.port = wait_for("the service says its address", self.node._said_port, 60)
        foreign = Authority(self.dir, "foreign")
        for arguments, word in ((("--cacert", foreign.file), "certificate"), ((), "certificate"),
                                (("--cacert", self.authority.file), "localhost")):
            code, _, said = self.cli(*arguments, "list")
            self.assertEqual(code, 3, said)
            self.assertIn("not believed", said)
            self.assertIn(word, said)
            self.assertIn("repair: ", said)
            self.assertIn("--cacert", said)
            self.assertNotIn("trying again", said)
        code, _, said = self.cli("--cacert", self.dir + "/absent.pem", "list")
        self.assertEqual(code, 2, said)
        self.assertIn("absent.pem", said)

    def test_clients_prove_who_they_are_where_they_must(self):
        clients = Authority(self.dir, "clients")
        clients.issue(self.dir + "/alice", common_name="alice")
        self.authority.issue(self.dir + "/mallory", common_name="mallory")
        self.node.sections["server"]["client_ca"] = clients.file
        self.node.shows = self.dir + "/alice"
        self.node.start()
        trust = ("--cacert", self.authority.file)

        def shown(name):
            return (*trust, "--client-cert", f"{self.dir}/{name}.pem", "--client-key", f"{self.dir}/{name}.key")
        self.assertEqual(self.cli(*shown("alice"), "list")[0], 0)
        for arguments in (trust, shown("mallory")):
            code, _, said = self.cli(*arguments, "list")
            self.assertEqual(code, 3, said)
            self.assertIn("does not accept the client's certificate", said)
            self.assertIn("--client-cert", said)
            self.assertNotIn("trying again", said)
        # A change that was refused so is not on its way: nothing is waited for.
        code, _, said = self.cli(*trust, "create", "--image", "tiny", "--name", "never")
        self.assertEqual(code, 3, said)
        self.assertEqual(self.node.vms(), [])
        code, _, said = self.cli(*trust, "--client-cert", self.dir + "/alice.pem", "list")
        self.assertEqual(code, 2, said)
        self.assertIn("--client-key", said)

    def test_a_new_certificate_is_taken_and_a_bad_one_is_not(self):
        self.node.start()
        context = ssl.create_default_context(cafile=self.authority.file)

        def shown():
            connection = self.node.connect(10)
            connection.connect()
            try:
                return dict(pair[0] for pair in connection.sock.getpeercert()["subject"])["commonName"]
            finally:
                connection.close()
        kept = http.client.HTTPSConnection("127.0.0.1", self.node.port, timeout=20, context=context)
        self.addCleanup(kept.close)

        def ask():
            kept.request("GET", "/healthz")
            answer = kept.getresponse()
            answer.read()
            return answer.status
        self.assertEqual(ask(), 200)
        self.assertEqual(shown(), "server")
        self.authority.issue(self.dir + "/server", common_name="renewed")
        self.node.process.send_signal(signal.SIGHUP)
        wait_for("the new certificate is shown", lambda: shown() == "renewed")
        with open(self.dir + "/server.pem", "w") as file:
            file.write("-----BEGIN CERTIFICATE-----\nhalf of one")
        self.node.process.send_signal(signal.SIGHUP)
        wait_for("the error is logged", lambda: '"tls_not_reloaded"' in self.node.log_text())
        self.assertEqual(shown(), "renewed")
        self.assertIn("PEM", self.node.log_text())
        os.chmod(self.dir + "/server.key", 0o644)
        self.authority.issue(self.dir + "/other")
        os.replace(self.dir + "/other.pem", self.dir + "/server.pem")
        self.node.process.send_signal(signal.SIGHUP)
        wait_for("the key's mode is logged", lambda: "chmod" in self.node.log_text())
        # Who was there before all this is still served, on the same connection.
        self.assertEqual(ask(), 200)
        self.assertEqual(self.node.stop(), 0)

    def test_a_bad_certificate_at_the_start_is_told(self):
        self.authority.issue(self.dir + "/other")
        for change, words in ((lambda: os.replace(self.dir + "/other.key", self.dir + "/server.key"),
                               "does not belong to the first certificate"),
                              (lambda: os.chmod(self.dir + "/server.key", 0o604), "chmod"),
                              (lambda: os.remove(self.dir + "/server.pem"), "server.pem")):
            change()
            self.node.write_config()
            done = subprocess.run([BIN, "serve", "--config", self.node.config_path], capture_output=True, text=True,
                                  timeout=30, stdin=subprocess.DEVNULL)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(words, done.stderr)
            self.assertFalse(os.path.exists(self.node.state), "something was made before the certificate was read")

    def test_the_wrong_way_to_speak_is_told(self):
        self.node.start()
        code, _, said = self.cli("list", scheme="http")
        self.assertEqual(code, 2, said)
        self.assertIn("code: tls_required", said)
        self.assertIn("https://", said)
        plain = Node()
        self.addCleanup(plain.close)
        plain.start()
        self.node.port, port = plain.port, self.node.port
        code, _, said = self.cli("--cacert", self.authority.file, "--timeout", "1s", "list")
        self.assertEqual(code, 3, said)
        self.assertIn("TLS could not begin", said)
        self.node.port = port


class Exposed(E2eTest):
    """Where other machines reach it: TLS or a proxy, and tokens, always."""

    def setUp(self):
        self.node = TlsNode()
        self.addCleanup(self.node.close)
        self.dir = self.node.dir
        authority = Authority(self.dir, "authority")
        authority.issue(self.dir + "/server", names="DNS:localhost,DNS:vm.example,IP:127.0.0.1")
        self.node.trusts = authority.file
        self.tls = {"tls_cert": self.dir + "/server.pem", "tls_key": self.dir + "/server.key"}

    def serve_refused(self, *arguments, **server):
        self.node.sections["server"] = server
        self.node.write_config()
        done = subprocess.run([BIN, "serve", "--config", self.node.config_path, *arguments], capture_output=True,
                              text=True, timeout=30, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertFalse(os.path.exists(self.node.state))
        return done.stderr

    def first_token(self):
        """Made beside the service, before it is started."""
        self.node.write_config()
        done = subprocess.run([BIN, "token", "create", "--offline", "--config", self.node.config_path, "--project", "ops",
                               "--role", "admin"], capture_output=True, text=True, timeout=30)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip()

    def start(self):
        self.node.spawn()
        self.node.port = wait_for("the service says its address", self.node._said_port, 60)
        wait_for("readyz", lambda: self.node.call("GET", "/readyz").status == 200, 60)

    def check_callers(self, token):
        node = self.node
        sent = {"Authorization": f"Bearer {token}"}
        for method, path, body in (("GET", "/v1/vms", None), ("POST", "/v1/vms", spec()), ("GET", "/metrics", None),
                                   ("OPTIONS", "/v1/vms", None)):
            answer = node.call(method, path, body, "exposed" if body else None)
            self.assertEqual(answer.status, 204 if method == "OPTIONS" else 401, f"{method} {path}: {answer}")
            foreign = {"Host": "evil.example"} | sent
            self.expect(node.call(method, path, body, "exposed" if body else None, foreign), 421, "host_not_allowed")
        self.expect(node.call("POST", "/v1/vms", spec("exposed"), "exposed", sent | {"Prefer": "wait=10"}), 201)
        answer = node.call("POST", "/v1/vms", spec("exposed"), "exposed", sent | {"Origin": "https://evil.example"})
        self.expect(answer, 403, "origin_not_allowed")

    def test_it_does_not_listen_there_without_protection(self):
        for listen in ("0.0.0.0:0", "[::]:0", "192.0.2.1:80"):
            said = self.serve_refused(listen=listen)
            for words in ("reached from other machines", "tls_cert and tls_key", "--behind-tls-proxy", "ssh -L"):
                self.assertIn(words, said)

    def test_tls_and_tokens_open_it_to_others(self):
        self.node.sections["server"] = {"listen": "0.0.0.0:0"} | self.tls
        token = self.first_token()
        self.start()
        self.check_callers(token)
        sent = {"Authorization": f"Bearer {token}"}
        # By the name of its certificate, and by its address; not by a name that it has not.
        for host, status in (("vm.example", 200), (f"127.0.0.1:{self.node.port}", 200), ("other.example", 421)):
            self.assertEqual(self.node.call("GET", "/v1/vms", headers=sent | {"Host": host}).status, status, host)
        environment = {"PATH": os.environ["PATH"], "HOME": self.dir, "VMONCE_TOKEN": token,
                       "VMONCE_URL": f"https://localhost:{self.node.port}", "VMONCE_CACERT": self.node.trusts}
        done = subprocess.run([BIN, "list", "-o", "name"], capture_output=True, text=True, timeout=30, env=environment)
        self.assertEqual((done.returncode, done.stdout.strip()), (0, "exposed"), done.stderr)
        self.assertNotIn(token, self.node.log_text())

    def test_a_proxy_speaks_tls_for_it(self):
        self.node = Node()
        self.addCleanup(self.node.close)
        self.node.sections["server"] = {"listen": "127.0.0.1:0", "behind_tls_proxy": True,
                                        "allowed_hosts": ["vm.example"]}
        token = self.first_token()
        self.start()
        # Although it listens on loopback only: everybody comes from there.
        self.check_callers(token)
        sent = {"Authorization": f"Bearer {token}", "Host": "vm.example", "X-Forwarded-For": "192.0.2.9"}
        self.expect(self.node.call("GET", "/v1/vms", headers=sent), 200)


if __name__ == "__main__":
    import unittest
    unittest.main()
