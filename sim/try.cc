#include <cstdio>
#include <cstdlib>
#include "sim/world.h"
int main(int argc, char** argv) {
  using namespace vmonce::sim;
  Workshop stacks;
  unsigned long a = strtoul(argv[1], 0, 10), b = argc > 2 ? strtoul(argv[2], 0, 10) : a;
  int bad = 0;
  std::map<std::string,int> inv;
  for (auto s = a; s <= b; ++s) {
    WorldOptions o; o.seed = s; o.story_lines = a == b ? 4000 : 0;
    if (getenv("NONE")) o.faults = FaultChoice::kNone;
    if (getenv("MUTANT")) { o.mutant = ParseMutant(getenv("MUTANT")); if (!o.mutant) abort(); }
    auto r = RunWorld(o, stacks);
    if (a == b) { for (auto& l : r.story) puts(l.c_str()); printf("hash %lx turns %lu\n", r.hash, r.turns); }
    if (!r.invariant.empty()) { if (bad++ < 10) printf("seed %lu: %s: %s (turns %lu)\n", s, r.invariant.c_str(), r.breach.c_str(), r.turns); inv[r.invariant]++; if (getenv("STOP")) { printf("%s: seed %lu %s\n", getenv("MUTANT"), s, r.invariant.c_str()); return 0; } }
  }
  for (auto&[k,v]:inv) printf("%6d %s\n", v, k.c_str());
  printf("%d bad\n", bad);
}
