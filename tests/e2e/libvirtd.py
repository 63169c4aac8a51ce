"""A real libvirt daemon of the tests' own, to be frozen, killed and started again."""
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile

from node import wait_for

SCRIPT = pathlib.Path(__file__).parent.parent / "private_libvirtd"


class Libvirtd:
    """tests/private_libvirtd in a directory of its own."""

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="lv", dir="/tmp")
        os.mkdir(self.dir + "/pool")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        # As one names a daemon of another machine, and of this one.
        self.uri = f"qemu+tcp://127.0.0.1:{self.port}/system"
        self.local_uri = f"qemu+unix:///system?socket={self.dir}/socket/libvirt-sock"
        self.process = None

    def start(self):
        self.process = subprocess.Popen([SCRIPT, self.dir, str(self.port)], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for("libvirtd answers", lambda: self.virsh("version").returncode == 0, 30)
        return self

    def virsh(self, *arguments):
        return subprocess.run(["virsh", "-q", "-c", self.uri, *arguments], stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=30)

    def running(self):
        return self.virsh("list", "--uuid").stdout.split()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def freeze(self):
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)

    def close(self):
        self.thaw()
        for vm in self.running():
            self.virsh("destroy", vm)
        self.kill()
        shutil.rmtree(self.dir, ignore_errors=True)
