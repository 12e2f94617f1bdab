#include "client/src/chunk_sets.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace mets::client {

void ChunkSets::Remember(const ChunkSet& chunks) {
  if (chunks.empty()) return;
  by_size_[TotalSize(chunks).count()].push_front({++last_, chunks});
  if (++count_ > kMost) DropOldest();
}

void ChunkSets::DropOldest() {
  const auto oldest =
      std::min_element(by_size_.begin(), by_size_.end(),
                       [](const auto& a, const auto& b) {
                         return a.second.back().age < b.second.back().age;
                       });
  oldest->second.pop_back();
  if (oldest->second.empty()) by_size_.erase(oldest);
  --count_;
}

ChunkSet ChunkSets::Take(Bytes size, Bytes most,
                         absl::FunctionRef<bool(const Chunk&)> is_free) {
  for (auto it = by_size_.lower_bound(size.count());
       it != by_size_.end() && it->first <= most.count(); ++it) {
    std::list<Entry>& sets = it->second;
    int looks = kLooks;
    for (auto set = sets.begin(); set != sets.end() && looks > 0;
         ++set, --looks) {
      if (!std::all_of(set->chunks.begin(), set->chunks.end(),
                       [&](const Chunk* chunk) { return is_free(*chunk); })) {
        continue;
      }
      ChunkSet taken = std::move(set->chunks);
      sets.erase(set);
      if (sets.empty()) by_size_.erase(it);
      --count_;
      return taken;
    }
  }
  return {};
}

void ChunkSets::Forget(const Chunk* chunk) {
  for (auto it = by_size_.begin(); it != by_size_.end();) {
    std::list<Entry>& sets = it->second;
    const size_t before = sets.size();
    sets.remove_if([chunk](const Entry& set) {
      return std::find(set.chunks.begin(), set.chunks.end(), chunk) !=
             set.chunks.end();
    });
    count_ -= before - sets.size();
    it = sets.empty() ? by_size_.erase(it) : std::next(it);
  }
}

void ChunkSets::Clear() {
  by_size_.clear();
  count_ = 0;
}

}  // namespace mets::client
