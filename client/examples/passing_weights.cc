// Two processes pass a buffer: one makes weights, the other uses them where
// they are, without a copy. In C++.
//
//     metsd --run-dir /tmp/mets --device host:128MiB --swap-space 1GiB &
//     METS_RUN_DIR=/tmp/mets passing_weights
//
// The first process fills a buffer of 64 MiB, publishes it under a name with a
// checksum, and ends. The second attaches it, computes the checksum anew, and
// finds that the device holds these 64 MiB once, although two processes had
// them.
//
// Exit status 0: the second process has read what the first one wrote.
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "mets/mets.hpp"

namespace {

constexpr uint64_t kBytes = 64 << 20;
constexpr char kName[] = "weights";

// The value, or the end of the program with what went wrong.
template <typename T>
T Take(mets::Expected<T> expected) {
  if (expected) return *std::move(expected);
  std::fprintf(stderr, "%s\n", expected.status().message().c_str());
  std::exit(1);
}

mets::Device Open(const std::string& job) {
  mets::OpenOptions options;
  options.job = job;
  mets::Client client = Take(mets::Client::Open(options));
  return Take(client.OpenDevice());
}

// FNV-1a over 64-bit words; any other would do.
std::string Checksum(const uint64_t* words) {
  uint64_t hash = 0xcbf29ce484222325;
  for (uint64_t i = 0; i < kBytes / sizeof(*words); ++i) {
    hash = (hash ^ words[i]) * 0x100000001b3;
  }
  char text[32];
  std::snprintf(text, sizeof(text), "fnv1a:%016llx",
                static_cast<unsigned long long>(hash));
  return text;
}

void Say(int peer, const std::string& text) {
  char line[64] = {};
  std::strncpy(line, text.c_str(), sizeof(line) - 1);
  if (write(peer, line, sizeof(line)) != sizeof(line)) std::exit(1);
}

// "" when the other process has ended.
std::string Hear(int peer) {
  char line[64] = {};
  return read(peer, line, sizeof(line)) == sizeof(line) ? line : "";
}

int Publish(int peer) {
  mets::Device device = Open("maker");
  mets::Buffer buffer = Take(device.Allocate(kBytes));
  {
    const mets::Op op = Take(device.Begin({mets::Write(buffer)}));
    uint64_t* words = buffer.as<uint64_t>();
    for (uint64_t i = 0; i < kBytes / sizeof(*words); ++i) words[i] = i * i;
  }
  mets::ShareOptions options;
  options.name = kName;
  options.checksum = Checksum(buffer.as<uint64_t>());
  const mets::Share share = Take(device.Publish(buffer, options));
  Say(peer, options.checksum);
  // The weights live until their last holder leaves; that is the other process.
  return Hear(peer) == "attached" ? 0 : 1;
}

int Use(int peer) {
  mets::Device device = Open("user");
  mets::ShareOptions options;
  options.name = kName;
  options.checksum = Hear(peer);
  options.bytes = kBytes;
  const mets::Share share = Take(device.Attach(options));
  Say(peer, "attached");
  Hear(peer);  // Until the publisher has ended.
  const bool right = Checksum(share.as<uint64_t>()) == options.checksum;
  std::printf("%.0f MiB of another process, %s: %s\n",
              share.bytes() / 1048576.0, options.checksum.c_str(),
              right ? "all bytes right" : "WRONG BYTES");
  return right ? 0 : 1;
}

}  // namespace

int main() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    std::perror("socketpair");
    return 1;
  }
  // libmets is opened behind the fork: a session is of one process.
  const pid_t publisher = fork();
  if (publisher == 0) {
    close(ends[1]);
    std::exit(Publish(ends[0]));
  }
  close(ends[0]);
  const int used = Use(ends[1]);
  int status = 0;
  waitpid(publisher, &status, 0);
  return used == 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : 1;
}
