// METS's client, through libmets' C interface. The pool is that of the metsd in
// METS_RUN_DIR. On a CUDA device all calls are on one stream, the legacy
// default stream (CU_STREAM_LEGACY).
#include "mets/mets.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/benchmarks/compare/replay.h"

namespace mets::compare {
namespace {

const mets_stream kLegacyStream = reinterpret_cast<mets_stream>(1);

void Check(mets_status status) {
  if (status == METS_OK) return;
  std::fprintf(stderr, "%s\n", mets_last_error());
  std::exit(2);
}

class Mets : public Allocator {
 public:
  explicit Mets(int64_t) {
    const mets_open_options open = METS_OPEN_OPTIONS_INIT;
    Check(mets_open(&open, &client_));
    Check(mets_device_open(client_, nullptr, METS_OPS_SEEN, &device_));
    mets_device_info info = METS_DEVICE_INFO_INIT;
    Check(mets_device_get_info(device_, &info));
    if (std::strcmp(info.kind, "cuda") == 0) stream_ = kLegacyStream;
  }
  ~Mets() override { mets_close(client_); }

  void* Allocate(size_t bytes) override {
    mets_alloc_options how = METS_ALLOC_OPTIONS_INIT;
    how.bytes = bytes;
    how.stream = stream_;
    how.deadline_ms = 1000;  // What is cached may have to come back first.
    void* address = nullptr;
    const mets_status status = mets_alloc(device_, &how, &address);
    if (status == METS_OUT_OF_MEMORY) return nullptr;
    Check(status);
    return address;
  }
  void Free(void* address, size_t) override {
    mets_free(device_, address, stream_);
  }
  int64_t held_bytes() override {
    mets_stats_t stats = METS_STATS_INIT;
    Check(mets_get_stats(device_, &stats));
    return stats.resident_bytes + stats.cached_bytes;
  }

 private:
  mets_client* client_ = nullptr;
  mets_device* device_ = nullptr;
  mets_stream stream_ = nullptr;
};

}  // namespace
}  // namespace mets::compare

int main(int argc, char** argv) {
  return mets::compare::Main<mets::compare::Mets>(argc, argv);
}
