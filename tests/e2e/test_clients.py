"""Clients that hang up, answers that get lost, and our own command line. On a simulated host."""
import glob
import json
import os
import pty
import random
import re
import socket
import subprocess
import time
import unittest

from lossy import LosingProxy, hang_up
from node import BIN, E2eTest, in_parallel, spec, wait_for


class HangingUp(E2eTest):
    def test_a_reset_at_any_moment_changes_nothing_that_was_accepted(self):
        # Report 35: the ledger's work is detached from the connection.
        node = self.node(latency_ms=30)

        for key, body, is_whole in [hang_up(node, number) for number in range(20)]:
            if is_whole:
                # Accepted, though nobody heard it: found by the key without posting, and then replayed.
                found = wait_for(f"{key} was accepted", lambda: node.get(
                    f"/v1/operations?idempotency_key={key}")["items"], 10)
                again = node.create(key, body)
                self.assertIn(again.status, (200, 202), again)
                self.assertTrue(again.replayed)
                self.assertEqual(again.operation["id"], found[0]["id"])
            again = node.create(key, body, wait=30)
            self.assertIn(again.status, (200, 201), again)
        self.check_machines(node, [vm["id"] for vm in node.vms()])
        self.assertEqual(len(node.vms()), 20)

    def test_curl_gives_up_and_finds_its_machine_by_the_key(self):
        # Report 25: no client of ours, only a header.
        node = self.node(latency_ms=200)

        def curl(*arguments, code=0):
            done = subprocess.run(["curl", "-s", *arguments], capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, code, done)
            return done.stdout
        post = [node.url + "/v1/vms", "-H", "Idempotency-Key: by-curl", "-H", "Content-Type: application/json",
                "-H", "Prefer: wait=30", "-d", json.dumps(spec("curled"))]
        curl("--max-time", "0.3", *post, code=28)
        found = json.loads(curl(node.url + "/v1/vms?idempotency_key=by-curl"))["items"]
        self.assertEqual([vm["name"] for vm in found], ["curled"])
        again = json.loads(curl(*post))
        self.assertEqual((again["result"], again["vm"]["id"]), ("existing", found[0]["id"]))
        self.check_machines(node, [found[0]["id"]])

    def test_two_requests_on_one_connection_and_a_slow_one(self):
        node = self.node()
        body = json.dumps(spec("piped")).encode()
        request = (b"POST /v1/vms HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                   b"Idempotency-Key: piped\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        with socket.create_connection(("127.0.0.1", node.port), 20) as connection:
            connection.sendall(request[:40])
            time.sleep(0.1)
            connection.sendall(request[40:] + request + b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
                               b"Connection: close\r\n\r\n")
            answers = connection.makefile("rb").read()
        self.assertEqual(len(re.findall(rb"HTTP/1\.1 20[02] ", answers)), 3, answers)
        self.assertEqual(len(set(re.findall(rb"(?i)location: (\S+)", answers))), 1, answers)


class CommandLine(E2eTest):
    def setUp(self):
        self.served = self.node(latency_ms=60)
        self.environment = {"PATH": os.environ["PATH"], "VMONCE_URL": self.served.url,
                            "XDG_STATE_HOME": self.served.dir + "/x"}
        self.intents = self.served.dir + "/x/vmonce/intents"

    def run_cli(self, *arguments, code=0, url=None):
        environment = self.environment if url is None else self.environment | {"VMONCE_URL": url}
        done = subprocess.run([BIN, *arguments], capture_output=True, text=True, env=environment, timeout=90,
                              stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, code, f"{arguments}\n{done.stdout}\n{done.stderr}")
        return done

    def test_a_create_whose_answer_is_lost_makes_one_machine(self):
        # Report 1: the command makes and keeps the key, and sends it again.
        for lose in (1, 3):
            proxy = LosingProxy(self.served, lose)
            self.addCleanup(proxy.close)
            done = self.run_cli("create", "--image", "tiny", "--name", f"lost-{lose}", "--json", url=proxy.url)
            answer = json.loads(done.stdout)
            self.assertEqual(answer["vm"]["state"], "ready")
            self.assertEqual(len(set(proxy.posts)), 1)
            self.assertEqual(len(proxy.posts), lose + 1)
        self.assertEqual(sorted(vm["name"] for vm in self.served.vms()), ["lost-1", "lost-3"])
        self.check_machines(self.served, [vm["id"] for vm in self.served.vms()])
        self.assertEqual(os.listdir(self.intents), [])

    def test_create_shows_its_steps_and_what_it_made(self):
        done = self.run_cli("create", "--image", "tiny", "--name", "shown", "--memory", "128", "--label", "a=1")
        for step in ("place", "disk", "seed", "define", "start", "ready"):
            self.assertRegex(done.stderr, rf"\[ *\d+\.\d s\] {step}\n")
        self.assertIn("shown", done.stdout)
        [vm] = self.served.vms()
        self.assertEqual((vm["memory_mib"], vm["labels"]), (128, {"a": "1"}))
        self.assertIn(vm["id"], done.stdout)
        self.assertRegex(done.stderr, r"with --key (\S+) returns the same VM")
        key = re.search(r"with --key (\S+) returns", done.stderr).group(1)
        again = self.run_cli("create", "--image", "tiny", "--name", "shown", "--memory", "128", "--label", "a=1",
                             "--key", key, "--json")
        self.assertEqual(json.loads(again.stdout)["vm"]["id"], vm["id"])
        self.assertEqual(json.loads(again.stdout)["result"], "existing")

    def test_create_is_one_live_line_on_a_terminal(self):
        self.served.host["latency_ms"] = 500
        self.served.restart("stop")
        parent, child = pty.openpty()
        running = subprocess.Popen([BIN, "create", "--image", "tiny", "--name", "live"], stdout=child, stderr=child,
                                   stdin=child, env=self.environment | {"TERM": "xterm"})
        os.close(child)
        seen = b""
        try:
            while part := os.read(parent, 65536):
                seen += part
        except OSError:
            pass  # The end of a terminal.
        os.close(parent)
        self.assertEqual(running.wait(30), 0, seen)
        self.assertIn(b"\r", seen.replace(b"\r\n", b"\n"), "nothing was drawn over")
        self.assertRegex(seen, rb"define \.\.\. \d")
        self.assertIn(b"is ready after", seen)

    def test_exit_codes(self):
        self.run_cli("create", "--image", "tiny", "--name", "codes", "--key", "codes-key")
        wrong = self.run_cli("create", "--image", "tiny", "--name", "codes", "--cpus", "2", "--key", "codes-key",
                             code=5)
        self.assertIn("/cpus", wrong.stderr)
        self.assertEqual(wrong.stdout, "")
        self.assertIn("idempotency_key_reused", wrong.stderr)
        self.run_cli("create", "--image", "tiny", "--name", "codes", code=1)  # The name is taken.
        self.run_cli("get", "absent", code=6)
        self.run_cli("explain", "absent", code=6)
        self.run_cli("create", "--image", "absent", code=6)
        self.run_cli("create", "--no-such-flag", code=2)
        self.run_cli("create", "--image", "tiny", "--cpus", "0", code=2)
        self.run_cli("list", "--timeout", "1s", code=3, url="http://127.0.0.1:1")
        self.run_cli("create", "--image", "tiny", "--timeout", "1s", code=3, url="http://127.0.0.1:1")
        self.served.sections["quota"] = {"vms": 1}
        self.served.restart("stop")
        self.run_cli("create", "--image", "tiny", "--name", "denied", code=7)
        self.assertEqual([vm["name"] for vm in self.served.vms()], ["codes"])

    def test_a_timeout_ends_the_waiting_only(self):
        self.served.host["latency_ms"] = 600
        self.served.restart("stop")
        ended = self.run_cli("create", "--image", "tiny", "--name", "slow", "--timeout", "1500ms", code=4)
        [operation] = self.served.get("/v1/operations")["items"]
        self.assertIn(operation["id"], ended.stderr)
        self.run_cli("wait", operation["id"])
        self.assertEqual([vm["state"] for vm in self.served.vms()], ["ready"])

    def test_a_timeout_below_a_second_is_not_an_unreachable_server(self):
        self.served.host["latency_ms"] = 400
        self.served.restart("stop")
        self.run_cli("create", "--image", "tiny", "--name", "brief", "--timeout", "500ms", code=4)

    def test_kill_and_resume(self):
        # The key is on disk before anything is sent, so whatever kills the command, --resume ends with one machine.
        self.served.host["latency_ms"] = 200
        self.served.restart("stop")
        chance = random.Random(5)
        for round in range(6):
            name = f"killed-{round}"
            running = subprocess.Popen([BIN, "create", "--image", "tiny", "--name", name], env=self.environment,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            wait_for("the intent is kept", lambda: glob.glob(self.intents + "/*.json"), 10, 0.001)
            time.sleep(chance.choice((0, 0.005, 0.02, 0.3)))
            running.kill()
            running.wait()
            done = self.run_cli("create", "--resume", "--json")
            vm = json.loads(done.stdout)["vm"]
            self.assertEqual((vm["name"], vm["state"]), (name, "ready"))
            self.assertEqual(glob.glob(self.intents + "/*.json"), [])
        self.run_cli("create", "--resume", code=6)
        self.assertEqual(len(self.served.vms()), 6)
        self.check_machines(self.served, [vm["id"] for vm in self.served.vms()])

    def test_the_service_is_killed_under_a_waiting_create(self):
        self.served.host["latency_ms"] = 400
        self.served.restart("stop")
        running = subprocess.Popen([BIN, "create", "--image", "tiny", "--name", "waits", "--json"], text=True,
                                   env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        wait_for("it was accepted", lambda: self.served.vms(), 10)
        time.sleep(0.5)
        self.served.kill()
        time.sleep(0.5)
        self.served.start()
        stdout, stderr = running.communicate(timeout=60)
        self.assertEqual(running.returncode, 0, stderr)
        self.assertEqual([vm["id"] for vm in self.served.vms()], [json.loads(stdout)["vm"]["id"]])

    def test_what_there_is(self):
        self.run_cli("create", "--image", "tiny", "--name", "one", "--key", "key-of-one")
        self.run_cli("create", "--image", "tiny", "--name", "many", "--count", "2")
        listed = json.loads(self.run_cli("list", "-o", "json").stdout)
        self.assertEqual(sorted(vm["name"] for vm in listed["items"]), ["many-0", "many-1", "one"])
        one = json.loads(self.run_cli("get", "one", "-o", "json").stdout)
        self.assertEqual(one, self.served.vm(one["id"]))
        self.assertEqual(self.run_cli("list", "-o", "name", "--name", "one").stdout.split(), ["one"])
        explained = self.run_cli("explain", "key-of-one").stdout
        self.assertIn(one["id"], explained)
        self.assertIn("step_done", explained)
        self.assertIn("started", self.run_cli("console", "one").stdout)
        self.run_cli("delete", "one", code=2)
        self.assertEqual(self.served.vm(one["id"])["state"], "ready")
        self.run_cli("delete", "--yes", "one", "many-0")
        self.assertEqual([vm["name"] for vm in self.served.vms()], ["many-1"])
        explained = self.run_cli("explain", "key-of-one").stdout
        self.assertIn("deleted", explained)
        self.run_cli("stop", "many-1")
        self.assertEqual(self.served.vms()[0]["observed"], "stopped")
        self.run_cli("start", "many-1")
        for command in (("images",), ("hosts",), ("reconcile",), ("operations",), ("version",)):
            self.assertTrue(self.run_cli(*command).stdout.strip(), command)

    def test_a_name_is_never_guessed_at(self):
        # Report 125: a live name is one machine; of deleted ones only their ids tell.
        made = []
        for _ in range(2):
            made.append(json.loads(self.run_cli("create", "--image", "tiny", "--name", "twice", "--json").stdout)["vm"])
            self.run_cli("delete", "--yes", "twice")
        self.assertNotEqual(made[0]["id"], made[1]["id"])
        self.run_cli("get", "twice", code=6)
        self.run_cli("start", "twice", code=6)
        for vm in made:
            self.assertEqual(json.loads(self.run_cli("get", vm["id"], "-o", "json").stdout)["state"], "deleted")
        both = json.loads(self.run_cli("list", "--state", "deleted", "--name", "twice", "-o", "json").stdout)["items"]
        self.assertEqual({vm["id"] for vm in both}, {vm["id"] for vm in made})

    def test_a_list_of_all_has_the_deleted_too(self):
        self.run_cli("create", "--image", "tiny", "--name", "gone")
        self.run_cli("create", "--image", "tiny", "--name", "here")
        self.run_cli("delete", "--yes", "gone")
        listed = json.loads(self.run_cli("list", "-o", "json").stdout)["items"]
        self.assertEqual([vm["name"] for vm in listed], ["here"])
        listed = json.loads(self.run_cli("list", "--all", "-o", "json").stdout)["items"]
        self.assertEqual(sorted(vm["name"] for vm in listed), ["gone", "here"])

    def test_many_commands_at_once(self):
        # Two identical commands at one time are two intents.
        def create(number):
            return self.run_cli("create", "--image", "tiny", "--json")
        made = {json.loads(done.stdout)["vm"]["id"] for done in in_parallel(create, range(6))}
        self.assertEqual(len(made), 6)
        self.assertEqual(len(self.served.vms()), 6)


if __name__ == "__main__":
    unittest.main()
