// A job with a small network, whose step is known to the byte.
#ifndef METS_TESTS_COMMON_STEPS_FAKE_JOB_H_
#define METS_TESTS_COMMON_STEPS_FAKE_JOB_H_

#include <cstdint>
#include <vector>

#include "common/steps/step_recorder.h"

namespace mets::steps {

// Layers of one weight each. A step has 2 × layers + 1 ops:
//  * load: allocates the input (kInput);
//  * forward i: reads weight i and what is below, allocates activation i;
//  * backward i (from the top): reads activation i, writes weight i, allocates
//    a temporary as large as the activation and frees both; the last one frees
//    the input, too.
// Each op takes op_time (1 ms); weight i has i + 1 MiB,
// activation i has 10 + i.
struct FakeJob {
  static constexpr Bytes kInput = MiB(5);

  explicit FakeJob(int layers) : layers(layers) {
    for (int i = 0; i < layers; ++i) weights.push_back(Alloc(MiB(1 + i)));
  }

  uint64_t Alloc(Bytes size, OpId op = OpId(), uint64_t signature = 0) {
    recorder.Alloc(++last_key, size, op, signature);
    return last_key;
  }
  OpId Begin(uint64_t signature, std::vector<Touch> touches) {
    const OpId op =
        recorder.OpBegin(now, signature, touches.data(), touches.size());
    now += op_time;
    return op;
  }

  void Load() {
    const OpId op = Begin(1, {});
    input = Alloc(kInput, op, 1);
    recorder.OpEnd(op, now);
  }
  void Forward(int i) {
    const uint64_t signature = 100 + i;
    const uint64_t below = i == 0 ? input : activations.back();
    const OpId op = Begin(signature, {{weights[i], false}, {below, false}});
    activations.push_back(Alloc(MiB(10 + i), op, signature));
    recorder.OpEnd(op, now);
  }
  void Backward(int i) {
    const uint64_t signature = 200 + i;
    const OpId op =
        Begin(signature, {{activations.back(), false}, {weights[i], true}});
    const uint64_t temporary = Alloc(MiB(10 + i), op, signature);
    recorder.OpEnd(op, now);
    recorder.Free(temporary);
    recorder.Free(activations.back());
    activations.pop_back();
    if (i == 0) recorder.Free(input);
  }
  void Step() {
    Load();
    for (int i = 0; i < layers; ++i) Forward(i);
    for (int i = layers - 1; i >= 0; --i) Backward(i);
  }
  void Steps(int count) {
    for (int i = 0; i < count; ++i) Step();
  }

  const int layers;
  StepRecorder recorder;
  absl::Duration now;
  absl::Duration op_time = absl::Milliseconds(1);
  uint64_t last_key = 0;
  uint64_t input = 0;
  std::vector<uint64_t> weights, activations;
};

}  // namespace mets::steps

#endif  // METS_TESTS_COMMON_STEPS_FAKE_JOB_H_
