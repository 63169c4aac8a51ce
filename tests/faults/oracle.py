"""What there is, as libvirt, the file system and the process list tell it, and whether that is what should be (the oracle
of the public reports). The service's own answers are only compared with it."""
import collections
import glob
import os
import pathlib
import xml.etree.ElementTree as ElementTree

from node import LABEL

Domain = collections.namedtuple("Domain", "name runs label macs files")


def domains(virsh):
    """All of them, by their UUID. virsh(*arguments) gives what virsh printed."""
    found = {}
    running = virsh("list", "--uuid").split()
    for vm in virsh("list", "--all", "--uuid").split():
        xml = ElementTree.fromstring(virsh("dumpxml", vm))
        label = xml.find(f"metadata/{{{LABEL}}}label")
        found[vm] = Domain(xml.findtext("name"), vm in running, None if label is None else dict(label.attrib),
                           [mac.get("address") for mac in xml.iterfind("devices/interface/mac")],
                           [source.get("file") for source in xml.iterfind("devices/disk/source")])
    return found


def processes(text):
    """(pid, command line) of the QEMU processes of guests that have the text there."""
    found = []
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            line = pathlib.Path(path).read_bytes().decode(errors="replace")
        except OSError:
            continue
        if os.path.basename(line.split("\0", 1)[0]).startswith("qemu-system") and "\0guest=" in line and text in line:
            found.append((int(path.split("/")[2]), line))
    return found


def check(test, node, found, volumes, wanted):
    """wanted: id of a VM -> (the operation that made it, whether it runs, its index). Nothing else of this ledger is there,
    and nothing of it is missing; the books say the same. The node is at rest. volumes: the names in the pool."""
    ledger = node.ledger_id()
    ours = {vm: domain for vm, domain in found.items() if domain.label and domain.label["ledger"] == ledger}
    test.assertEqual(set(ours), set(wanted), "machines that libvirt knows")
    macs = [mac for domain in ours.values() for mac in domain.macs]
    test.assertEqual(len(macs), len(set(macs)), "two machines have one MAC address")
    files = set()
    for vm, domain in ours.items():
        operation, runs, index = wanted[vm]
        test.assertEqual(domain.name, f"vmonce-{ledger}-{vm}")
        test.assertEqual((domain.label["operation"], int(domain.label["index"])), (operation, index))
        test.assertEqual(domain.runs, runs, f"{vm} runs")
        files.update(path.rpartition("/")[2] for path in domain.files)
    # A daemon keeps the console in its pool, an embedded hypervisor elsewhere; a machine that was never started has none.
    consoles = {name for name in volumes if name.endswith(".console") and name[:-len(".console")] in
                {domain.name for domain in ours.values()}}
    test.assertEqual(sorted(name for name in volumes if name.startswith(f"vmonce-{ledger}-")), sorted(files | consoles),
                     "disks, seeds and consoles in the pool")

    rows = node.query("SELECT lower(hex(id)) FROM vms WHERE state <> 'deleted' AND host IS NOT NULL")
    test.assertEqual({row[0] for row in rows}, {vm.replace("-", "") for vm in wanted}, "machines that the ledger knows")
    test.assertEqual(node.query("SELECT coalesce(sum(vms), 0) FROM usage"), [(len(wanted),)], "quota in use")
    test.assertEqual(node.query("SELECT coalesce(sum(reserved_vms), 0) FROM hosts"), [(len(wanted),)], "room reserved")
    test.assertEqual(node.query("SELECT count(*) FROM operations WHERE finished_ms IS NULL"), [(0,)])
    twice = node.query("SELECT type, subject, count(*) FROM outbox WHERE type IN ('vm.ready', 'vm.deleted') "
                       "GROUP BY type, subject HAVING count(*) > 1")
    test.assertEqual(twice, [], "events that are told twice")


def check_all(test, node, wanted, daemons=()):
    """The embedded hypervisor has one owner: the service is stopped while libvirt is asked, and started again. daemons:
    those that serve its other hosts."""
    if node.process is not None:
        test.assertEqual(node.stop(), 0)
    found, volumes = domains(node.virsh), node.volumes()
    for daemon in daemons:
        found |= domains(lambda *arguments, daemon=daemon: daemon.virsh(*arguments).stdout)
        volumes += os.listdir(daemon.dir + "/pool")
    check(test, node, found, volumes, wanted)
    for vm, (_, runs, _) in wanted.items():
        test.assertEqual(len(processes(vm)), 1 if runs else 0, f"QEMU processes of {vm}")
    for place in [node.dir, *(daemon.dir for daemon in daemons)]:
        for pid, line in processes(place + "/"):
            test.assertTrue(any(vm in line for vm in wanted), f"a QEMU process of nobody: {pid} {line}")
    test.assertEqual(node.scratch(), [])
    node.start()
