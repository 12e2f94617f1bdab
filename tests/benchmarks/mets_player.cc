// Plays a recorded job live: the program that mets-sim simulates, with real
// buffers in a real metsd, and ops that take their recorded time of a device
// that the players of one --device-clock share. It says "ready", plays once it
// has read a line, checks what its ops read, and prints what has moved. Buffers
// below 64 KiB are left out.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "common/trace/trace_reader.h"
#include "daemon/sim/job_program.h"
#include "mets/mets.h"

namespace {

using mets::sim::JobOp;
using mets::sim::JobProgram;
using mets::steps::AccessKind;

constexpr size_t kLookEvery = 8 << 10;  // Words of a buffer; one is looked at.
constexpr double kSlice = 0.001;        // Seconds of the device at a time.
constexpr double kShortest = 0.0002;    // Nobody sleeps for less.

void Check(mets_status status, const char* what) {
  if (status == METS_OK) return;
  std::fprintf(stderr, "%s: %s\n", what, mets_last_error());
  std::exit(1);
}

double Now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) +
         static_cast<double>(now.tv_nsec) / 1e9;
}

void SleepUntil(double time) {
  const double left = time - Now();
  if (left > 0) usleep(static_cast<useconds_t>(left * 1e6));
}

// The time of a device that several processes use by turns, a slice each: who
// computes at the same time as one other gets half of it.
class DeviceClock {
 public:
  // Processes share it that name the same file.
  explicit DeviceClock(const std::string& path) {
    const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    void* address = MAP_FAILED;
    if (fd >= 0 && ftruncate(fd, sizeof(Tickets)) == 0) {
      address = mmap(nullptr, sizeof(Tickets), PROT_READ | PROT_WRITE,
                     MAP_SHARED, fd, 0);
    }
    if (address == MAP_FAILED) {
      std::perror(path.c_str());
      std::exit(1);
    }
    close(fd);
    tickets_ = static_cast<Tickets*>(address);
  }

  // Uses `seconds` of it; what that takes longer, the next call takes less.
  void Compute(double seconds) {
    owed_ += seconds;
    while (owed_ >= kShortest) {
      const uint64_t ticket = tickets_->next++;
      while (tickets_->serving != ticket) usleep(50);
      const double begin = Now();
      SleepUntil(begin + std::min(owed_, kSlice));
      owed_ -= Now() - begin;
      ++tickets_->serving;
    }
  }

 private:
  struct Tickets {
    std::atomic<uint64_t> next, serving;
  };

  Tickets* tickets_ = nullptr;
  double owed_ = 0;  // Seconds.
};

class Player {
 public:
  Player(const JobProgram& program, mets_device* device, DeviceClock* clock)
      : program_(program),
        device_(device),
        clock_(*clock),
        buffers_(program.buffers.size()) {
    for (const JobOp& op : program.ops) {
      char name[32];
      std::snprintf(name, sizeof(name), "op-%016" PRIx64, op.kind);
      names_[op.kind] = name;
    }
  }

  void Run() {
    double until = Now();
    for (const JobOp& op : program_.ops) {
      until += op.gap;
      if (until - Now() >= kShortest) SleepUntil(until);
      if (op.only_allocates()) {
        Allocate(op.accesses[0].buffer);
      } else {
        RunOp(op);
      }
      for (uint32_t b : op.frees) {
        mets_free(device_, buffers_[b].words, nullptr);
        buffers_[b] = {};
      }
      // A gap that was too long makes the next ones shorter.
      until = std::max(until, Now() - kShortest);
    }
  }

 private:
  struct Buffer {
    uint64_t* words = nullptr;
    // Its words are this and their place in it; 0: it was never written.
    uint64_t value = 0;
  };

  void Allocate(uint32_t b) {
    mets_alloc_options how = METS_ALLOC_OPTIONS_INIT;
    how.bytes = program_.buffers[b].count();
    void* address = nullptr;
    Check(mets_alloc(device_, &how, &address), "mets_alloc");
    buffers_[b] = {static_cast<uint64_t*>(address)};
  }

