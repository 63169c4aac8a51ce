#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace vmonce {

void CheckFailed(const char* file, int line, const char* expression, std::string_view detail) {
  std::fprintf(stderr, "CHECK failed at %s:%d: %s %.*s\n", file, line, expression,
               static_cast<int>(detail.size()), detail.data());
  std::abort();
}

}  // namespace vmonce
