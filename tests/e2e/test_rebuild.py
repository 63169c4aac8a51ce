"""A ledger that was lost, or restored from an older copy, is rebuilt from the machines on a real host."""
import glob
import os
import shutil
import subprocess
import unittest

from node import BIN, START_DEADLINE, E2eTest, needs_guest, spec, wait_for


def rebuild(node, *flags):
    """Runs the command on the node's directory: exit code, stdout, stderr."""
    done = subprocess.run([BIN, "rebuild", "--config", node.config_path, *flags], text=True, capture_output=True,
                          stdin=subprocess.DEVNULL, timeout=120)
    return done.returncode, done.stdout, done.stderr


def lose_ledger(node):
    for path in glob.glob(node.ledger_path + "*"):
        os.remove(path)


def ids(answer):
    return [vm["id"] for vm in answer.json.get("vms", [answer.json["vm"]])]


@needs_guest
class Rebuild(E2eTest):
    def made(self, node, key, body):
        return ids(self.expect(node.create(key, body, wait=60), 201))

    def again(self, node, key, body):
        """The same create, as a client sends it that never got its answer."""
        answer = self.expect(node.create(key, body), 200)
        self.assertTrue(answer.replayed)
        return ids(answer)

    def whole(self, node, *flags):
        code, out, err = rebuild(node, *flags)
        self.assertEqual(code, 0, out + err)
        return out + err

    def test_a_lost_ledger_answers_every_old_key_with_the_old_machine(self):
        node = self.node(real=True)
        web, db = spec("web", cpus=2), spec("db", count=2)
        first = self.made(node, "key-1", web)
        batch = self.made(node, "key-2", db)
        self.assertEqual(len(batch), 2)
        code, _, err = rebuild(node)
        self.assertEqual(code, 1, "a service runs")
        self.assertIn("stop the service", err)
        before = node.vm(first[0])
        pids = {vm: node.qemu_pids(vm) for vm in first + batch}
        ledger = node.ledger_id()
        self.assertEqual(node.stop(), 0)
        lose_ledger(node)

        self.assertIn("nothing was written", self.whole(node, "--dry-run"))
        self.assertFalse(os.path.exists(node.ledger_path))
        self.assertIn("is known again", self.whole(node))
        self.assertIn("the ledger is whole", self.whole(node), "once more changes nothing")

        node.start()
        self.assertEqual(node.ledger_id(), ledger)
        self.assertEqual(self.again(node, "key-1", web), first)
        self.assertEqual(self.again(node, "key-2", db), batch)
        self.expect(node.create("key-1", spec("other")), 422, "idempotency_key_reused")
        after = node.vm(first[0])
        for member in ("name", "image", "cpus", "memory_mib", "disk_gib", "mac", "host", "state", "observed"):
            self.assertEqual(after[member], before[member], member)
        self.assertEqual({vm: node.qemu_pids(vm) for vm in pids}, pids, "no guest was touched")
        self.check_machines(node, first + batch)
        # They are ordinary VMs again.
        self.expect(node.delete(first[0]), 200)
        self.assertEqual(node.qemu_pids(first[0]), [])
        more = self.made(node, "key-3", spec("more"))
        self.check_machines(node, batch + more)

    def test_a_restored_older_copy_is_refused_until_it_was_rebuilt(self):
        node = self.node(real=True)
        web, db, gone = spec("web"), spec("db", count=2), spec("gone")
        first = self.made(node, "key-1", web)
        deleted = self.made(node, "key-2", gone)
        self.assertEqual(node.stop(), 0)
        shutil.copy(node.ledger_path, node.dir + "/copy.db")
        node.start()
        batch = self.made(node, "key-3", db)
        self.expect(node.delete(deleted[0]), 200)
        pids = {vm: node.qemu_pids(vm) for vm in first + batch}
        self.assertEqual(node.stop(), 0)
        lose_ledger(node)
        shutil.copy(node.dir + "/copy.db", node.ledger_path)

        node.spawn()
        node.port = wait_for("the service says its address", node._said_port, START_DEADLINE)
        wait_for("the labels are compared",
                 lambda: node.create("key-3", db).code == "ledger_behind", START_DEADLINE)
        self.expect(node.create("new", spec("new")), 503, "ledger_behind")
        self.assertEqual(node.stop(), 0)
        self.whole(node)

        node.start()
        self.assertEqual(self.again(node, "key-1", web), first)
        self.assertEqual(self.again(node, "key-3", db), batch)
        self.assertEqual(self.again(node, "key-2", gone), deleted, "it is known, and not made again")
        node.reconcile()
        self.assertEqual(node.vm(deleted[0])["state"], "missing")
        self.assertEqual(set(node.domains()), set(first + batch))
        self.assertEqual({vm: node.qemu_pids(vm) for vm in pids}, pids)
        self.expect(node.delete(deleted[0]), 200)
        self.check_machines(node, first + batch)


if __name__ == "__main__":
    unittest.main()
