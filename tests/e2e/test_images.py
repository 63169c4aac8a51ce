"""Images that a person adds: sent by `vmonce image add`, kept by content, booted, and refused to go while machines
stand on them."""
import hashlib
import os
import pathlib
import subprocess
import unittest

from node import BIN, GUEST, E2eTest, Node, needs_guest, spec, wait_for

# A boot sector (16-bit): prints the text below on the serial port, and halts.
HELLO = bytes.fromhex("31c08ed8be217cac84c0741288c4bafd03eca82074fb88e0baf803eeebe9f4ebfd") + b"vmonce-disk: booted\n\0"


def boot_disk(code=HELLO, size=1 << 20):
    return (code.ljust(510, b"\0") + b"\x55\xaa").ljust(size, b"\0")


class Images(E2eTest):
    @classmethod
    def setUpClass(cls):
        cls.real = Node(real=True)
        cls.addClassCleanup(cls.real.close)
        cls.real.start()

    def file(self, name, content):
        path = pathlib.Path(self.real.dir, name)
        path.write_bytes(content)
        return str(path)

    def qemu_img(self, *arguments):
        subprocess.run(["qemu-img", *arguments], check=True, capture_output=True, timeout=60)

    def vmonce(self, *arguments, code=0):
        done = subprocess.run([BIN, "--url", self.real.url, *arguments], text=True, capture_output=True, timeout=120,
                              stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def listed(self):
        return {image["name"]: image for image in self.real.get("/v1/images")["items"]}

    def store(self):
        """What the store's directory holds: name -> mode."""
        files = {}
        for path in pathlib.Path(self.real.state, "images").rglob("*"):
            if path.is_file():
                files[path.name] = path.stat().st_mode & 0o7777
        return files

    def remove(self, name):
        return self.real.call("DELETE", f"/v1/images/{name}")

    def test_a_disk_is_added_booted_kept_while_used_and_removed(self):
        node = self.real
        content = boot_disk()
        sha = hashlib.sha256(content).hexdigest()
        path = self.file("hello.raw", content)
        self.assertIn("image hello: added", self.vmonce("image", "add", path, "--alias", "latest"))
        self.assertEqual(self.store(), {sha: 0o444})
        seen = self.listed()["hello"]
        self.assertEqual((seen["source"], seen["disk_format"], seen["disk_sha256"], seen["aliases"]),
                         ("store", "raw", sha, ["latest"]))
        # The file is not needed any more, and the same again changes nothing.
        self.assertIn("already there", self.vmonce("image", "add", path))
        os.unlink(path)

        vm = self.expect(node.create("img-1", spec("hello", image="latest", disk_gib=0), wait=60), 201).vm
        self.assertEqual(vm["image"], "hello")
        node.console_with(vm["id"], "vmonce-disk: booted")
        refused = self.expect(self.remove("hello"), 409, "image_in_use")
        self.assertIn("1 VM stands on 'hello'", refused.json["detail"])
        self.assertIn("1 VM stands", self.vmonce("image", "remove", "hello", code=1))

        # Report 79: the alias moves to another content; the same request is the same machine on its pinned image.
        other = self.file("hello-2.raw", boot_disk(size=2 << 20))
        self.vmonce("image", "add", other, "--alias", "latest")
        self.assertEqual(self.listed()["hello"]["aliases"], [])
        again = self.expect(node.create("img-1", spec("hello", image="latest", disk_gib=0)), 200)
        self.assertTrue(again.replayed)
        self.assertEqual((again.vm["id"], again.vm["image"]), (vm["id"], "hello"))
        wrong = self.expect(node.create("img-1", spec("hello", image="latest", disk_gib=1)), 422)
        self.assertEqual(wrong.operation, f"/v1/operations/{again.operation['id']}")

        # All of it outlives a crash of the service.
        node.restart("kill")
        self.assertEqual(self.listed()["hello-2"]["aliases"], ["latest"])
        self.expect(self.remove("hello"), 409, "image_in_use")
        self.expect(node.delete(vm["id"]), 200)
        self.expect(self.remove("hello"), 204)
        self.expect(self.remove("hello"), 404, "image_not_found")
        self.assertNotIn(sha, self.store())
        self.expect(node.create("img-2", spec("late", image="hello")), 404, "image_not_found")
        # The key was not used up.
        late = self.expect(node.create("img-2", spec("late", image="hello-2"), wait=60), 201)
        self.expect(node.delete(late.vm["id"]), 200)
        self.vmonce("image", "remove", "hello-2")
        self.assertEqual(self.store(), {})

    def test_a_qcow2_disk_boots_and_one_that_reads_other_files_is_refused(self):
        node = self.real
        raw = self.file("boot.raw", boot_disk())
        path = node.dir + "/boot.qcow2"
        self.qemu_img("convert", "-f", "raw", "-O", "qcow2", raw, path)
        self.vmonce("image", "add", path, "--name", "boot")
        vm = self.expect(node.create("img-3", spec("boot", image="boot"), wait=60), 201).vm
        node.console_with(vm["id"], "vmonce-disk: booted")
        self.expect(node.delete(vm["id"]), 200)

        chained = node.dir + "/chained.qcow2"
        self.qemu_img("create", "-q", "-f", "qcow2", "-F", "raw", "-b", "/etc/hostname", chained)
        self.assertIn("names another file", self.vmonce("image", "add", chained, code=2))
        split = node.dir + "/split.qcow2"
        self.qemu_img("create", "-q", "-f", "qcow2", "-o", f"size=1M,data_file={node.dir}/data.raw", split)
        self.assertIn("names another file", self.vmonce("image", "add", split, code=2))
        self.assertIn("unpack it first", self.vmonce("image", "add", self.file("d.xz", b"\xfd7zXZ\0" + bytes(600)),
                                                     code=2))
        self.assertIn("neither qcow2 nor", self.vmonce("image", "add", self.file("notes", b"a text"), code=2))
        self.assertEqual(set(self.listed()), {"tiny", "boot"})
        self.assertEqual(len(self.store()), 1, "something is left of what was refused")
        self.vmonce("image", "remove", "boot")
        self.assertIn("configuration", self.vmonce("image", "remove", "tiny", code=1))

    @needs_guest
    def test_a_kernel_and_its_initrd_are_an_image(self):
        node = self.real
        cmdline = pathlib.Path(GUEST, "cmdline").read_text().strip()
        self.vmonce("image", "add", "--name", "guest", "--kernel", GUEST + "/vmlinuz", "--initrd",
                    GUEST + "/initrd.gz", "--cmdline", cmdline)
        vm = self.expect(node.create("img-4", spec("guest", image="guest"), wait=90), 201).vm["id"]
        node.console_with(vm, "vmonce-guest: ready")
        self.expect(self.remove("guest"), 409, "image_in_use")
        self.expect(node.delete(vm), 200)
        self.vmonce("image", "remove", "guest")

    def test_an_interrupted_upload_leaves_nothing_behind(self):
        node = self.real
        content = boot_disk(size=3 << 20)
        route = f"/v1/image-files/{hashlib.sha256(content).hexdigest()}?size={len(content)}&offset="
        binary = {"Content-Type": "application/octet-stream"}

        def put(offset, part):
            return self.expect(node.call("PUT", route + str(offset), part, headers=binary), 200).json
        self.assertEqual(put(0, content[:1 << 20])["received"], 1 << 20)
        # A part whose answer was lost is sent again, and written once.
        self.assertEqual(put(0, content[:1 << 20])["received"], 1 << 20)
        self.assertEqual(len(self.store()), 1)
        node.restart("kill")
        self.assertEqual(self.store(), {})
        for offset in range(0, len(content), 1 << 20):
            done = put(offset, content[offset:offset + (1 << 20)])
        self.assertTrue(done["is_complete"])
        self.assertEqual(set(self.store().values()), {0o444})
        self.expect(node.call("PUT", route + "0", b"x", headers={"Content-Type": "text/plain"}), 415)

    def test_a_missing_file_of_an_image_passes_once_it_is_back(self):
        node = self.real
        content = boot_disk(size=4 << 20)
        self.vmonce("image", "add", self.file("gone.raw", content))
        stored = pathlib.Path(node.state, "images", hashlib.sha256(content).hexdigest())
        stored.rename(stored.with_suffix(".aside"))
        failed = self.expect(node.create("img-5", spec("gone", image="gone"), wait=60), 503, "image_unavailable")
        self.assertTrue(failed.json["retry_same_key"])
        self.assertIn(str(stored), failed.json["detail"])
        stored.with_suffix(".aside").rename(stored)
        vm = self.expect(node.create("img-5", spec("gone", image="gone"), wait=60), 200).vm
        wait_for("the machine is ready", lambda: node.vm(vm["id"])["state"] == "ready")
        self.expect(node.delete(vm["id"]), 200)
        self.vmonce("image", "remove", "gone")


class ConfiguredImage(E2eTest):
    def setUp(self):
        self.node = Node(limits={"reconcile_every": "100ms"})
        self.addCleanup(self.node.close)
        self.disk = pathlib.Path(self.node.dir, "data.raw")
        self.disk.write_bytes(b"one" * 512)
        self.node.image = {"disk": str(self.disk), "disk_format": "raw"}
        self.node.start()

    def changed(self):
        return "\nvmonce_images_changed 1" in self.node.call("GET", "/metrics").body.decode()

    def test_a_file_that_changes_under_its_vms_makes_no_more_and_is_told_everywhere(self):
        node = self.node
        first = self.expect(node.create("a", spec("a"), wait=60), 201).vm
        kept = self.disk.with_suffix(".kept")
        self.disk.rename(kept)
        self.disk.write_bytes(b"two" * 512)
        wait_for("the metric tells", self.changed)
        refused = self.expect(node.create("b", spec("b")), 409, "image_changed")
        self.assertIn(str(self.disk), refused.json["detail"])
        self.assertIn("image_changed", node.log_text())
        said = subprocess.run([BIN, "--url", node.url, "doctor", "--config", node.config_path], text=True,
                              capture_output=True, timeout=120, stdin=subprocess.DEVNULL)
        self.assertIn("no VM can be made of image tiny now", said.stdout)
        self.assertEqual(node.get(f"/v1/vms/{first['id']}")["state"], "ready")
        # Known over a restart, and over with the file put back.
        node.restart()
        self.assertTrue(self.changed())
        kept.rename(self.disk)
        wait_for("the metric tells", lambda: not self.changed())
        self.expect(node.create("b", spec("b"), wait=60), 201)


if __name__ == "__main__":
    unittest.main()
