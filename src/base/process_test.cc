#include "base/process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>

#include "base/file.h"
#include "base/system.h"
#include "base/temp_dir.h"
#include "base/unique_fd.h"

namespace vmonce {
namespace {

using testing::HasSubstr;

constexpr Milliseconds kAmple(20000);
// A shell under load, or beside a sanitizer, has done something by then.
constexpr Milliseconds kLongEnoughToBegin(1000);

ProcessSpec Shell(const std::string& script, Milliseconds timeout = kAmple) {
  return ProcessSpec{.argv = {"sh", "-c", script}, .timeout = timeout};
}

// Whether `state` became true, looked at every few milliseconds for at most ten seconds.
bool Eventually(const std::function<bool()>& state) {
  for (int i = 0; i < 2000; ++i) {
    if (state()) return true;
    poll(nullptr, 0, 5);
  }
  return false;
}

// Gone, or dead and not yet collected by whoever inherited it.
bool IsDead(pid_t pid) {
  const auto stat = ReadWholeFile("/proc/" + std::to_string(pid) + "/stat", 4096);
  return !stat || stat->find(") Z ") != std::string::npos;
}

pid_t PidIn(const std::string& path) {
  const auto text = ReadWholeFile(path, 100);
  return text && text->ends_with('\n') ? std::stoi(*text) : 0;
}

TEST(Process, ReturnsExitCodeAndBothOutputs) {
  const auto result = RunProcess(Shell("echo out; echo err >&2; exit 3"));
  ASSERT_TRUE(result) << result.error().detail;
  EXPECT_EQ(result->exit_code, 3);
  EXPECT_EQ(result->signal, std::nullopt);
  EXPECT_FALSE(result->timed_out);
  EXPECT_FALSE(result->is_truncated);
  EXPECT_FALSE(result->Succeeded());
  EXPECT_EQ(result->stdout_text, "out\n");
  EXPECT_EQ(result->stderr_text, "err\n");
  EXPECT_EQ(result->Describe(), "exit code 3: err");
  EXPECT_TRUE(RunProcess(Shell("true"))->Succeeded());
}

TEST(Process, HandsArgumentsOnWithoutAnyShell) {
  const std::string hostile = "$(id) `id` ; * 'x' \"y\"\n-n";
  const auto result = RunProcess({.argv = {"printf", "%s", hostile}, .timeout = kAmple});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->stdout_text, hostile);
}

TEST(Process, TellsTheSignalThatEndedTheChild) {
  const auto result = RunProcess(Shell("kill -TERM $$"));
  ASSERT_TRUE(result);
  EXPECT_EQ(result->signal, SIGTERM);
  EXPECT_EQ(result->exit_code, std::nullopt);
  EXPECT_FALSE(result->timed_out);
  EXPECT_EQ(result->Describe(), "ended by signal 15");
}

TEST(Process, SaysWhyAProgramCannotRun) {
  const TempDir dir;
  const auto run = [](const std::string& program) {
    return RunProcess({.argv = {program}, .timeout = kAmple}).error().code;
  };
  EXPECT_EQ(run("no-such-program-anywhere"), ErrorCode::kNotFound);
  EXPECT_EQ(run(dir.File("none")), ErrorCode::kNotFound);
  ASSERT_TRUE(WriteFileAtomically(dir.File("plain"), "#!/bin/sh\n", 0644));
  EXPECT_EQ(run(dir.File("plain")), ErrorCode::kRefused);
  ASSERT_TRUE(WriteFileAtomically(dir.File("garbage"), "\x7f\x01\x02", 0755));
  EXPECT_EQ(run(dir.File("garbage")), ErrorCode::kInvalid);
}

TEST(Process, KillsAtTheDeadlineWhateverTheChildIgnores) {
  const auto clock = NewSystemClock();
  const Instant start = clock->Monotonic();
  const auto result = RunProcess(
      Shell("trap '' TERM INT HUP; echo begun; while :; do sleep 1000; done", kLongEnoughToBegin));
  const auto elapsed = clock->Monotonic() - start;
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->timed_out);
  EXPECT_EQ(result->signal, SIGKILL);
  EXPECT_FALSE(result->Succeeded());
  EXPECT_EQ(result->stdout_text, "begun\n");
  EXPECT_GE(elapsed, kLongEnoughToBegin);
  EXPECT_LT(elapsed, Milliseconds(10000));
  EXPECT_THAT(result->Describe(), HasSubstr("deadline"));
}

TEST(Process, KillsAtTheDeadlineAChildThatWritesWithoutEnd) {
  const auto result = RunProcess(Shell("yes & yes >&2 & yes", kLongEnoughToBegin));
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->timed_out);
  EXPECT_TRUE(result->is_truncated);
}

TEST(Process, KillsTheChildsOwnChildrenAtTheDeadline) {
  const TempDir dir;
  const auto result = RunProcess(
      Shell("sh -c 'echo $$ > " + dir.File("pid") + "; exec sleep 1000'", kLongEnoughToBegin));
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->timed_out);
  const pid_t pid = PidIn(dir.File("pid"));
  ASSERT_GT(pid, 0);
  EXPECT_TRUE(Eventually([&] { return IsDead(pid); }));
}

