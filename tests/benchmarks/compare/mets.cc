// METS's client, through libmets' C interface. The pool is that of the metsd in
// METS_RUN_DIR.
#include "mets/mets.h"

#include <cstdio>
#include <cstdlib>

#include "tests/benchmarks/compare/replay.h"

namespace mets::compare {
namespace {

void Check(mets_status status) {
  if (status == METS_OK) return;
  std::fprintf(stderr, "%s\n", mets_last_error());
  std::exit(2);
}

class Mets : public Allocator {
 public:
  Mets() {
    const mets_open_options open = METS_OPEN_OPTIONS_INIT;
    Check(mets_open(&open, &client_));
    Check(mets_device_open(client_, nullptr, METS_OPS_SEEN, &device_));
  }
  ~Mets() override { mets_close(client_); }

  void* Allocate(size_t bytes) override {
    mets_alloc_options how = METS_ALLOC_OPTIONS_INIT;
    how.bytes = bytes;
    how.deadline_ms = 1000;  // What is cached may have to come back first.
    void* address = nullptr;
    const mets_status status = mets_alloc(device_, &how, &address);
    return status == METS_OK ? address : nullptr;
  }
  void Free(void* address, size_t) override {
    mets_free(device_, address, nullptr);
  }
  int64_t held_bytes() override {
    mets_stats_t stats = METS_STATS_INIT;
    Check(mets_get_stats(device_, &stats));
    return stats.resident_bytes + stats.cached_bytes;
  }

 private:
  mets_client* client_ = nullptr;
  mets_device* device_ = nullptr;
};

}  // namespace
}  // namespace mets::compare

int main(int argc, char** argv) {
  return mets::compare::Main(
      argc, argv, [](int64_t) -> std::unique_ptr<mets::compare::Allocator> {
        return std::make_unique<mets::compare::Mets>();
      });
}
