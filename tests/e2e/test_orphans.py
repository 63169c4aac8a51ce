"""Machines that no record wants, and machines of strangers: what sweeps do with them, and what they never do."""
import json
import os
import pathlib
import time
import unittest
import uuid
import xml.etree.ElementTree as ElementTree

from node import LABEL, E2eTest, in_parallel, needs_guest, spec, wait_for

QUICK = {"limits": {"lease_ttl": "500ms", "orphan_grace": "1s"}}


def sweeps_until(node, what, is_done, deadline=20):
    """Sweeps again and again until is_done(the report); the sum of what the sweeps did."""
    did = {"quarantined": 0, "removed": 0}

    def sweep():
        report = node.reconcile()
        for name in did:
            did[name] += report[name]
        return is_done(report, did)
    wait_for(what, sweep, deadline, 0.2)
    return did


class Simulated(E2eTest):
    def plant(self, node, vm=None, name=None, **label):
        """Puts a machine on the host while the service is down, running and with a seed. Without a label: a
        stranger's."""
        vm = vm or str(uuid.uuid4())
        ledger = node.ledger_id()
        name = name or f"vmonce-{ledger}-{vm}"
        domain = {"id": vm, "name": name, "power": "running", "mac": "52:54:00:00:00:01", "console": "", "starts": 1,
                  "volumes": []}
        if label:
            domain["label"] = {"ledger": ledger, "host": "local", "project": "default", "key_hash": "0" * 64,
                               "fingerprint": "0" * 64, "operation": str(uuid.uuid4()), "index": 0, "fence": 1,
                               "sequence": 1} | label
        pathlib.Path(node.root, "domains", vm + ".json").write_text(json.dumps(domain))
        pathlib.Path(node.root, "volumes", f"vmonce-{ledger}-{vm}.qcow2").touch()
        return vm

    def test_a_machine_of_ours_that_no_record_knows_is_stopped_and_kept(self):
        # Report 104: ours by its label, and its rows are gone.
        node = self.node(**QUICK)
        wanted = self.expect(node.create("wanted", spec("wanted"), wait=20), 201).vm["id"]
        node.kill()
        orphan = self.plant(node, index=0)
        node.start()
        # One sighting is not enough.
        report = node.reconcile()
        self.assertEqual((report["strays"], report["quarantined"], report["removed"]), (1, 0, 0))
        self.assertTrue(node.domains()[orphan][1])
        did = sweeps_until(node, "the orphan is stopped", lambda _, done: done["quarantined"])
        self.assertEqual(did, {"quarantined": 1, "removed": 0})
        self.assertFalse(node.domains()[orphan][1])
        self.assertIn("orphan_quarantined", node.log_text())
        # It is never deleted, neither now nor after a restart, and its disk is kept.
        for _ in range(8):
            self.assertEqual(node.reconcile()["removed"], 0)
        node.restart()
        sweeps = [node.reconcile() for _ in range(5)]
        self.assertEqual({(s["strays"], s["removed"]) for s in sweeps}, {(1, 0)})
        self.assertIn(orphan, node.domains())
        self.assertTrue(any(orphan in name for name in node.volumes()))
        self.assertIn("vmonce_domains_unowned 1", node.call("GET", "/metrics").body.decode())
        self.assertTrue(node.domains()[wanted][1])

    def test_a_deleted_machine_that_is_back_is_removed_after_the_grace(self):
        node = self.node(limits={"lease_ttl": "500ms", "orphan_grace": "3s"})
        first = self.expect(node.create("back", spec("back"), wait=20), 201)
        vm, operation = first.vm["id"], first.operation["id"]
        self.expect(node.delete(vm), 200)
        node.kill()
        self.plant(node, vm, operation=operation)
        node.start()
        for _ in range(4):
            report = node.reconcile()
            self.assertEqual((report["strays"], report["removed"], report["quarantined"]), (1, 0, 0))
        did = sweeps_until(node, "the machine is removed", lambda _, done: done["removed"])
        self.assertEqual(did["quarantined"], 0)
        self.assertEqual(node.domains(), {})
        # Disks with guest data are kept and told.
        self.assertEqual(len(node.volumes()), 1)
        self.assertEqual(node.reconcile()["kept_volumes"], 1)
        self.assertEqual(node.vm(vm)["state"], "deleted")

    def test_strangers_are_never_touched(self):
        # Reports 115 and 118: by our label only, never by a name.
        node = self.node(**QUICK)
        gone = self.expect(node.create("gone", spec("gone"), wait=20), 201).vm["id"]
        self.expect(node.delete(gone), 200)
        node.kill()
        strangers = [self.plant(node), self.plant(node, name="back"), self.plant(node, ledger="0123456789ab", index=0),
                     self.plant(node, gone)]
        before = {vm: node.domains()[vm] for vm in strangers}
        node.start()
        for _ in range(6):
            report = node.reconcile()
            self.assertEqual((report["domains"], report["ours"], report["strays"]), (4, 0, 0), report)
        node.restart()
        wait_for("another second of sweeps", lambda: node.reconcile() and self.is_over(node, 1.5), 10)
        self.assertEqual(node.domains(), before)

    def is_over(self, node, seconds):
        self.begin = getattr(self, "begin", time.monotonic())
        return time.monotonic() - self.begin > seconds

    def test_a_stranger_with_our_machine_s_identity_is_a_conflict(self):
        # Reports 103 and 118: nothing is deleted to make a create work.
        node = self.node(latency_ms=250)
        first = self.expect(node.create("taken", spec("taken")), 202)
        vm, operation = first.vm["id"], first.operation["id"]
        node.at_step(operation, "seed")
        node.kill()
        self.plant(node, vm)
        before = node.domains()
        node.start()
        self.assertEqual(node.ended(operation)["state"], "failed")
        seen = node.vm(vm)
        self.assertEqual((seen["state"], seen["failure"]["code"]), ("failed", "conflict"))
        self.assertEqual(node.domains(), before)
        again = node.create("taken", spec("taken"))
        self.assertEqual((again.status, again.code), (409, "conflict"))
        self.assertFalse(again.json["retry_same_key"])
        # Its delete takes away what is ours, and leaves the stranger.
        self.expect(node.delete(vm), 200)
        self.assertEqual(node.domains(), before)
        self.assertEqual(node.get("/v1/capabilities")["usage"]["vms"], 0)

    def test_a_sweep_that_would_remove_too_many_stops(self):
        node = self.node(**QUICK)
        firsts = [self.expect(node.create(f"many-{n}", spec(f"many-{n}"), wait=20), 201) for n in range(5)]
        for first in firsts:
            self.expect(node.delete(first.vm["id"]), 200)
        node.kill()
        for first in firsts:
            self.plant(node, first.vm["id"], operation=first.operation["id"])
        node.start()
        did = sweeps_until(node, "the alarm", lambda report, _: report["alarmed"])
        self.assertEqual(did["removed"], 0)
        self.assertEqual(len(node.domains()), 5)
        self.assertIn("sweep_stopped", node.log_text())

    def test_a_machine_that_vanishes_is_missing_and_is_not_made_again(self):
        # Report 19.
        node = self.node(**QUICK)
        body = spec("vanish")
        vm = self.expect(node.create("vanish", body, wait=20), 201).vm["id"]
        node.kill()
        path = pathlib.Path(node.root, "domains", vm + ".json")
        text = path.read_text()
        path.unlink()
        node.start()
        wait_for("it is missing", lambda: node.reconcile() and node.vm(vm)["state"] == "missing", 10, 0.1)
        self.assertEqual(self.expect(node.create("vanish", body), 200).vm["state"], "missing")
        for _ in range(4):
            node.reconcile()
        self.assertEqual(node.domains(), {})
        node.kill()
        path.write_text(text)
        node.start()
        wait_for("it is found again", lambda: node.reconcile() and node.vm(vm)["state"] == "ready", 10, 0.1)
        self.assertTrue(node.domains()[vm][1])

    def test_sweeps_all_the_time_during_200_creates_reap_nothing(self):
        # Report 116.
        node = self.node(latency_ms=3, limits={"lease_ttl": "500ms", "reconcile_every": "100ms", "orphan_grace": "0s"})
        firsts = in_parallel(lambda n: self.expect(node.create(f"c{n}", spec()), 202), range(200))
        for first in firsts:
            node.reconcile()
            node.succeeded(first.operation["id"])
        self.assertNotIn("orphan_", node.log_text())
        self.assertNotIn("vm_missing", node.log_text())
        self.check_machines(node, [first.vm["id"] for first in firsts])


