"""kill -9, restart, cancel and delete at every step of a create. The simulated host makes each step as long as it must
be to be hit, and keeps its machines in files, as a hypervisor outlives the service."""
import random
import threading
import time
import unittest

from node import ENDED, STEPS, E2eTest, in_parallel, spec, wait_for

LATENCY = 250
# Publishing is a transaction of the ledger alone: too short to be met from outside, and covered by what precedes it.
AT_STEP = "SELECT coalesce(json_extract(items, '$[0].step'), 0) FROM operations"
EFFECTS = ["disk", "seed", "define", "start"]
KEYED = spec("once", disk_gib=1, user_data="kept until it is made")


class KillAtEveryStep(E2eTest):
    def check_one(self, node, vm):
        """The one machine, with its disk and its seed, started once."""
        domains = node.domains()
        self.assertEqual(list(domains), [vm])
        name, runs, _, starts = domains[vm]
        self.assertTrue(runs)
        self.assertEqual(starts, 1)
        self.assertEqual(node.volumes(), [name + ".qcow2", name + ".seed.iso"])
        sweep = node.reconcile()
        self.assertEqual((sweep["strays"], sweep["kept_volumes"], sweep["missing"]), (0, 0, 0), sweep)
        self.assertEqual(node.get("/v1/capabilities")["usage"]["vms"], 1)
        self.assertEqual(node.query("SELECT count(*) FROM vms"), [(1,)])
        self.assertEqual(node.query("SELECT count(*) FROM outbox WHERE type = 'vm.ready'"), [(1,)])

    def finish_after_kill(self, node, first):
        """Starts the killed service again: the operation goes on by itself, and the same request joins it."""
        vm, operation = first.vm["id"], first.operation["id"]
        node.start()
        again = node.create("kill-1", KEYED)
        self.assertIn(again.status, (200, 202), again)
        self.assertEqual((again.vm["id"], again.operation["id"], again.replayed), (vm, operation, True))
        node.succeeded(operation, 30)
        self.assertEqual(node.vm(vm)["state"], "ready")
        self.check_one(node, vm)

    def test_before_the_effect_of_each_step(self):
        # Report 2 and 4: the intent is stored before the effect. Report 29 at "place": right after the 202.
        def kill_at(step):
            node = self.node(latency_ms=LATENCY)
            first = self.expect(node.create("kill-1", KEYED), 202)
            if step != "place":
                node.at_step(first.operation["id"], step)
            node.kill()
            at = node.query(AT_STEP)[0][0]
            if step != "place":
                self.assertEqual(STEPS[at], step, "the kill came too late to test this step")
            self.finish_after_kill(node, first)
        in_parallel(kill_at, ["place", *EFFECTS])

    def test_after_the_effect_and_before_its_record(self):
        # Reports 104, 107, 109 and 121: what was made and not recorded is found by its label, and not made again.
        def is_done(node, step):
            if step in ("disk", "seed"):
                return any(name.endswith({"disk": ".qcow2", "seed": ".iso"}[step]) for name in node.volumes())
            domains = list(node.domains().values())
            return bool(domains) and (step == "define" or domains[0][1])

        def kill_after(step):
            node = self.node(latency_ms=LATENCY)
            first = self.expect(node.create("kill-1", KEYED), 202)
            node.at_step(first.operation["id"], step)
            self.assertFalse(is_done(node, step), "the effect was there before it could be tested")
            with node.ledger_held():
                wait_for(f"the effect of {step}", lambda: is_done(node, step), 5, 0.005)
                node.kill()
            at = node.query(AT_STEP)[0][0]
            self.assertEqual(STEPS[at], step, "the record was made before the kill")
            self.finish_after_kill(node, first)
        in_parallel(kill_after, EFFECTS)

    def test_ten_kills_of_one_create(self):
        # Report 2: every restart of the crashing controller made one machine more.
        node = self.node(latency_ms=100)
        first = self.expect(node.create("kill-1", KEYED), 202)
        chance = random.Random(2)
        for _ in range(10):
            time.sleep(chance.uniform(0.05, 0.5))
            node.kill()
            node.start()
        node.succeeded(first.operation["id"], 60)
        self.check_one(node, first.vm["id"])

    def test_a_graceful_end_in_the_middle_of_a_slow_create(self):
        # Report 10: absence on the host counts only when the old attempt is fenced.
        node = self.node(latency_ms=1000, limits={"lease_ttl": "3s"})
        first = self.expect(node.create("kill-1", KEYED), 202)
        node.at_step(first.operation["id"], "define")
        self.assertEqual(node.stop(), 0)
        node.host["latency_ms"] = 100
        self.finish_after_kill(node, first)

    def test_calls_that_take_longer_than_a_lease(self):
        # Report 10, too: the lease is renewed while a call is out, so a slow host is no dead worker.
        node = self.node(latency_ms=1500, limits={"lease_ttl": "1s"})
        first = self.expect(node.create("kill-1", KEYED), 202)
        node.succeeded(first.operation["id"], 30)
        self.check_one(node, first.vm["id"])
        self.assertNotIn("taken_over", [event for event, _ in node.timeline(first.operation["id"])])

    def test_a_batch_goes_on_index_by_index(self):
        node = self.node(latency_ms=40)
        first = self.expect(node.create("kill-1", spec("x", count=5)), 202)
        wait_for("some of the batch are there and some not", lambda: 1 <= len(node.domains()) <= 4, 20, 0.005)
        node.kill()
        node.start()
        node.succeeded(first.operation["id"], 30)
        self.check_machines(node, [vm["id"] for vm in first.json["vms"]])

    def test_the_lease_of_the_dead_ends(self):
        # Report 29 and 38: killed right after the 202, the work goes on when the lease has run out, and no retry of
        # the client is ever refused.
        node = self.node()
        answers = []
        for round in range(5):
            first = self.expect(node.create(f"k{round}", spec(f"m{round}")), 202)
            node.kill()
            node.start()
            begin = time.monotonic()
            for _ in range(3):
                answers.append(node.create(f"k{round}", spec(f"m{round}")))
                self.assertIn(answers[-1].status, (200, 202), answers[-1])
            node.succeeded(first.operation["id"], 10)
            self.assertLess(time.monotonic() - begin, 5)


