"""The disk under the ledger is full while creates arrive: nothing is half done, and space is all it takes to go on."""
import ctypes
import os
import shutil
import threading
import unittest

from node import E2eTest, Node, spec, wait_for

CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
MS_REC, MS_PRIVATE = 0x4000, 0x40000
LIBC = ctypes.CDLL(None, use_errno=True)


def checked(result):
    if result != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def leave_the_mounts():
    """What this process mounts from here on is seen by it and its children only, and goes with them."""
    user, group = os.geteuid(), os.getegid()
    checked(LIBC.unshare(CLONE_NEWNS | (CLONE_NEWUSER if user != 0 else 0)))
    if user != 0:
        for name, text in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
    checked(LIBC.mount(None, b"/", None, MS_REC | MS_PRIVATE, None))


class SmallDisk(E2eTest):
    @classmethod
    def setUpClass(cls):
        leave_the_mounts()

    def setUp(self):
        self.served = Node()
        self.addCleanup(shutil.rmtree, self.served.dir, ignore_errors=True)
        os.mkdir(self.served.state, 0o700)
        checked(LIBC.mount(b"small", self.served.state.encode(), b"tmpfs", 0, b"size=6m,mode=0700"))
        self.addCleanup(lambda: checked(LIBC.umount(self.served.state.encode())))
        self.addCleanup(self.served.close)
        self.served.start()
        self.answers = {}  # key -> every answer, in order

    def fill(self):
        with open(self.served.state + "/filler", "ab", buffering=0) as file:
            for size in (65536, 4096, 1):
                try:
                    while True:
                        file.write(b"x" * size)
                except OSError:
                    pass

    def free(self):
        os.unlink(self.served.state + "/filler")

    def create(self, key):
        answer = self.served.create(key, spec(key, user_data="#cloud-config\n" + "x" * 2000))
        self.answers.setdefault(key, []).append(answer)
        return answer

    def create_until_refused(self, clients=4, refusals=5):
        """So many clients create at once, until each was refused often."""
        self.fill()
        failures = []

        def client(number):
            refused = 0
            for turn in range(500):
                answer = self.create(f"k{number}-{turn}")
                refused += answer.status == 503
                if answer.status not in (202, 503):
                    failures.append(answer)
                if refused == refusals or failures:
                    return
                self.fill()
            failures.append(f"client {number} was refused {refused} times only")

        threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])

    def refused(self):
        return [key for key, answers in self.answers.items() if answers[-1].status == 503]

    def accepted(self):
        return {key: answers[-1].operation["id"] for key, answers in self.answers.items() if answers[-1].status == 202}

    def check_refusals(self):
        for key in self.refused():
            answer = self.answers[key][-1]
            self.expect(answer, 503, "ledger_unavailable")
            self.assertTrue(answer.json["retryable"], answer)
            self.assertTrue(answer.json["retry_same_key"], answer)
            self.assertGreaterEqual(int(answer.headers["Retry-After"]), 1)

    def check_all_can_go_on(self):
        """Every refused key is accepted now, and every key has one operation, whole, with one machine."""
        for key in self.refused():
            answer = self.create(key)
            self.assertIn(answer.status, (200, 202), answer)
            self.answers[key][-1] = answer
        for key, answers in self.answers.items():
            operation = answers[-1].operation["id"]
            self.assertEqual(self.create(key).operation["id"], operation)
        for operation in {answers[-1].operation["id"] for answers in self.answers.values()}:
            self.served.succeeded(operation)
        self.assertEqual(self.served.query("SELECT count(*) FROM operations")[0][0], len(self.answers))
        self.assertEqual(len(self.served.vms()), len(self.answers))
        self.check_machines(self.served, [vm["id"] for vm in self.served.vms()])
        self.assertEqual(self.served.query("PRAGMA integrity_check"), [("ok",)])

    def test_creates_are_refused_and_go_on_without_a_restart_once_there_is_space(self):
        self.create_until_refused()
        self.check_refusals()
        # Opening the ledger anew needs a little space itself, so that reads may be refused as well; never left waiting.
        read = self.served.call("GET", "/v1/vms", timeout=20)
        self.assertIn((read.status, read.json.get("code")), [(200, None), (503, "ledger_unavailable")], read)
        self.expect(self.served.call("GET", "/healthz"), 200)
        self.free()
        wait_for("a create is accepted again", lambda: self.create("after").status == 202, 30)
        self.check_all_can_go_on()

    def test_what_was_accepted_survives_a_kill_while_the_disk_is_full(self):
        self.create_until_refused()
        accepted = self.accepted()
        self.served.kill()
        self.free()
        self.served.start()
        for key, operation in accepted.items():
            self.assertEqual(self.served.operation(operation)["id"], operation, key)
        self.check_all_can_go_on()


if __name__ == "__main__":
    unittest.main()
