#include "daemon/core/chunks/layout.h"

#include <algorithm>

namespace mets::core {
namespace {

constexpr int64_t kPiecesPerRange = 64;
// How many of a class's free chunks are looked through for known ones.
constexpr size_t kScanned = 256;

// Gives the free chunks of one class in order of preference.
class FreePicker {
 public:
  FreePicker(absl::Span<const Chunk* const> free, SessionId session)
      : free_(free) {
    const size_t begin = free.size() - std::min(free.size(), kScanned);
    for (size_t i = free.size(); i > begin; --i) {
      (free[i - 1]->KnownTo(session) ? first_ : second_)
          .push_back(free[i - 1]->id);
    }
    unscanned_ = begin;
  }

  // None when there are no more.
  ChunkId Pick() {
    if (next_ < first_.size()) return first_[next_++];
    const size_t second = next_ - first_.size();
    if (second < second_.size()) {
      ++next_;
      return second_[second];
    }
    return unscanned_ > 0 ? free_[--unscanned_]->id : ChunkId();
  }

 private:
  absl::Span<const Chunk* const> free_;
  std::vector<ChunkId> first_, second_;
  size_t next_ = 0;
  size_t unscanned_ = 0;
};

class Planner {
 public:
  Planner(const ChunkLedger& ledger, DomainId domain, SessionId session,
          Bytes creatable)
      : classes_(ledger.classes()), creatable_(creatable) {
    for (size_t i = 0; i < classes_.size(); ++i) {
      pickers_.emplace_back(ledger.Free(domain, i), session);
    }
  }

  void AddRange(Bytes range, PieceBound bound) {
    const size_t begin = layout_.pieces.size();
    if (bound == PieceBound::kFewest) {
      AddFewest(range);
    } else {
      AddUpTo(begin + MostPieces(range, bound), range);
    }
    layout_.range_pieces.push_back(layout_.pieces.size() - begin);
  }

  Layout Finish() { return std::move(layout_); }

 private:
  // Until there are `most` pieces.
  void AddUpTo(size_t most, Bytes range) {
    Bytes left = range;
    for (size_t i = classes_.size(); i-- > 0;) {
      while (left >= classes_[i] && layout_.pieces.size() < most && Take(i)) {
        left -= classes_[i];
      }
    }
    layout_.missing += left;
  }

  void AddFewest(Bytes range) {
    for (size_t i = classes_.size(); i-- > 0;) {
      for (; range >= classes_[i]; range -= classes_[i]) {
        if (!Take(i)) layout_.missing += classes_[i];
      }
    }
  }

  bool Take(size_t size_class) {
    const ChunkId chunk = pickers_[size_class].Pick();
    if (!chunk.ok()) {
      if (creatable_ < classes_[size_class]) return false;
      creatable_ -= classes_[size_class];
    }
    layout_.pieces.push_back({chunk, size_class});
    return true;
  }

  size_t MostPieces(Bytes range, PieceBound bound) const {
    if (bound == PieceBound::kUnbounded) return range / classes_[0];
    int64_t fewest = 0;
    Bytes left = range;
    for (size_t i = classes_.size(); i-- > 0;) {
      fewest += left / classes_[i];
      left -= classes_[i] * (left / classes_[i]);
    }
    return std::max(kPiecesPerRange, 2 * fewest);
  }

  const std::vector<Bytes>& classes_;
  Bytes creatable_;
  std::vector<FreePicker> pickers_;
  Layout layout_;
};

}  // namespace

Layout PlanLayout(const ChunkLedger& ledger, DomainId domain, SessionId session,
                  const std::vector<Bytes>& ranges, Bytes creatable,
                  PieceBound bound) {
  Planner planner(ledger, domain, session, creatable);
  for (Bytes range : ranges) planner.AddRange(range, bound);
  return planner.Finish();
}

}  // namespace mets::core