class NothingAcceptedIsLost(E2eTest):
    def test_kill_at_random_moments_of_a_stream_of_creates(self):
        node = self.node(latency_ms=2, limits={"reconcile_every": "100ms"})  # Report 116: sweeps all the time.
        chance = random.Random(11)
        accepted, tried = {}, {}
        for round in range(10):
            stop = threading.Event()

            def stream(worker, round=round, stop=stop):
                for number in range(1000):
                    if stop.is_set():
                        return
                    key = f"r{round}-w{worker}-{number}"
                    tried[key] = spec(key)
                    try:
                        answer = node.create(key, tried[key])
                    except OSError:
                        return
                    except Exception:  # The answer was cut off.
                        return
                    if answer.status == 202:
                        accepted[key] = (answer.vm["id"], answer.operation["id"])
                    time.sleep(0.02)
            workers = [threading.Thread(target=stream, args=(worker,)) for worker in range(4)]
            for worker in workers:
                worker.start()
            time.sleep(chance.uniform(0.1, 0.5))
            node.kill()
            stop.set()
            for worker in workers:
                worker.join()
            node.start()
        self.assertGreater(len(accepted), 20)
        # Every request once more: those that were accepted are known, by the same ids.
        operations = {}
        for key, body in tried.items():
            answer = node.create(key, body)
            self.assertIn(answer.status, (200, 202), answer)
            operations[answer.operation["id"]] = answer.vm["id"]
            if key in accepted:
                self.assertEqual((answer.vm["id"], answer.operation["id"]), accepted[key])
                self.assertTrue(answer.replayed)
        for operation in operations:
            node.succeeded(operation, 60)
        self.check_machines(node, list(operations.values()))