TEST(Process, DoesNotWaitForChildrenThatHoldTheOutputAndKillsThem) {
  const auto clock = NewSystemClock();
  const Instant start = clock->Monotonic();
  const auto result = RunProcess(Shell("sleep 1000 & echo $!"));
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->Succeeded());
  EXPECT_LT(clock->Monotonic() - start, Milliseconds(10000));
  const pid_t pid = std::stoi(result->stdout_text);
  EXPECT_TRUE(Eventually([&] { return IsDead(pid); }));
}

TEST(Process, BoundsWhatItKeepsAndNeverBlocksTheChild) {
  ProcessSpec spec = Shell("head -c 3000000 /dev/zero | tr '\\0' x; head -c 3000000 /dev/zero >&2");
  spec.max_output_bytes = 1000;
  const auto result = RunProcess(spec);
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->Succeeded());
  EXPECT_TRUE(result->is_truncated);
  EXPECT_EQ(result->stdout_text, std::string(1000, 'x'));
  EXPECT_EQ(result->stderr_text.size(), 1000u);
}

TEST(Process, GivesTheChildAFixedEnvironmentAndNothingOfOurs) {
  ASSERT_NE(Environment("PATH"), std::nullopt);
  const auto result = RunProcess({.argv = {"env"}, .timeout = kAmple, .environment = {"EXTRA=1"}});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->stdout_text, std::string("EXTRA=1\nPATH=") + kProcessPath + "\nLC_ALL=C\n");
}

TEST(Process, GivesTheChildAnEmptyInput) {
  const auto result = RunProcess({.argv = {"cat"}, .timeout = kAmple});
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->Succeeded());
  EXPECT_EQ(result->stdout_text, "");
}

TEST(Process, HandsNoDescriptorOn) {
  // Opened without close-on-exec, as a library might.
  const UniqueFd open_fd(open("/dev/null", O_RDONLY));
  ASSERT_GT(open_fd.get(), 2);
  const auto result = RunProcess(Shell("test -e /proc/self/fd/" + std::to_string(open_fd.get())));
  ASSERT_TRUE(result);
  EXPECT_EQ(result->exit_code, 1);
}

TEST(Process, GivesTheChildDefaultSignals) {
  const auto before = signal(SIGPIPE, SIG_IGN);
  sigset_t blocked;
  sigset_t mask_before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &blocked, &mask_before);
  const auto result =
      RunProcess({.argv = {"grep", "-E", "^Sig(Ign|Blk)", "/proc/self/status"}, .timeout = kAmple});
  pthread_sigmask(SIG_SETMASK, &mask_before, nullptr);
  signal(SIGPIPE, before);
  ASSERT_TRUE(result);
  std::uint64_t masks[] = {1, 1};
  ASSERT_EQ(
      std::sscanf(result->stdout_text.c_str(), "SigBlk:\t%lx\nSigIgn:\t%lx", &masks[0], &masks[1]),
      2);
  // Signals 32 and 33 are glibc's own: what a parent made of them cannot be changed.
  constexpr std::uint64_t kOfGlibc = std::uint64_t{3} << 31;
  EXPECT_EQ(masks[0] & ~kOfGlibc, 0u) << result->stdout_text;
  EXPECT_EQ(masks[1] & ~kOfGlibc, 0u) << result->stdout_text;
}

// The caller is a process of its own here, killed as kill -9 of the service would; this test adopts
// the orphan.
TEST(Process, LeavesNoChildWhenTheCallerIsKilled) {
  const TempDir dir;
  ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  const pid_t caller = fork();
  if (caller == 0) {
    (void)RunProcess(Shell("echo $$ > " + dir.File("pid") + "; exec sleep 1000"));
    _exit(1);
  }
  ASSERT_TRUE(Eventually([&] { return PidIn(dir.File("pid")) > 0; }));
  const pid_t child = PidIn(dir.File("pid"));
  ASSERT_EQ(kill(caller, SIGKILL), 0);
  ASSERT_EQ(waitpid(caller, nullptr, 0), caller);
  int status = 0;
  EXPECT_TRUE(Eventually([&] { return waitpid(child, &status, WNOHANG) == child; }));
  prctl(PR_SET_CHILD_SUBREAPER, 0);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

TEST(Process, RunsManyAtOnce) {
  const auto threads = NewSystemThreads();
  std::vector<std::unique_ptr<Thread>> callers;
  std::atomic<int> right = 0;
  for (int i = 0; i < 8; ++i) {
    callers.push_back(threads->Spawn("caller", [&right, i](std::stop_token) {
      for (int j = 0; j < 5; ++j) {
        const std::string word = std::to_string(i * 100 + j);
        const auto result = RunProcess(Shell("echo " + word));
        if (result && result->Succeeded() && result->stdout_text == word + "\n") ++right;
      }
    }));
  }
  callers.clear();
  EXPECT_EQ(right, 40);
}

}  // namespace
}  // namespace vmonce
