"""A real vmonce service for the end-to-end tests: start, stop and kill -9 it, speak HTTP to it, and look at the world
behind its back (processes, disks, domain files, the ledger's file).

  VMONCE_BIN         the program under test
  VMONCE_GUEST_DIR   the tiny guest (vmlinuz, initrd.gz, cmdline); without it, tests on real machines fail
"""
import atexit
import concurrent.futures
import contextlib
import glob
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
import unittest
import urllib.parse
import xml.etree.ElementTree as ElementTree

BIN = os.environ.get("VMONCE_BIN", os.path.join(os.path.dirname(__file__), "../../build/vmonce"))
GUEST = os.environ.get("VMONCE_GUEST_DIR", "")
STEPS = ["place", "disk", "seed", "define", "start", "publish"]
ENDED = ("succeeded", "failed", "cancelled")
LABEL = "https://vmonce.dev/label/1"
START_DEADLINE = 60  # The first open of an embedded hypervisor asks QEMU for its abilities: seconds, when busy.
DEADLINE = 60

def needs_guest(tests):
    """Marks tests on real machines. Without the guest they fail, and say what to do: a skipped test proves nothing."""
    if os.path.isfile(os.path.join(GUEST, "vmlinuz")):
        return tests
    raise RuntimeError("VMONCE_GUEST_DIR names no guest: run packaging/guest/build DIR and set it to DIR")


def wait_for(what, condition, deadline=DEADLINE, every=0.03):
    """What condition() returns once that is true; fails, naming `what` and the last answer, at the deadline."""
    end = time.monotonic() + deadline
    while True:
        seen = condition()
        if seen:
            return seen
        if time.monotonic() > end:
            raise AssertionError(f"not within {deadline} s: {what}; the last look gave {seen!r}")
        time.sleep(every)


def in_parallel(do, items, threads=8):
    """What do(item) returned, in order; fails with the first item that failed. Items should be independent."""
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        futures = [(item, pool.submit(do, item)) for item in items]
        results = []
        for item, future in futures:
            try:
                results.append(future.result())
            except AssertionError as failure:
                raise AssertionError(f"{item}: {failure}") from failure
    return results


class Answer:
    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def code(self):
        return self.json.get("code")

    @property
    def vm(self):
        return self.json["vm"]

    @property
    def operation(self):
        return self.json["operation"]

    @property
    def replayed(self):
        return self.headers.get("Idempotent-Replayed") == "true"

    def __repr__(self):
        return f"{self.status} {self.body[:600]!r}"


