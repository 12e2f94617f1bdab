// StepLap: what was recorded of one repetition, on its way to a StepProgram.
#ifndef METS_COMMON_STEPS_STEP_LAP_H_
#define METS_COMMON_STEPS_STEP_LAP_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "common/base/bytes.h"
#include "common/steps/step_content.h"
#include "common/steps/step_program.h"

namespace mets::steps {

// Which allocation of a repetition: the `ordinal`-th of that size by an op of
// that kind, which has read those buffers.
struct AllocationId {
  uint64_t flow = 0;  // Of the op's signature and its buffers' identities.
  int64_t bytes = 0;
  uint32_t ordinal = 0;

  friend bool operator==(const AllocationId& a, const AllocationId& b) {
    return a.flow == b.flow && a.bytes == b.bytes && a.ordinal == b.ordinal;
  }
  template <typename H>
  friend H AbslHashValue(H h, const AllocationId& id) {
    return H::combine(std::move(h), id.flow, id.bytes, id.ordinal);
  }
};

// What an allocated buffer is in a repetition, as the ops that read it see it.
inline uint64_t IdentityOf(const AllocationId& id) {
  return MixBits(MixBits(id.flow ^ id.bytes) ^ id.ordinal);
}

// An op's signature and the size of an allocation.
using AllocationKind = std::pair<uint64_t, int64_t>;

// A StepProgram, and how it applies to other repetitions of the step.
struct RecordedStep {
  uint64_t number = 0;    // StepRecorder::program_number().
  uint64_t first_op = 0;  // Signature of the op that it begins with.
  StepProgram program;
  absl::flat_hash_map<AllocationId, uint32_t> allocations;  // Logical buffer.
  // Logical buffers that live within a repetition only, by what allocates them.
  absl::flat_hash_map<AllocationKind, std::vector<uint32_t>> alike;
  // Of each logical buffer: its identity where the repetition begins, and when
  // it has been allocated.
  std::vector<uint64_t> at_first, allocated;
  std::vector<uint64_t> keys;  // Logical buffer → client's buffer; 0: none.
  // Persistent ones that are other buffers in each repetition.
  std::vector<bool> replaced;
  // Everything that lived when it began, and most of what came on top.
  Bytes first_live, rise;
  int timings = 0;  // Repetitions whose work has given its ops' times.
};

// Buffers of a repetition are numbered in the order in which it meets them.
class StepLap {
 public:
  // A buffer that lived when the repetition began.
  uint32_t AddOld(uint64_t key, Bytes size, uint64_t identity);
  // `signature`: of the op that allocates it.
  uint32_t AddNew(uint64_t key, Bytes size, uint64_t identity,
                  const AllocationId& id, uint64_t signature);
  void AddAccess(uint32_t op, uint32_t buffer, AccessKind kind) {
    accesses_.push_back({op, {buffer, kind}});
  }
  // Freed after op `op` had begun.
  void AddFree(uint32_t op, uint32_t buffer);

  size_t accesses() const { return accesses_.size(); }
  size_t buffers() const { return buffers_.size(); }

  // The repetition has ended: `starts` and `busy` are those of its ops.
  //
  // Persistent is what is not both allocated and freed within it. One freed of
  // those that lived before, and one allocated that lives on, of equal size,
  // are one logical buffer whose memory the step replaces. Both may live for a
  // while: AccessKind::kReplaced.
  RecordedStep Finish(uint64_t signature, absl::Duration duration,
                      const std::vector<absl::Duration>& starts,
                      const std::vector<absl::Duration>& busy) const;

 private:
  struct Buffer {
    uint64_t key;
    Bytes size;
    bool is_new;
    bool freed;
    uint64_t identity;
    AllocationId id;
    uint64_t signature;
  };
  struct OpAccess {
    uint32_t op;
    Access access;
  };
  struct OpFree {
    uint32_t op;
    uint32_t buffer;
  };

  // Logical buffer of each buffer.
  std::vector<uint32_t> Number(RecordedStep* step) const;

  std::vector<Buffer> buffers_;
  std::vector<OpAccess> accesses_;
  std::vector<OpFree> frees_;
};

}  // namespace mets::steps

#endif  // METS_COMMON_STEPS_STEP_LAP_H_
