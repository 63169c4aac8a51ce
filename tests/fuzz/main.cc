// The program that libFuzzer drives:  vmonce_fuzz --target=NAME [libFuzzer's flags]
// [CORPUS...|INPUT] tests/fuzz/run starts it.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "tests/fuzz/targets.h"

namespace {

constexpr std::string_view kFlag = "--target=";

// libFuzzer's interface has nowhere else to keep it.
const vmonce::fuzz::Target* chosen = nullptr;

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* count, char*** arguments) {
  for (int i = 1; i < *count; ++i) {
    const std::string_view argument = (*arguments)[i];
    if (!argument.starts_with(kFlag)) continue;
    for (const vmonce::fuzz::Target& target : vmonce::fuzz::AllTargets()) {
      if (target.name == argument.substr(kFlag.size())) chosen = &target;
    }
  }
  if (chosen != nullptr) return 0;
  std::fputs("usage: vmonce_fuzz --target=NAME [FLAGS] [CORPUS]; NAME is one of", stderr);
  for (const vmonce::fuzz::Target& target : vmonce::fuzz::AllTargets()) {
    std::fprintf(stderr, " %.*s", static_cast<int>(target.name.size()), target.name.data());
  }
  std::fputs("\n", stderr);
  std::exit(2);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  chosen->run({reinterpret_cast<const char*>(data), size});
  return 0;
}
