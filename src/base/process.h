// Runs a child program to its end: no shell, bounded output, a deadline that holds. For the small
// tools that have no library (qemu-img, genisoimage).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace vmonce {

struct ProcessSpec {
  // The program and its arguments. A program without a slash is looked for in kProcessPath, not in
  // this process's PATH.
  std::vector<std::string> argv;
  // The child and all of its group are killed when it has not ended by then; positive.
  Milliseconds timeout{0};
  // Of stdout and of stderr, each; what comes beyond is read and dropped, so that the child never
  // blocks on it.
  std::size_t max_output_bytes = 64 * 1024;
  // "NAME=value", beside PATH and LC_ALL=C, which are all that a child gets otherwise. Nothing of
  // this process's environment is handed on.
  std::vector<std::string> environment;
};

inline constexpr const char* kProcessPath =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

struct ProcessResult {
  // One of the two is set.
  std::optional<int> exit_code;
  std::optional<int> signal;
  // It was killed at the deadline: its effects are unknown.
  bool timed_out = false;
  std::string stdout_text;
  std::string stderr_text;
  // Some output was dropped.
  bool is_truncated = false;

  bool Succeeded() const { return exit_code == 0; }
  // One line for an error's detail: how it ended, and the last line of stderr that is not empty.
  std::string Describe() const;
};

// Thread-safe; blocks until the child has ended and is reaped: at most a moment beyond the timeout,
// unless the kernel holds the child in an uninterruptible wait (a dead disk). The child gets an
// empty stdin, no descriptor but the three, default signals, and a process group of its own, which
// is killed whenever the child has ended: nothing it started outlives it, short of what left the
// group. It is also killed when the calling thread dies, a kill -9 of this process included, so no
// abandoned child goes on writing after a restart (its own children may).
//
// kNotFound: no such program; kRefused or kInvalid: it cannot be executed; kUnavailable: no process
// could be made. With any of these nothing was run. That a program failed or was killed is a
// ProcessResult, not an error. Precondition: this process does not ignore SIGCHLD and nobody else
// waits for children that are not theirs.
Result<ProcessResult> RunProcess(const ProcessSpec& spec);

}  // namespace vmonce