class DeleteAtEveryStep(E2eTest):
    """Reports 98, 100 and 101: a delete cancels the create, which stays cancelled."""

    def check_nothing(self, node, first):
        create = node.ended(first.operation["id"], 30)
        self.assertEqual(create["state"], "cancelled", create)
        vm = first.vm["id"]
        wait_for("the VM is deleted", lambda: node.vm(vm)["state"] == "deleted", 20)
        self.assertEqual(node.domains(), {})
        self.assertEqual(node.volumes(), [])
        # Never resurrected.
        again = self.expect(node.create("kill-1", KEYED), 200)
        self.assertEqual((again.vm["id"], again.vm["state"]), (vm, "deleted"))
        self.assertEqual(again.operation["state"], "cancelled")
        self.check_machines(node, [])

    def test_delete_during_each_step(self):
        def delete_at(step):
            node = self.node(latency_ms=LATENCY)
            first = self.expect(node.create("kill-1", KEYED), 202)
            if step != "place":
                node.at_step(first.operation["id"], step)
            self.expect(node.delete(first.vm["id"], wait=30), 200)
            self.check_nothing(node, first)
        in_parallel(delete_at, ["place", *EFFECTS])

    def test_delete_and_kill_during_each_step(self):
        def delete_at(step):
            node = self.node(latency_ms=LATENCY)
            first = self.expect(node.create("kill-1", KEYED), 202)
            node.at_step(first.operation["id"], step)
            deleted = self.expect(node.delete(first.vm["id"], wait=None), 202)
            node.kill()
            node.start()
            self.assertEqual(node.ended(deleted.operation["id"], 30)["state"], "succeeded")
            self.check_nothing(node, first)
        in_parallel(delete_at, EFFECTS)

    def test_a_kill_at_each_step_of_the_delete(self):
        def kill_at(step):
            node = self.node(latency_ms=LATENCY)
            first = self.expect(node.create("kill-1", KEYED), 202)
            node.succeeded(first.operation["id"])
            deleted = self.expect(node.delete(first.vm["id"], wait=None), 202)
            operation = deleted.operation["id"]
            wait_for(f"the delete is at {step}", lambda: node.operation(operation)["items"][0]["step_name"] == step, 20,
                     0.01)
            node.kill()
            node.start()
            self.assertEqual(node.ended(operation, 30)["state"], "succeeded")
            self.assertEqual((node.domains(), node.volumes()), ({}, []))
            self.assertEqual(node.create("kill-1", KEYED).vm["state"], "deleted")
            self.check_machines(node, [])
        in_parallel(kill_at, ["stop", "undefine", "seed", "disk", "verify"])

    def test_cancel_of_an_operation(self):
        node = self.node(latency_ms=LATENCY)
        first = self.expect(node.create("kill-1", KEYED), 202)
        operation = first.operation["id"]
        node.at_step(operation, "define")
        self.expect(node.call("POST", f"/v1/operations/{operation}/cancel"), 202)
        self.check_nothing(node, first)
        # Twice is once.
        late = self.expect(node.call("POST", f"/v1/operations/{operation}/cancel"), 200)
        self.assertEqual(late.operation["state"], "cancelled")

    def test_cancel_that_waits_for_the_end(self):
        node = self.node(latency_ms=LATENCY)
        operation = self.expect(node.create("kill-1", KEYED), 202).operation["id"]
        node.at_step(operation, "seed")
        cancelled = node.call("POST", f"/v1/operations/{operation}/cancel", None, None, {"Prefer": "wait=30"})
        self.expect(cancelled, 200)
        self.assertEqual(cancelled.operation["state"], "cancelled")

    def test_an_operation_that_has_succeeded_is_not_cancelled(self):
        node = self.node()
        operation = self.expect(node.create("kill-1", KEYED, wait=30), 201).operation["id"]
        self.expect(node.call("POST", f"/v1/operations/{operation}/cancel"), 409, "operation_finished")
        self.assertEqual(len(node.domains()), 1)

    def test_create_and_delete_many_times_leaves_the_books_at_zero(self):
        # Report 113: what was reserved is released, whatever the order of the ends.
        node = self.node(latency_ms=1)

        def cycle(number):
            first = self.expect(node.create(f"c{number}", spec(f"c{number}")), 202)
            time.sleep(number % 7 * 0.004)
            self.expect(node.delete(first.vm["id"]), 200)
            self.assertIn(node.ended(first.operation["id"])["state"], ENDED)
        in_parallel(cycle, range(100))
        self.check_machines(node, [])
        self.assertEqual(node.get("/v1/capabilities")["usage"],
                         {"vms": 0, "cpus": 0, "memory_mib": 0, "disk_gib": 0})


if __name__ == "__main__":
    unittest.main()
