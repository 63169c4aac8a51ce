#!/usr/bin/env python3
"""Tests of tidy: for each rule a tree that breaks it and one that does not."""
import importlib.machinery
import importlib.util
import os
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("tidy", os.path.join(HERE, "tidy"))
spec = importlib.util.spec_from_loader("tidy", loader)
tidy = importlib.util.module_from_spec(spec)
sys.modules["tidy"] = tidy
loader.exec_module(tidy)


def problems(files):
    """What tidy says of a tree {path: text}, as [(path, line, rule)], with unused-header left out unless asked for."""
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write(text)
        checker = tidy.Tidy()
        checker.run(root, sorted(files))
        return checker.problems


def rules(files):
    return [rule for _, _, rule, _ in problems(files) if rule != "unused-header"]


def of_code(code, path="src/engine/worker.cc"):
    return rules({path: code})


class BannedWords(unittest.TestCase):
    CASES = {
        "clock": ["auto t = std::chrono::system_clock::now();", "auto t = std::chrono::steady_clock::now();",
                  "auto t = time(nullptr);", "auto t = std::time(0);", "clock_gettime(CLOCK_REALTIME, &ts);"],
        "chance": ["int x = rand();", "srand(1);", "std::random_device device;", "std::mt19937 g(1);"],
        "sleep": ["std::this_thread::sleep_for(x);", "usleep(5);", "::sleep(1);", "sleep(1);"],
        "environment": ['auto* p = std::getenv("A");'],
        "stdout": ['std::cout << "x";', 'printf("x");'],
        "using-namespace": ["using namespace std;"],
        "raw-new": ["auto* p = new Worker(1);", "p.reset(new int[3]);"],
        "raw-delete": ["delete worker;", "delete[] bytes;"],
        "throw": ['throw std::runtime_error("x");', "throw;"],
        "threads": ["std::thread t;", "std::jthread t;", "std::mutex m;", "std::condition_variable c;",
                    "std::lock_guard lock(m);"],
        "capture-all": ["auto f = [=] { return x; };", "auto f = [=, &y] { return x; };"],
        "skipped-test": ["GTEST_SKIP();", "TEST(Worker, DISABLED_Runs) {}"],
        "empty-assertion": ["EXPECT_TRUE(true);", "ASSERT_FALSE( false );", "SUCCEED();"],
    }

    def test_each_is_found_where_it_stands(self):
        for rule, lines in self.CASES.items():
            for line in lines:
                with self.subTest(line=line):
                    found = problems({"src/engine/worker.cc": "\n\n" + line + "\n"})
                    self.assertEqual([(p[1], p[2]) for p in found], [(3, rule)])

    def test_each_message_says_what_to_write_instead(self):
        for rule, _, _, instead in tidy.BANNED:
            with self.subTest(rule=rule):
                self.assertGreater(len(instead), 15)

    def test_each_rule_has_a_case(self):
        self.assertEqual(set(self.CASES), {rule for rule, *_ in tidy.BANNED})

    def test_comments_and_strings_are_not_code(self):
        self.assertEqual(of_code('// throw new delete\n/* std::mutex\nrand() */\nauto a = "throw";\nauto b = R"(new\n'
                                 'delete x; "throw")";\nchar c = \'"\'; int n = 1\'000\'000; auto d = "\\"throw";\n'), [])

    def test_a_word_after_a_string_or_comment_is_code(self):
        self.assertEqual(of_code('f("//"); throw 1;\n'), ["throw"])
        self.assertEqual(of_code("/* x */ throw 1;\n"), ["throw"])
        self.assertEqual(of_code("int n = 1'0; throw '1';\n"), ["throw"])

    def test_what_only_looks_like_one_is_left_alone(self):
        self.assertEqual(of_code("Worker(const Worker&) = delete;\nauto t = clock.time();\nint lifetime(0);\n"
                                 "void* operator new(size_t);\nbool renew = true;\nauto g = [&] {};\n"
                                 "int operand(int);\nusing namespace std::string_view_literals;\nNoThrow();\nx.sleep(1);\n"), [])

    def test_the_door_itself_may(self):
        self.assertEqual(of_code("auto t = std::chrono::steady_clock::now();\nstd::mutex m;\n", "src/base/system.cc"), [])
        self.assertEqual(of_code("std::mutex m;\n", "src/base/threads.cc"), [])
        self.assertEqual(of_code("std::mutex m;\n", "src/base/log.cc"), ["threads"])
        self.assertEqual(of_code("std::cout << 1;\n", "src/app/list.cc"), [])

    def test_a_test_may_seed_and_may_not_start_threads(self):
        self.assertEqual(of_code("std::mt19937 g(7);\n", "src/engine/worker_test.cc"), [])
        self.assertEqual(of_code("std::jthread t;\n", "src/engine/worker_test.cc"), ["threads"])


