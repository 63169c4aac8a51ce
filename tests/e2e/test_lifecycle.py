"""One real machine from its create to its delete, and what becomes of machines when the service ends and comes back."""
import os
import signal
import time
import unittest

from node import E2eTest, Node, needs_guest, spec, wait_for


@needs_guest
class Lifecycle(E2eTest):
    @classmethod
    def setUpClass(cls):
        cls.real = Node(real=True)
        cls.addClassCleanup(cls.real.close)
        cls.real.start()

    def tearDown(self):
        for vm in self.real.vms():
            self.real.delete(vm["id"])
        self.check_machines(self.real, [])

    def test_a_machine_is_created_once_boots_and_is_deleted_without_a_trace(self):
        node = self.real
        body = spec("first", user_data="#cloud-config\n# said by the user\n", cpus=1)
        first = self.expect(node.create("life-1", body), 202)
        self.assertEqual(first.json["result"], "created")
        self.assertFalse(first.replayed)
        vm = first.vm["id"]

        # Report 106: the ids are in the first answer already, and are the ones that stay.
        again = self.expect(node.create("life-1", body, wait=60), 200)
        self.assertTrue(again.replayed)
        self.assertEqual(again.json["result"], "existing")
        self.assertEqual(again.vm["id"], vm)
        self.assertEqual(again.vm["state"], "ready")
        self.assertEqual(again.operation["id"], first.operation["id"])

        console = node.console_with(vm, "vmonce-guest: ready")
        self.assertIn("vmonce-guest: hostname=first\n", console)
        self.assertIn("vmonce-guest: user-data: # said by the user\n", console)
        self.check_machines(node, [vm])
        label = node.domains()[vm][2]
        self.assertEqual(label["operation"], first.operation["id"])
        self.assertEqual(label["project"], "default")

        self.expect(node.delete(vm), 200)
        self.assertEqual(node.vm(vm)["state"], "deleted")
        self.assertEqual(node.domains(), {})
        self.assertEqual(node.qemu_pids(), [])
        self.assertEqual(node.volumes(), [])

        # Report 46: after the delete the same key still names the same machine, and makes no other.
        late = self.expect(node.create("life-1", body), 200)
        self.assertTrue(late.replayed)
        self.assertEqual(late.vm["id"], vm)
        self.assertEqual(late.vm["state"], "deleted")
        self.assertEqual(node.qemu_pids(), [])

    def test_a_batch_of_three_is_three_machines_of_one_operation(self):
        node = self.real
        first = self.expect(node.create("batch-1", spec("x", count=3, disk_gib=1), wait=90), 201)
        vms = first.json["vms"]
        self.assertEqual([vm["name"] for vm in vms], ["x-0", "x-1", "x-2"])
        self.assertEqual([vm["state"] for vm in vms], ["ready"] * 3)
        self.assertEqual([vm["index"] for vm in vms], [0, 1, 2])
        self.assertEqual(len({vm["mac"] for vm in vms}), 3)
        again = self.expect(node.create("batch-1", spec("x", count=3, disk_gib=1)), 200)
        self.assertEqual([vm["id"] for vm in again.json["vms"]], [vm["id"] for vm in vms])
        # Report 97: another count is another request.
        wrong = self.expect(node.create("batch-1", spec("x", count=2, disk_gib=1)), 422, "idempotency_key_reused")
        self.assertEqual(wrong.json["differing"], ["/count"])
        self.check_machines(node, [vm["id"] for vm in vms])

    def test_stop_and_start_keep_the_machine(self):
        node = self.real
        vm = self.expect(node.create("power-1", spec("power"), wait=60), 201).vm["id"]
        [before] = node.qemu_pids(vm)
        stop = node.call("POST", f"/v1/vms/{vm}/stop", {"force": True}, "stop-1", {"Prefer": "wait=60"})
        self.expect(stop, 200)
        self.assertEqual(node.qemu_pids(vm), [])
        self.assertEqual(node.vm(vm)["observed"], "stopped")
        # The same stop again does nothing, even after the machine was started.
        self.expect(node.call("POST", f"/v1/vms/{vm}/start", None, "start-1", {"Prefer": "wait=60"}), 200)
        again = node.call("POST", f"/v1/vms/{vm}/stop", {"force": True}, "stop-1", {"Prefer": "wait=60"})
        self.expect(again, 200)
        self.assertTrue(again.replayed)
        [after] = node.qemu_pids(vm)
        self.assertNotEqual(before, after)
        self.assertEqual(node.vm(vm)["observed"], "running")
        self.check_machines(node, [vm])

    def test_the_service_ends_in_any_way_and_finds_its_machines_again(self):
        node = self.real
        vm = self.expect(node.create("again-1", spec("again"), wait=60), 201).vm["id"]
        [pid] = node.qemu_pids(vm)
        console = node.console_with(vm, "vmonce-guest: ready")
        self.assertEqual(node.stop(), 0)
        self.assertEqual(node.qemu_pids(vm), [pid])
        node.start()
        self.assertEqual(node.vm(vm)["state"], "ready")
        node.restart("kill")
        sweep = node.reconcile()
        self.assertEqual((sweep["ours"], sweep["missing"], sweep["strays"]), (1, 0, 0), sweep)
        self.assertEqual(node.qemu_pids(vm), [pid])
        seen = node.vm(vm)
        self.assertEqual((seen["state"], seen["observed"]), ("ready", "running"))
        self.assertTrue(node.console(vm).startswith(console))
        # The guest is not only listed: it shuts down by itself when asked to, and says so on the same console.
        begin = time.monotonic()
        self.expect(node.call("POST", f"/v1/vms/{vm}/stop", None, None, {"Prefer": "wait=60"}), 200)
        self.assertEqual(node.qemu_pids(vm), [])
        self.assertLess(time.monotonic() - begin, 19, "it was forced")
        self.assertTrue(node.console(vm).startswith(console))
        self.assertIn("power button", node.console(vm))

    def test_a_guest_that_dies_behind_the_service_is_told_and_not_made_again(self):
        # Report 19: create is never the repair of a machine that once existed.
        node = self.real
        body = spec("dies", restart="never")
        vm = self.expect(node.create("dies-1", body, wait=60), 201).vm["id"]
        [pid] = node.qemu_pids(vm)
        os.kill(pid, signal.SIGKILL)
        wait_for("the machine is seen stopped", lambda: node.reconcile() and node.vm(vm)["observed"] == "stopped", 30,
                 0.2)
        again = self.expect(node.create("dies-1", body), 200)
        self.assertEqual((again.vm["id"], again.vm["observed"]), (vm, "stopped"))
        self.assertEqual(node.qemu_pids(), [])
        self.expect(node.call("POST", f"/v1/vms/{vm}/start", None, None, {"Prefer": "wait=60"}), 200)
        self.check_machines(node, [vm])


if __name__ == "__main__":
    unittest.main()
