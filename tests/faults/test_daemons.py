"""libvirtd frozen and killed in the middle of a create, and QEMU killed under a machine: two daemons of the tests' own beside
the embedded hypervisor, and real guests."""
import os
import signal
import time
import unittest

import oracle
from libvirtd import Libvirtd
from node import STEPS, E2eTest, Node, needs_guest, spec, wait_for

LAST_STEP = "SELECT coalesce(json_extract(items, '$[0].step'), 0) FROM operations ORDER BY sequence DESC LIMIT 1"
CALL_DEADLINE = 60  # Of an effect, in the service.
CALL_BEFORE = {"define": "create_seed", "start": "define"}


@needs_guest
class Daemons(E2eTest):
    def setUp(self):
        self.daemons = {}
        node = Node(real=True, limits={"reconcile_every": "500ms", "lease_ttl": "1s"})
        self.addCleanup(node.close)
        # A large machine finds its place on a daemon, a small one beside two large ones on the embedded hypervisor.
        node.host |= {"cpus": 8, "memory_mib": 1500}
        for name in ("ice-1", "ice-2"):
            daemon = Libvirtd().start()
            self.addCleanup(daemon.close)
            self.daemons[name] = daemon
            node.more_hosts.append({"id": name, "uri": daemon.local_uri, "accel": "tcg", "pool_path": daemon.dir + "/pool",
                                    "cpus": 8, "memory_mib": 2048, "disk_gib": 10})
        self.served = node.start()
        self.wait_for_hosts()

    def wait_for_hosts(self):
        wait_for("every host answers", lambda: all(host["reachable"] for host in self.served.get("/v1/hosts")["items"]),
                 60)

    def calls(self, call):
        """How many such calls have ended well, on any host."""
        text = self.served.call("GET", "/metrics").body.decode()
        line = f'vmonce_hypervisor_call_duration_seconds_count{{call="{call}",outcome="ok"}} '
        return sum(int(found.removeprefix(line)) for found in text.splitlines() if found.startswith(line))

    def meet(self, step, what):
        """Begins creates until one is met right before the step's call to its daemon, and does `what` to the daemon:
        (the first answer, the daemon's host)."""
        node, number = self.served, STEPS.index(step)
        for attempt in range(10):
            before = self.calls(CALL_BEFORE[step])
            first = self.expect(node.create(f"{step}-{attempt}", spec(f"{step}-{attempt}", memory_mib=1024,
                                                                     restart="never")), 202)
            wait_for("the step before is begun", lambda: node.query(LAST_STEP)[0][0] >= number - 1, 30, 0.001)
            with node.ledger_held():
                is_met = node.query(LAST_STEP)[0][0] == number - 1
                if is_met:
                    host = node.vm(first.vm["id"])["host"]
                    wait_for("its call has ended", lambda: self.calls(CALL_BEFORE[step]) > before, 1.8, 0.005)
                    what(self.daemons[host])
            if is_met:
                wait_for("the step is begun", lambda: node.query(LAST_STEP)[0][0] == number, 10, 0.01)
                return first, host
            node.succeeded(first.operation["id"], 90)
            self.expect(node.delete(first.vm["id"]), 200)
        raise AssertionError(f"ten creates were all too fast to be met before {step}")

    def events(self, first):
        return [event for event, _ in self.served.timeline(first.operation["id"])]

    def test_daemons_frozen_in_the_middle_of_a_define_and_of_a_start(self):
        # Reports 5, 10, 31, 34 and 98: what takes effect late is adopted, or, where the VM was deleted meanwhile, removed.
        node = self.served
        defining, _ = self.meet("define", Libvirtd.freeze)
        starting, other = self.meet("start", Libvirtd.freeze)
        try:
            frozen = time.monotonic()
            # The rest of the fleet goes on as if nothing were.
            small = []
            for number in range(3):
                answer = self.expect(node.create(f"warm-{number}", spec(f"warm-{number}", memory_mib=64), wait=60), 201)
                self.assertEqual(answer.vm["host"], "local")
                small.append((answer.vm["id"], answer.operation["id"]))
            self.assertLess(time.monotonic() - frozen, CALL_DEADLINE)
            for first, step in ((defining, "define"), (starting, "start")):
                wait_for(f"{step} is past its deadline", lambda first=first: "step_unknown" in self.events(first),
                         CALL_DEADLINE + 40, every=0.2)
                wait_for("that is told", lambda first=first: node.operation(first.operation["id"])["state"] == "verifying",
                         10)
            deleted = self.expect(node.delete(starting.vm["id"], wait=None), 202)
            self.assertEqual(node.vm(starting.vm["id"])["state"], "deleting")
        finally:
            for daemon in self.daemons.values():
                daemon.thaw()
        node.succeeded(defining.operation["id"], 120)
        node.succeeded(deleted.operation["id"], 120)
        self.assertEqual(node.ended(starting.operation["id"])["state"], "cancelled")
        self.assertNotIn("place_undone", self.events(defining))
        wanted = {vm: (operation, True, 0) for vm, operation in small}
        wanted[defining.vm["id"]] = (defining.operation["id"], True, 0)
        oracle.check_all(self, node, wanted, self.daemons.values())
        self.assertEqual(self.daemons[other].running(), [])

    def test_a_daemon_killed_right_before_a_start_and_started_again(self):
        # Report 20: one process, ever.
        node = self.served
        first, host = self.meet("start", Libvirtd.kill)
        daemon = self.daemons[host]
        wait_for("the host is told as unreachable", lambda: not {
            item["id"]: item for item in node.get("/v1/hosts")["items"]}[host]["reachable"], 60)
        self.assertIn(node.operation(first.operation["id"])["state"], ("running", "verifying"))
        daemon.start()
        node.succeeded(first.operation["id"], 120)
        self.assertEqual(node.vm(first.vm["id"])["host"], host)
        oracle.check_all(self, node, {first.vm["id"]: (first.operation["id"], True, 0)}, self.daemons.values())
        # Killed while nothing is under way, it finds its machine again, and so do we.
        self.wait_for_hosts()
        daemon.kill()
        daemon.start()
        self.wait_for_hosts()
        node.reconcile()
        self.assertEqual((node.vm(first.vm["id"])["state"], node.vm(first.vm["id"])["observed"]), ("ready", "running"))
        oracle.check_all(self, node, {first.vm["id"]: (first.operation["id"], True, 0)}, self.daemons.values())


