#include "tf_allocator/tf/process_memory.h"

#include <pthread.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>
#include <vector>

namespace mets {
namespace {

std::atomic<bool> g_forked{false};

struct Process {
  std::mutex mutex;
  std::vector<DeviceMemory*> memories;
  std::set<std::string> said;
};

Process& TheProcess() {
  static Process* const process = new Process;
  return *process;
}

void ForkedChild() {
  g_forked.store(true);
  // No other thread exists, whatever it has left locked.
  for (DeviceMemory* memory : TheProcess().memories) memory->ForkedChild();
}

struct Library {
  MetsApi api;
  bool loaded = false;
  std::string error;
};

const Library& TheLibrary(const std::string& folder) {
  static const Library* const library = [&folder] {
    auto* loading = new Library;
    loading->loaded =
        LoadMetsApi(LibmetsPath(folder), &loading->api, &loading->error);
    pthread_atfork(nullptr, nullptr, ForkedChild);
    return loading;
  }();
  return *library;
}

}  // namespace

DeviceMemory* OpenMemory(const std::string& folder, const char* id,
                         const char* kind, std::string* error) {
  if (InForkedChild()) return nullptr;
  const Library& library = TheLibrary(folder);
  if (!library.loaded) {
    *error = library.error;
    return nullptr;
  }
  DeviceMemory* memory =
      DeviceMemory::Open(library.api, id, kind, error).release();
  if (memory == nullptr) return nullptr;
  std::lock_guard<std::mutex> lock(TheProcess().mutex);
  TheProcess().memories.push_back(memory);
  return memory;
}

DeviceMemory* ProcessMemory() {
  if (InForkedChild()) return nullptr;
  std::lock_guard<std::mutex> lock(TheProcess().mutex);
  return TheProcess().memories.empty() ? nullptr : TheProcess().memories[0];
}

bool InForkedChild() { return g_forked.load(); }

bool MetsRequired() {
  const char* value = std::getenv("METS_REQUIRED");
  return value != nullptr && *value != '\0' && std::string(value) != "0";
}

void SayWithoutMets(const std::string& what, const std::string& why) {
  const std::string line =
      "METS: " + why + "; " + what + " goes on without METS\n";
  std::lock_guard<std::mutex> lock(TheProcess().mutex);
  if (TheProcess().said.insert(line).second) std::fputs(line.c_str(), stderr);
}

}  // namespace mets
