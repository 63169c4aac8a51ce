"""The Debian package, its unit under a real systemd, and what it brings for monitoring.

  VMONCE_BIN         the program under test; its folder is the build that is packed
  VMONCE_GUEST_DIR   the tiny guest
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent / "e2e"))
import node  # noqa: E402

RULES = ROOT / "packaging/monitoring/vmonce.rules.yml"
DASHBOARD = ROOT / "packaging/monitoring/vmonce.dashboard.json"
UNIT = ROOT / "packaging/systemd/vmonce.service"


def run(*command, **options):
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300, **options)
    assert done.returncode == 0, f"{command} ended with {done.returncode}:\n{done.stdout}"
    return done.stdout


class Monitoring(unittest.TestCase):
    def test_each_alert_fires_on_its_fault_and_not_before(self):
        run("promtool", "check", "rules", str(RULES))
        run("promtool", "test", "rules", str(HERE / "vmonce.rules.test.yml"))

    def test_rules_and_dashboard_speak_of_metrics_that_are_served(self):
        served = node.Node()
        self.addCleanup(served.close)
        served.start()
        served.create("k", wait=30)
        served.reconcile()
        page = served.call("GET", "/metrics").body.decode()
        self.assertEqual(run("promtool", "check", "metrics", input=page), "")
        names = set(re.findall(r"^(vmonce_\w+)", page, re.M))
        expressions = re.findall(r"expr: (.*)", RULES.read_text())
        for panel in json.loads(DASHBOARD.read_text())["panels"]:
            expressions += [target["expr"] for target in panel["targets"]]
        self.assertGreater(len(expressions), 20)
        asked = set(re.findall(r"vmonce_\w+", " ".join(expressions)))
        self.assertEqual(asked - names, set())


class Container(unittest.TestCase):
    """No engine here: what a linter would say of the container file."""

    def test_the_container_file(self):
        text = (ROOT / "packaging/Containerfile").read_text()
        lines = re.sub(r"\\\n", " ", "\n".join(l for l in text.splitlines() if not l.startswith("#"))).splitlines()
        steps = [tuple(line.split(None, 1)) for line in lines if line.strip()]
        known = {"FROM", "COPY", "RUN", "USER", "VOLUME", "STOPSIGNAL", "ENTRYPOINT"}
        self.assertEqual({name for name, _ in steps} - known, set())
        values = dict(steps)
        self.assertRegex(values["FROM"], r"^debian:12(-slim)?$")
        self.assertEqual(values["USER"], "vmonce")
        self.assertIsInstance(json.loads(values["ENTRYPOINT"]), list)
        self.assertIn("--no-install-recommends", values["RUN"])
        self.assertIn("/var/lib/apt/lists/*", values["RUN"])
        subprocess.run(["sh", "-n", "-c", values["RUN"]], check=True)


class WithoutRoot(node.E2eTest):
    def test_a_plain_user_runs_real_machines(self):
        # libvirt keeps files in the user's own directories, and a service account has none.
        made = node.Node(real=True)
        self.addCleanup(made.close)
        made.guest = tempfile.mkdtemp(prefix="vmg", dir="/tmp")
        self.addCleanup(shutil.rmtree, made.guest)
        for path in (node.BIN, node.GUEST + "/vmlinuz", node.GUEST + "/initrd.gz", node.GUEST + "/cmdline"):
            shutil.copy(path, made.guest)
        run("chmod", "-R", "a+rX", made.guest)
        run("chown", "-R", "nobody:nogroup", made.dir)
        made.program = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "--no-new-privs",
                        "env", "-i", "PATH=/usr/bin:/bin", made.guest + "/vmonce"]
        made.start()
        self.assertEqual(run("stat", "-c", "%U", f"/proc/{made.process.pid}").strip(), "nobody")
        vm = self.expect(made.create("k", wait=60), 201).vm
        made.console_with(vm["id"], "vmonce-guest: ready")
        before = made.qemu_pids(vm["id"])
        self.assertEqual(len(before), 1)
        made.restart()
        self.expect(made.create("k", wait=60), 200)
        self.assertEqual(made.qemu_pids(vm["id"]), before)
        self.expect(made.delete(vm["id"]), 200)
        self.assertEqual(made.qemu_pids(), [])


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        build = os.path.dirname(os.path.abspath(node.BIN))
        cls.dir = tempfile.mkdtemp(prefix="vmonce-package-")
        cls.addClassCleanup(shutil.rmtree, cls.dir, ignore_errors=True)
        run("cpack", "--config", f"{build}/CPackConfig.cmake", "-B", cls.dir)
        cls.deb = str(next(pathlib.Path(cls.dir).glob("vmonce_*.deb")))

    def test_what_is_in_it(self):
        rows = [line.split(None, 5) for line in run("dpkg-deb", "-c", self.deb).splitlines()]
        files = {row[5].lstrip("."): (row[0], row[1]) for row in rows}
        for path in ("/usr/bin/vmonce", "/lib/systemd/system/vmonce.service", "/usr/lib/sysusers.d/vmonce.conf",
                     "/usr/lib/tmpfiles.d/vmonce.conf", "/etc/vmonce/vmonce.toml", "/usr/share/vmonce/vmonce.rules.yml",
                     "/usr/share/vmonce/vmonce.dashboard.json", "/usr/share/man/man1/vmonce.1.gz",
                     "/usr/share/man/man1/vmonce-create.1.gz", "/usr/share/bash-completion/completions/vmonce",
                     "/usr/share/zsh/vendor-completions/_vmonce", "/usr/share/fish/vendor_completions.d/vmonce.fish", "/usr/share/doc/vmonce/copyright"):
            self.assertIn(path, files)
        self.assertEqual({owner for _, owner in files.values()}, {"root/root"})
        self.assertEqual([path for path, (mode, _) in files.items() if mode[8] == "w" or "s" in mode], [])
        control = run("dpkg-deb", "-I", self.deb)
        for wanted in ("libvirt-daemon-driver-qemu", "qemu-system-x86", "libsystemd0"):
            self.assertIn(wanted, control)
        run("lintian", "--fail-on", "error,warning", "--allow-root", self.deb)

    def test_the_unit_is_well_confined(self):
        # 10 is fully exposed; the hypervisor's needs are named in the unit.
        print(run("systemd-analyze", "security", "--offline=true", "--threshold=30", "--no-pager",
                  str(UNIT)).strip().splitlines()[-1])

    def test_one_machine_lives_through_install_restart_upgrade_and_removal(self):
        # A real systemd, over a copy of this machine's root that only this test sees.
        work = tempfile.mkdtemp(prefix="vmonce-boot-")
        self.addCleanup(shutil.rmtree, work, ignore_errors=True)
        run("unshare", "--mount", "--propagation", "private", "bash", str(HERE / "boot"), work, self.deb, node.GUEST,
            f"{work}.log")
        log = pathlib.Path(f"{work}.log")
        self.addCleanup(log.unlink, missing_ok=True)
        text = log.read_text()
        self.assertTrue(text.split("\n== ")[-1].find("\npassed\n") > 0, text)


if __name__ == "__main__":
    unittest.main()
