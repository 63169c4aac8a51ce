#include "sim/scheduler.h"

#include <algorithm>

#include "base/check.h"

namespace vmonce::sim {
namespace {

// The stack is the scheduler's to give back, when the fiber has ended or is abandoned.
struct BorrowedStack {
  boost::context::stack_context stack;
  boost::context::stack_context allocate() { return stack; }
  void deallocate(boost::context::stack_context&) {}
};

}  // namespace

Scheduler::Scheduler(Chance chance, Stacks& stacks) : chance_(chance), stacks_(stacks) {}

Scheduler::~Scheduler() {
  for (const auto& fiber : fibers_) {
    if (fiber->state != State::kEnded) Abandon(*fiber);
  }
}

FiberId Scheduler::Spawn(Owner owner, std::string name, std::function<void()> body) {
  const FiberId id = fibers_.size();
  auto fiber = std::make_unique<Fiber>();
  fiber->owner = owner;
  fiber->name = std::move(name);
  fiber->body = std::move(body);
  fibers_.push_back(std::move(fiber));
  ready_.push_back(id);
  return id;
}

void Scheduler::Resume(FiberId id) {
  Fiber& fiber = *fibers_[id];
  fiber.state = State::kRunning;
  current_ = id;
  if (!fiber.context) {
    fiber.stack = stacks_.Take();
    fiber.context = boost::context::fiber(std::allocator_arg, BorrowedStack{fiber.stack},
                                          [this, &fiber](boost::context::fiber&& back) {
                                            back_ = std::move(back);
                                            fiber.body();
                                            fiber.state = State::kEnded;
                                            return std::move(back_);
                                          });
  }
  fiber.context = std::move(fiber.context).resume();
  if (fiber.state != State::kEnded || !fiber.stack.sp) return;
  // Its function returned, or it killed its own process.
  if (fiber.context) Abandon(fiber);
  if (fiber.stack.sp) stacks_.GiveBack(fiber.stack);
  fiber.stack = {};
  fiber.body = nullptr;
}

void Scheduler::Switch() {
  // `back_` is moved from while the scheduler runs, and set again by whoever it resumes.
  boost::context::fiber back = std::move(back_).resume();
  back_ = std::move(back);
}

bool Scheduler::RunUntilEnded(FiberId wanted, std::uint64_t turns) {
  last_turn_ = turns_ + turns;
  while (!HasEnded(wanted)) {
    if (++turns_ > last_turn_) return false;
    FireDue();
    if (ready_.empty()) {
      if (!AdvanceToNextTimer()) return false;
      continue;
    }
    const FiberId next = PickReady();
    if (fibers_[next]->state == State::kReady) Resume(next);
  }
  return true;
}

FiberId Scheduler::PickReady() {
  const std::size_t at = ready_.size() == 1 ? 0 : chance_.Draw() % ready_.size();
  const FiberId next = ready_[at];
  ready_[at] = ready_.back();
  ready_.pop_back();
  const auto stop = std::ranges::find(stops_, fibers_[next]->owner, &Stop::owner);
  if (stop == stops_.end()) return next;
  if (stop->until <= now_) {
    stops_.erase(stop);
    return next;
  }
  // Stands still: it is ready again when its process goes on.
  Fiber& fiber = *fibers_[next];
  if (fiber.state != State::kReady) return next;
  fiber.state = State::kParked;
  ++fiber.sleep;
  timers_.push_back({stop->until, ++order_, next, fiber.sleep});
  std::ranges::push_heap(timers_, std::greater<>());
  return next;
}

bool Scheduler::AdvanceToNextTimer() {
  if (timers_.empty()) return false;
  now_ = std::max(now_, timers_.front().at);
  FireDue();
  return true;
}

void Scheduler::FireDue() {
  while (!timers_.empty() && timers_.front().at <= now_) {
    const Timer timer = timers_.front();
    std::ranges::pop_heap(timers_, std::greater<>());
    timers_.pop_back();
    Fiber& fiber = *fibers_[timer.fiber];
    if (fiber.state != State::kParked || fiber.sleep != timer.sleep) continue;
    fiber.state = State::kReady;
    ready_.push_back(timer.fiber);
  }
}

bool Scheduler::IsAloneUntil(Instant then) const {
  return ready_.empty() && (timers_.empty() || timers_.front().at > then) && turns_ < last_turn_ &&
         !IsPaused(CurrentOwner());
}

void Scheduler::Yield() {
  if (IsAloneUntil(now_)) {
    ++turns_;
    return;
  }
  fibers_[current_]->state = State::kReady;
  ready_.push_back(current_);
  Switch();
}

bool Scheduler::Park(Instant deadline) {
  Fiber& fiber = *fibers_[current_];
  fiber.was_woken = false;
  if (deadline <= now_) {
    Yield();
    return false;
  }
  if (deadline != kNever && IsAloneUntil(deadline)) {
    ++turns_;
    now_ = deadline;
    return false;
  }
  fiber.state = State::kParked;
  ++fiber.sleep;
  if (deadline != kNever) {
    timers_.push_back({deadline, ++order_, current_, fiber.sleep});
    std::ranges::push_heap(timers_, std::greater<>());
  }
  Switch();
  return fiber.was_woken;
}

void Scheduler::Wake(FiberId id) {
  Fiber& fiber = *fibers_[id];
  if (fiber.state != State::kParked) return;
  fiber.was_woken = true;
  fiber.state = State::kReady;
  ++fiber.sleep;
  ready_.push_back(id);
}

void Scheduler::Abandon(Fiber& fiber) {
  // Never destroyed: that would unwind it, and unwinding is a clean end.
  if (fiber.context) {
    (void)std::make_unique<boost::context::fiber>(std::move(fiber.context)).release();
  }
  if (fiber.body) (void)std::make_unique<std::function<void()>>(std::move(fiber.body)).release();
  if (fiber.stack.sp) stacks_.GiveBack(fiber.stack);
  fiber.stack = {};
  fiber.state = State::kEnded;
}

void Scheduler::Kill(Owner owner) {
  CHECK(owner != kWorld);
  for (std::size_t id = 0; id < fibers_.size(); ++id) {
    Fiber& fiber = *fibers_[id];
    if (fiber.owner != owner || fiber.state == State::kEnded) continue;
    if (fiber.state == State::kRunning) continue;
    Abandon(fiber);
  }
  if (fibers_[current_]->owner != owner) return;
  fibers_[current_]->state = State::kEnded;
  Switch();
  CHECK_MSG(false, "a killed fiber ran again");
}

void Scheduler::Pause(Owner owner, Instant until) {
  const auto stop = std::ranges::find(stops_, owner, &Stop::owner);
  if (stop == stops_.end()) {
    stops_.push_back({owner, until});
  } else {
    stop->until = std::max(stop->until, until);
  }
  if (fibers_[current_]->owner == owner) Yield();
}

bool Scheduler::IsPaused(Owner owner) const {
  const auto stop = std::ranges::find(stops_, owner, &Stop::owner);
  return stop != stops_.end() && stop->until > now_;
}

}  // namespace vmonce::sim
