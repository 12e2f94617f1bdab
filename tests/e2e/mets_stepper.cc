// A training for tests: some memory that persists, and in each step layers that
// allocate on the way forward and free on the way back. Between the two it may
// meet other processes, as one does that trains with them. Checks every byte
// that it looks at, and prints what it cost.
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
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
  std::string device;
  std::string meeting;            // A file; empty: it meets nobody.
  int processes = 2;              // That meet there.
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

// Adds up what the processes of a training have, as an all-reduce does. All
// bring the same values.
class Meeting {
 public:
  Meeting(const std::string& path, int processes) : processes_(processes) {
    const int fd = open(path.c_str(), O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, sizeof(Shared)) != 0) Fail(path);
    void* address = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                         MAP_SHARED, fd, 0);
    if (address == MAP_FAILED) Fail(path);
    close(fd);
    shared_ = static_cast<Shared*>(address);
  }

  void Reduce(uint64_t value) {
    // By turns: nobody adds for the round after next before all have read.
    const int slot = static_cast<int>(++round_ % 2);
    expected_[slot] += processes_ * value;
    shared_->sums[slot] += value;
    ++shared_->arrived;
    while (shared_->arrived < processes_ * round_) usleep(50);
    if (shared_->sums[slot] == expected_[slot]) return;
    std::fprintf(stderr, "wrong sum\n");
    std::abort();
  }

 private:
  struct Shared {
    std::atomic<uint64_t> arrived, sums[2];
  };

  [[noreturn]] static void Fail(const std::string& path) {
    std::perror(path.c_str());
    std::exit(1);
  }

  const uint64_t processes_;
  Shared* shared_ = nullptr;
  uint64_t round_ = 0;
  uint64_t expected_[2] = {0, 0};
};

struct Layer {
  uint64_t* words = nullptr;
  uint64_t value = 0;
};

class Training {
 public:
  Training(mets_device* device, const Options& options)
      : device_(device), options_(options), layers_(options.layers) {
    if (!options.meeting.empty()) {
      meeting_ = std::make_unique<Meeting>(options.meeting, options.processes);
      meeting_->Reduce(0);  // When all are there.
    }
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
    if (meeting_ != nullptr) {
      mets_access access = {weights_, 0, METS_READ};
      Begin(&access, 1);
      meeting_->Reduce(value);
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
  std::unique_ptr<Meeting> meeting_;
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
  app.add_option("--device", options.device, "default: the first");
  app.add_option("--meeting", options.meeting, "a file where processes meet");
  app.add_option("--processes", options.processes, "that meet there");
  app.add_option("--also", options.also, "other devices to have a buffer on");
  CLI11_PARSE(app, argc, argv);

  mets_client* client = nullptr;
  mets_open_options open = METS_OPEN_OPTIONS_INIT;
  Check(mets_open(&open, &client), "mets_open");
  mets_device* device = nullptr;
  Check(mets_device_open(
            client, options.device.empty() ? nullptr : options.device.c_str(),
            METS_OPS_SEEN, &device),
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
