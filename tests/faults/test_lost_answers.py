"""Answers that get lost and clients that hang up, with real libvirt behind the service."""
import json
import os
import subprocess
import unittest

import oracle
from lossy import LosingProxy, hang_up
from node import BIN, E2eTest, Node, needs_guest, wait_for


@needs_guest
class LostAnswers(E2eTest):
    def setUp(self):
        self.real = Node(real=True)
        self.addCleanup(self.real.close)
        self.real.host |= {"cpus": 32, "memory_mib": 4096}
        self.real.start()

    def wanted(self, runs):
        return {vm["id"]: (vm["operation"], runs, 0) for vm in self.real.vms()}

    def test_the_first_answer_of_every_request_is_lost(self):
        # Report 1: the command keeps its key, and sends it again. Report 7: nobody has to look for the machine by name.
        proxy = LosingProxy(self.real)
        self.addCleanup(proxy.close)
        environment = {"PATH": os.environ["PATH"], "VMONCE_URL": proxy.url, "XDG_STATE_HOME": self.real.dir + "/x"}

        def command(*arguments):
            done = subprocess.run([BIN, *arguments, "--json"], capture_output=True, text=True, env=environment, timeout=120,
                                  stdin=subprocess.DEVNULL)
            self.assertEqual(done.returncode, 0, f"{arguments}\n{done.stdout}\n{done.stderr}")
            return done.stdout
        made = [json.loads(command("create", "--image", "tiny", "--name", f"lost-{number}", "--memory", "64"))["vm"]["id"]
                for number in range(2)]
        self.assertEqual(len(proxy.posts), 2 * len(set(proxy.posts)))
        oracle.check_all(self, self.real, self.wanted(True))
        lost = proxy.lost
        command("delete", made[0], "--yes")
        self.assertGreater(proxy.lost, lost)
        oracle.check_all(self, self.real, {vm: how for vm, how in self.wanted(True).items() if vm == made[1]})
        self.assertEqual([vm["id"] for vm in self.real.vms()], [made[1]])

    def test_a_client_resets_its_connection_at_twenty_moments(self):
        # Report 35: what was accepted goes on without its client. Defined and not started, twenty machines weigh nothing.
        for key, body, is_whole in [hang_up(self.real, number, desired="stopped") for number in range(20)]:
            if is_whole:
                wait_for(f"{key} was accepted",
                         lambda: self.real.get(f"/v1/operations?idempotency_key={key}")["items"], 10)
            again = self.real.create(key, body, wait=60)
            self.assertIn(again.status, (200, 201), again)
            self.assertTrue(again.replayed or not is_whole)
            self.real.succeeded(again.operation["id"])
        self.assertEqual(len(self.real.vms()), 20)
        oracle.check_all(self, self.real, self.wanted(False))


if __name__ == "__main__":
    unittest.main()