@needs_guest
class Guests(E2eTest):
    def test_a_guest_killed_under_a_ready_machine_is_told_and_not_made_again(self):
        # Reports 19 and 140: what once was ready is never created again.
        node = self.node(real=True)
        body = spec("frail", restart="never")
        first = self.expect(node.create("frail", body, wait=60), 201)
        vm = first.vm["id"]
        [pid] = node.qemu_pids(vm)
        os.kill(pid, signal.SIGKILL)
        wait_for("QEMU is gone", lambda: not node.qemu_pids(vm), 20)
        wait_for("that is told", lambda: node.reconcile() and node.vm(vm)["observed"] == "stopped", 60, every=0.2)
        seen = node.vm(vm)
        self.assertEqual((seen["state"], seen["desired"], seen["stopped_by"]), ("ready", "running", "host"))
        for _ in range(3):
            self.assertEqual(node.reconcile()["restarted"], 0)
        again = self.expect(node.create("frail", body), 200)
        self.assertEqual((again.vm["id"], again.vm["observed"], again.replayed), (vm, "stopped", True))
        oracle.check_all(self, node, {vm: (first.operation["id"], False, 0)})
        # Undefined behind our back, too: missing, and still not made again.
        node.stop()
        node.virsh("undefine", vm)
        node.start()
        wait_for("it is told as missing", lambda: node.reconcile() and node.vm(vm)["state"] == "missing", 60, every=0.2)
        again = self.expect(node.create("frail", body), 200)
        self.assertEqual((again.vm["id"], again.vm["state"]), (vm, "missing"))
        self.assertEqual((node.domains(), node.qemu_pids()), ({}, []))


if __name__ == "__main__":
    unittest.main()