def toml(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "[" + ", ".join(toml(item) for item in value) + "]"
    return json.dumps(value) if isinstance(value, str) else str(value)


_abilities = tempfile.mkdtemp(prefix="vmonce-e2e-")
atexit.register(shutil.rmtree, _abilities, ignore_errors=True)


class Node:
    """One state directory and, while it runs, the process that serves it. real: the embedded QEMU driver, else a
    simulated host whose machines survive in files and whose every call takes latency_ms."""

    def __init__(self, real=False, latency_ms=0, **sections):
        # Sockets below the embedded root have short names only.
        self.dir = tempfile.mkdtemp(prefix="vm", dir="/tmp")
        self.real = real
        self.root = self.dir + "/l"
        self.state = self.dir + "/s"
        self.ledger_path = self.state + "/ledger.db"
        self.log_path = self.dir + "/log"
        self.config_path = self.dir + "/vmonce.toml"
        self.port = 0
        self.process = None
        self.program = [BIN]  # May begin with what starts it, such as setpriv.
        self.sections = {"limits": {"lease_ttl": "1s", "reconcile_every": "1h"}, "log": {"level": "debug"}}
        self.host = {"id": "local"}
        self.more_hosts = []  # Tables like it; to be filled before the start.
        self.image = {}  # More keys of the one image; likewise.
        self.guest = GUEST if real else self.dir
        if real:
            self.host |= {"uri": f"qemu:///embed?root={self.root}", "accel": "tcg"}
        else:
            os.mkdir(self.root)
            self.host |= {"uri": f"simulated:{self.root}", "latency_ms": latency_ms}
        for name, values in sections.items():
            self.sections[name] = self.sections.get(name, {}) | values
        # What QEMU is able to do is found out once (8 s), by the first node.
        self.abilities = self.root + "/cache/qemu/capabilities"
        if real and os.path.isdir(_abilities + "/known"):
            os.makedirs(os.path.dirname(self.abilities), 0o700)
            shutil.copytree(_abilities + "/known", self.abilities)

    # ---- The process

    def write_config(self):
        boots = self.guest != self.dir
        if not boots:
            pathlib.Path(self.dir, "vmlinuz").touch()
        cmdline = pathlib.Path(self.guest, "cmdline").read_text().strip() if boots else "console=ttyS0"
        image = {"name": "tiny", "kind": "kernel", "kernel": self.guest + "/vmlinuz", "cmdline": cmdline,
                 "aliases": ["small"]}
        if boots:
            image["initrd"] = self.guest + "/initrd.gz"
        image |= self.image
        tables = {"server": {"listen": f"127.0.0.1:{self.port}"}, "state": {"dir": self.state}} | self.sections
        text = ""
        hosts = [("[host]", host) for host in [self.host, *self.more_hosts]]
        for name, values in [*tables.items(), *hosts, ("[image]", image)]:
            text += f"[{name}]\n" + "".join(f"{key} = {toml(value)}\n" for key, value in values.items())
        with open(self.config_path, "w") as file:
            file.write(text)

    def spawn(self):
        """Starts the process and waits for nothing."""
        assert self.process is None
        self.write_config()
        self.log_start = os.path.getsize(self.log_path) if os.path.exists(self.log_path) else 0
        log = open(self.log_path, "ab")
        command = [*self.program, "serve", "--config", self.config_path]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL,
                                        stdout=log, stderr=log, start_new_session=True)
        log.close()

    def start(self):
        """Starts the process and waits until it listens and its host answers."""
        self.spawn()
        self.port = wait_for("the service says its address", self._said_port, START_DEADLINE)
        wait_for("readyz", lambda: self.call("GET", "/readyz").status == 200, START_DEADLINE)
        if self.real and not os.path.isdir(_abilities + "/known"):
            shutil.copytree(self.abilities, _abilities + "/known")
        return self

    def _said_port(self):
        if self.process.poll() is not None:
            raise AssertionError(f"the service ended with {self.process.returncode}:\n{self.log_text()}")
        found = re.search(r'"event":"serving","url":"https?://[^"]*:(\d+)"', self.log_text(self.log_start))
        return int(found.group(1)) if found else None

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def kill(self):
        """kill -9."""
        self.process.kill()
        self.process.wait()
        self.process = None

    def stop(self):
        """SIGTERM; the exit code."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(30)
        self.process = None
        return code

    def restart(self, how="kill"):
        self.kill() if how == "kill" else self.stop()
        return self.start()

    def close(self):
        """Ends everything that belongs to the directory, guests too, and removes it."""
        if self.process is not None:
            self.kill()
        for pid in self.qemu_pids(any_kind=True):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        wait_for("the guests are gone", lambda: not self.qemu_pids(any_kind=True), 20)
        shutil.rmtree(self.dir, ignore_errors=True)

    def log_size(self):
        return os.path.getsize(self.log_path)

    def log_text(self, start=0):
        """From the byte `start` on."""
        with open(self.log_path, "rb") as file:
            file.seek(start)
            return file.read().decode("utf-8", "surrogateescape")

    # ---- HTTP

    def connect(self, timeout):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def call(self, method, path, body=None, key=None, headers=(), timeout=90):
        """One exchange. body: bytes as they are, or anything to be written as JSON. key: as it stands in the header."""
        sent = dict(headers)
        if key is not None:
            sent["Idempotency-Key"] = key
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        if method not in ("GET", "HEAD"):
            sent.setdefault("Content-Type", "application/json")
        connection = self.connect(timeout)
        try:
            connection.request(method, path, body, {name: value for name, value in sent.items() if value is not None})
            response = connection.getresponse()
            return Answer(response.status, response.headers, response.read())
        finally:
            connection.close()

    def get(self, path):
        answer = self.call("GET", path)
        assert answer.status == 200, f"GET {path}: {answer}"
        return answer.json

    def create(self, key, body=None, wait=None, query=""):
        body = spec() if body is None else body
        headers = {} if wait is None else {"Prefer": f"wait={wait}"}
        return self.call("POST", "/v1/vms" + query, body, key, headers)

    def delete(self, vm, key=None, wait=60):
        headers = {} if wait is None else {"Prefer": f"wait={wait}"}
        return self.call("DELETE", f"/v1/vms/{vm}", None, key, headers)

    def reconcile(self):
        """What the sweep of the one host found."""
        answer = self.call("POST", "/v1/reconcile")
        assert answer.status == 200, answer
        return answer.json["hosts"][0]

    def operation(self, operation):
        return self.get(f"/v1/operations/{operation}")

    def vm(self, vm):
        return self.get(f"/v1/vms/{vm}")

    def vms(self):
        items, cursor = [], ""
        while True:
            page = self.get("/v1/vms?limit=100" + cursor)
            items += page["items"]
            if page["next"] is None:
                return items
            cursor = "&cursor=" + urllib.parse.quote(page["next"], safe="")

    def ended(self, operation, deadline=DEADLINE):
        """The operation, once it has ended."""
        def look():
            seen = self.operation(operation)
            return seen if seen["state"] in ENDED else None
        try:
            return wait_for(f"operation {operation} has ended", look, deadline)
        except AssertionError as late:
            raise AssertionError(f"{late}; {self.operation(operation)}; timeline {self.timeline(operation)}; log "
                                 f"{self.log_text(self.log_start)[-3000:]}") from None

    def succeeded(self, operation, deadline=DEADLINE):
        seen = self.ended(operation, deadline)
        assert seen["state"] == "succeeded", f"{seen}; timeline: {self.timeline(operation)}"
        return seen

    def at_step(self, operation, step, deadline=20):
        """Waits until the first item works at the step; fails when it went past."""
        wanted = STEPS.index(step)

        def look():
            seen = self.operation(operation)
            at = seen["items"][0]["step_name"]
            if at == step and seen["state"] != "accepted":
                return seen
            assert seen["state"] not in ENDED and STEPS.index(at) <= wanted, f"past {step}: {seen}"
            return None
        return wait_for(f"operation {operation} is at {step}", look, deadline, every=0.01)

    def timeline(self, operation):
        items = self.get(f"/v1/operations/{operation}/timeline")["items"]
        return [(entry["event"], entry["detail"]) for entry in items]

    def console(self, vm):
        answer = self.call("GET", f"/v1/vms/{vm}/console")
        return answer.body.decode(errors="replace").replace("\r", "") if answer.status == 200 else ""

    def console_with(self, vm, text, deadline=90):
        return wait_for(f"the console of {vm} says {text!r}", lambda: text in self.console(vm) and self.console(vm),
                        deadline, every=0.2)

    # ---- The world behind the service's back

    def virsh(self, *arguments):
        """libvirt's own tool on the embedded root: only while the service is down."""
        assert self.real and self.process is None
        done = subprocess.run(["virsh", "-q", "-c", f"qemu:///embed?root={self.root}", *arguments], text=True,
                              capture_output=True, timeout=60)
        assert done.returncode == 0, f"virsh {arguments}: {done.stderr}"
        return done.stdout

    @contextlib.contextmanager
    def ledger_held(self):
        """Nothing is recorded meanwhile: the service's writes wait, for two seconds at most."""
        connection = sqlite3.connect(self.ledger_path, timeout=5, isolation_level=None)
        try:
            connection.execute("BEGIN IMMEDIATE")
            yield
            connection.execute("ROLLBACK")
        finally:
            connection.close()

    def qemu_pids(self, vm="", any_kind=False):
        """The QEMU processes that run guests out of this directory; any_kind: the probes of libvirt, too."""
        pids = []
        for path in glob.glob("/proc/[0-9]*/cmdline"):
            try:
                line = pathlib.Path(path).read_bytes().decode(errors="replace")
            except OSError:
                continue
            program = os.path.basename(line.split("\0", 1)[0])
            if program.startswith("qemu-system") and self.dir + "/" in line and vm in line:
                if any_kind or "\0guest=" in line:
                    pids.append(int(path.split("/")[2]))
        return pids

    def domains(self):
        """The domains that are defined: id -> (name, whether it runs, label attributes or None, times started or
        None)."""
        found = {}
        if self.real:
            for path in glob.glob(self.root + "/etc/qemu/*.xml"):
                domain = ElementTree.parse(path).getroot()
                label = domain.find(f"metadata/{{{LABEL}}}label")
                vm = domain.findtext("uuid")
                found[vm] = (domain.findtext("name"), bool(self.qemu_pids(vm)),
                             None if label is None else dict(label.attrib), None)
            return found
        for path in glob.glob(self.root + "/domains/*.json"):
            domain = json.loads(pathlib.Path(path).read_text())
            found[domain["id"]] = (domain["name"], domain["power"] == "running", domain.get("label"),
                                   domain["starts"])
        return found

    def volumes(self):
        """Disks and seeds that are there; real half-made ones, too."""
        if self.real:
            return sorted(os.listdir(self.root + "/disks"))
        return sorted(name for name in os.listdir(self.root + "/volumes") if not name.startswith("."))

    def scratch(self):
        path = self.root + "/scratch"
        return os.listdir(path) if os.path.isdir(path) else []

    def query(self, sql, *values):
        """Reads the ledger's file, beside the service."""
        connection = sqlite3.connect(f"file:{self.ledger_path}?mode=ro", uri=True, timeout=10)
        try:
            return connection.execute(sql, values).fetchall()
        finally:
            connection.close()

    def ledger_id(self):
        marker = pathlib.Path(self.root, "vmonce.marker" if self.real else "marker.json")
        return json.loads(marker.read_text())["ledger"]

    def ledger_bytes(self):
        return b"".join(pathlib.Path(path).read_bytes() for path in glob.glob(self.ledger_path + "*"))