class Includes(unittest.TestCase):
    def include(self, path, header):
        return rules({path: f"#include {header}\n"})

    def test_the_arrows(self):
        allowed = [
            ("src/model/vm.cc", '"base/clock.h"'), ("src/engine/worker.cc", '"ports/ledger.h"'),
            ("src/engine/worker.cc", '"model/lease.h"'), ("src/engine/worker.cc", '"engine/saga.h"'),
            ("src/workflows/create_vm.cc", '"engine/saga.h"'), ("src/ledger/sqlite_ledger.cc", '"ports/ledger.h"'),
            ("src/api/rest/vms.cc", '"service/vm_service.h"'), ("src/api/rest/vms.cc", '"http/server.h"'),
            ("src/app/list.cc", '"client/client.h"'), ("src/app/serve.cc", '"ledger/sqlite_ledger.h"'),
            ("src/app/serve_wiring.cc", '"hypervisor/libvirt_driver.h"'), ("tests/e2e_test.cc", '"ledger/x.h"'),
        ]
        forbidden = [
            ("src/base/log.cc", '"model/vm.h"'), ("src/engine/worker.cc", '"model/vm.h"'),
            ("src/engine/worker.cc", '"ports/hypervisor.h"'), ("src/service/queries.cc", '"ledger/sqlite_ledger.h"'),
            ("src/ledger/sqlite_ledger.cc", '"ports/hypervisor.h"'), ("src/hypervisor/disks.cc", '"ports/ledger.h"'),
            ("src/api/rest/vms.cc", '"ports/ledger.h"'), ("src/http/server.cc", '"model/vm.h"'),
            ("src/app/list.cc", '"service/queries.h"'), ("src/model/vm.cc", '"ports/ledger.h"'),
            ("src/somewhere/new.cc", '"base/clock.h"'), ("src/engine/worker.cc", '"base/system.h"'),
        ]
        for path, header in allowed:
            with self.subTest(path=path, header=header):
                self.assertEqual(self.include(path, header), [])
        for path, header in forbidden:
            with self.subTest(path=path, header=header):
                self.assertEqual(self.include(path, header), ["include"])

    def test_each_library_is_visible_in_its_folder(self):
        allowed = [
            ("src/ledger/sqlite_ledger.cc", "<sqlite3.h>"), ("src/hypervisor/disks.cc", "<libvirt/libvirt.h>"),
            ("src/http/server.cc", "<boost/asio/awaitable.hpp>"), ("src/client/http.cc", "<curl/curl.h>"),
            ("src/app/main.cc", "<CLI/CLI.hpp>"), ("src/base/sha256.cc", "<openssl/evp.h>"),
            ("src/model/intent.cc", "<boost/json.hpp>"), ("src/engine/saga.cc", "<fmt/format.h>"),
            ("src/engine/saga_test.cc", "<gtest/gtest.h>"), ("src/engine/saga.cc", "<vector>"),
            ("src/hypervisor/disks.cc", "<unistd.h>"), ("src/model/vm.cc", "<chrono>"),
        ]
        forbidden = [
            ("src/service/queries.cc", "<sqlite3.h>"), ("src/api/rest/vms.cc", "<libvirt/libvirt.h>"),
            ("src/api/rest/vms.cc", "<boost/asio/awaitable.hpp>"), ("src/app/list.cc", "<curl/curl.h>"),
            ("src/client/args.cc", "<CLI/CLI.hpp>"), ("src/service/auth.cc", "<openssl/evp.h>"),
            ("src/engine/saga.cc", "<boost/json.hpp>"), ("src/engine/saga.cc", "<gtest/gtest.h>"),
            ("src/model/vm.cc", "<unistd.h>"), ("src/base/log.cc", "<absl/strings/str_cat.h>"),
        ]
        for path, header in allowed:
            with self.subTest(path=path, header=header):
                self.assertEqual(self.include(path, header), [])
        for path, header in forbidden:
            with self.subTest(path=path, header=header):
                self.assertEqual(self.include(path, header), ["include"])

    def test_an_include_in_a_comment_is_none(self):
        self.assertEqual(rules({"src/base/log.cc": '/*\n#include "model/vm.h"\n*/\n'}), [])

    def test_a_header_that_only_tests_include_is_a_test(self):
        helper = {"src/http/raw_client.h": "#pragma once\n#include <gtest/gtest.h>\n"}
        test = {"src/http/server_test.cc": '#include "http/raw_client.h"\n'}
        code = {"src/http/server.cc": '#include "http/raw_client.h"\n'}
        self.assertEqual(rules(helper | test), [])
        self.assertEqual(rules(helper | test | code), ["include"])

    def test_own_header_first(self):
        header = {"src/base/log.h": "#pragma once\n"}
        good = {"src/base/log.cc": '#include "base/log.h"\n\n#include <vector>\n'}
        bad = {"src/base/log.cc": '#include <vector>\n\n#include "base/log.h"\n'}
        self.assertEqual(rules(header | good), [])
        self.assertEqual(rules(header | bad), ["own-header"])
        self.assertEqual(rules({"src/app/main.cc": "#include <vector>\n"}), [])


