// mets_sharer: shares memory as its standard input says, one command a line;
// answers each with a line: "ok …", or "error CODE TEXT".
//
//   publish NAME MIB SEED [CHECKSUM]   fills a buffer and publishes it
//   attach NAME [CHECKSUM [BYTES]]
//   check NAME SEED                    whether a share holds that seed's bytes
//   detach NAME
//   write NAME                         writes into a share
//   hold MIB [MS]                      keeps a buffer of its own; waits so long
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "mets/mets.hpp"

namespace {

// Byte patterns that differ from seed to seed, from word to word.
uint64_t Word(uint64_t seed, uint64_t i) {
  return (i + 1) * 0x9e3779b97f4a7c15 ^ seed << 32;
}

class Sharer {
 public:
  explicit Sharer(mets::Device device) : device_(device) {}

  std::string Do(const std::string& line) {
    std::istringstream words(line);
    std::string what, name;
    words >> what >> name;
    if (what == "publish") return Publish(name, words);
    if (what == "attach") return Attach(name, words);
    if (what == "check") return Check(name, words);
    if (what == "detach") {
      return shares_.erase(name) == 1 ? "ok" : "error 0 not here";
    }
    if (what == "write") {
      const_cast<uint64_t*>(shares_.at(name).as<uint64_t>())[5] = 1;
      return "ok";
    }
    if (what == "hold") return Hold(std::stoull(name) << 20, words);
    return "error 0 no such command";
  }

 private:
  static std::string Error(const mets::Status& status) {
    std::string text = status.message();  // On one line.
    std::replace(text.begin(), text.end(), '\n', ' ');
    return "error " + std::to_string(status.code()) + " " + text;
  }

  std::string Publish(const std::string& name, std::istream& words) {
    uint64_t mib = 0, seed = 0;
    mets::ShareOptions options;
    options.name = name;
    words >> mib >> seed >> options.checksum;
    mets::Expected<mets::Buffer> buffer = device_.Allocate(mib << 20);
    if (!buffer) return Error(buffer.status());
    {
      mets::Expected<mets::Op> op = device_.Begin({mets::Write(*buffer)});
      if (!op) return Error(op.status());
      uint64_t* to = buffer->as<uint64_t>();
      for (uint64_t i = 0; i < buffer->bytes() / 8; ++i) to[i] = Word(seed, i);
    }
    return Keep(name, device_.Publish(*buffer, options));
  }

  std::string Attach(const std::string& name, std::istream& words) {
    mets::ShareOptions options;
    options.name = name;
    words >> options.checksum >> options.bytes;
    return Keep(name, device_.Attach(options));
  }

  std::string Keep(const std::string& name, mets::Expected<mets::Share> share) {
    if (!share) return Error(share.status());
    const std::string size = std::to_string(share->bytes());
    shares_[name] = *std::move(share);
    return "ok " + size;
  }

  std::string Check(const std::string& name, std::istream& words) {
    uint64_t seed = 0;
    words >> seed;
    const mets::Share& share = shares_.at(name);
    for (uint64_t i = 0; i < share.bytes() / 8; ++i) {
      if (share.as<uint64_t>()[i] != Word(seed, i)) {
        return "error 0 word " + std::to_string(i) + " is wrong";
      }
    }
    return "ok";
  }

  std::string Hold(uint64_t bytes, std::istream& words) {
    mets::AllocateOptions how;
    int64_t wait_ms = 0;
    if (words >> wait_ms) how.deadline_ms = wait_ms;
    mets::Expected<mets::Buffer> buffer = device_.Allocate(bytes, how);
    if (!buffer) return Error(buffer.status());
    held_.push_back(*std::move(buffer));
    return "ok";
  }

  mets::Device device_;
  std::map<std::string, mets::Share> shares_;
  std::vector<mets::Buffer> held_;
};

}  // namespace

int main() {
  mets::Expected<mets::Client> client = mets::Client::Open({});
  if (!client) {
    std::fprintf(stderr, "%s\n", client.status().message().c_str());
    return 1;
  }
  Sharer sharer(*client->OpenDevice());
  for (std::string line; std::getline(std::cin, line);) {
    std::cout << sharer.Do(line) << std::endl;
  }
}
