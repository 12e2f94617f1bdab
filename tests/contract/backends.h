// What the contract suites need to know of a driver's backend.
#ifndef METS_TESTS_CONTRACT_BACKENDS_H_
#define METS_TESTS_CONTRACT_BACKENDS_H_

#include <functional>
#include <memory>
#include <ostream>
#include <string>

#include "common/device/map_driver.h"
#include "common/device/pool_driver.h"

namespace mets {

// One backend under test.
struct Backend {
  std::string name;
  // Not empty: why there is no such backend here. The tests are skipped.
  std::string missing;
  // A device with at least this much memory.
  std::function<std::unique_ptr<PoolDriver>(Bytes total)> make_pool;
  // A client's view of that device.
  std::function<std::unique_ptr<MapDriver>()> make_map;
  // Device memory is memory of the process: the suites look at memfds,
  // page faults and forked children.
  bool is_host = true;
  // The chunk class that stands for large chunks; the first for small ones.
  size_t large_class = 3;
  // Access to device memory from the host.
  std::function<void(char* to, const std::string& bytes)> write;
  std::function<std::string(const char* from, size_t size)> read;
};

inline std::ostream& operator<<(std::ostream& out, const Backend& backend) {
  return out << backend.name;
}

// Fills in write and read for memory of the process.
Backend HostMemoryBackend(std::string name);

// Bytes that differ from place to place and from seed to seed.
std::string Pattern(size_t size, unsigned seed);

// Whether this process can read or write the byte at `address` (by system
// calls, which fail where an access would end the process).
bool IsReadable(const char* address);
bool IsWritable(char* address);

// Open descriptors of this process.
int CountOpenFds();

}  // namespace mets

#endif  // METS_TESTS_CONTRACT_BACKENDS_H_