def spec(name=None, **more):
    """The body of a small create."""
    body = {"image": "tiny", "memory_mib": 128} | more
    return body if name is None else body | {"name": name}


class E2eTest(unittest.TestCase):
    maxDiff = None

    def node(self, **settings):
        node = Node(**settings)
        self.addCleanup(node.close)
        return node.start()

    def expect(self, answer, status, code=None):
        self.assertEqual(answer.status, status, answer)
        if code is not None:
            self.assertEqual(answer.code, code, answer)
        return answer

    def check_machines(self, node, vms):
        """Exactly these machines are there, each running once with its own seed, and the books agree. The node is at
        rest: no operation is unfinished."""
        node.reconcile()
        domains = node.domains()
        ledger = node.ledger_id()
        self.assertEqual(set(domains), set(vms))
        for vm, (name, runs, label, starts) in domains.items():
            self.assertEqual(name, f"vmonce-{ledger}-{vm}")
            self.assertTrue(runs, f"{vm} does not run")
            self.assertEqual(label["ledger"], ledger)
            self.assertIn(starts, (None, 1), f"{vm} was started {starts} times")
            if node.real:
                self.assertEqual(len(node.qemu_pids(vm)), 1)
        if node.real:
            self.assertEqual(len(node.qemu_pids()), len(vms))
        owners = [(d[2]["operation"], int(d[2]["index"])) for d in domains.values()]
        self.assertEqual(len(owners), len(set(owners)), "two machines of one operation and index")
        volumes = [f"vmonce-{ledger}-{vm}.seed.iso" for vm in vms]
        volumes += [f"vmonce-{ledger}-{vm['id']}.qcow2" for vm in node.vms() if vm["disk_gib"] > 0]
        self.assertEqual(node.volumes(), sorted(volumes))
        self.assertEqual(node.scratch(), [])
        self.assertEqual(sorted(vm["id"] for vm in node.vms()), sorted(vms))
        self.assertEqual(node.get("/v1/capabilities")["usage"]["vms"], len(vms))
        self.assertEqual(node.get("/v1/hosts")["items"][0]["reserved"]["vms"], len(vms))
        self.assertEqual(node.query("SELECT count(*) FROM operations WHERE finished_ms IS NULL"), [(0,)])
