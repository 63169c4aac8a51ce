// CHECK: an invariant whose breach is a bug. It ends the process, in production too: a wrong row is
// worse than a restart, and the service is made to survive kill -9 anywhere.
#pragma once

#include <string_view>

namespace vmonce {

// Prints file, line, the expression and `detail` on stderr, then aborts.
[[noreturn]] void CheckFailed(const char* file, int line, const char* expression,
                              std::string_view detail);

}  // namespace vmonce

#define VMONCE_CHECK_AT(expression, detail)                           \
  do {                                                                \
    if (!(expression)) [[unlikely]] {                                 \
      ::vmonce::CheckFailed(__FILE__, __LINE__, #expression, detail); \
    }                                                                 \
  } while (false)

#define CHECK(expression) VMONCE_CHECK_AT(expression, "")
#define CHECK_MSG(expression, detail) VMONCE_CHECK_AT(expression, detail)
