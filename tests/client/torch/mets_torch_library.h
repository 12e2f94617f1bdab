// libmets_torch.so on the fake libmets and a fake driver, as PyTorch and
// mets.torch find its functions.
#ifndef METS_TESTS_CLIENT_TORCH_METS_TORCH_LIBRARY_H_
#define METS_TESTS_CLIENT_TORCH_METS_TORCH_LIBRARY_H_

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <stdexcept>
#include <string>

#include "client/torch/mets_torch.h"

namespace mets {

constexpr uint64_t kMiB = 1 << 20;

inline void* Library(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) ADD_FAILURE() << dlerror();
  return library;
}

void* const kStream = reinterpret_cast<void*>(0x70);
void* const kSideStream = reinterpret_cast<void*>(0x90);

// The library is one per process, so all tests share it.
class MetsTorchLibrary : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    setenv("METS_LIBRARY", FAKE_METS, 1);
    setenv("FAKE_METS_CALLS", "1", 1);
    setenv("FAKE_METS_POOL", std::to_string(64 * kMiB).c_str(), 1);
    Library(FAKE_LIBCUDA);  // Found by its name from now on.
    library_ = Library(METS_TORCH);
  }
  template <typename Function>
  static Function* Get(const char* name, Function*) {
    return reinterpret_cast<Function*>(dlsym(library_, name));
  }
  static std::string Calls() {
    using CallsFunction = const char*();
    void* fake = dlopen(FAKE_METS, RTLD_NOW | RTLD_NOLOAD);
    return reinterpret_cast<CallsFunction*>(dlsym(fake, "fake_mets_calls"))();
  }
  static mets_stats_t Sized() {
    mets_stats_t stats = {};
    stats.size = sizeof(stats);
    return stats;
  }
  // What PyTorch gets to see of an allocation that fails.
  std::string Thrown(size_t bytes, int device) {
    try {
      alloc_(bytes, device, nullptr);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "nothing";
  }

  static inline void* library_ = nullptr;
  decltype(&mets_torch_open) open_ = Get("mets_torch_open", open_);
  decltype(&mets_torch_last_error) last_error_ =
      Get("mets_torch_last_error", last_error_);
  decltype(&mets_torch_enter) enter_ = Get("mets_torch_enter", enter_);
  decltype(&mets_torch_leave) leave_ = Get("mets_torch_leave", leave_);
  decltype(&mets_torch_hint) hint_ = Get("mets_torch_hint", hint_);
  decltype(&mets_torch_stats) stats_ = Get("mets_torch_stats", stats_);
  decltype(&mets_torch_alloc) alloc_ = Get("mets_torch_alloc", alloc_);
  decltype(&mets_torch_free) free_ = Get("mets_torch_free", free_);
  decltype(&mets_torch_record_stream) record_ =
      Get("mets_torch_record_stream", record_);
  decltype(&mets_torch_begin_pool) begin_pool_ =
      Get("mets_torch_begin_pool", begin_pool_);
};

}  // namespace mets

#endif  // METS_TESTS_CLIENT_TORCH_METS_TORCH_LIBRARY_H_
