#include "app/serve.h"

#include <cstdio>

namespace vmonce::app {

int RunServe(const ServeFlags&) {
  std::fputs("this build has no service in it\n", stderr);
  return 1;
}

}  // namespace vmonce::app
