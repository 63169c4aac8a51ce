#include "base/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>

#include "base/check.h"
#include "base/file.h"
#include "base/unique_fd.h"

namespace vmonce {
namespace {

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

Result<Pipe> NewPipe() {
  std::array<int, 2> fds{};
  if (pipe2(fds.data(), O_CLOEXEC) != 0) return std::unexpected(ErrnoError(errno, "make pipe"));
  return Pipe{UniqueFd(fds[0]), UniqueFd(fds[1])};
}

// Everything the child needs, made before fork: between fork and exec only async-signal-safe calls
// are allowed, since another thread may have held the allocator's lock.
struct Launch {
  std::vector<std::string> candidates;  // Paths to try, in order.
  std::vector<char*> argv;
  std::vector<std::string> environment_texts;
  std::vector<char*> environment;
  UniqueFd null_input;
  Pipe output;
  Pipe errors;
  Pipe exec_error;  // Closed by a successful exec; otherwise brings the errno.
  pid_t parent = 0;
};

std::vector<std::string> Candidates(const std::string& program) {
  if (program.find('/') != std::string::npos) return {program};
  std::vector<std::string> candidates;
  std::string_view rest = kProcessPath;
  while (!rest.empty()) {
    const std::size_t colon = std::min(rest.find(':'), rest.size());
    candidates.push_back(fmt::format("{}/{}", rest.substr(0, colon), program));
    rest.remove_prefix(std::min(colon + 1, rest.size()));
  }
  return candidates;
}

// `spec` must outlive the result.
Result<Launch> Prepare(const ProcessSpec& spec) {
  Launch launch;
  launch.candidates = Candidates(spec.argv.front());
  for (const std::string& argument : spec.argv) {
    launch.argv.push_back(
        const_cast<char*>(argument.c_str()));  // exec's signature; not written to.
  }
  launch.argv.push_back(nullptr);
  launch.environment_texts = spec.environment;
  launch.environment_texts.push_back(fmt::format("PATH={}", kProcessPath));
  launch.environment_texts.push_back("LC_ALL=C");
  for (std::string& text : launch.environment_texts) launch.environment.push_back(text.data());
  launch.environment.push_back(nullptr);
  launch.null_input = UniqueFd(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!launch.null_input.IsOpen()) return std::unexpected(ErrnoError(errno, "open /dev/null"));
  for (Pipe* pipe : {&launch.output, &launch.errors, &launch.exec_error}) {
    auto made = NewPipe();
    if (!made) return std::unexpected(made.error());
    *pipe = std::move(*made);
  }
  launch.parent = getpid();
  return launch;
}

void ResetSignals() {
  struct sigaction standard{};
  standard.sa_handler = SIG_DFL;
  // Fails harmlessly for the two that cannot be changed and those the C library keeps.
  for (int signal = 1; signal < NSIG; ++signal) sigaction(signal, &standard, nullptr);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

// In the child. Comes back only with the errno of what failed.
int Become(const Launch& launch) {
  setpgid(0, 0);
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return errno;
  // The parent may have died before the line above.
  if (getppid() != launch.parent) _exit(127);
  if (dup2(launch.null_input.get(), STDIN_FILENO) < 0) return errno;
  if (dup2(launch.output.write.get(), STDOUT_FILENO) < 0) return errno;
  if (dup2(launch.errors.write.get(), STDERR_FILENO) < 0) return errno;
  // For descriptors that a library opened without close-on-exec. Linux before 5.11 cannot; ours
  // carry the flag anyway.
  close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
  ResetSignals();
  int reason = ENOENT;
  for (const std::string& path : launch.candidates) {
    execve(path.c_str(), launch.argv.data(), launch.environment.data());
    // As a shell does: what exists and cannot be run tells more than what is not there.
    if (errno != ENOENT && errno != ENOTDIR) reason = errno;
  }
  return reason;
}

Result<pid_t> Fork(const Launch& launch) {
  // No handler of this process may run in the child before its dispositions are reset.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = fork();
  const int fork_error = errno;
  if (pid == 0) {
    const int reason = Become(launch);
    (void)!write(launch.exec_error.write.get(), &reason, sizeof(reason));
    _exit(127);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) return std::unexpected(ErrnoError(fork_error, "fork"));
  return pid;
}

int Reap(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) CHECK_MSG(errno == EINTR, "the child was reaped by another");
  return status;
}

// The errno with which exec failed, or 0. Blocks until the child has become the program or ended,
// which takes no longer than exec itself.
int ExecError(const UniqueFd& pipe) {
  int reason = 0;
  ssize_t got = 0;
  do {
    got = read(pipe.get(), &reason, sizeof(reason));
  } while (got < 0 && errno == EINTR);
  return got == sizeof(reason) ? reason : 0;
}

UniqueFd OpenPidFd(pid_t pid) {
  return UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
}

// Readable once `timeout` has passed.
UniqueFd NewTimer(Milliseconds timeout) {
  UniqueFd timer(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!timer.IsOpen()) return timer;
  itimerspec when{};
  when.it_value.tv_sec = timeout.count() / 1000;
  when.it_value.tv_nsec = timeout.count() % 1000 * 1000000;
  CHECK(timerfd_settime(timer.get(), 0, &when, nullptr) == 0);
  return timer;
}

// One output stream of the child.
class Capture {
 public:
  Capture(UniqueFd fd, std::size_t bound) : fd_(std::move(fd)), bound_(bound) {
    CHECK(fcntl(fd_.get(), F_SETFL, O_NONBLOCK) == 0);
  }

