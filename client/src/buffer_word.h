// BufferWord: a buffer's phase and pins in one atomic word.
#ifndef METS_CLIENT_SRC_BUFFER_WORD_H_
#define METS_CLIENT_SRC_BUFFER_WORD_H_

#include <atomic>
#include <cstdint>
#include <initializer_list>

namespace mets::client {

// Where a buffer is in its life. Phases marked (owner) belong to one thread,
// which alone may end them.
enum class Phase : uint32_t {
  kFree,       // No buffer; perhaps a cached range.
  kResident,   // Mapped and accessible; the only phase that can be pinned.
  kBlocking,   // (owner) On the way to kEvicting.
  kEvicting,   // Blocked, being copied out. Whoever needs it moves it to
               // kResuming; the evictor moves it to kUnmapping.
  kResuming,   // (owner) On the way back to kResident.
  kUnmapping,  // (owner) On the way to kSwapped.
  kSwapped,    // Its bytes are in its slot.
  kRestoring,  // (owner) On the way to kResident.
  kHidden,     // Blocked by a phantom eviction; its memory is still there.
               // Whoever needs it moves it to kResuming.
};

// Or free. Otherwise its bytes are only in its slot.
inline bool IsResident(Phase phase) {
  return phase != Phase::kSwapped && phase != Phase::kRestoring;
}

// Phase, a "freed" mark and a pin count. All operations are atomic; pinning is
// one fetch_add.
//
// A pin on a buffer that is not resident is taken back at once, so the count
// may be too high for a moment; it is never too low. Freed buffers are disposed
// of by the one caller whose TryClaim succeeds; it must be tried after every
// step that may have made it possible: MarkFreed, Unpin, and a move to
// kResident or kSwapped.
class BufferWord {
 public:
  // True when the buffer is resident and not freed: it has one pin more, and
  // stays resident until Unpin. False changes nothing, but TryClaim must be
  // tried (*claim).
  bool TryPin(bool* claim) {
    const uint64_t old = word_.fetch_add(1, std::memory_order_acquire);
    if ((old & ~kPinMask) == Encode(Phase::kResident)) return true;
    *claim = Unpin();
    return false;
  }

  // True when TryClaim must be tried.
  bool Unpin() {
    const uint64_t old = word_.fetch_sub(1, std::memory_order_acq_rel);
    return (old & (kFreed | kPinMask)) == (kFreed | 1);
  }

  // Resident and without pins → kBlocking.
  bool TryStartEviction() {
    uint64_t expected = Encode(Phase::kResident);
    return word_.compare_exchange_strong(expected, Encode(Phase::kBlocking),
                                         std::memory_order_acq_rel);
  }

  // Moves from one phase to another, adding `pins`; false when the phase is
  // not `from`.
  bool TryMove(Phase from, Phase to, uint32_t pins = 0) {
    uint64_t old = word_.load(std::memory_order_acquire);
    do {
      if (PhaseOf(old) != from) return false;
    } while (!word_.compare_exchange_weak(
        old, ((old & ~kPhaseMask) | Encode(to)) + pins,
        std::memory_order_acq_rel, std::memory_order_acquire));
    return true;
  }

  // Resident, not freed, and with so many pins, all of them the caller's →
  // kFree: MarkFreed, Unpin and TryClaim in one. False changes nothing.
  bool TryEnd(uint32_t pins) {
    uint64_t expected = Encode(Phase::kResident) + pins;
    return word_.compare_exchange_strong(expected, Encode(Phase::kFree));
  }

  // False when it is free already. Seen by whoever looks (freed) after what the
  // caller looks at behind it, both in sequentially consistent order.
  bool MarkFreed() {
    const uint64_t old = word_.fetch_or(kFreed);
    if ((old & kFreed) != 0) return false;
    if (PhaseOf(old) != Phase::kFree) return true;
    word_.fetch_and(~kFreed, std::memory_order_acq_rel);
    return false;
  }

  // Freed, without pins, and in a phase without owner (kResident, kSwapped):
  // → kFree. `*was` is the phase it had.
  bool TryClaim(Phase* was) {
    for (Phase phase : {Phase::kResident, Phase::kSwapped}) {
      uint64_t expected = Encode(phase) | kFreed;
      if (word_.compare_exchange_strong(expected, Encode(Phase::kFree),
                                        std::memory_order_acq_rel)) {
        *was = phase;
        return true;
      }
    }
    return false;
  }

  Phase phase() const { return PhaseOf(word_.load(std::memory_order_acquire)); }
  bool pinned() const {
    return (word_.load(std::memory_order_relaxed) & kPinMask) != 0;
  }
  bool freed() const { return (word_.load() & kFreed) != 0; }

 private:
  static constexpr uint64_t kPinMask = (uint64_t{1} << 32) - 1;
  static constexpr uint64_t kPhaseMask = uint64_t{0xff} << 32;
  static constexpr uint64_t kFreed = uint64_t{1} << 40;

  static constexpr uint64_t Encode(Phase phase) {
    return static_cast<uint64_t>(phase) << 32;
  }
  static constexpr Phase PhaseOf(uint64_t word) {
    return static_cast<Phase>((word & kPhaseMask) >> 32);
  }

  std::atomic<uint64_t> word_{0};
};

}  // namespace mets::client

#endif  // METS_CLIENT_SRC_BUFFER_WORD_H_
