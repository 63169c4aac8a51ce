"""Keys and fingerprints: what is the same request, what is another one, and what an answer tells.
On a simulated host."""
import json
import socket
import threading
import time
import unittest
from email.utils import formatdate, parsedate_to_datetime

from node import E2eTest, Node, in_parallel, spec, wait_for


class Keys(E2eTest):
    @classmethod
    def setUpClass(cls):
        cls.shared = Node()
        cls.addClassCleanup(cls.shared.close)
        cls.shared.start()

    def setUp(self):
        self.key = self.id().rsplit(".", 1)[1]
        self.name = self.key[5:60].replace("_", "-").strip("-")

    def operations(self):
        return self.shared.query("SELECT count(*) FROM operations")[0][0]

    # ---- What is the same

    def test_spellings_of_one_body_are_one_request(self):
        # Report 74: order of members, white space, 1.0 for 1, escapes; an array's order counts.
        node = self.shared
        keys = ["ssh-ed25519 " + "A" * 68 + " a", "ssh-ed25519 " + "A" * 68 + " b"]
        first = self.expect(node.create(self.key, spec(self.name, cpus=1, ssh_keys=keys, labels={"a": "1", "b": "2"},
                                                       user_data="ä\n"), wait=30), 201)
        array = json.dumps(keys)
        spellings = [
            f'{{"user_data":"ä\\n","labels":{{"b":"2","a":"1"}},"ssh_keys":{array},"cpus":1,"name":"{self.name}",'
            '"memory_mib":128,"image":"tiny"}',
            f' {{ "image" : "tiny" ,\n"memory_mib":128.0, "cpus": 1.0,\t"name":"{self.name}", "ssh_keys":{array},'
            '"labels":{"a":"1","b":"2"},"user_data":"\\u00e4\\u000a"}\r\n',
            f'{{"image":"\\u0074iny","memory_mib":1.28e2,"cpus":10e-1,"name":"{self.name}","ssh_keys":{array},'
            '"labels":{"\\u0061":"1","b":"2"},"user_data":"ä\\n"}',
        ]
        for text in spellings:
            again = self.expect(node.create(self.key, text.encode()), 200)
            self.assertEqual(again.vm["id"], first.vm["id"])
            self.assertTrue(again.replayed)
        turned = spellings[0].replace(array, json.dumps(keys[::-1]))
        self.expect(node.create(self.key, turned.encode()), 422, "idempotency_key_reused")

    def test_quoted_and_bare_keys_are_one(self):
        node = self.shared
        first = self.expect(node.create(self.key, spec(self.name), wait=30), 201)
        for key in (f'"{self.key}"', self.key, f' "{self.key}" ', f"\t{self.key}"):
            self.assertEqual(self.expect(node.create(key, spec(self.name)), 200).vm["id"], first.vm["id"])
        found = node.get(f"/v1/operations?idempotency_key=%22{self.key}%22")["items"]
        self.assertEqual([operation["id"] for operation in found], [first.operation["id"]])
        self.assertEqual([vm["id"] for vm in node.get(f"/v1/vms?idempotency_key={self.key}")["items"]],
                         [first.vm["id"]])

    # ---- What is not

    def test_another_request_names_what_differs(self):
        # Report 82: a label more is another request. Report 73: so is another route.
        node = self.shared
        body = spec(self.name, labels={"a": "1"})
        first = self.expect(node.create(self.key, body, wait=30), 201)
        for other, differing in [(body | {"cpus": 2}, ["/cpus"]), (body | {"memory_mib": 256}, ["/memory_mib"]),
                                 (body | {"labels": {"a": "1", "b": "2"}}, ["/labels/b"]),
                                 (body | {"user_data": "secret-value"}, ["/user_data"]),
                                 ({k: v for k, v in body.items() if k != "labels"}, ["/labels"])]:
            wrong = self.expect(node.create(self.key, other), 422, "idempotency_key_reused")
            self.assertEqual(wrong.json["differing"], differing)
            self.assertFalse(wrong.json["retryable"])
            self.assertIn(first.operation["id"], wrong.json["operation"])
            self.assertIn("first_seen", wrong.json)
            self.assertNotIn("secret-value", wrong.body.decode())
        vm = first.vm["id"]
        self.expect(node.call("POST", f"/v1/vms/{vm}/stop", None, self.key), 422, "idempotency_key_reused")
        self.expect(node.delete(vm, self.key), 422, "idempotency_key_reused")
        self.assertEqual(node.vm(vm)["state"], "ready")

    def test_the_query_belongs_to_the_request(self):
        # Report 76: a query that was left out told success of what was never done.
        node = self.shared
        vm = self.expect(node.create(self.key, spec(self.name), wait=30), 201).vm["id"]
        before = self.operations()
        for query in ("?dry_run=1", "?unknown=1", "?dry_run=true&dry_run=true"):
            answer = node.create(self.key, spec(self.name), query=query)
            self.assertEqual(answer.status, 400, f"{query}: {answer}")
        # dry_run=false is what stands there without it.
        self.assertEqual(self.expect(node.create(self.key, spec(self.name), query="?dry_run=false"), 200).vm["id"], vm)
        self.assertEqual(self.operations(), before)

    def test_a_dry_run_consumes_nothing(self):
        # Report 77.
        node = self.shared
        before = self.operations()
        dry = self.expect(node.create(self.key, spec(self.name), query="?dry_run=true"), 200)
        self.assertEqual(dry.json["would"], "create")
        self.assertEqual(self.operations(), before)
        first = self.expect(node.create(self.key, spec(self.name), wait=30), 201)
        self.assertEqual(first.json["result"], "created")
        dry = self.expect(node.create(self.key, spec(self.name), query="?dry_run=true"), 200)
        self.assertEqual(dry.json["would"], "replay")
        self.assertEqual(dry.json["operation"]["id"], first.operation["id"])
        dry = self.expect(node.create(self.key, spec(self.name, cpus=3), query="?dry_run=true"), 200)
        self.assertEqual((dry.json["would"], dry.json["problem"]["differing"]), ("mismatch", ["/cpus"]))
        dry = self.expect(node.create(self.key + "-2", spec(self.name), query="?dry_run=true"), 200)
        self.assertEqual((dry.json["would"], dry.json["problem"]["code"]), ("refuse", "name_taken"))
        self.assertEqual(self.operations(), before + 1)

    # ---- What is refused, and leaves the key alone

    def test_a_refused_request_leaves_its_key_unused(self):
        node = self.shared
        mended = spec(self.name)
        self.expect(node.create("owner-of-" + self.key, mended, wait=30), 201)
        taken = self.expect(node.create(self.key, mended), 409, "name_taken")
        self.assertTrue(taken.json["retry_same_key"])
        self.assertTrue(taken.json["vm"].startswith("/v1/vms/"))
        for body, status in [(b"{", 400), (b'{"image":"tiny","image":"tiny"}', 400), (b"", 400), (b"[]", 400),
                             (spec(image="absent"), 404), (spec(cpus=0), 400), (spec(cpus=1 << 60), 400),
                             (spec(name="-x"), 400), (spec(unknown=1), 400), (b'{"image":"ti\\u0000ny"}', 400),
                             (spec(user_data="x" * (64 << 10 | 1)), 400), (b'{"image":"\xff"}', 400),
                             (b" " * ((1 << 20) + 1), 413)]:
            answer = node.create(self.key, body)
            self.assertEqual(answer.status, status, f"{str(body)[:60]}: {answer}")
            self.assertTrue(answer.json["retry_same_key"], answer)
        made = self.expect(node.create(self.key, mended | {"name": self.name[:40] + "-2"}, wait=30), 201)
        self.assertEqual(made.json["result"], "created")

    def test_keys_of_all_bytes(self):
        # Report 70: only 400 or 2xx, and every line of the log stays one line.
        node = self.shared
        begin = len(node.log_text())

        def send(byte):
            with socket.create_connection(("127.0.0.1", node.port), 20) as connection:
                body = json.dumps(spec()).encode()
                connection.sendall(b"POST /v1/vms HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                                   b"Connection: close\r\nIdempotency-Key: bytes-" + bytes([byte]) + b"-x\r\n"
                                   b"Content-Length: %d\r\n\r\n" % len(body) + body)
                return byte, int(connection.makefile("rb").readline().split()[1])
        for byte, status in in_parallel(send, range(256)):
            # In the middle of a bare key.
            if 0x21 <= byte <= 0x7e and byte != 0x22:
                self.assertEqual(status, 202, f"byte {byte:#x}")
            elif byte in (0x20, 0x22, 0x5c):
                self.assertIn(status, (202, 400), f"byte {byte:#x}")
            else:
                self.assertEqual(status, 400, f"byte {byte:#x}")
        for line in node.log_text(begin).splitlines():
            json.loads(line)
        answers = [node.create(key) for key in ("", '""', '"a', '"a"b', "a" * 256, '"' + "a" * 256 + '"')]
        for answer in answers:
            self.assertIn(answer.code, ("invalid_idempotency_key", "idempotency_key_required"), answer)
        self.expect(node.create("a" * 255, spec(), wait=10), 201)
        required = self.expect(node.create(None), 400, "idempotency_key_required")
        self.assertIn("Link", required.headers)

    def test_two_key_headers_are_refused(self):
        node = self.shared
        body = json.dumps(spec()).encode()
        with socket.create_connection(("127.0.0.1", node.port), 20) as connection:
            connection.sendall(b"POST /v1/vms HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                               b"Connection: close\r\nIdempotency-Key: a1\r\nIdempotency-Key: a2\r\n"
                               b"Content-Length: %d\r\n\r\n" % len(body) + body)
            answer = connection.makefile("rb").read()
        self.assertTrue(answer.startswith(b"HTTP/1.1 400 "), answer)
        self.assertIn(b"invalid_idempotency_key", answer)

    # ---- Races

    def race(self, count, send):
        """All of them at one moment, as nearly as threads can."""
        barrier = threading.Barrier(count)

        def at_once(number):
            barrier.wait()
            return send(number)
        return in_parallel(at_once, range(count), count)

    def test_fifty_firsts_of_one_key_are_one_operation(self):
        # Reports 13, 22, 37 and 52.
        node = self.shared
        answers = self.race(50, lambda _: node.create(self.key, spec(self.name)))
        self.assertEqual({answer.status for answer in answers} - {200, 202}, set(), answers)
        self.assertEqual(len({answer.operation["id"] for answer in answers}), 1)
        self.assertEqual(len({answer.vm["id"] for answer in answers}), 1)
        results = [answer.json["result"] for answer in answers]
        self.assertEqual((results.count("created"), results.count("existing")), (1, 49))
        self.assertEqual([a.replayed for a in answers].count(False), 1)
        node.succeeded(answers[0].operation["id"])
        self.assertEqual(node.domains()[answers[0].vm["id"]][3], 1)
        dispatched = [event for event in node.timeline(answers[0].operation["id"]) if event[0] == "accepted"]
        self.assertEqual(len(dispatched), 1)

    def test_two_keys_race_for_one_name(self):
        node = self.shared
        for round in range(10):
            name = f"{self.name[:40]}-{round}"
            answers = self.race(8, lambda number: node.create(f"{name}-{number % 2}", spec(name)))
            won = {answer.operation["id"] for answer in answers if answer.status in (200, 202)}
            self.assertEqual(len(won), 1, answers)
            for answer in answers:
                self.assertTrue(answer.status in (200, 202) or answer.code == "name_taken", answer)
            # The loser's key is still free for another name.
            loser = 1 if answers[0].status in (200, 202) else 0
            other = node.create(f"{name}-{loser}", spec(name + "-b"), wait=30)
            self.assertEqual((other.status, other.json["result"]), (201, "created"))

    def test_a_hundred_keys_at_once_are_a_hundred_machines(self):
        # Report 124.
        node = self.shared
        answers = in_parallel(lambda n: self.expect(node.create(f"{self.key}-{n}", spec()), 202), range(100), 20)
        self.assertEqual(len({answer.vm["id"] for answer in answers}), 100)
        self.assertEqual(len({answer.vm["mac"] for answer in answers}), 100)
        self.assertEqual(len({answer.vm["name"] for answer in answers}), 100)
        for answer in answers:
            node.succeeded(answer.operation["id"])

    # ---- What a replay tells

    def test_a_replay_is_as_complete_as_the_first_answer(self):
        # Reports 83, 85, 88 and 106.
        node = self.shared
        body = spec(self.name, labels={"a": "x,y", "b": "ü"}, hostname="h.example", cpus=2)
        first = self.expect(node.create(self.key, body), 202)
        node.succeeded(first.operation["id"])
        again = self.expect(node.create(self.key, body), 200)
        live = {"state", "observed", "version", "updated_at", "host"}
        for one, other in zip(first.json["vms"], again.json["vms"], strict=True):
            self.assertEqual({k: v for k, v in one.items() if k not in live},
                             {k: v for k, v in other.items() if k not in live})
        live = {"state", "items", "updated_at", "finished_at"}
        self.assertEqual({k: v for k, v in first.operation.items() if k not in live},
                         {k: v for k, v in again.operation.items() if k not in live})
        self.assertEqual(set(first.json), set(again.json))
        for header in ("Location", "Content-Type", "Idempotency-First-Seen", "Cache-Control"):
            self.assertEqual(first.headers[header], again.headers[header], header)
        self.assertEqual(first.headers["Location"], "/v1/operations/" + first.operation["id"])
        self.assertNotEqual(first.headers["X-Request-Id"], again.headers["X-Request-Id"])
        self.assertIsNone(first.headers.get("Idempotent-Replayed"))
        self.assertEqual(again.headers.get("Idempotent-Replayed"), "true")
        self.assertEqual(again.vm["labels"], {"a": "x,y", "b": "ü"})

    def test_an_answer_about_a_hundred_machines_is_told_whole_and_so_is_its_replay(self):
        # Report 89: nothing is cut, neither the first time nor again.
        node = self.node()
        body = spec("many", count=100, labels={f"label-{n}": str(n) * 127 for n in range(32)})
        first = self.expect(node.create("many", body), 202)
        node.succeeded(first.operation["id"])
        again = self.expect(node.create("many", body), 200)
        for answer in (first, again):
            self.assertGreater(len(answer.body), 500_000)
            self.assertEqual(len(answer.body), int(answer.headers["Content-Length"]))
            self.assertEqual([vm["labels"] for vm in answer.json["vms"]], [body["labels"]] * 100)
        self.assertEqual([vm["id"] for vm in first.json["vms"]], [vm["id"] for vm in again.json["vms"]])

    def test_one_identity_a_typed_conflict_and_a_stated_retention(self):
        # Report 11: what a client that lost its answer may rely on, all of it.
        node = self.shared
        body = spec(self.name)
        text = json.dumps(body).encode()
        with socket.create_connection(("127.0.0.1", node.port)) as lost:
            lost.sendall(b"POST /v1/vms HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                         b"Idempotency-Key: %s\r\nContent-Length: %d\r\n\r\n" % (self.key.encode(), len(text)) + text)
        answers = in_parallel(lambda _: node.create(self.key, body, wait=30), range(8))
        self.assertEqual(len({answer.operation["id"] for answer in answers}), 1)
        self.assertEqual(len({answer.vm["id"] for answer in answers}), 1)
        changed = self.expect(node.create(self.key, body | {"cpus": 2}), 422, "idempotency_key_reused")
        self.assertFalse(changed.json["retry_same_key"])
        told = node.get("/v1/capabilities")
        for figure in ("retention_s", "tombstone_retention_s", "key_ttl_s"):
            self.assertGreater(told["idempotency"][figure], 0)
        vm = answers[0].vm["id"]
        self.expect(node.delete(vm), 200)
        self.assertEqual(self.expect(node.create(self.key, body), 200).vm["state"], "deleted")

    def test_a_replay_shows_the_machine_as_it_is_now(self):
        # Report 92: immutable ids from the record, the state live.
        node = self.shared
        body = spec(self.name)
        vm = self.expect(node.create(self.key, body, wait=30), 201).vm["id"]
        renamed = self.name[:50] + "-new"

        # The first is read from the ledger, the others may come from memory.
        def replays():
            answers = [self.expect(node.create(self.key, body), 200) for _ in range(4)]
            for again in answers:
                self.assertTrue(again.replayed)
                self.assertEqual(again.body, answers[0].body)
                self.assertEqual(again.vm["id"], vm)
            self.assertEqual(len({again.headers["X-Request-Id"] for again in answers}), len(answers))
            return answers[-1]

        self.assertEqual(replays().vm["name"], self.name)
        self.expect(node.call("PATCH", f"/v1/vms/{vm}", {"name": renamed}), 200)
        self.assertEqual(replays().vm["name"], renamed)
        self.expect(node.create(self.key, body | {"cpus": 2}), 422, "idempotency_key_reused")
        self.expect(node.delete(vm), 200)
        self.assertEqual(replays().vm["state"], "deleted")
        # The name is free for another key.
        self.expect(node.create(self.key + "-2", spec(renamed), wait=30), 201)

    def test_an_alias_is_pinned_when_it_is_accepted(self):
        node = self.shared
        first = self.expect(node.create(self.key, spec(self.name, image="small"), wait=30), 201)
        self.assertEqual(first.vm["image"], "tiny")
        # The body as sent counts: the image by its other name is another request.
        self.expect(node.create(self.key, spec(self.name, image="tiny")), 422, "idempotency_key_reused")

    def test_an_unknown_key_that_was_first_sent_long_ago_makes_nothing(self):
        # Report 59.
        node = self.shared

        def sent(seconds):
            headers = {"Idempotency-First-Sent": formatdate(time.time() + seconds, usegmt=True)}
            return node.call("POST", "/v1/vms", spec(self.name), self.key, headers)

        before = self.operations()
        for seconds in (-360, 360):
            late = sent(seconds)
            self.expect(late, 412, "first_sent_too_far")
            self.assertTrue(late.json["retry_same_key"])
            self.assertLess(abs(parsedate_to_datetime(late.headers["Date"]).timestamp() - time.time()), 60)
        self.assertEqual(self.operations(), before)
        self.expect(node.call("POST", "/v1/vms", spec(self.name), self.key, {"Idempotency-First-Sent": "yesterday"}), 400,
                    "invalid_request")
        first = self.expect(sent(-240), 202)
        self.assertEqual(self.expect(node.create(self.key, spec(self.name), wait=30), 200).vm["id"], first.vm["id"])
        # What is known is answered, however late it comes.
        self.assertEqual(self.expect(sent(-86400), 200).vm["id"], first.vm["id"])

    def test_a_stale_change_is_refused(self):
        node = self.shared
        vm = self.expect(node.create(self.key, spec(self.name), wait=30), 201).vm["id"]
        etag = node.call("GET", f"/v1/vms/{vm}").headers["ETag"]
        patched = node.call("PATCH", f"/v1/vms/{vm}", {"labels": {"a": "1"}}, headers={"If-Match": etag})
        self.expect(patched, 200)
        stale = node.call("DELETE", f"/v1/vms/{vm}", headers={"If-Match": etag})
        self.expect(stale, 412, "precondition_failed")
        self.assertEqual(node.call("GET", f"/v1/vms/{vm}", headers={"If-None-Match": etag}).status, 200)
        self.assertEqual(node.call("GET", f"/v1/vms/{vm}", headers={"If-None-Match": patched.headers["ETag"]}).status,
                         304)


class Quota(E2eTest):
    def test_a_full_quota_leaves_the_key_unused(self):
        # Report 44.
        node = self.node(quota={"vms": 1})
        kept = self.expect(node.create("kept", spec("kept"), wait=30), 201)
        full = self.expect(node.create("more", spec("more")), 403, "quota_exceeded")
        self.assertTrue(full.json["retry_same_key"])
        # A known key is answered, whatever is full now.
        self.assertEqual(self.expect(node.create("kept", spec("kept")), 200).vm["id"], kept.vm["id"])
        node.sections["quota"] = {"vms": 2}
        node.restart("stop")
        first = self.expect(node.create("more", spec("more")), 202)
        node.succeeded(first.operation["id"])
        self.check_machines(node, [kept.vm["id"], first.vm["id"]])

    def test_a_full_host_leaves_the_key_unused(self):
        node = self.node()
        node.host["vms"] = 1
        node.host |= {"cpus": 4, "memory_mib": 1024, "disk_gib": 10}
        node.restart("stop")
        kept = self.expect(node.create("kept", spec("kept"), wait=30), 201)
        full = self.expect(node.create("more", spec("more")), 503, "no_capacity")
        self.assertTrue(full.json["retry_same_key"])
        self.assertGreaterEqual(int(full.headers["Retry-After"]), 1)
        self.expect(node.delete(kept.vm["id"]), 200)
        wait_for("there is room", lambda: node.create("more", spec("more"), wait=30).status in (200, 201), 10, 0.2)


if __name__ == "__main__":
    unittest.main()