  void RunOp(const JobOp& op) {
    std::vector<mets_access> accesses;
    for (const mets::steps::Access& access : op.accesses) {
      if (access.kind == AccessKind::kNew) {
        const uint64_t bytes = program_.buffers[access.buffer].count();
        accesses.push_back({nullptr, bytes, METS_NEW});
      } else {
        const bool write = access.kind == AccessKind::kWrite;
        accesses.push_back(
            {buffers_[access.buffer].words, 0, write ? METS_WRITE : METS_READ});
      }
    }
    mets_op_name(device_, names_[op.kind].c_str());
    mets_op* running = nullptr;
    Check(mets_op_begin(device_, nullptr, accesses.data(), accesses.size(), 0,
                        &running),
          "mets_op_begin");
    const double begin = Now();
    for (const mets::steps::Access& access : op.accesses) {
      if (access.kind == AccessKind::kNew) Allocate(access.buffer);
      Use(&buffers_[access.buffer], program_.buffers[access.buffer].count(),
          access.kind != AccessKind::kRead);
    }
    clock_.Compute(op.busy - (Now() - begin));
    mets_op_end(running, nullptr);
  }

  void Use(Buffer* buffer, size_t bytes, bool write) {
    const uint64_t before = buffer->value;
    if (write) buffer->value = ++last_value_;
    for (size_t i = 0; i < bytes / sizeof(uint64_t); i += kLookEvery) {
      if (before != 0 && buffer->words[i] != before + i) {
        std::fprintf(stderr, "word %zu of a buffer has changed\n", i);
        std::exit(1);
      }
      if (write) buffer->words[i] = buffer->value + i;
    }
  }

  const JobProgram& program_;
  mets_device* const device_;
  DeviceClock& clock_;
  std::vector<Buffer> buffers_;
  std::map<uint64_t, std::string> names_;  // Of ops, by kind.
  uint64_t last_value_ = 0;
};

JobProgram ReadProgram(const std::string& file,
                       const mets::sim::ProgramOptions& options) {
  const auto trace = mets::trace::ReadTrace(file);
  auto program =
      trace.ok() ? mets::sim::MakeJobProgram(*trace, options) : trace.status();
  if (!program.ok()) {
    std::fprintf(stderr, "%s\n", program.status().ToString().c_str());
    std::exit(1);
  }
  return *std::move(program);
}

void Play(const JobProgram& program, DeviceClock* clock) {
  mets_client* client = nullptr;
  mets_open_options open = METS_OPEN_OPTIONS_INIT;
  Check(mets_open(&open, &client), "mets_open");
  mets_device* device = nullptr;
  Check(mets_device_open(client, nullptr, METS_OPS_SEEN, &device),
        "mets_device_open");
  Player player(program, device, clock);
  std::puts("ready");
  std::fflush(stdout);
  std::getchar();
  const double begin = Now();
  player.Run();
  const double seconds = Now() - begin;
  mets_stats_t stats = METS_STATS_INIT;
  Check(mets_get_stats(device, &stats), "mets_get_stats");
  std::printf("{\"seconds\": %.4f, \"evicted_bytes\": %" PRIu64
              ", \"restored_bytes\": %" PRIu64 "}\n",
              seconds, stats.evicted_bytes_total, stats.restored_bytes_total);
  mets_close(client);
}

}  // namespace

int main(int argc, char** argv) {
  std::string trace, clock_file;
  mets::sim::ProgramOptions options;
  CLI::App app("Plays a recorded job live, once it has read a line");
  app.add_option("--trace", trace, "the recording")->required();
  app.add_option("--time-scale", options.time_scale, "as mets-sim's")
      ->check(CLI::PositiveNumber);
  app.add_option("--device-clock", clock_file,
                 "a file by which players share a device's time")
      ->required();
  CLI11_PARSE(app, argc, argv);
  const JobProgram program = ReadProgram(trace, options);
  DeviceClock clock(clock_file);
  prctl(PR_SET_TIMERSLACK, 1);  // Sleeps end in time.
  Play(program, &clock);
}
