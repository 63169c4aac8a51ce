"""All QEMU processes die at once, as when the host goes down: what should run runs again as the same machine. And two
(simulated) hosts: drained, lost and back."""
import json
import os
import pathlib
import signal
import subprocess
import unittest

from node import BIN, E2eTest, Node, needs_guest, spec, wait_for


@needs_guest
class HostFailureTest(E2eTest):
    def machines(self, node):
        """Four guests at rest: one that runs, one that a person stopped, one of restart: never, and one that powered
        itself off."""
        bodies = {"runs": {}, "stopped": {}, "never": {"restart": "never"},
                  "left": {"user_data": "#vmonce-guest: poweroff\n"}}
        vms = {name: self.expect(node.create(name, spec(name, **more)), 202).vm["id"] for name, more in bodies.items()}
        for vm in vms.values():
            node.succeeded(node.vm(vm)["operation"], 120)
        stop = self.expect(node.call("POST", f"/v1/vms/{vms['stopped']}/stop", {"force": True}), 202)
        node.succeeded(stop.operation["id"])
        wait_for("one has powered itself off", lambda: not node.qemu_pids(vms["left"]), 90, every=0.2)
        wait_for("and is seen so", lambda: node.reconcile() and self.power(node, vms["left"])[1] == "stopped", 60)
        self.assertEqual(self.power(node, vms["left"]), ("running", "stopped", "guest"))
        return vms

    def power(self, node, vm):
        seen = node.vm(vm)
        return seen["desired"], seen["observed"], seen["stopped_by"]

    def kill_guests(self, node, expected):
        pids = node.qemu_pids()
        self.assertEqual(len(pids), expected)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        wait_for("they are gone", lambda: not set(pids) & set(node.qemu_pids()), 20)
        return pids

    def check_back(self, node, vms, pids):
        # libvirt may learn of one guest's end a moment after the other's.
        wait_for("the other is seen stopped",
                 lambda: node.reconcile() and self.power(node, vms["never"])[1] == "stopped", 60, every=0.2)
        self.assertEqual(self.power(node, vms["runs"]), ("running", "running", None))
        self.assertEqual(self.power(node, vms["stopped"]), ("stopped", "stopped", "person"))
        self.assertEqual(self.power(node, vms["never"]), ("running", "stopped", "host"))
        self.assertEqual(self.power(node, vms["left"]), ("running", "stopped", "guest"))
        self.assertEqual({node.vm(vm)["state"] for vm in vms.values()}, {"ready"})
        self.assertEqual(node.vm(vms["runs"])["restarts"], 1)
        self.assertFalse(node.vm(vms["runs"])["stuck"])
        # The same domains, and one new process for the one that should run.
        self.assertEqual(set(node.domains()), set(vms.values()))
        now = node.qemu_pids()
        self.assertEqual(now, node.qemu_pids(vms["runs"]))
        self.assertEqual(len(now), 1)
        self.assertFalse(set(now) & set(pids))
        starts = node.get(f"/v1/operations?vm={vms['runs']}&kind=start")["items"]
        self.assertEqual([start["state"] for start in starts], ["succeeded"])
        # More sweeps start nothing more.
        for _ in range(3):
            self.assertEqual(node.reconcile()["restarted"], 0)
        self.assertEqual(node.qemu_pids(), now)

    def test_what_should_run_runs_again_when_all_guests_were_killed(self):
        node = self.node(real=True)
        vms = self.machines(node)
        pids = self.kill_guests(node, 2)
        wait_for("a sweep begins one restart", lambda: node.reconcile()["restarted"] == 1, 60, every=0.2)
        wait_for("it runs", lambda: self.power(node, vms["runs"])[1] == "running", 60, every=0.1)
        self.check_back(node, vms, pids)

        # The host goes down with the service, whose own sweeps find what is to be done after its start.
        node.kill()
        node.sections["limits"]["reconcile_every"] = "1s"
        pids = self.kill_guests(node, 1)
        node.start()
        wait_for("it runs", lambda: node.qemu_pids(vms["runs"]) and node.vm(vms["runs"])["restarts"] == 2, 60, every=0.1)
        wait_for("and is seen", lambda: self.power(node, vms["runs"])[1] == "running", 60, every=0.1)
        self.assertEqual(len(node.qemu_pids()), 1)
        self.assertEqual(self.power(node, vms["never"])[1], "stopped")
        self.assertEqual(self.power(node, vms["left"]), ("running", "stopped", "guest"))

        # Made and not started; started and stopped by what is desired.
        vm = self.expect(node.create("cold", spec("cold", desired="stopped"), wait=60), 201).vm
        self.assertEqual((vm["state"], vm["desired"], vm["observed"]), ("ready", "stopped", "stopped"))
        self.assertEqual(node.qemu_pids(vm["id"]), [])
        warm = self.expect(node.call("PATCH", f"/v1/vms/{vm['id']}", {"desired": "running"}, "warm",
                                     {"Prefer": "wait=60"}), 200)
        self.assertEqual(warm.operation["kind"], "start")
        self.assertEqual(len(node.qemu_pids(vm["id"])), 1)


