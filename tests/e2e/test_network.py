"""Ways into a real machine, and what becomes of them when the service dies or somebody takes a port."""
import http.client
import socket
import subprocess

from node import BIN, E2eTest, Node, needs_guest, spec, wait_for


def free_range(size):
    """A range of ports that nobody has now, below those that the system gives out by itself."""
    for first in range(21000, 31000, size):
        taken = [socket.socket() for _ in range(size)]
        try:
            for offset, one in enumerate(taken):
                one.bind(("127.0.0.1", first + offset))
            return first
        except OSError:
            continue
        finally:
            for one in taken:
                one.close()
    raise AssertionError("no free ports")


def page(port):
    """What the guest serves there; None while it does not answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/")
        return connection.getresponse().read().decode()
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


@needs_guest
class Forwards(E2eTest):
    @classmethod
    def setUpClass(cls):
        cls.first = free_range(8)
        cls.real = Node(real=True)
        cls.real.host["forward_ports"] = f"{cls.first}-{cls.first + 7}"
        cls.addClassCleanup(cls.real.close)
        cls.real.start()

    def tearDown(self):
        for vm in self.real.vms():
            self.real.delete(vm["id"])
        self.check_machines(self.real, [])
        self.assertEqual(self.real.query("SELECT count(*) FROM forwards"), [(0,)])

    def serves(self, port, name, deadline=120):
        wait_for(f"{name} answers on port {port}", lambda: page(port) == f"vmonce-guest: hostname={name}\n", deadline,
                 every=0.5)

    def test_a_guest_answers_on_its_port_also_after_the_service_was_killed(self):
        node = self.real
        vm = self.expect(node.create("way-1", spec("way", forward=[{"guest_port": 80}]), wait=60), 201).vm
        [forward] = vm["forwards"]
        self.assertEqual((forward["guest_port"], forward["protocol"], forward["host_address"]), (80, "tcp", "127.0.0.1"))
        self.assertIn(forward["host_port"], range(self.first, self.first + 8))
        self.serves(forward["host_port"], "way")
        node.restart("kill")
        self.assertEqual(node.vm(vm["id"])["forwards"], [forward])
        self.serves(forward["host_port"], "way", 20)
        stopped = node.call("POST", f"/v1/vms/{vm['id']}/stop", {"force": True}, None, {"Prefer": "wait=60"})
        self.expect(stopped, 200)
        self.assertIsNone(page(forward["host_port"]))
        started = node.call("POST", f"/v1/vms/{vm['id']}/start", None, None, {"Prefer": "wait=60"})
        self.expect(started, 200)
        self.serves(forward["host_port"], "way")
        self.check_machines(node, [vm["id"]])

    def test_a_service_that_is_killed_in_the_middle_keeps_the_port(self):
        node = self.real
        answer = self.expect(node.create("mid-1", spec("mid", forward=[{"guest_port": 80}])), 202)
        port = wait_for("a port is reserved", lambda: node.vm(answer.vm["id"])["forwards"][0]["host_port"])
        node.restart("kill")
        node.succeeded(answer.operation["id"])
        self.assertEqual(node.vm(answer.vm["id"])["forwards"][0]["host_port"], port)
        self.serves(port, "mid")

    def test_a_port_of_a_strangers_program_is_left_to_it(self):
        node = self.real
        with socket.socket() as stranger:
            # Connections of an earlier test may still be ending there.
            stranger.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            stranger.bind(("127.0.0.1", self.first + 3))
            stranger.listen()
            # All ports but the stranger's: it must have been tried.
            forwards = [{"guest_port": 1000 + i} for i in range(7)]
            vm = self.expect(node.create("stranger-1", spec("s", forward=forwards), wait=60), 201).vm
            ports = {forward["host_port"] for forward in vm["forwards"]}
            self.assertEqual(ports, set(range(self.first, self.first + 8)) - {self.first + 3})
            fixed = spec("t", forward=[{"guest_port": 80, "host_port": self.first + 3}])
            refused = self.expect(node.create("stranger-2", fixed, wait=90), 409, "host_port_taken")
            self.assertTrue(refused.json["retry_same_key"])
        again = node.create("stranger-2", fixed, wait=90)
        self.assertIn(again.status, (200, 201), again)
        self.assertEqual(again.vm["forwards"][0]["host_port"], self.first + 3)

    def test_a_port_that_another_vm_has_is_refused_and_the_key_stays_free(self):
        node = self.real
        fixed = [{"guest_port": 80, "host_port": self.first}]
        self.expect(node.create("fixed-1", spec("one", forward=fixed), wait=60), 201)
        self.expect(node.create("fixed-2", spec("two", forward=fixed)), 409, "host_port_taken")
        other = [{"guest_port": 80}]
        self.expect(node.create("fixed-2", spec("two", forward=other), wait=60), 201)

    def test_create_says_how_to_get_in(self):
        node = self.real
        done = subprocess.run([BIN, "--url", node.url, "create", "--image", "tiny", "--memory", "128", "--name", "cli",
                               "--forward", f"{self.first + 1}:22", "--forward", "80"],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=90,
                              env={"PATH": "/usr/bin:/bin", "XDG_STATE_HOME": node.dir + "/cli"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"ssh -p {self.first + 1} USER@127.0.0.1", done.stderr)
        self.assertIn("leads to port 80 of the guest", done.stderr)


if __name__ == "__main__":
    import unittest
    unittest.main()
