"""How the service refuses to start: mistakes of the configuration, a ledger that it cannot serve, a directory that
another process serves."""
import concurrent.futures
import os
import shutil
import signal
import sqlite3
import subprocess
import unittest

from node import BIN, E2eTest, Node, spec, wait_for


class Refusals(E2eTest):
    def serve(self, *arguments, config=None):
        """The exit code and what was said, of a service that is expected to end by itself."""
        if config is not None:
            path = os.path.join(self.directory, "vmonce.toml")
            with open(path, "w") as file:
                file.write(config)
            arguments = ("--config", path, *arguments)
        done = subprocess.run([BIN, "serve", *arguments], capture_output=True, text=True, timeout=30,
                              stdin=subprocess.DEVNULL)
        self.assertNotIn('"event":"serving"', done.stderr)
        self.assertEqual(done.stdout, "")
        return done.returncode, done.stderr

    def setUp(self):
        self.spare = Node()
        self.addCleanup(self.spare.close)
        self.directory = self.spare.dir

    def test_every_mistake_is_told_with_its_place_and_its_repair(self):
        code, said = self.serve(config="""[server]
listen = "0.0.0.0:8080"
[state]
dirr = "x"
[limits]
workers = "many"
lease_ttl = "1ms"
stop_grace = "20"
[[host]]
id = "a"
uri = "simulated:"
memory_mb = 5
[[image]]
name = "tiny"
kind = "kernel"
kernel = "absent-file"
""")
        self.assertEqual(code, 2, said)
        for line, words in [(2, "reach"), (4, 'did you mean "dir"'), (6, "workers"), (7, "500ms"), (8, "20"),
                            (12, 'did you mean "memory_mib"'), (16, "absent-file")]:
            self.assertRegex(said, rf"vmonce\.toml:{line}:\d+: .*{words}")
        self.assertEqual(len(said.splitlines()), 7, said)

    def test_a_file_that_is_no_toml(self):
        code, said = self.serve(config='[server]\nlisten = \n')
        self.assertEqual(code, 2)
        self.assertRegex(said, r"vmonce\.toml:2:\d+: ")
        code, said = self.serve("--config", self.directory + "/absent.toml")
        self.assertEqual(code, 2)
        self.assertIn("absent.toml", said)

    def test_mistakes_on_the_command_line_and_in_the_environment(self):
        code, said = self.serve("--set", "limits.workers=0", config="")
        self.assertEqual(code, 2)
        self.assertIn("limits.workers", said)
        code, said = self.serve("--set", "nonsense", config="")
        self.assertEqual(code, 2)

    def test_a_ledger_of_another_kind_is_refused_and_not_replaced(self):
        # Report 61.
        code, said = self.serve(config=f'[ledger]\nkind = "memory"\n[state]\ndir = "{self.directory}/s"\n')
        self.assertEqual(code, 2)
        self.assertRegex(said, r"vmonce\.toml:2:\d+: .*sqlite")
        self.assertFalse(os.path.exists(self.directory + "/s"))

    def refused(self, *words):
        """The spare node does not start, for a reason that is told in these words."""
        self.spare.write_config()
        code, said = self.serve("--config", self.spare.config_path)
        self.assertEqual(code, 1, said)
        for word in words:
            self.assertIn(word, said)

    def test_a_state_directory_that_is_none(self):
        # Report 61.
        with open(self.spare.state, "w") as file:
            file.write("a file")
        self.refused(self.spare.state)
        os.remove(self.spare.state)
        os.makedirs(self.spare.ledger_path)
        self.refused("ledger")

    def test_a_ledger_that_is_no_ledger(self):
        os.mkdir(self.spare.state, 0o700)
        for junk in (b"not a database at all, but a text" * 200, b"SQLite format 3\0" + b"\xff" * 4096):
            with open(self.spare.ledger_path, "wb") as file:
                file.write(junk)
            self.refused("ledger")
            with open(self.spare.ledger_path, "rb") as file:
                self.assertEqual(file.read(), junk, "a file that is not ours was changed")

    def test_another_program_s_database(self):
        os.mkdir(self.spare.state, 0o700)
        with sqlite3.connect(self.spare.ledger_path) as connection:
            connection.execute("CREATE TABLE customers (name TEXT)")
        connection.close()
        self.refused("ledger")

    def test_a_ledger_of_a_newer_version(self):
        self.spare.start()
        self.expect(self.spare.create("newer", spec(), wait=10), 201)
        self.assertEqual(self.spare.stop(), 0)
        connection = sqlite3.connect(self.spare.ledger_path)
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        self.assertGreater(version, 0)
        connection.execute(f"PRAGMA user_version = {version + 1}")
        connection.close()
        self.refused("newer")
        connection = sqlite3.connect(self.spare.ledger_path)
        connection.execute(f"PRAGMA user_version = {version}")
        connection.close()
        self.spare.start()
        self.assertEqual(self.expect(self.spare.create("newer", spec()), 200).vm["state"], "ready")

    def test_a_directory_that_is_served_already(self):
        self.spare.start()
        self.spare.write_config()
        with open(self.spare.config_path) as file:
            text = file.read()
        # Another port and another host do not help.
        code, said = self.serve(config=text.replace(f":{self.spare.port}", ":0").replace(self.spare.root, ""))
        self.assertEqual(code, 1, said)
        self.assertIn(f"process {self.spare.process.pid}", said)
        self.assertEqual(self.spare.call("GET", "/readyz").status, 200)

    def test_a_port_that_is_taken(self):
        self.spare.start()
        other = Node()
        self.addCleanup(other.close)
        other.port = self.spare.port
        other.write_config()
        code, said = self.serve("--config", other.config_path)
        self.assertEqual(code, 1)
        self.assertIn(f"{self.spare.port}", said)
        self.assertIn("listen", said)

    def test_a_host_that_is_another_ledger_s(self):
        # Section 8: the host's marker is looked at before anything there is believed or changed.
        self.spare.start()
        vm = self.expect(self.spare.create("mine", spec(), wait=10), 201).vm["id"]
        self.spare.kill()
        before = self.spare.domains()
        shutil.move(self.spare.state, self.spare.state + "-old")
        self.spare.spawn()
        self.spare.port = self.wait_port()
        answer = self.spare.call("GET", "/readyz")
        self.assertEqual(answer.status, 503, answer)
        self.assertEqual(self.spare.create("other", spec()).status, 503)
        self.assertEqual(self.spare.domains(), before)
        self.assertIn(vm, before)

    def wait_port(self):
        return wait_for("the service says its address", self.spare._said_port, 30)


class GracefulEnd(E2eTest):
    def test_both_signals_end_it_in_order(self):
        node = self.node(latency_ms=100)
        for end in (signal.SIGTERM, signal.SIGINT):
            first = self.expect(node.create(str(end), spec()), 202)
            node.process.send_signal(end)
            self.assertEqual(node.process.wait(20), 0)
            node.process = None
            self.assertIn('"event":"stopped","is_clean":true', node.log_text())
            node.start()
            node.succeeded(first.operation["id"])
        self.check_machines(node, [vm["id"] for vm in node.vms()])

    def test_an_answer_that_waits_is_given_before_the_end(self):
        node = self.node(latency_ms=1000, limits={"lease_ttl": "5s"})
        with concurrent.futures.ThreadPoolExecutor() as pool:
            waiting = pool.submit(node.create, "waits", spec(), 60)
            wait_for("it is accepted", node.vms, 10)
            self.assertEqual(node.stop(), 0)
            answer = waiting.result(10)
        self.assertEqual(answer.status, 202, answer)
        node.start()
        node.succeeded(answer.operation["id"])


if __name__ == "__main__":
    unittest.main()
