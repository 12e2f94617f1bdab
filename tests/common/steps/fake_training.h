// Sequences of ops whose steps are known.
#ifndef METS_TESTS_COMMON_STEPS_FAKE_TRAINING_H_
#define METS_TESTS_COMMON_STEPS_FAKE_TRAINING_H_

#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "common/base/bytes.h"
#include "common/steps/step_detector.h"

namespace mets::steps {

struct FakeOp {
  uint64_t signature = 0;
  Bytes live;
};
using FakeOps = std::vector<FakeOp>;

// A step of `ops` ops, all different: live bytes rise to `ops` / 2 MiB above
// 100 MiB and fall again; the least is at the first op.
inline FakeOps MakeStep(uint64_t seed, int ops) {
  FakeOps step;
  for (int i = 0; i < ops; ++i) {
    step.push_back({seed * 1000000 + i + 1, MiB(100 + std::min(i, ops - i))});
  }
  return step;
}

inline void Append(FakeOps* to, const FakeOps& ops) {
  to->insert(to->end(), ops.begin(), ops.end());
}

// Each op is late by up to `distance` places; live bytes stay where they are.
inline FakeOps Permuted(FakeOps ops, int distance, std::mt19937* random) {
  std::vector<std::pair<size_t, uint64_t>> order;
  for (size_t i = 0; i < ops.size(); ++i) {
    order.push_back({i + (*random)() % (distance + 1), ops[i].signature});
  }
  std::stable_sort(
      order.begin(), order.end(),
      [](const auto& a, const auto& b) { return a.first < b.first; });
  for (size_t i = 0; i < ops.size(); ++i) ops[i].signature = order[i].second;
  return ops;
}

// Feeds ops and keeps what the detector says.
struct Watcher {
  StepDetector detector;
  uint64_t ops = 0;
  std::vector<StepPoint> points;
  std::vector<uint64_t> boundaries;  // Numbers of ops, from 0.

  StepPoint Feed(const FakeOp& op) {
    points.push_back(detector.Observe(op.signature, op.live));
    if (points.back().boundary) boundaries.push_back(ops);
    ++ops;
    return points.back();
  }
  void Feed(const FakeOps& all) {
    for (const FakeOp& op : all) Feed(op);
  }
  // Feeds `step` until the step is known; how often, or -1.
  int FeedUntilFound(const FakeOps& step, int most) {
    for (int i = 1; i <= most; ++i) {
      Feed(step);
      if (points.back().signature != 0) return i;
    }
    return -1;
  }
  // Lengths reported in the last `count` ops; 0 where no step was known.
  std::set<uint32_t> Lengths(size_t count) const {
    std::set<uint32_t> lengths;
    for (size_t i = points.size() - count; i < points.size(); ++i) {
      lengths.insert(points[i].length);
    }
    return lengths;
  }
};

}  // namespace mets::steps

#endif  // METS_TESTS_COMMON_STEPS_FAKE_TRAINING_H_
