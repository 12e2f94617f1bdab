// What finding and following a step costs for each op.
#include <benchmark/benchmark.h>

#include "tests/common/steps/fake_job.h"
#include "tests/common/steps/fake_training.h"

namespace mets::steps {
namespace {

void BM_DetectorFollows(benchmark::State& state) {
  StepDetector detector;
  const FakeOps step = MakeStep(1, static_cast<int>(state.range(0)));
  for (int i = 0; i < 5; ++i) {
    for (const FakeOp& op : step) detector.Observe(op.signature, op.live);
  }
  for (auto _ : state) {
    for (const FakeOp& op : step) {
      benchmark::DoNotOptimize(detector.Observe(op.signature, op.live));
    }
  }
  state.SetItemsProcessed(state.iterations() * step.size());
}
BENCHMARK(BM_DetectorFollows)->Arg(200)->Arg(1500)->Arg(10000);

void BM_DetectorSearches(benchmark::State& state) {
  StepDetector detector;
  std::mt19937 random(1);
  FakeOps ops;
  for (int i = 0; i < 100000; ++i) {
    ops.push_back({1 + random() % 1500, MiB(random() % 100)});
  }
  for (auto _ : state) {
    for (const FakeOp& op : ops) {
      benchmark::DoNotOptimize(detector.Observe(op.signature, op.live));
    }
  }
  state.SetItemsProcessed(state.iterations() * ops.size());
}
BENCHMARK(BM_DetectorSearches);

void BM_DetectorForgets(benchmark::State& state) {
  StepDetector detector;
  uint64_t op = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(detector.Observe(++op, MiB(1)));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_DetectorForgets);

// An op here has about two touches, one allocation and one free.
void BM_RecorderFollows(benchmark::State& state) {
  FakeJob job(static_cast<int>(state.range(0)));
  job.Steps(8);
  for (auto _ : state) job.Step();
  state.SetItemsProcessed(state.iterations() * (2 * job.layers + 1));
}
BENCHMARK(BM_RecorderFollows)->Arg(100)->Arg(750);

}  // namespace
}  // namespace mets::steps
