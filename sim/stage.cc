#include "sim/stage.h"

#include "base/check.h"

namespace vmonce::sim {

Shape Shape::Draw(Chance& chance) {
  Shape shape;
  // Most bugs need few of everything.
  shape.replicas = chance.OneIn(3) ? 1 : static_cast<int>(chance.Between(2, 3));
  shape.hosts = static_cast<int>(chance.Between(1, 3));
  shape.clients = static_cast<int>(chance.Between(1, 3));
  shape.requests = static_cast<int>(chance.Between(1, 3));
  shape.workers = static_cast<int>(chance.Between(1, 3));
  shape.is_embedded = shape.replicas == 1 && chance.OneIn(2);
  const bool is_remote = chance.OneIn(3);
  shape.settle = shape.is_embedded ? Milliseconds(0) : Milliseconds(is_remote ? 120'000 : 30'000);
  shape.record_within = Milliseconds(chance.OneIn(2) ? 2 : 0);
  shape.reconcile_every = Milliseconds(chance.Between(20'000, 90'000));
  shape.yield_one_in = chance.OneIn(2) ? static_cast<int>(chance.Between(2, 16)) : 0;
  return shape;
}

Stage::Stage(std::uint64_t seed, FaultChoice choice, std::size_t story_lines, Workshop& workshop)
    : seed_chance(seed),
      fault_chance(seed_chance.Split()),
      work_chance(seed_chance.Split()),
      replica_chance(seed_chance.Split()),
      shape(Shape::Draw(seed_chance)),
      faults(Faults::Draw(choice, seed_chance)),
      story(story_lines),
      scheduler(seed_chance.Split(), workshop.stacks),
      clock(scheduler),
      world_threads(scheduler, kWorld, clock, work_chance, 0),
      null_logger(NewNullLogger()),
      ledgers(workshop.ledgers),
      ledger(&ledgers.Begin(clock)),
      oracle(*this) {}

void Stage::Pass(std::string_view door, Milliseconds latency) {
  story.Mix(door);
  story.Mix(static_cast<std::uint64_t>(scheduler.now().time_since_epoch().count()));
  story.Mix(scheduler.Current());
  if (scheduler.CurrentOwner() != kWorld && Happens(FaultKind::kCrash)) crash_current();
  if (scheduler.CurrentOwner() != kWorld && Happens(FaultKind::kPause)) {
    // Some outlast a take-over, some a settle time and what follows it as well.
    const auto lasts =
        Milliseconds(work_chance.Between(1'000, work_chance.OneIn(3) ? 240'000 : 40'000));
    Tell(scheduler.CurrentName(), "its process stands still for {} ms", lasts.count());
    scheduler.Pause(scheduler.CurrentOwner(), scheduler.now() + lasts);
  }
  if (scheduler.CurrentOwner() != kWorld && faults.Has(FaultKind::kStandby)) sleep_current();
  if (latency.count() > 0) {
    scheduler.Park(scheduler.now() + latency);
  } else {
    scheduler.Yield();
  }
}

}  // namespace vmonce::sim
