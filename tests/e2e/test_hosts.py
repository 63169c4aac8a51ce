"""One node with several hosts: two made up, and a real libvirt daemon that is frozen, killed and started again."""
import os
import pathlib
import subprocess
import time

from libvirtd import Libvirtd
from node import BIN, GUEST, E2eTest, Node, needs_guest, spec, wait_for
from test_images import boot_disk


@needs_guest
class Hosts(E2eTest):
    def setUp(self):
        self.libvirtd = Libvirtd().start()
        self.addCleanup(self.libvirtd.close)
        node = Node(limits={"reconcile_every": "500ms", "lease_ttl": "1s"})
        self.addCleanup(node.close)
        # A real kernel, so that the daemon's machines boot; the simulated hosts do not mind.
        node.guest = GUEST
        node.more_hosts = [
            {"id": "second", "uri": "simulated:", "cpus": 4, "memory_mib": 1024},
            {"id": "rack", "uri": self.libvirtd.uri, "accel": "tcg", "pool_path": self.libvirtd.dir + "/pool",
             "cpus": 8, "memory_mib": 2048, "disk_gib": 10, "networks": ["lan"]},
        ]
        node.host |= {"cpus": 4, "memory_mib": 1024}
        self.node = node.start()
        wait_for("every host answers", lambda: all(host["reachable"] for host in self.hosts().values()), 60)

    def hosts(self):
        return {host["id"]: host for host in self.node.get("/v1/hosts")["items"]}

    def test_vms_are_spread_over_the_hosts_by_their_room(self):
        capacities = {name: host["capacity"]["memory_mib"] for name, host in self.hosts().items()}
        self.assertEqual(capacities, {"local": 1024, "second": 1024, "rack": 2048})
        used = []
        for number in range(4):
            vm = self.expect(self.node.create(f"spread-{number}", spec(f"s{number}", memory_mib=512), wait=90), 201).vm
            used.append(vm["host"])
        # The largest free share of memory first: half of rack's is left when the others are half full.
        self.assertEqual(sorted(used), ["local", "rack", "rack", "second"])
        self.assertEqual(used[0], "rack")
        reserved = {name: host["reserved"]["memory_mib"] for name, host in self.hosts().items()}
        self.assertEqual(reserved, {"local": 512, "second": 512, "rack": 1024})
        # Report 127: what is there is what is wanted, on each host.
        self.assertEqual(len(self.libvirtd.running()), 2)

    def test_a_stored_image_is_brought_to_another_machine_once_and_goes_with_its_name(self):
        node = self.node
        path = pathlib.Path(node.dir, "hello.raw")
        path.write_bytes(boot_disk())
        added = subprocess.run([BIN, "--url", node.url, "image", "add", str(path)], stdin=subprocess.DEVNULL,
                               capture_output=True, text=True, timeout=60)
        self.assertEqual(added.returncode, 0, added)
        for host in ("local", "second"):
            self.expect(node.call("POST", f"/v1/hosts/{host}/drain"), 200)
        vms = []
        for name in ("first", "second"):
            made = self.expect(node.create(f"hello-{name}", spec(name, image="hello", memory_mib=512), wait=90), 201)
            self.assertEqual(made.vm["host"], "rack")
            vms.append(made.vm["id"])
        brought = sorted(name for name in os.listdir(self.libvirtd.dir + "/pool") if "-image-" in name)
        self.assertEqual(len(brought), 2, brought)  # The disk, and that it is whole.
        node.console_with(vms[1], "vmonce-disk: booted")
        for vm in vms:
            self.expect(node.delete(vm), 200)
        self.expect(node.call("DELETE", "/v1/images/hello"), 204)
        wait_for("it is removed there", lambda: not any("-image-" in name
                                                       for name in os.listdir(self.libvirtd.dir + "/pool")))

    def test_a_frozen_daemon_stops_no_work_on_other_hosts_and_goes_on_when_it_thaws(self):
        node = self.node
        vm = self.expect(node.create("ice-1", spec("ice", memory_mib=512), wait=90), 201).vm
        self.assertEqual(vm["host"], "rack")
        self.libvirtd.freeze()
        try:
            delete = node.call("DELETE", f"/v1/vms/{vm['id']}")
            self.expect(delete, 202)
            began = time.monotonic()
            # So small that the others have the larger free share: none is to wait for the frozen host.
            others = [self.expect(node.create(f"warm-{n}", spec(f"warm{n}", memory_mib=128), wait=60), 201).vm["host"]
                      for n in range(3)]
            self.assertLess(time.monotonic() - began, 60)
            self.assertNotIn("rack", others)
            wait_for("the host is told as unreachable", lambda: not self.hosts()["rack"]["reachable"], 90)
            self.assertEqual(node.vm(vm["id"])["state"], "deleting")
        finally:
            self.libvirtd.thaw()
        wait_for("the delete ends", lambda: node.vm(vm["id"])["state"] == "deleted", 120)
        self.assertEqual(self.libvirtd.running(), [])

    def test_machines_outlive_their_daemon(self):
        node = self.node
        vm = self.expect(node.create("tough-1", spec("tough", memory_mib=512), wait=90), 201).vm
        self.assertEqual(vm["host"], "rack")
        node.console_with(vm["id"], "vmonce-guest: ready")
        self.libvirtd.kill()
        wait_for("the host is told as unreachable", lambda: not self.hosts()["rack"]["reachable"], 60)
        self.assertEqual(node.vm(vm["id"])["state"], "ready")
        self.libvirtd.start()
        wait_for("the host is back", lambda: self.hosts()["rack"]["reachable"], 60)
        node.reconcile()
        self.assertEqual(node.vm(vm["id"])["state"], "ready")
        self.assertEqual(node.vm(vm["id"])["observed"], "running")
        self.assertEqual(self.libvirtd.running(), [vm["id"]])

    def test_a_guest_in_a_named_network_shows_its_address(self):
        node = self.node
        missing = self.expect(node.create("net-0", spec("lost", network="dmz")), 409, "network_not_offered")
        self.assertTrue(missing.json["retry_same_key"])
        network = pathlib.Path(self.libvirtd.dir, "lan.xml")
        network.write_text("<network><name>lan</name><forward mode='open'/><bridge name='vmoncetest1' stp='off' "
                           "delay='0'/><ip address='192.168.218.1' netmask='255.255.255.0'><dhcp><range "
                           "start='192.168.218.10' end='192.168.218.99'/></dhcp></ip></network>")
        made = self.libvirtd.virsh("net-create", str(network))
        self.assertEqual(made.returncode, 0, made.stderr)
        self.addCleanup(self.libvirtd.virsh, "net-destroy", "lan")
        self.assertEqual(self.hosts()["rack"]["networks"], ["user", "lan"])
        self.assertEqual(self.hosts()["second"]["networks"], ["user"])
        vm = self.expect(node.create("net-1", spec("lan", network="lan"), wait=90), 201).vm
        self.assertEqual(vm["host"], "rack")
        addresses = wait_for("the address is shown", lambda: node.vm(vm["id"])["addresses"], 90)
        self.assertEqual(len(addresses), 1)
        self.assertTrue(addresses[0].startswith("192.168.218."), addresses)
        self.assertIn(f"vmonce-guest: address={addresses[0]}\n",
                      node.console_with(vm["id"], f"address={addresses[0]}"))


if __name__ == "__main__":
    import unittest
    unittest.main()
