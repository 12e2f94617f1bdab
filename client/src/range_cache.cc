#include "client/src/range_cache.h"

namespace mets::client {

Buffer*& RangeCache::BucketOf(Bytes size) {
  Bucket*& recent = Recent(size.count());
  if (recent == nullptr || recent->first != size.count()) {
    recent = &*buckets_.try_emplace(size.count()).first;
  }
  return recent->second;
}

void RangeCache::Put(Buffer* range) {
  if (buckets_.size() > kMaxSizes) {
    for (auto it = buckets_.begin(); it != buckets_.end();) {
      it = it->second == nullptr ? buckets_.erase(it) : std::next(it);
    }
    recent_.fill(nullptr);
  }
  Buffer*& bucket = BucketOf(range->range_size());
  range->bucket_prev = nullptr;
  range->bucket_next = bucket;
  if (bucket != nullptr) bucket->bucket_prev = range;
  bucket = range;

  range->older = newest_;
  range->newer = nullptr;
  (newest_ != nullptr ? newest_->newer : oldest_) = range;
  newest_ = range;
  bytes_ += range->range_size();
  range->cached = true;
}

Buffer* RangeCache::Choose(Buffer* bucket, const Stream& stream) {
  Buffer* range = bucket;
  for (int i = 0; i < kLooks && range != nullptr; ++i) {
    const StreamMask users = range->streams.load(std::memory_order_relaxed);
    if (stream.Others(users) == 0) return range;
    range = range->bucket_next;
  }
  return bucket;
}

Buffer* RangeCache::TakeFrom(Buffer** bucket, const Stream& stream) {
  Buffer* range = Choose(*bucket, stream);
  Unlink(range, bucket);
  return range;
}

Buffer* RangeCache::TakeFit(Bytes size, const Stream& stream) {
  Bucket* recent = Recent(size.count());
  if (recent != nullptr && recent->first == size.count() &&
      recent->second != nullptr) {
    return TakeFrom(&recent->second, stream);
  }
  for (auto it = buckets_.lower_bound(size.count());
       it != buckets_.end() && Fits(Bytes(it->first), size); ++it) {
    if (it->second != nullptr) return TakeFrom(&it->second, stream);
  }
  return nullptr;
}

std::vector<Buffer*> RangeCache::AtLeast(Bytes size) const {
  std::vector<Buffer*> ranges;
  for (auto it = buckets_.lower_bound(size.count());
       it != buckets_.end() && ranges.size() < kLooks; ++it) {
    if (it->second != nullptr) ranges.push_back(it->second);
  }
  return ranges;
}

void RangeCache::Take(Buffer* range) {
  Unlink(range, &BucketOf(range->range_size()));
}

void RangeCache::Unlink(Buffer* range, Buffer** bucket) {
  if (range->bucket_next != nullptr) {
    range->bucket_next->bucket_prev = range->bucket_prev;
  }
  if (range->bucket_prev != nullptr) {
    range->bucket_prev->bucket_next = range->bucket_next;
  } else {
    *bucket = range->bucket_next;
  }
  (range->older != nullptr ? range->older->newer : oldest_) = range->newer;
  (range->newer != nullptr ? range->newer->older : newest_) = range->older;
  range->older = range->newer = nullptr;
  range->bucket_next = range->bucket_prev = nullptr;
  bytes_ -= range->range_size();
  range->cached = false;
}

}  // namespace mets::client
