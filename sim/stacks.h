// Stacks of fibers, kept for the next world: a world needs hundreds, and asking the kernel for each
// costs more than the rest of a switch.
#pragma once

#include <boost/context/protected_fixedsize_stack.hpp>
#include <vector>

namespace vmonce::sim {

// Used by one thread. Frees what was given back; nobody runs on such a stack any more.
class Stacks {
 public:
  using Stack = boost::context::stack_context;

  Stacks() : source_(kBytes) {}
  ~Stacks() {
    for (Stack& stack : free_) source_.deallocate(stack);
  }
  Stacks(const Stacks&) = delete;
  Stacks& operator=(const Stacks&) = delete;

  Stack Take() {
    if (free_.empty()) return source_.allocate();
    const Stack stack = free_.back();
    free_.pop_back();
    return stack;
  }
  void GiveBack(const Stack& stack) { free_.push_back(stack); }

 private:
  // SQLite and Boost.JSON need some ten KiB; only what is touched takes memory.
  static constexpr std::size_t kBytes = 256 << 10;

  boost::context::protected_fixedsize_stack source_;
  std::vector<Stack> free_;
};

}  // namespace vmonce::sim
