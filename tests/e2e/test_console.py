"""The serial console of a guest that never stops printing: bounded on the disk, at the same offsets for every reader, and
followed over a restart of the service."""
import glob
import os
import subprocess
import unittest

from node import BIN, E2eTest, spec, wait_for
from test_images import boot_disk

# A boot sector (16-bit) that counts on the serial port for ever, eight hexadecimal digits and a newline each time: what
# stands at any offset of the console is known.
COUNT = bytes.fromhex("31c08ed86631c96689cbbe080066c1c30488d8240f04303c3976020427e80c004e75eab00ae804006641ebdb88c4bafd03ec"
                      "a82074fb88e0baf803eec3")
LINE = 9
CAP = 1 << 20


def expected(begin, end):
    """What the guest printed from one offset to another."""
    lines = range(begin // LINE, (end + LINE - 1) // LINE)
    text = b"".join(b"%08x\n" % line for line in lines)
    return text[begin % LINE:begin % LINE + end - begin]


class Console(E2eTest):
    def setUp(self):
        self.talker = self.node(real=True, limits={"console_mib": CAP >> 20})
        path = self.talker.dir + "/count.raw"
        with open(path, "wb") as file:
            file.write(boot_disk(COUNT))
        subprocess.run([BIN, "--url", self.talker.url, "image", "add", path], check=True, capture_output=True, timeout=60)
        created = self.expect(self.talker.create("talk-1", spec("talker", image="count"), wait=60), 201)
        self.vm = created.vm["id"]

    def read(self, offset):
        """Where the part that was asked for begins, and what it holds."""
        answer = self.talker.call("GET", f"/v1/vms/{self.vm}/console?offset={offset}")
        self.assertEqual(answer.status, 200, answer)
        return int(answer.headers["Vmonce-Console-Next"]) - len(answer.body), answer.body

    def on_disk(self):
        [path] = glob.glob(self.talker.root + "/consoles/*.log")
        status = os.stat(path)
        return status.st_size, status.st_blocks * 512

    def test_a_guest_that_prints_for_ever_is_bounded_and_every_reader_sees_the_same_offsets(self):
        node = self.talker
        wait_for("the oldest output goes", lambda: self.on_disk()[0] > self.on_disk()[1] + CAP // 4, 120, 0.2)
        begin, part = self.read(0)
        self.assertGreater(begin, 0, "nothing was dropped")
        self.assertEqual(part, expected(begin, begin + len(part)))
        begin, part = self.read(-1000)
        self.assertEqual(part, expected(begin, begin + len(part)))

        follower = subprocess.Popen([BIN, "--url", node.url, "console", "talker", "--follow", "--tail", "1"],
                                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(follower.kill)
        self.assertRegex(follower.stdout.readline(), rb"^[0-9a-f]+\n$")
        # Down, nobody trims; up again, it is done at once, and reading goes on where it was.
        size = self.on_disk()[0]
        node.kill()
        wait_for("it prints on", lambda: self.on_disk()[0] > size + 2 * CAP, 120, 0.2)
        node.start()
        wait_for("what grew meanwhile goes", lambda: self.on_disk()[1] < 2 * CAP, 20, 0.1)
        begin, part = self.read(size)
        self.assertGreaterEqual(begin, size)
        self.assertEqual(part, expected(begin, begin + len(part)))

        # A follower reads on after the restart, goes over what was dropped once, and ends with its VM.
        def next_line():
            return int(follower.stdout.readline().strip() or b"0", 16)
        wait_for("the follower is over the restart", lambda: next_line() > size // LINE + 1000, 120, 0)
        self.expect(node.delete(self.vm), 200)
        out, err = follower.communicate(timeout=60)
        self.assertEqual(follower.returncode, 0, err)
        self.assertIn(b"VM talker was deleted", err)
        lines = [int(line, 16) for line in out.split(b"\n") if len(line) == LINE - 1]
        # Where output was dropped, two halves of lines make one.
        backwards = sum(after < before for before, after in zip(lines, lines[1:]))
        self.assertLess(backwards, 5)


if __name__ == "__main__":
    unittest.main()
