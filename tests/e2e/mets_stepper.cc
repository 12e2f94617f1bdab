// A training for tests: some memory that persists, and in each step layers that
// allocate on the way forward and free on the way back. Checks every byte that
// it looks at, and prints what it cost.
#include <time.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "mets/mets.h"

namespace {

struct Options {
  uint64_t persistent_mib = 4;
  uint64_t ephemeral_mib = 64;
  int layers = 16;
  int steps = 20;
  int input_ms = 0;    // Between steps, without the device.
  int compute_us = 0;  // Of each op, besides touching its memory.
  bool hints = false;
  bool progress = false;
  std::vector<std::string> also;  // Devices on which it has a buffer besides.
};

[[noreturn]] void Die(const char* what) {
  std::fprintf(stderr, "%s: %s\n", what, mets_last_error());
  std::exit(1);
}

void Check(mets_status status, const char* what) {
  if (status != METS_OK) Die(what);
}

double Now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) +
         static_cast<double>(now.tv_nsec) / 1e9;
}

struct Layer {
  uint64_t* words = nullptr;
  uint64_t value = 0;
};

class Training {
 public:
  Training(mets_device* device, const Options& options)
      : device_(device), options_(options), layers_(options.layers) {
    weights_ = Allocate(options.persistent_mib << 20, /*in_op=*/true);
    Fill(weights_, options.persistent_mib << 20, 1);
    mets_op_end(op_, nullptr);
  }

  void Run() {
    for (int i = 0; i < options_.steps; ++i) {
      if (options_.hints) mets_step_hint(device_);
      Step(static_cast<uint64_t>(i) << 32 | 7);
      if (options_.progress) {
        std::printf("step %d\n", i);
        std::fflush(stdout);
      }
      if (options_.input_ms > 0) usleep(options_.input_ms * 1000);
    }
    mets_free(device_, weights_, nullptr);
  }

 private:
  uint64_t layer_bytes() const {
    return (options_.ephemeral_mib << 20) / options_.layers;
  }

  uint64_t* Allocate(uint64_t bytes, bool in_op) {
    mets_access access = {nullptr, bytes, METS_NEW};
    if (in_op) Begin(&access, 1);
    mets_alloc_options how = METS_ALLOC_OPTIONS_INIT;
    how.bytes = bytes;
    void* address = nullptr;
    Check(mets_alloc(device_, &how, &address), "mets_alloc");
    return static_cast<uint64_t*>(address);
  }

  void Begin(const mets_access* accesses, size_t count) {
    Check(mets_op_begin(device_, nullptr, accesses, count, 0, &op_),
          "mets_op_begin");
  }

  void Fill(uint64_t* words, uint64_t bytes, uint64_t value) {
    for (uint64_t i = 0; i < bytes / 8; i += 64) words[i] = value + i;
    if (options_.compute_us > 0) usleep(options_.compute_us);
  }

  void Verify(const uint64_t* words, uint64_t bytes, uint64_t value) {
    for (uint64_t i = 0; i < bytes / 8; i += 64) {
      if (words[i] == value + i) continue;
      std::fprintf(stderr, "wrong word\n");
      std::abort();
    }
    if (options_.compute_us > 0) usleep(options_.compute_us);
  }

  void Step(uint64_t value) {
    for (Layer& layer : layers_) {
      layer.value = ++value;
      mets_access accesses[] = {{weights_, 0, METS_READ},
                                {nullptr, layer_bytes(), METS_NEW}};
      Begin(accesses, 2);
      layer.words = Allocate(layer_bytes(), /*in_op=*/false);
      Fill(layer.words, layer_bytes(), layer.value);
      mets_op_end(op_, nullptr);
    }
    for (auto layer = layers_.rbegin(); layer != layers_.rend(); ++layer) {
      mets_access accesses[] = {{weights_, 0, METS_WRITE},
                                {layer->words, 0, METS_READ}};
      Begin(accesses, 2);
      Verify(layer->words, layer_bytes(), layer->value);
      mets_op_end(op_, nullptr);
      mets_free(device_, layer->words, nullptr);
    }
  }

  mets_device* const device_;
  const Options options_;
  std::vector<Layer> layers_;
  uint64_t* weights_ = nullptr;
  mets_op* op_ = nullptr;
};

// A buffer on another device, which stays.
void UseDevice(mets_client* client, const std::string& id) {
  mets_device* device = nullptr;
  Check(mets_device_open(client, id.c_str(), METS_OPS_SEEN, &device),
        "mets_device_open");
  mets_alloc_options how = METS_ALLOC_OPTIONS_INIT;
  how.bytes = 1 << 20;
  void* address = nullptr;
  Check(mets_alloc(device, &how, &address), "mets_alloc");
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("A training for tests");
  app.add_option("--persistent-mib", options.persistent_mib, "across steps");
  app.add_option("--ephemeral-mib", options.ephemeral_mib, "within a step");
  app.add_option("--layers", options.layers, "ops each way");
  app.add_option("--steps", options.steps, "how many");
  app.add_option("--input-ms", options.input_ms, "between steps");
  app.add_option("--compute-us", options.compute_us, "of each op");
  app.add_flag("--hints", options.hints, "say when a step begins");
  app.add_flag("--progress", options.progress, "print each step's number");
  app.add_option("--also", options.also, "other devices to have a buffer on");
  CLI11_PARSE(app, argc, argv);

  mets_client* client = nullptr;
  mets_open_options open = METS_OPEN_OPTIONS_INIT;
  Check(mets_open(&open, &client), "mets_open");
  mets_device* device = nullptr;
  Check(mets_device_open(client, nullptr, METS_OPS_SEEN, &device),
        "mets_device_open");
  for (const std::string& id : options.also) UseDevice(client, id);
  const double begin = Now();
  Training(device, options).Run();
  const double seconds = Now() - begin;
  mets_stats_t stats = {};
  stats.size = sizeof(stats);
  Check(mets_get_stats(device, &stats), "mets_get_stats");
  std::printf(
      "{\"seconds\": %.4f, \"evicted_bytes\": %llu, \"restored_bytes\": "
      "%llu}\n",
      seconds, static_cast<unsigned long long>(stats.evicted_bytes_total),
      static_cast<unsigned long long>(stats.restored_bytes_total));
  mets_close(client);
}