class Headers(unittest.TestCase):
    def test_pragma_once_comes_before_code(self):
        self.assertEqual(rules({"src/base/a.h": "// What it is for.\n#pragma once\nint F();\n"}), [])
        self.assertEqual(rules({"src/base/a.h": "#include <vector>\n#pragma once\n"}), ["pragma-once"])
        self.assertEqual(rules({"src/base/a.h": "int F();\n"}), ["pragma-once"])

    def test_a_header_for_itself_alone_is_unused(self):
        tree = {"src/base/a.h": "#pragma once\n", "src/base/a.cc": '#include "base/a.h"\n',
                "src/base/a_test.cc": '#include "base/a.h"\n'}
        self.assertEqual([p[2] for p in problems(tree)], ["unused-header"])
        tree["src/base/b.cc"] = '#include "base/a.h"\n'
        self.assertEqual(problems(tree), [])


class Sizes(unittest.TestCase):
    def test_code_lines_are_counted_and_comments_are_free(self):
        lines = "int a;\n" * 500
        comments = "// why\n\n" * 400
        self.assertEqual(of_code(lines + comments), [])
        self.assertEqual(of_code(lines + "int b;\n"), ["file-length"])
        self.assertEqual(of_code("int a;\n" * 800, "src/base/a_test.cc"), [])
        self.assertEqual(of_code("int a;\n" * 801, "src/base/a_test.cc"), ["file-length"])

    def test_long_lines(self):
        self.assertEqual(of_code("// " + "é" * 97 + "\n"), [])
        self.assertEqual(of_code("// " + "x" * 98 + "\n"), ["line-length"])

    def test_function_length(self):
        def body(count):
            return "  a = b + f(c);\n" * count
        heads = ["int Worker::Run(std::stop_token stop) const {\n", "Worker::Worker(int a) : a_(a), b_{2} {\n",
                 "TEST(Worker, Runs) {\n", "template <typename T>\nResult<T> Load(\n    const T& value) {\n",
                 "auto f = [](int a) {\n"]
        for head in heads:
            with self.subTest(head=head):
                end = "};\n" if head.startswith("auto") else "}\n"
                extra = head.count("\n") + 1
                around = "namespace vmonce {\nnamespace {\n%s}\n}  // namespace vmonce\n"
                self.assertEqual(of_code(around % (head + body(70 - extra) + end)), [])
                self.assertEqual(of_code(around % (head + body(71 - extra) + end)), ["function-length"])

    def test_types_and_tables_are_no_functions(self):
        body = "  int a{0};\n  void F() { G(); }\n" * 40
        self.assertEqual(of_code("class Worker final : public Base {\n" + body + "};\n"), [])
        self.assertEqual(of_code("class CAPABILITY(x) Worker {\n" + body + "};\n"), [])
        self.assertEqual(of_code("constexpr Row kTable[] = {\n" + "  {1, F(2)},\n" * 90 + "};\n"), [])
        self.assertEqual(of_code("template <class T>\nstruct Worker {\n" + body + "};\n"), [])

    def test_a_member_function_is_one(self):
        inside = "  void F() {\n" + "    G();\n" * 80 + "  }\n"
        found = problems({"src/engine/worker.cc": "class Worker {\n" + inside + "};\n"})
        self.assertEqual([(p[1], p[2]) for p in found], [(2, "function-length")])
        self.assertIn("F has 82 code lines", found[0][3])