class TwoHostsTest(E2eTest):
    def two_hosts(self):
        """Host "local" is slow, so that a create can be met there; "second" is not."""
        node = Node(latency_ms=700)
        self.addCleanup(node.close)
        second = node.dir + "/second"
        os.mkdir(second)
        node.more_hosts.append({"id": "second", "uri": f"simulated:{second}"})
        self.second = second
        return node.start()

    def cli(self, node, *arguments, code=0):
        environment = {"PATH": os.environ["PATH"], "HOME": node.dir, "VMONCE_URL": node.url}
        done = subprocess.run([BIN, *arguments], capture_output=True, text=True, env=environment, timeout=90,
                              stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, code, done)
        return done

    def hosts(self, node):
        return {host["id"]: host for host in node.get("/v1/hosts")["items"]}

    def runs_in(self, directory, vm):
        path = pathlib.Path(directory, "domains", vm + ".json")
        return path.exists() and json.loads(path.read_text())["power"] == "running"

    def test_a_create_moves_off_a_host_that_is_declared_dead_and_its_remains_are_stopped(self):
        node = self.two_hosts()
        wait_for("both answer", lambda: all(host["reachable"] for host in self.hosts(node).values()))
        for host in self.hosts(node).values():
            self.assertEqual((host["state"], host["returning"]), ("active", False))
            self.assertIn("since", host)
        drained = self.cli(node, "host", "drain", "second")
        self.assertIn("gets nothing new", drained.stderr)
        kept = self.expect(node.create("kept", spec("kept"), wait=60), 201).vm
        self.assertEqual(kept["host"], "local")
        moving = self.expect(node.create("moving", spec("moving")), 202)
        vm = moving.vm["id"]
        refused = self.cli(node, "host", "dead", "local", code=2)
        self.assertIn("--yes", refused.stderr)
        self.assertEqual(self.hosts(node)["local"]["state"], "active")
        self.expect(node.call("POST", "/v1/hosts/second/activate"), 200)
        node.at_step(moving.operation["id"], "start")
        # The order to start is out, and is carried out there whatever is declared now.
        self.expect(node.call("POST", "/v1/hosts/local/dead"), 200)
        self.cli(node, "host", "dead", "local", "--yes")
        node.succeeded(moving.operation["id"])
        self.assertEqual(node.vm(vm)["host"], "second")
        self.assertTrue(self.runs_in(self.second, vm))
        wait_for("the others are missing", lambda: node.vm(kept["id"])["state"] == "missing")
        self.expect(node.delete(kept["id"]), 200)
        self.assertEqual(node.vm(kept["id"])["state"], "deleted")
        self.assertTrue(self.runs_in(node.root, kept["id"]), "nothing is done on a dead host")
        self.assertFalse(self.hosts(node)["local"]["reachable"])

        self.cli(node, "host", "activate", "local")
        wait_for("it is swept", lambda: not self.hosts(node)["local"]["returning"])
        self.assertFalse(self.runs_in(node.root, kept["id"]))
        self.assertFalse(self.runs_in(node.root, vm))
        self.assertTrue(self.runs_in(self.second, vm))
        retried = self.expect(node.create("moving", spec("moving")), 200)
        self.assertEqual(retried.vm["id"], vm)
        listed = self.cli(node, "host", "list")
        self.assertIn("local", listed.stdout)

    def test_a_host_that_nobody_knows_is_not_found(self):
        node = self.node()
        for verb in ("drain", "activate", "dead"):
            self.expect(node.call("POST", f"/v1/hosts/nowhere/{verb}"), 404, "host_not_found")


if __name__ == "__main__":
    unittest.main()
