// RangeCache: free ranges that are still mapped.
#ifndef METS_CLIENT_SRC_RANGE_CACHE_H_
#define METS_CLIENT_SRC_RANGE_CACHE_H_

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "client/src/buffer.h"
#include "common/base/bytes.h"

namespace mets::client {

// The largest range that may serve for `size` bytes: it wastes at most an
// eighth of them, and of 32 MiB and more, beside which mapping another range
// costs little, a 32nd.
inline Bytes LargestFit(Bytes size) {
  return size + Bytes(size.count() / (size < MiB(32) ? 8 : 32));
}
inline bool Fits(Bytes range, Bytes size) {
  return range >= size && range <= LargestFit(size);
}

// Ranges by size and by age. Training asks for the same sizes again and again,
// so that a range whose size fits is found with its memory in place. Not
// thread-safe. Allocates nothing except when a size is new.
class RangeCache {
 public:
  void Put(Buffer* range);
  // The smallest range that fits; of equals, one of the last put that no stream
  // but `stream` may still touch, else the last one put. Null when there is
  // none.
  Buffer* TakeFit(Bytes size, const Stream& stream = {});
  void Take(Buffer* range);
  // Some ranges of at least `size`, the smallest first, the last put of each
  // size.
  std::vector<Buffer*> AtLeast(Bytes size) const;

  Buffer* oldest() const { return oldest_; }  // Goes on by Buffer::newer.
  Bytes bytes() const { return bytes_; }
  bool empty() const { return oldest_ == nullptr; }

 private:
  static constexpr size_t kMaxSizes = 4096;
  static constexpr int kLooks = 8;  // At ranges of one size, and at sizes.
  using Buckets = std::map<int64_t, Buffer*>;  // Size → the last one put.
  using Bucket = Buckets::value_type;

  static Buffer* Choose(Buffer* bucket, const Stream& stream);
  // Where the bucket of that size is kept, if it is one of the last used.
  Bucket*& Recent(int64_t size) {
    // Fibonacci hashing: sizes are multiples of large powers of two.
    return recent_[static_cast<uint64_t>(size) * 0x9e3779b97f4a7c15 >> 58];
  }
  // The bucket of exactly that size; a new one where there is none.
  Buffer*& BucketOf(Bytes size);
  Buffer* TakeFrom(Buffer** bucket, const Stream& stream);
  void Unlink(Buffer* range, Buffer** bucket);

  Buckets buckets_;
  std::array<Bucket*, 64> recent_{};
  Buffer* oldest_ = nullptr;
  Buffer* newest_ = nullptr;
  Bytes bytes_;
};

}  // namespace mets::client

#endif  // METS_CLIENT_SRC_RANGE_CACHE_H_