  // What poll(2) ignores once the stream has ended.
  int fd() const { return fd_.get(); }

  // Takes all that a full pipe holds, and no more: a child that writes without end must not keep
  // the deadline from being looked at.
  void Drain() {
    constexpr int kReadsPerPipe = 8;  // A pipe holds 64 KiB unless somebody enlarged it.
    char buffer[16384];
    for (int i = 0; i < kReadsPerPipe && fd_.IsOpen(); ++i) {
      const ssize_t got = read(fd_.get(), buffer, sizeof(buffer));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && errno == EAGAIN) return;
      if (got <= 0) {
        fd_.Close();
        return;
      }
      const auto length = static_cast<std::size_t>(got);
      const std::size_t kept = std::min(length, bound_ - text_.size());
      text_.append(buffer, kept);
      is_truncated_ = is_truncated_ || kept < length;
    }
  }

  std::string Take() { return std::move(text_); }
  bool is_truncated() const { return is_truncated_; }

 private:
  UniqueFd fd_;
  const std::size_t bound_;
  std::string text_;
  bool is_truncated_ = false;
};

// Until the child has ended (true) or the timer has (false).
bool Follow(const UniqueFd& child, const UniqueFd& timer, Capture& output, Capture& errors) {
  while (true) {
    std::array<pollfd, 4> events{pollfd{child.get(), POLLIN, 0}, pollfd{timer.get(), POLLIN, 0},
                                 pollfd{output.fd(), POLLIN, 0}, pollfd{errors.fd(), POLLIN, 0}};
    if (poll(events.data(), events.size(), -1) < 0) {
      CHECK(errno == EINTR || errno == ENOMEM || errno == EAGAIN);
      continue;
    }
    if (events[0].revents != 0) return true;
    if (events[1].revents != 0) return false;
    if (events[2].revents != 0) output.Drain();
    if (events[3].revents != 0) errors.Drain();
  }
}

std::string LastLine(std::string_view text) {
  const std::size_t last = text.find_last_not_of(" \t\r\n");
  if (last == std::string_view::npos) return "";
  text = text.substr(0, last + 1);
  const std::size_t newline = text.find_last_of("\r\n");
  return std::string(newline == std::string_view::npos ? text : text.substr(newline + 1));
}

}  // namespace

std::string ProcessResult::Describe() const {
  const std::string line = LastLine(stderr_text);
  const std::string end = timed_out   ? std::string("killed at its deadline")
                          : exit_code ? fmt::format("exit code {}", *exit_code)
                                      : fmt::format("ended by signal {}", signal.value_or(0));
  return line.empty() ? end : fmt::format("{}: {}", end, line);
}

Result<ProcessResult> RunProcess(const ProcessSpec& spec) {
  CHECK(!spec.argv.empty() && !spec.argv.front().empty() && spec.timeout > Milliseconds::zero());
  // Made first, so that after fork nothing can fail but the child itself.
  const UniqueFd timer = NewTimer(spec.timeout);
  if (!timer.IsOpen()) return std::unexpected(ErrnoError(errno, "make timer"));
  auto launch = Prepare(spec);
  if (!launch) return std::unexpected(launch.error());
  const auto pid = Fork(*launch);
  if (!pid) return std::unexpected(pid.error());

  launch->output.write.Close();
  launch->errors.write.Close();
  launch->exec_error.write.Close();
  if (const int reason = ExecError(launch->exec_error.read); reason != 0) {
    Reap(*pid);
    return std::unexpected(ErrnoError(reason, fmt::format("run {}", spec.argv.front())));
  }
  Capture output(std::move(launch->output.read), spec.max_output_bytes);
  Capture errors(std::move(launch->errors.read), spec.max_output_bytes);
  const UniqueFd child = OpenPidFd(*pid);

  ProcessResult result;
  // Without a descriptor for the child its end cannot be waited for with a deadline: it counts as
  // past it.
  const bool has_ended = child.IsOpen() && Follow(child, timer, output, errors);
  // Not reaped yet, so the group's number cannot have become another's.
  kill(-*pid, SIGKILL);
  const int status = Reap(*pid);
  output.Drain();
  errors.Drain();
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  // It may still have ended by itself between the deadline and the kill.
  result.timed_out = !has_ended && !result.exit_code;
  result.is_truncated = output.is_truncated() || errors.is_truncated();
  result.stdout_text = output.Take();
  result.stderr_text = errors.Take();
  return result;
}

}  // namespace vmonce
