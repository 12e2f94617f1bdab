// Two processes evict each other.
//
// Start a daemon with a small pool, then this program:
//
//     metsd --run-dir /tmp/mets --device host:256MiB --swap-space 1GiB &
//     METS_RUN_DIR=/tmp/mets two_processes
//
// It starts two jobs, each of which keeps buffers of 70 % of the pool, so that
// together they want more than there is. Each goes round its buffers, checks
// that they hold what it wrote last, and writes something new; the jobs meet
// before each round, so that neither is over before the other has begun. At the
// end both say how many bytes left for the other job and came back.
//
// Exit status 0: every byte was right, and bytes moved in both jobs.
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "mets/mets.h"

namespace {

constexpr uint64_t kBufferBytes = 8 << 20;

void DieOnError(mets_status status, const char* what) {
  if (status == METS_OK) return;
  std::fprintf(stderr, "%s: %s\n", what, mets_last_error());
  std::exit(1);
}

// Waits until the other job, at the other end of `peer`, has come here too.
void Meet(int peer) {
  char byte = 0;
  if (send(peer, &byte, 1, MSG_NOSIGNAL) != 1 || read(peer, &byte, 1) != 1) {
    std::fprintf(stderr, "the other job is gone\n");
    std::exit(1);
  }
}

uint64_t Pattern(int job, size_t buffer, int round) {
  return (static_cast<uint64_t>(job) << 48) ^ (buffer << 32) ^ round;
}

// One op: checks the old pattern and writes a new one.
void Rewrite(mets_device* device, uint64_t* words, uint64_t old_pattern,
             uint64_t new_pattern) {
  const mets_access access = {words, 0, METS_WRITE};
  mets_op* op = nullptr;
  DieOnError(mets_op_begin(device, nullptr, &access, 1, 0, &op), "begin op");
  for (size_t i = 0; i < kBufferBytes / sizeof(*words); ++i) {
    if (words[i] != old_pattern + i) {
      std::fprintf(stderr, "word %zu is wrong\n", i);
      std::exit(1);
    }
    words[i] = new_pattern + i;
  }
  mets_op_end(op, nullptr);
}

std::vector<uint64_t*> AllocateBuffers(mets_device* device, int job) {
  mets_device_info info = METS_DEVICE_INFO_INIT;
  DieOnError(mets_device_get_info(device, &info), "device info");
  std::vector<uint64_t*> buffers(info.pool_bytes * 7 / 10 / kBufferBytes);
  for (size_t b = 0; b < buffers.size(); ++b) {
    // An op that says what it will allocate, so that it is pinned while it is
    // filled.
    const mets_access access = {nullptr, kBufferBytes, METS_NEW};
    mets_op* op = nullptr;
    DieOnError(mets_op_begin(device, nullptr, &access, 1, 0, &op), "begin op");
    mets_alloc_options options = METS_ALLOC_OPTIONS_INIT;
    options.bytes = kBufferBytes;
    void* address = nullptr;
    DieOnError(mets_alloc(device, &options, &address), "allocate");
    buffers[b] = static_cast<uint64_t*>(address);
    for (size_t i = 0; i < kBufferBytes / sizeof(uint64_t); ++i) {
      buffers[b][i] = Pattern(job, b, 0) + i;
    }
    mets_op_end(op, nullptr);
  }
  return buffers;
}

int RunJob(int job, int rounds, int peer) {
  const char* names[] = {"left", "right"};
  mets_open_options options = METS_OPEN_OPTIONS_INIT;
  options.job = names[job];
  mets_client* client = nullptr;
  DieOnError(mets_open(&options, &client), "connect");
  mets_device* device = nullptr;
  DieOnError(mets_device_open(client, nullptr, METS_OPS_SEEN, &device),
             "open device");
  const std::vector<uint64_t*> buffers = AllocateBuffers(device, job);
  for (int round = 1; round <= rounds; ++round) {
    Meet(peer);
    for (size_t b = 0; b < buffers.size(); ++b) {
      Rewrite(device, buffers[b], Pattern(job, b, round - 1),
              Pattern(job, b, round));
    }
  }
  Meet(peer);
  mets_stats_t stats;
  std::memset(&stats, 0, sizeof(stats));
  stats.size = sizeof(stats);
  DieOnError(mets_get_stats(device, &stats), "stats");
  std::printf(
      "job %-5s: %3.0f MiB in buffers, %5.0f MiB evicted, %5.0f MiB "
      "restored, all bytes right\n",
      names[job], stats.live_bytes / 1048576.0,
      stats.evicted_bytes_total / 1048576.0,
      stats.restored_bytes_total / 1048576.0);
  for (uint64_t* buffer : buffers) mets_free(device, buffer, nullptr);
  mets_close(client);
  return stats.evicted_bytes_total > 0 && stats.restored_bytes_total > 0 ? 0
                                                                         : 2;
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 10;
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    std::perror("socketpair");
    return 1;
  }
  pid_t children[2];
  for (int job = 0; job < 2; ++job) {
    children[job] = fork();
    if (children[job] == 0) {
      close(ends[1 - job]);
      std::exit(RunJob(job, rounds, ends[job]));
    }
  }
  close(ends[0]);
  close(ends[1]);
  bool ok = true;
  for (pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    ok &= WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  return ok ? 0 : 1;
}
