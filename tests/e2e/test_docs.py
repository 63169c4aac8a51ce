"""What the operator's pages say of metrics, alerts and retries is held to what the service shows."""
import pathlib
import re
import unittest

from node import E2eTest, spec
from test_tls import Authority, TlsNode

ROOT = pathlib.Path(__file__).parent.parent.parent
METRIC = re.compile(r"\b(vmonce_[a-z_]+)(?:\{([^}]*)\})?")


def rows(page, heading):
    """The cells of the first table below the heading."""
    text = page[page.index(f"\n## {heading}\n"):]
    table = re.search(r"(?:^\|.*\n)+", text, re.M).group(0).splitlines()
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in table[2:]]


class Pages(E2eTest):
    @classmethod
    def setUpClass(cls):
        cls.page = (ROOT / "docs/operations.md").read_text()
        cls.rules = (ROOT / "packaging/monitoring/vmonce.rules.yml").read_text()
        cls.alerts = set(re.findall(r"- alert: (\w+)", cls.rules))
        cls.sources = "".join(path.read_text() for path in (ROOT / "src").rglob("*.cc"))

    def scraped(self):
        """Metric name -> its labels, of a service that has done a little of everything, over TLS."""
        node = TlsNode()
        self.addCleanup(node.close)
        authority = Authority(node.dir, "authority")
        authority.issue(node.dir + "/server")
        node.sections["server"] = {"listen": "127.0.0.1:0", "tls_cert": node.dir + "/server.pem",
                                   "tls_key": node.dir + "/server.key"}
        node.trusts = authority.file
        node.start()
        self.expect(node.create("a", spec("a"), wait=30), 201)
        self.expect(node.create("a", spec("a")), 200)
        self.expect(node.create("a", spec("b")), 422)
        self.expect(node.create("b", spec("a")), 409)
        node.reconcile()
        node.call("GET", "/metrics")
        metrics = {}
        for line in node.call("GET", "/metrics").body.decode().splitlines():
            if line.startswith("#"):
                continue
            name, labels = METRIC.match(line).groups()
            name = re.sub(r"_(bucket|sum|count)$", "", name)
            metrics.setdefault(name, set()).update(re.findall(r"(\w+)=", labels or ""))
        return metrics

    def check_metrics(self, text, metrics):
        for name, labels in METRIC.findall(text):
            self.assertIn(re.sub(r"_bucket$", "", name), metrics, text)
            for label, value in re.findall(r'(\w+)(?:=~?"([^"]*)")?', labels):
                self.assertIn(label, metrics[name], text)
                for word in filter(None, value.split("|")):
                    self.assertTrue(f'"{word}"' in self.sources or word in ("true", "false"), f"{word} in {text}")

    def test_every_metric_and_alert_that_is_named_exists_and_every_one_that_exists_is_told(self):
        metrics = self.scraped()
        symptoms = rows(self.page, "When something is wrong")
        self.assertGreater(len(symptoms), 20)
        for row in symptoms:
            self.assertEqual(len(row), 4, row)
            _, explained, counted, repair = row
            self.assertTrue(explained and repair, row)
            self.assertTrue(METRIC.search(counted) or "`up`" in counted or counted == "none", row)
        self.check_metrics(self.page, metrics)
        self.check_metrics(self.rules, metrics)
        self.assertLessEqual(set(re.findall(r"\bVmonce[A-Z]\w+", self.page)), self.alerts)
        told = {METRIC.search(row[0]).group(1) for row in rows(self.page, "Metrics")}
        self.assertEqual(told, set(metrics))
        # Each alert has its row, and a symptom that leads to it.
        in_symptoms = " ".join(row[2] for row in symptoms)
        for alert in self.alerts:
            self.assertIn(f"| `{alert}` |", self.page)
            self.assertIn(alert, in_symptoms)

    def test_every_code_that_may_pass_says_that_the_same_key_is_safe(self):
        # Report 28: nobody is told to delete or to take another key after a timeout or a 5xx.
        page = (ROOT / "docs/problems.md").read_text()
        table = [[cell.strip() for cell in line.split("|")[1:-1]]
                 for line in page.splitlines() if line.startswith("| `")]
        passing = [row for row in table if row[1].startswith("5") and row[1] not in ("501", "505")]
        self.assertGreater(len(passing), 8)
        for code, status, _, retryable, same_key, what in passing:
            self.assertEqual((retryable, same_key), ("yes", "yes"), code)
            self.assertNotRegex(what.lower(), r"\bdelete\b|another key|new key", code)
        for name in ("README.md", "docs/cli.md", "docs/problems.md"):
            self.assertIn("same key", (ROOT / name).read_text(), name)

    def test_the_guide_never_sends_a_client_elsewhere_unchecked(self):
        # Report 134: after a timeout the other target comes only after a look at the first.
        guide = (ROOT / "docs/cli.md").read_text()
        said = re.search(r"## When no answer comes\n(.*?)\n## ", guide, re.S)
        self.assertIsNotNone(said)
        self.assertIn("same key", said.group(1))
        self.assertRegex(said.group(1), r"explain|idempotency_key=")
        self.assertRegex(said.group(1), r"another (server|service)")


if __name__ == "__main__":
    unittest.main()
