#include "client/src/step_pauses.h"

#include <cstdlib>
#include <utility>

namespace mets::client {
namespace {

// Input work. It is worth a turn also where it is not seen behind exactly the
// same ops.
constexpr int64_t kLongNs = 20'000'000;
// More than at the step's end may live at a pause: so large a part of that.
constexpr int64_t kMoreLive = 16;
// Long pauses of two steps are the same one, of which so small a part of the
// step's ops lies between.
constexpr uint32_t kOpsApart = 16;
// What is expected gives way only to a pause that is long, and so much longer.
constexpr int64_t kMuchLonger = 4;
// So many places are remembered where a program waits for its device, for so
// many steps.
constexpr size_t kMostDeviceWaits = 8;
constexpr int kDeviceWaitSteps = 64;

// A pause of `ns` takes over from an expected one.
bool Overrules(int64_t ns, int64_t expected_ns) {
  return ns >= kLongNs && ns >= kMuchLonger * expected_ns;
}

}  // namespace

void StepPauses::Note(int64_t ns, uint32_t begun, uint32_t ops, bool expected,
                      absl::FunctionRef<Bytes()> live) {
  for (const DeviceWait& wait : device_waits_) {
    if (wait.at == begun) return;
  }
  if (ns < kShortestNs) return;
  const bool stays = longest_.expected ? !Overrules(ns, longest_.ns)
                     : expected        ? Overrules(longest_.ns, ns)
                                       : longest_.ns >= ns;
  if (stays) return;
  longest_ = {ns, begun, ops, expected, live()};
}

void StepPauses::NoteWait(uint32_t begun) {
  device_waits_.push_back({begun, apart_, kDeviceWaitSteps});
  if (device_waits_.size() > kMostDeviceWaits) device_waits_.pop_front();
}

uint32_t StepPauses::EndStep(uint32_t begun, uint32_t ops, Bytes live) {
  Pause pause = std::exchange(longest_, Pause());
  // Where a step begins one has ended anyway.
  if (pause.ops == 0 || (pause.live - live) * kMoreLive > live) pause = Pause();
  const uint32_t apart =
      pause.ns != 0 && last_.ns != 0 ? OpsApart(last_.begun, pause.begun) : 0;
  last_long_ = pause.ns >= kLongNs && PausesLong(pause.ops);
  ends_at_pause_ = apart != 0 && apart == apart_;
  const bool same_ops = ops == last_ops_;
  last_ops_ = ops;
  last_ = pause;
  apart_ = apart;
  MoveDeviceWaits(begun);
  if (ends_at_pause_) return OpsBehind(pause.begun, apart);
  return same_ops && !last_long_ ? OpsBehind(begun, ops) : kNever;
}

bool StepPauses::PausesLong(uint32_t ops) const {
  const int64_t apart = int64_t{ops} - last_.ops;
  return last_.ns >= kLongNs && std::abs(apart) <= last_ops_ / kOpsApart + 1;
}

void StepPauses::MoveDeviceWaits(uint32_t begun) {
  for (DeviceWait& wait : std::exchange(device_waits_, {})) {
    if (--wait.steps == 0) continue;
    const uint32_t since = OpsApart(wait.at, begun);
    if (since <= kOpCountMask / 2) {  // It is not to come.
      wait.at = OpsBehind(wait.at,
                          (since + wait.apart - 1) / wait.apart * wait.apart);
    }
    device_waits_.push_back(wait);
  }
}

}  // namespace mets::client
