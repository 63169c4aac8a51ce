"""A newcomer at a first terminal: doctor, create, wait, completion and man pages of the real program."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

from node import BIN, E2eTest, Node


class FirstTries(E2eTest):
    def setUp(self):
        self.home = tempfile.mkdtemp(prefix="vmonce-home-")
        self.addCleanup(shutil.rmtree, self.home, ignore_errors=True)
        self.url = "http://127.0.0.1:1"

    def node(self):
        node = Node()
        self.addCleanup(node.close)
        node.start()
        self.url = node.url
        return node

    def run_cli(self, *arguments, code=0, **environment):
        """stdout and stderr of one command, which ends with the code."""
        done = subprocess.run([BIN, *arguments], text=True, capture_output=True, timeout=60, stdin=subprocess.DEVNULL,
                              env={"HOME": self.home, "VMONCE_URL": self.url, "PATH": os.environ["PATH"]} | environment)
        self.assertEqual(done.returncode, code, f"{arguments}: {done.stdout}{done.stderr}")
        return done.stdout, done.stderr

    def doctor(self, node, *arguments, code):
        out, _ = self.run_cli("doctor", "--config", node.config_path, "-o", "json", *arguments, code=code)
        return {item["name"]: item for item in json.loads(out)["items"]}

    def test_doctor_works_without_a_service_and_with_one_and_changes_nothing(self):
        node = Node()
        self.addCleanup(node.close)
        node.write_config()
        before = sorted(str(path) for path in pathlib.Path(node.dir).rglob("*"))
        found = self.doctor(node, code=0)
        self.assertEqual(found["server"]["result"], "warn")
        self.assertIn("vmonce serve --config " + node.config_path, found["server"]["repair"])
        self.assertEqual(before, sorted(str(path) for path in pathlib.Path(node.dir).rglob("*")))
        node.start()
        self.url = node.url
        found = self.doctor(node, code=0)
        for check in ("server", "host", "config", "image", "folders", "qemu", "network", "session"):
            self.assertEqual(found[check]["result"], "ok", found[check])

    def test_doctor_tells_a_wrong_configuration_and_a_state_that_cannot_be_made(self):
        node = Node()
        self.addCleanup(node.close)
        node.write_config()
        found = self.doctor(node, "--set", "limits.workers=0", code=1)
        self.assertEqual(found["config"]["result"], "fail")
        self.assertIn("limits", found["config"]["why"])
        found = self.doctor(node, "--set", "state.dir=/proc/none", code=1)
        self.assertEqual(found["folders"]["result"], "fail", found)

    def test_doctor_looks_at_the_embedded_hypervisor_within_its_bounds(self):
        node = Node()
        self.addCleanup(node.close)
        node.host = {"id": "local", "uri": f"qemu:///embed?root={node.dir}/l"}
        node.write_config()
        found = self.doctor(node, code=0)
        # Whatever this computer's KVM is like: it was tried, and concluded within the time.
        self.assertIn(found["kvm"]["result"], ("ok", "warn"))
        self.assertEqual(found["libvirt"]["result"], "ok")

    def test_a_first_machine_from_create_to_its_end(self):
        self.node()
        out, err = self.run_cli("create", "--name", "web", "--image", "tiny", "--key", "first")
        self.assertTrue(err.startswith("key first\n"), err)
        self.assertIn("] ready\n", err)
        self.assertIn("repeating this command with --key first returns the same VM", err)
        self.assertNotIn("\x1b", out + err)
        out, err = self.run_cli("create", "--name", "web", "--image", "tiny", "--key", "first", "-o", "json")
        self.assertEqual(json.loads(out)["result"], "existing")
        self.assertNotIn("] place", err)
        self.run_cli("create", "--name", "web", "--image", "tiny", "--cpus", "2", "--key", "first", code=5)
        self.assertEqual(self.run_cli("wait", "web", "--for", "ready", "-o", "name")[0], "web\n")
        self.run_cli("wait", "web", "--for", "stopped", "--timeout", "1s", code=4)
        self.run_cli("wait", "web", "--for", "address", code=1)
        vm = json.loads(self.run_cli("get", "web", "-o", "json")[0])["id"]
        self.run_cli("stop", "web")
        self.run_cli("wait", "web", "--for", "stopped")
        self.run_cli("delete", "web", code=2)
        self.run_cli("delete", "web", "--yes", "--wait", "accepted")
        self.run_cli("wait", vm, "--for", "deleted")
        self.run_cli("get", "web-2", code=6)
        out, _ = self.run_cli("explain", "first")
        rows = [line for line in out.splitlines() if "attempt 1" in line]
        self.assertEqual(len({line.index("attempt 1") for line in rows}), 1, out)
        events = {line.index("step_done") for line in rows if "step_done" in line}
        self.assertEqual(len(events), 1, out)

    def test_a_create_that_reaches_nobody_tells_what_to_do(self):
        _, err = self.run_cli("create", "--image", "tiny", "--timeout", "1s", code=3)
        self.assertIn("vmonce serve", err)
        self.assertIn("create --resume vmonce-", err)

    def test_settings_tell_where_they_come_from(self):
        config = pathlib.Path(self.home, ".config/vmonce/client.toml")
        config.parent.mkdir(parents=True)
        config.write_text('default_profile = "lab"\n[profile.lab]\nurl = "http://127.0.0.1:7"\n')
        out, _ = self.run_cli("config", "show", "--origin", VMONCE_URL="")
        self.assertRegex(out, rf"client\.url +http://127\.0\.0\.1:7 +{config}:3\n")
        out, _ = self.run_cli("config", "show", "--origin")
        self.assertRegex(out, r"client\.url +http://127\.0\.0\.1:1 +VMONCE_URL\n")

    def complete(self, *words):
        """What bash offers for the last word."""
        script = ('source <("$BIN" completion bash)\nCOMP_WORDS=(vmonce "$@")\nCOMP_CWORD=$#\n_vmonce\n'
                  'printf "%s\\n" "${COMPREPLY[@]}"\n')
        done = subprocess.run(["bash", "-c", script, "bash", *words], text=True, capture_output=True, timeout=60,
                              env={"HOME": self.home, "VMONCE_URL": self.url, "BIN": BIN,
                                   "PATH": os.path.dirname(os.path.abspath(BIN)) + ":" + os.environ["PATH"]})
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def test_bash_completes_commands_flags_words_and_names(self):
        self.node()
        self.run_cli("create", "--name", "web", "--image", "tiny")
        self.assertIn("doctor", self.complete(""))
        self.assertEqual(self.complete("recon"), ["reconcile"])
        self.assertIn("timeline", self.complete("operations", ""))
        self.assertEqual(self.complete("create", "--wait", "a"), ["accepted", "address"])
        self.assertEqual(self.complete("-o", "j"), ["json", "jsonl"])
        self.assertIn("--user-data", self.complete("create", "--u"))
        self.assertEqual(self.complete("get", ""), ["web"])
        self.assertEqual(self.complete("create", "--image", ""), ["tiny"])

    def test_completion_scripts_parse_in_their_shells(self):
        for shell in ("bash", "zsh", "fish"):
            script = pathlib.Path(self.home, "completion." + shell)
            script.write_text(self.run_cli("completion", shell)[0])
            done = subprocess.run([shell, "-n", str(script)], text=True, capture_output=True, timeout=60)
            self.assertEqual((done.returncode, done.stderr), (0, ""), shell)

    def test_man_pages_are_without_fault(self):
        pages = self.home + "/man"
        self.run_cli("man", "--directory", pages)
        names = sorted(os.listdir(pages))
        self.assertIn("vmonce-create.1", names)
        done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", *names], cwd=pages, text=True,
                              capture_output=True, timeout=60)
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
