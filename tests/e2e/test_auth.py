"""Tokens, roles, and what one project learns of another, over HTTP and with the real command line."""
import http.client
import json
import os
import re
import subprocess
import unittest

from node import BIN, E2eTest, spec, wait_for

NO_SUCH = "01890a5d-ac96-774b-bcce-b302099a8057"


def bearer(secret):
    return {"Authorization": f"Bearer {secret}"}


class Auth(E2eTest):
    def cli(self, node, *arguments, token=None, code=0):
        environment = {"PATH": os.environ["PATH"], "HOME": node.dir, "VMONCE_URL": node.url}
        if token:
            environment["VMONCE_TOKEN"] = token
        done = subprocess.run([BIN, *arguments], capture_output=True, text=True, env=environment, timeout=60)
        self.assertEqual(done.returncode, code, done)
        return done

    def token(self, node, project, role="member", token=None):
        """Made by the command line: the secret, alone on stdout."""
        made = self.cli(node, "token", "create", "--project", project, "--role", role, token=token)
        self.assertRegex(made.stdout, r"\Avmo_[0-9a-f]{64}\n\Z")
        self.assertNotIn(made.stdout.strip(), made.stderr)
        return made.stdout.strip()

    def offline(self, node, *arguments, code=0):
        node.write_config()
        done = subprocess.run([BIN, "token", *arguments, "--offline", "--config", node.config_path],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, code, done)
        return done

    def test_the_door_shuts_with_the_first_token_and_stays_shut(self):
        node = self.node()
        self.expect(node.call("GET", "/v1/vms"), 200)
        admin = self.token(node, "ops", "admin")
        refused = self.expect(node.call("GET", "/v1/vms"), 401, "unauthenticated")
        self.assertEqual(refused.headers["WWW-Authenticate"], 'Bearer realm="vmonce"')
        self.expect(node.call("GET", "/v1/vms", headers=bearer(admin)), 200)
        for path in ("/healthz", "/readyz", "/openapi.json"):
            self.expect(node.call("GET", path), 200)
        listed = json.loads(self.cli(node, "token", "list", "--json", token=admin).stdout)["items"]
        self.assertEqual([(t["project"], t["role"], t["state"]) for t in listed], [("ops", "admin", "live")])
        self.assertNotIn(admin, json.dumps(listed))
        self.cli(node, "token", "revoke", listed[0]["id"], token=admin)
        self.expect(node.call("GET", "/v1/vms", headers=bearer(admin)), 401, "unauthenticated")
        self.expect(node.call("GET", "/v1/vms"), 401)
        node.restart()
        self.expect(node.call("GET", "/v1/vms", headers=bearer(admin)), 401)
        self.expect(node.call("GET", "/v1/vms"), 401)
        self.assertNotIn(admin.encode(), node.ledger_bytes())
        self.assertNotIn(admin, node.log_text())

    def test_the_first_token_of_a_service_that_requires_one_is_made_offline(self):
        node = self.node(auth={"tokens": "required"})
        self.expect(node.call("GET", "/v1/vms"), 401)
        running = self.offline(node, "create", "--project", "ops", "--role", "admin", code=1)
        self.assertIn("already served", running.stderr)
        node.stop()
        locked_out = self.offline(node, "create", "--project", "ops", "--role", "viewer", code=1)
        self.assertIn("--role admin", locked_out.stderr)
        admin = self.offline(node, "create", "--project", "ops", "--role", "admin").stdout.strip()
        node.start()
        web = self.token(node, "web", token=admin)
        self.expect(node.call("GET", "/v1/vms", headers=bearer(web)), 200)
        scraper = self.token(node, "ops", "metrics", admin)
        self.expect(node.call("GET", "/metrics", headers=bearer(scraper)), 200)
        self.expect(node.call("GET", "/v1/vms", headers=bearer(scraper)), 403, "forbidden")
        node.stop()
        items = json.loads(self.offline(node, "list", "--json").stdout)["items"]
        of_web = next(t for t in items if t["project"] == "web")
        self.offline(node, "revoke", of_web["id"])
        node.start()
        self.expect(node.call("GET", "/v1/vms", headers=bearer(web)), 401)

    def test_who_is_reached_from_elsewhere_asks_for_tokens(self):
        node = self.node(server={"listen": "127.0.0.1:0", "behind_tls_proxy": True})
        self.expect(node.call("GET", "/v1/vms"), 401, "unauthenticated")

    # report 62, report 64, report 65
    def test_a_key_belongs_to_the_project_and_not_to_the_token(self):
        node = self.node()
        admin = self.token(node, "ops", "admin")
        first, second = self.token(node, "web", token=admin), self.token(node, "web", token=admin)
        viewer, other = self.token(node, "web", "viewer", admin), self.token(node, "other", token=admin)
        made = self.expect(node.call("POST", "/v1/vms", spec("a"), "k", bearer(first)), 202)
        self.expect(node.call("POST", "/v1/vms", spec("a"), "k", bearer(first) | {"Prefer": "wait=30"}), 200)
        # From memory as from the ledger.
        for _ in range(3):
            again = node.call("POST", "/v1/vms", spec("a"), "k", bearer(second))
            self.assertTrue(again.replayed, again)
            self.assertEqual(again.vm["id"], made.vm["id"])
        self.expect(node.call("POST", "/v1/vms", spec("a"), "k", bearer(viewer)), 403, "forbidden")
        self.expect(node.call("POST", "/v1/vms", spec("a"), "k"), 401)
        # The same key and name of another project make another machine, as if nobody had used them.
        foreign = self.expect(node.call("POST", "/v1/vms", spec("a"), "k", bearer(other)), 202)
        self.assertFalse(foreign.replayed)
        self.assertNotEqual(foreign.vm["id"], made.vm["id"])
        timeline = node.call("GET", f"/v1/operations/{made.operation['id']}/timeline", headers=bearer(viewer)).json
        ids = {t["id"] for t in node.call("GET", "/v1/tokens", headers=bearer(admin)).json["items"]}
        accepted = next(line for line in timeline["items"] if line["event"] == "accepted")
        self.assertIn(re.search(r"with token (\S+)", accepted["detail"]).group(1), ids)

    # report 67
    def test_a_known_key_is_no_credential(self):
        node = self.node()
        self.expect(node.create("k", spec("a")), 202)
        self.token(node, "ops", "admin")
        for key in ("k", "never-used"):
            refused = self.expect(node.create(key, spec("a")), 401, "unauthenticated")
            self.assertNotIn("Idempotent-Replayed", refused.headers)

    def test_one_project_never_learns_of_another(self):
        """Every route of the contract, with what is of another project and with what never was: the same answer."""
        node = self.node()
        admin = self.token(node, "ops", "admin")
        theirs, mine = self.token(node, "theirs", token=admin), self.token(node, "mine", "admin", admin)
        made = node.call("POST", "/v1/vms", spec("secret", labels={"a": "b"}), "their-key",
                         bearer(theirs) | {"Prefer": "wait=30"})
        self.expect(made, 201)
        vm, operation = made.vm["id"], made.operation["id"]
        seen = []
        for path, methods in node.get("/openapi.json")["paths"].items():
            for method in methods:
                if method == "parameters" or path.startswith("/v1/tokens"):
                    continue
                known = {"vms": vm, "operations": operation}.get(path.split("/")[2] if path.count("/") > 1 else "", vm)
                for query in self.queries(method, path):
                    there = self.ask(node, mine, method, path.replace("{id}", known) + query(vm, "secret", "their-key"))
                    never = self.ask(node, mine, method, path.replace("{id}", NO_SUCH) + query(NO_SUCH, "nobody", "no-key"))
                    self.assertEqual(there, never, f"{method} {path}")
                    seen.append((method, path))
        self.assertGreater(len(seen), 20)
        # Theirs is untouched by all of it.
        still = node.call("GET", f"/v1/vms/{vm}", headers=bearer(theirs)).json
        self.assertEqual((still["state"], still["name"], still["version"]), ("ready", "secret", made.vm["version"]))

    @staticmethod
    def queries(method, path):
        none = [lambda vm, name, key: ""]
        if method != "get" or path not in ("/v1/vms", "/v1/operations"):
            return none
        more = none + [lambda vm, name, key: f"?idempotency_key={key}"]
        if path == "/v1/vms":
            return more + [lambda vm, name, key: f"?name={name}", lambda vm, name, key: "?label=a%3Db&deleted=true"]
        return more + [lambda vm, name, key: f"?vm={vm}"]

    def ask(self, node, token, method, path):
        """Status, headers and body, with what differs for everybody masked."""
        body = {"/v1/vms": {"image": "none"}}.get(path) if method == "post" else None
        if method == "patch":
            body = {"name": "x"}
        # A key is consumed by nothing that is asked here.
        answer = node.call(method.upper(), path, body, None if method == "get" else "probe", bearer(token))
        if path in ("/metrics", "/v1/reconcile", "/v1/hosts"):
            return answer.status  # The operator's: they tell of all projects, and take no name of any.
        headers = {name: value for name, value in answer.headers.items() if name not in ("Date", "X-Request-Id")}
        text = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "ID", answer.body.decode())
        return answer.status, {name: re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "ID", value)
                               for name, value in headers.items()}, text

    def test_a_token_over_its_rate_hears_429_and_its_key_is_not_consumed(self):
        node = self.node(auth={"rate": 1, "burst": 5})
        admin = self.token(node, "ops", "admin")
        web = self.token(node, "web", token=admin)
        statuses = [node.call("GET", "/v1/vms", headers=bearer(web)).status for _ in range(5)]
        limited = self.expect(node.call("POST", "/v1/vms", spec("a"), "k", bearer(web)), 429, "rate_limited")
        self.assertEqual((statuses, limited.headers["Retry-After"], limited.json["retry_same_key"]),
                         ([200] * 5, "1", True))
        # The operator's own token is not held up by it, and the key is as good as new.
        self.expect(node.call("GET", "/v1/vms", headers=bearer(admin)), 200)
        made = wait_for("the rate lets it through", lambda: self.made(node, web))
        self.assertFalse(made.replayed)

    @staticmethod
    def made(node, token):
        answer = node.call("POST", "/v1/vms", spec("a"), "k", bearer(token))
        return answer if answer.status == 202 else None

    def test_a_machine_that_was_not_recorded_is_adopted_though_the_retries_are_limited(self):
        # Report 122.
        node = self.node(latency_ms=150, auth={"rate": 1, "burst": 3})
        admin = self.token(node, "ops", "admin")
        web = self.token(node, "web", token=admin)
        first = self.made(node, web)
        vm, operation = first.vm["id"], first.operation["id"]
        wait_for("the machine is there", node.domains, every=0.005)
        node.kill()
        node.start()
        answers = [node.call("POST", "/v1/vms", spec("a"), "k", bearer(web)) for _ in range(5)]
        self.assertEqual(answers[-1].status, 429, answers)
        self.assertEqual({answer.operation["id"] for answer in answers if answer.status != 429}, {operation})
        again = wait_for("a retry says that it is ready", lambda: self.ready(node, web), every=0.5)
        self.assertEqual((again.vm["id"], again.operation["id"]), (vm, operation))
        self.assertEqual(list(node.domains()), [vm])
        self.assertEqual(node.domains()[vm][3], 1, "started once")

    @staticmethod
    def ready(node, token):
        answer = node.call("POST", "/v1/vms", spec("a"), "k", bearer(token))
        return answer if answer.status == 200 and answer.vm["state"] == "ready" else None

    def test_each_project_has_its_own_quota(self):
        node = self.node(**{"[project]": {"name": "small", "vms": 1, "keys": 2}})
        admin = self.token(node, "ops", "admin")
        small, other = self.token(node, "small", token=admin), self.token(node, "other", token=admin)
        wait = {"Prefer": "wait=30"}
        made = self.expect(node.call("POST", "/v1/vms", spec(), "a", bearer(small) | wait), 201)
        self.expect(node.call("POST", "/v1/vms", spec(), "b", bearer(small)), 403, "quota_exceeded")
        for key in ("a", "b"):
            self.expect(node.call("POST", "/v1/vms", spec(), key, bearer(other)), 202)
        self.expect(node.call("PATCH", f"/v1/vms/{made.vm['id']}", {"name": "x"}, "c", bearer(small)), 200)
        capped = self.expect(node.call("PATCH", f"/v1/vms/{made.vm['id']}", {"name": "y"}, "d", bearer(small)), 429)
        self.assertEqual(capped.code, "too_many_keys")
        quota = json.loads(self.cli(node, "quota", "--json", token=small).stdout)
        self.assertEqual((quota["project"], quota["limit"]["vms"], quota["used"]["vms"], quota["used"]["keys"]),
                         ("small", 1, 1, 2))
        # What gives keys and machines back is never held up.
        self.expect(node.call("DELETE", f"/v1/vms/{made.vm['id']}", None, "e", bearer(small) | wait), 200)

    def test_a_refused_caller_need_not_send_its_body(self):
        node = self.node(auth={"tokens": "required"})
        connection = http.client.HTTPConnection("127.0.0.1", node.port, timeout=20)
        self.addCleanup(connection.close)
        connection.putrequest("POST", "/v1/vms")
        connection.putheader("Content-Length", "1000000")
        connection.putheader("Content-Type", "application/json")
        connection.endheaders()
        # Not one byte of it was sent.
        self.assertEqual(connection.getresponse().status, 401)


if __name__ == "__main__":
    unittest.main()
