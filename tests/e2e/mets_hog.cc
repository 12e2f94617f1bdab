// A job for tests: owns buffers whose contents it knows, and runs ops that
// check and change them.
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "mets/mets.h"

namespace {

struct Options {
  uint64_t mib = 64;  // Of all buffers together.
  int buffers = 8;
  int inputs = 1;           // Buffers that an op reads and writes.
  uint64_t output_mib = 0;  // What an op allocates and frees again.
  bool announce = true;     // Whether the op says so.
  int64_t rounds = -1;      // -1: until killed.
  bool fork_child = false;  // A child that sleeps, with all it inherits.
  bool pause = false;       // Wait for a line on stdin before the rounds.
  bool tell = false;        // Rest at a line on stdin, and tell the stats.
};

[[noreturn]] void Die(const char* what) {
  std::fprintf(stderr, "%s: %s\n", what, mets_last_error());
  std::exit(1);
}

void Check(mets_status status, const char* what) {
  if (status != METS_OK) Die(what);
}

// A buffer whose words all are `value` + their index.
struct Buffer {
  uint64_t* words = nullptr;
  size_t count = 0;
  uint64_t value = 0;

  void Fill(uint64_t v) {
    value = v;
    for (size_t i = 0; i < count; i += 8) words[i] = v + i;
  }
  void Verify() const {
    for (size_t i = 0; i < count; i += 8) {
      if (words[i] == value + i) continue;
      std::fprintf(stderr, "wrong word %zu: %llu, not %llu\n", i,
                   static_cast<unsigned long long>(words[i]),
                   static_cast<unsigned long long>(value + i));
      std::abort();
    }
  }
};

void* Allocate(mets_device* device, uint64_t bytes) {
  mets_alloc_options how = METS_ALLOC_OPTIONS_INIT;
  how.bytes = bytes;
  void* address = nullptr;
  Check(mets_alloc(device, &how, &address), "mets_alloc");
  return address;
}

void RunOp(mets_device* device, const Options& options,
           const std::vector<Buffer*>& inputs, uint64_t value) {
  std::vector<mets_access> accesses;
  for (const Buffer* b : inputs) accesses.push_back({b->words, 0, METS_WRITE});
  const uint64_t output_bytes = options.output_mib << 20;
  if (output_bytes > 0 && options.announce) {
    accesses.push_back({nullptr, output_bytes, METS_NEW});
  }
  const uint64_t expected =
      output_bytes > 0 && !options.announce ? METS_UNKNOWN : 0;
  mets_op* op = nullptr;
  Check(mets_op_begin(device, nullptr, accesses.data(), accesses.size(),
                      expected, &op),
        "mets_op_begin");
  Buffer output;
  if (output_bytes > 0) {
    output.words = static_cast<uint64_t*>(Allocate(device, output_bytes));
    output.count = output_bytes / sizeof(uint64_t);
    output.Fill(value);
  }
  for (Buffer* b : inputs) {
    if (b->value != 0) b->Verify();
    b->Fill(value++);
  }
  if (output_bytes > 0) output.Verify();
  mets_op_end(op, nullptr);
  mets_free(device, output.words, nullptr);
}

void Tell(mets_device* device) {
  mets_stats_t s = {};
  s.size = sizeof(s);
  Check(mets_get_stats(device, &s), "mets_get_stats");
  std::printf(
      "{\"resident_bytes\": %ju, \"swapped_bytes\": %ju, "
      "\"cached_bytes\": %ju, \"pinned_bytes\": %ju, \"held_bytes\": %ju, "
      "\"evicted_bytes_total\": %ju, \"restored_bytes_total\": %ju, "
      "\"clean_evictions_total\": %ju, \"unobserved_accesses_total\": %ju}\n",
      uintmax_t{s.resident_bytes}, uintmax_t{s.swapped_bytes},
      uintmax_t{s.cached_bytes}, uintmax_t{s.pinned_bytes},
      uintmax_t{s.held_bytes}, uintmax_t{s.evicted_bytes_total},
      uintmax_t{s.restored_bytes_total}, uintmax_t{s.clean_evictions_total},
      uintmax_t{s.unobserved_accesses_total});
  std::fflush(stdout);
}

// Rests after a line on stdin; tells this process's counters at each line
// "tell", and goes on at another one. False at the end of stdin.
bool RestIfAsked(mets_device* device) {
  pollfd input = {STDIN_FILENO, POLLIN, 0};
  if (poll(&input, 1, 0) == 0) return true;
  std::string line;
  if (!std::getline(std::cin, line)) return false;
  std::printf("rests\n");
  std::fflush(stdout);
  while (std::getline(std::cin, line)) {
    if (line != "tell") return true;
    Tell(device);
  }
  return false;
}

void Run(mets_device* device, const Options& options) {
  std::vector<Buffer> buffers(options.buffers);
  std::vector<Buffer*> order;
  uint64_t value = 1 + (static_cast<uint64_t>(getpid()) << 32);
  for (Buffer& b : buffers) {
    const uint64_t bytes = (options.mib << 20) / options.buffers;
    b.words = static_cast<uint64_t*>(Allocate(device, bytes));
    b.count = bytes / sizeof(uint64_t);
    RunOp(device, options, {&b}, value += 1000);
    order.push_back(&b);
  }
  std::printf("filled\n");
  std::fflush(stdout);
  std::string line;
  if (options.pause) std::getline(std::cin, line);
  std::mt19937 random(getpid());
  for (int64_t i = 0; options.rounds < 0 || i < options.rounds; ++i) {
    if (options.tell && !RestIfAsked(device)) break;
    std::shuffle(order.begin(), order.end(), random);
    RunOp(device, options, {order.begin(), order.begin() + options.inputs},
          value += 1000);
  }
  for (Buffer& b : buffers) mets_free(device, b.words, nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("A job for tests: checks and changes buffers in ops");
  app.add_option("--mib", options.mib, "MiB of all buffers together");
  app.add_option("--buffers", options.buffers, "how many")
      ->check(CLI::PositiveNumber);
  app.add_option("--inputs", options.inputs, "buffers an op uses")
      ->check(CLI::PositiveNumber);
  app.add_option("--output-mib", options.output_mib, "MiB an op allocates");
  app.add_flag("!--silent", options.announce, "outputs are not announced");
  app.add_option("--rounds", options.rounds, "ops; -1: until killed");
  app.add_flag("--fork", options.fork_child, "leave a sleeping child");
  app.add_flag("--pause", options.pause, "wait for a line before the rounds");
  app.add_flag("--tell", options.tell, "rest at a line, and tell the stats");
  CLI11_PARSE(app, argc, argv);
  options.inputs = std::min(options.inputs, options.buffers);

  mets_open_options open = METS_OPEN_OPTIONS_INIT;
  mets_client* client = nullptr;
  Check(mets_open(&open, &client), "mets_open");
  mets_device* device = nullptr;
  Check(mets_device_open(client, nullptr, METS_OPS_SEEN, &device),
        "mets_device_open");
  if (options.fork_child && fork() == 0) {
    const pid_t parent = getppid();
    while (getppid() == parent) usleep(100000);
    sleep(2);  // Outlive it a little.
    _exit(0);
  }
  Run(device, options);
  mets_close(client);
  std::printf("ok\n");
}