@needs_guest
class Real(E2eTest):
    def test_orphans_and_strangers_among_real_machines(self):
        node = self.node(real=True, **QUICK)
        wanted = self.expect(node.create("wanted", spec("wanted"), wait=60), 201).vm["id"]
        lost = self.expect(node.create("lost", spec("lost"), wait=60), 201)
        gone = self.expect(node.create("gone", spec("gone"), wait=60), 201)
        gone_xml = self.domain_xml(node, gone.vm["id"])
        self.expect(node.delete(gone.vm["id"]), 200)
        node.kill()

        # An orphan by hand, as virsh makes one: our ledger's label, of an operation that there never was.
        orphan, stranger, foreign = (str(uuid.uuid4()) for _ in range(3))
        made = self.domain_xml(node, lost.vm["id"])
        ledger = node.ledger_id()
        self.define(node, made, orphan, f"vmonce-{ledger}-{orphan}", operation=str(uuid.uuid4()))
        node.virsh("start", orphan)
        # A stranger's, named as one of ours is; and one of another ledger.
        self.define(node, made, stranger, f"vmonce-{ledger}-{stranger}", label=False)
        node.virsh("start", stranger)
        self.define(node, made, foreign, f"vmonce-0123456789ab-{foreign}", ledger="0123456789ab")
        # A deleted one that is back, as out of a backup.
        seed = ElementTree.fromstring(gone_xml).find("devices/disk/source").get("file")
        pathlib.Path(seed).write_bytes(pathlib.Path(self.seed_of(made)).read_bytes())
        self.define(node, gone_xml, gone.vm["id"], f"vmonce-{ledger}-{gone.vm['id']}")
        node.virsh("start", gone.vm["id"])
        strangers = {vm: node.domains()[vm] for vm in (stranger, foreign)}
        pids = {vm: node.qemu_pids(vm) for vm in (wanted, stranger)}
        self.assertEqual(len(node.qemu_pids(orphan)), 1)

        node.start()
        did = sweeps_until(node, "the orphan is stopped and the deleted machine removed",
                           lambda _, done: done["quarantined"] and done["removed"], 60)
        self.assertEqual(did, {"quarantined": 1, "removed": 1})
        self.assertEqual(node.qemu_pids(orphan), [])
        self.assertIn(orphan, node.domains())
        self.assertNotIn(gone.vm["id"], node.domains())
        self.assertEqual(node.qemu_pids(gone.vm["id"]), [])
        for _ in range(4):
            node.reconcile()
        self.assertIn(orphan, node.domains())
        self.assertEqual({vm: node.domains()[vm] for vm in (stranger, foreign)}, strangers)
        self.assertEqual({vm: node.qemu_pids(vm) for vm in (wanted, stranger)}, pids)
        self.assertEqual(node.vm(wanted)["state"], "ready")

    def domain_xml(self, node, vm):
        [path] = [path for path in os.listdir(node.root + "/etc/qemu") if vm in path]
        return pathlib.Path(node.root, "etc/qemu", path).read_text()

    def seed_of(self, xml):
        return ElementTree.fromstring(xml).find("devices/disk/source").get("file")

    def define(self, node, xml, vm, name, label=True, **changed):
        ElementTree.register_namespace("vmonce", LABEL)
        domain = ElementTree.fromstring(xml)
        domain.find("uuid").text = vm
        domain.find("name").text = name
        element = domain.find(f"metadata/{{{LABEL}}}label")
        if label:
            for attribute, value in changed.items():
                element.set(attribute, value)
        else:
            domain.remove(domain.find("metadata"))
        if vm not in self.seed_of(xml):
            disk = domain.find("devices/disk")
            domain.find("devices").remove(disk)
        path = node.dir + "/by-hand.xml"
        ElementTree.ElementTree(domain).write(path)
        node.virsh("define", path)


if __name__ == "__main__":
    unittest.main()