class Notes(unittest.TestCase):
    def test_todo_names_its_time(self):
        self.assertEqual(of_code("// TODO(soon): more\n// TODO(someday): else\n"), [])
        for comment in ("// TODO: x", "// TODO(now): x", "// FIXME x", "// TODO(me): x"):
            with self.subTest(comment=comment):
                self.assertEqual(of_code(comment + "\n"), ["todo"])

    def test_paths_of_a_machine(self):
        secret = "/" + "home/"
        self.assertEqual(rules({"docs/a.md": f"see {secret}me/x\n"}), ["machine-path"])
        self.assertEqual(rules({"Makefile": "x: /" + "root/y\n"}), ["machine-path"])
        self.assertEqual(rules({"docs/a.md": "chroot/root/a and $HOME/home/b and https://a.org/home/b\n"}), [])


class Allowances(unittest.TestCase):
    def test_on_the_line_or_above(self):
        self.assertEqual(of_code("throw 1;  // tidy: allow throw: a library wants it\n"), [])
        self.assertEqual(of_code("// tidy: allow throw: a library wants it\nthrow 1;\n"), [])

    def test_only_its_rule_and_place(self):
        self.assertEqual(sorted(of_code("// tidy: allow clock: x\nthrow 1;\n")), ["allowance", "throw"])
        self.assertEqual(sorted(of_code("// tidy: allow throw: x\n\nthrow 1;\n")), ["allowance", "throw"])

    def test_a_reason_and_a_known_rule_are_needed(self):
        self.assertEqual(sorted(of_code("throw 1;  // tidy: allow throw\n")), ["allowance", "throw"])
        self.assertEqual(of_code("// tidy: allow nonsense: because\n"), ["allowance"])

    def test_an_allowance_without_effect_is_an_error(self):
        self.assertEqual(of_code("// tidy: allow throw: once needed\nint a;\n"), ["allowance"])


class Repository(unittest.TestCase):
    def test_every_file_of_this_one_can_be_read(self):
        root = os.path.join(HERE, "..", "..")
        self.assertTrue(tidy.Tidy().run(root, tidy.tracked_files(root)))


if __name__ == "__main__":
    unittest.main()
