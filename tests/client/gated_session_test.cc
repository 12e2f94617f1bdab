// Two programs that announce no ops, and a real metsd.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "client/src/session.h"
#include "tests/client/device_stats.h"
#include "tests/client/metsd_process.h"

namespace mets::client {
namespace {

// All that it does with its device is within sections.
class GatedProgram {
 public:
  GatedProgram(const MetsdProcess& metsd, const std::string& name) {
    Settings settings;
    settings.run_dir = metsd.run_dir();
    settings.job = name;
    settings.wait = absl::Seconds(60);
    auto session = Session::Start(std::move(settings));
    METS_CHECK_OK(session);
    session_ = *std::move(session);
    auto device = session_->OpenDevice("", /*ops_seen=*/false);
    METS_CHECK_OK(device);
    device_ = *device;
  }

  void Enter() { METS_CHECK_OK(device_->EnterSection()); }
  void Leave() { device_->LeaveSection(); }
  void Hint() { device_->StepEnds(); }
  uint64_t* Alloc(Bytes bytes) {
    mets_alloc_options options = METS_ALLOC_OPTIONS_INIT;
    options.bytes = bytes.count();
    void* address = nullptr;
    METS_CHECK_OK(device_->Alloc(options, &address));
    return static_cast<uint64_t*>(address);
  }
  void Free(void* address) { device_->Free(address); }
  mets_stats_t Stats() { return StatsOf(*device_); }

  // What lives across its steps, all of which each step reads and writes.
  void MakeWeights(int count, Bytes bytes) {
    words_ = bytes.count() / sizeof(uint64_t);
    for (int i = 0; i < count; ++i) weights_.push_back(Alloc(bytes));
  }
  void End() {
    for (uint64_t* weights : weights_) Free(weights);
  }
  // Wrong words.
  int64_t Step() {
    int64_t wrong = 0;
    for (size_t b = 0; b < weights_.size(); ++b) {
      for (size_t i = 0; i < words_; ++i) {
        const uint64_t place = b << 32 | i;
        wrong += steps_ > 0 && weights_[b][i] != steps_ * 31 + place;
        weights_[b][i] = (steps_ + 1) * 31 + place;
      }
    }
    ++steps_;
    return wrong;
  }
  uint64_t steps() const { return steps_; }

 private:
  std::unique_ptr<Session> session_;
  Device* device_ = nullptr;
  std::vector<uint64_t*> weights_;
  size_t words_ = 0;
  uint64_t steps_ = 0;
};

class GatedSessionTest : public testing::TestWithParam<bool> {};

TEST_P(GatedSessionTest, WhatDoesNotFitTogetherTakesTurnsAndKeepsEveryByte) {
  constexpr uint64_t kExchanges = 2;
  MetsdProcess metsd("16MiB");
  GatedProgram programs[] = {{metsd, "a"}, {metsd, "b"}};
  std::atomic<int64_t> wrong{0};
  std::atomic<int> done{0};
  std::vector<std::thread> threads;
  for (GatedProgram& program : programs) {
    threads.emplace_back([&, hints = GetParam()] {
      bool exchanged = false;
      program.Enter();
      program.MakeWeights(6, MiB(2));
      while (done < 2) {
        wrong += program.Step();
        program.Leave();
        if (hints) program.Hint();
        if (!exchanged && program.Stats().restored_bytes_total >=
                              kExchanges * MiB(8).count()) {
          exchanged = true;
          ++done;
        }
        program.Enter();
      }
      program.Leave();
      program.End();  // The other one may wait for its memory.
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  for (GatedProgram& program : programs) {
    EXPECT_EQ(program.Stats().unobserved_accesses_total, 0u);
    EXPECT_GT(program.steps(), 2 * kExchanges);
  }
}

INSTANTIATE_TEST_SUITE_P(WithAndWithoutHints, GatedSessionTest,
                         testing::Bool());

// What persists of both and what is ephemeral of one fit, and metsd knows it
// after some steps.
TEST(GatedTurnsTest, NothingMovesWhereTurnsSuffice) {
  MetsdProcess metsd("32MiB");
  GatedProgram programs[] = {{metsd, "a"}, {metsd, "b"}};
  std::atomic<int64_t> wrong{0};
  std::atomic<uint64_t> moved{0};
  std::vector<std::thread> threads;
  for (GatedProgram& program : programs) {
    threads.emplace_back([&] {
      program.Enter();
      program.MakeWeights(2, MiB(2));
      program.Leave();
      for (int step = 0; step < 150; ++step) {
        if (step == 50) moved -= program.Stats().evicted_bytes_total;
        program.Enter();
        std::vector<uint64_t*> activations;
        for (int i = 0; i < 5; ++i) {
          activations.push_back(program.Alloc(MiB(4)));
          std::memset(activations.back(), 1, MiB(4).count());
        }
        wrong += program.Step();
        for (uint64_t* activation : activations) program.Free(activation);
        program.Leave();
        program.Hint();
      }
      moved += program.Stats().evicted_bytes_total;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(moved, 0u);
  for (GatedProgram& program : programs) {
    EXPECT_EQ(program.Stats().unobserved_accesses_total, 0u);
  }
}

}  // namespace
}  // namespace mets::client
