// Buffers that are held, and until when.
#ifndef METS_TF_ALLOCATOR_CORE_HELD_BUFFERS_H_
#define METS_TF_ALLOCATOR_CORE_HELD_BUFFERS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <unordered_map>

namespace mets {

// The addresses of buffers that the plug-in holds now. Each is held for one of
// three reasons, the later outweigh the earlier:
//
//   until named   until an op names it. The own ops of the step (a run of a
//                 graph) that returned it do not count
//   while kept    until an op names it that nothing else refers to
//   for good
//
// Held buffers that are not in it are held by others and stay so. Thread-safe.
// It is asked about every tensor of every op, and some stay in it (constants
// that no op uses): the set is in many parts, most of which are empty, and then
// asking costs one load.
//
// Whoever puts a buffer in holds it afterwards: bringing it back may block. One
// that is taken out is released with its part locked, so that a release never
// comes after the next hold.
class HeldBuffers {
 public:
  static constexpr int64_t kNoStep = std::numeric_limits<int64_t>::min();

  void InsertUntilNamed(const void* address, int64_t step = kNoStep) {
    Change(address, [step](Hold* hold) {
      if (hold->until == Until::kNamed) hold->step = step;
    });
  }

  // Of one that is there for whatever reason; else returns false.
  bool SetStep(const void* address, int64_t step) {
    if (MaybeNot(address)) return false;
    Part& part = PartOf(address);
    std::lock_guard<std::mutex> lock(part.mutex);
    const auto it = part.holds.find(address);
    if (it == part.holds.end()) return false;
    if (it->second.until == Until::kNamed) it->second.step = step;
    return true;
  }

  // `owner`: what counts the references to the buffer. Where two such things
  // exist neither knows all references, and the buffer is held for good.
  void InsertWhileKept(const void* address, const void* owner) {
    Change(address, [owner](Hold* hold) {
      if (hold->until == Until::kNamed) {
        *hold = {Until::kNotKept, kNoStep, owner};
      } else if (hold->owner != owner) {
        hold->until = Until::kFreed;
      }
    });
  }

  void InsertForGood(const void* address) {
    Change(address, [](Hold* hold) { hold->until = Until::kFreed; });
  }

  // An op of `step` names it: takes out, and `release`s, what is held until
  // then. kNoStep: it is known that nobody has it any more.
  template <typename Release>
  void Named(const void* address, int64_t step, const Release& release) {
    TakeOut(address, release, [step](const Hold& hold) {
      return hold.until == Until::kNamed &&
             (step == kNoStep || hold.step != step);
    });
  }

  // An op names it. `alone()`: whether nothing but who asks has a reference
  // that `owner` counts; then what is held while it is kept is taken out.
  template <typename Alone, typename Release>
  void NotKept(const void* address, const void* owner, const Alone& alone,
               const Release& release) {
    TakeOut(address, release, [owner, &alone](const Hold& hold) {
      return hold.until == Until::kNotKept && hold.owner == owner && alone();
    });
  }

  // It is freed.
  void Erase(const void* address) {
    TakeOut(
        address, [] {}, [](const Hold&) { return true; });
  }

 private:
  enum class Until { kNamed, kNotKept, kFreed };
  struct Hold {
    Until until = Until::kNamed;
    int64_t step = kNoStep;
    const void* owner = nullptr;
  };

  static constexpr size_t kParts = 256;
  struct Part {
    std::atomic<size_t> size{0};
    std::mutex mutex;
    std::unordered_map<const void*, Hold> holds;
  };

  Part& PartOf(const void* address) {
    const uint64_t number = reinterpret_cast<uintptr_t>(address) >> 6;
    return parts_[(number * 0x9E3779B97F4A7C15u) >> 56];
  }

  bool MaybeNot(const void* address) {
    return PartOf(address).size.load(std::memory_order_acquire) == 0;
  }

  template <typename ToHold>
  void Change(const void* address, const ToHold& change) {
    Part& part = PartOf(address);
    std::lock_guard<std::mutex> lock(part.mutex);
    change(&part.holds[address]);
    part.size.store(part.holds.size(), std::memory_order_relaxed);
  }

  template <typename Release, typename If>
  void TakeOut(const void* address, const Release& release, const If& wanted) {
    if (MaybeNot(address)) return;
    Part& part = PartOf(address);
    std::lock_guard<std::mutex> lock(part.mutex);
    const auto it = part.holds.find(address);
    if (it == part.holds.end() || !wanted(it->second)) return;
    part.holds.erase(it);
    release();
    // Before, nobody passes by as if it was released.
    part.size.store(part.holds.size(), std::memory_order_release);
  }

  Part parts_[kParts];
};

}  // namespace mets

#endif  // METS_TF_ALLOCATOR_CORE_HELD_BUFFERS_H_
