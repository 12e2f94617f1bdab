#include "tests/contract/backends.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "common/base/check.h"

namespace mets {

Backend HostMemoryBackend(std::string name) {
  Backend backend;
  backend.name = std::move(name);
  backend.write = [](char* to, const std::string& bytes) {
    std::memcpy(to, bytes.data(), bytes.size());
  };
  backend.read = [](const char* from, size_t size) {
    return std::string(from, size);
  };
  return backend;
}

std::string Pattern(size_t size, unsigned seed) {
  std::string bytes(size, '\0');
  uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
  for (size_t i = 0; i < size; i += sizeof(state)) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    std::memcpy(&bytes[i], &state, std::min(sizeof(state), size - i));
  }
  return bytes;
}

bool IsReadable(const char* address) {
  int ends[2];
  METS_CHECK(pipe(ends) == 0);
  const bool readable = write(ends[1], address, 1) == 1;
  close(ends[0]);
  close(ends[1]);
  return readable;
}

bool IsWritable(char* address) {
  int ends[2];
  METS_CHECK(pipe(ends) == 0);
  // The byte that is there, so that nothing changes.
  const bool writable =
      write(ends[1], address, 1) == 1 && read(ends[0], address, 1) == 1;
  close(ends[0]);
  close(ends[1]);
  return writable;
}

int CountOpenFds() {
  DIR* folder = opendir("/proc/self/fd");
  METS_CHECK(folder != nullptr);
  int count = 0;
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count - 3;  // ".", ".." and the folder itself.
}

}  // namespace mets
