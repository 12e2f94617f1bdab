// StepContent: which ops a stretch of a sequence has, in any order.
#ifndef METS_COMMON_STEPS_STEP_CONTENT_H_
#define METS_COMMON_STEPS_STEP_CONTENT_H_

#include <cstdint>
#include <string_view>

namespace mets::steps {

// The finaliser of splitmix64 (Steele, Lea, Flood 2014).
inline uint64_t MixBits(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// Of an op's name: FNV-1a (Fowler, Noll, Vo), in 64 bits. 0 for none.
inline uint64_t KindOf(std::string_view name) {
  if (name.empty()) return 0;
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : name) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  return hash;
}

// Two sums over the ops: of their hashes, which is equal for equal multisets,
// and a sketch in lanes, each op ±1 in one of them (Alon, Matias, Szegedy
// 1996): the squares of the lanes of a difference add up to about the number of
// ops by which two multisets differ. Sums of prefixes subtract to the sum of
// what lies between; the order does not matter.
class StepContent {
 public:
  void Add(uint64_t op) {
    const uint64_t mixed = MixBits(op);
    sum_ += mixed;
    lanes_[mixed >> 59] += (mixed & 1) != 0 ? 1 : -1;
  }

  friend StepContent operator-(const StepContent& a, const StepContent& b) {
    StepContent difference;
    difference.sum_ = a.sum_ - b.sum_;
    for (int i = 0; i < kLanes; ++i) {
      difference.lanes_[i] = static_cast<int16_t>(a.lanes_[i] - b.lanes_[i]);
    }
    return difference;
  }

  bool Equals(const StepContent& other) const { return sum_ == other.sum_; }

  // Sum of the squares of how often each op occurs.
  int64_t SquaredNorm() const {
    int32_t norm = 0;
    for (int16_t lane : lanes_) norm += int32_t{lane} * lane;
    return norm;
  }

  // Never 0.
  uint64_t Hash() const {
    const uint64_t hash = MixBits(sum_);
    return hash == 0 ? 1 : hash;
  }

 private:
  static constexpr int kLanes = 32;

  uint64_t sum_ = 0;
  int16_t lanes_[kLanes] = {};
};

// A stretch of `length` ops.
struct Stretch {
  StepContent content;
  uint32_t length = 0;
};

// How many ops more or less a repetition may have.
inline uint32_t LengthSlack(uint32_t length) {
  return length < 64 ? 0 : length / 16;
}

inline bool NearlyAsLong(uint64_t length, uint32_t as) {
  const uint32_t slack = LengthSlack(as);
  return length + slack >= as && length <= uint64_t{as} + slack;
}

// Equal but for a sixteenth: ops that have crossed the ends of a stretch, or
// that not every repetition has. Short stretches are equal only exactly.
inline bool NearlyEqual(const Stretch& a, const Stretch& b) {
  if (!NearlyAsLong(a.length, b.length)) return false;
  if (a.content.Equals(b.content)) return true;
  if (LengthSlack(b.length) == 0) return false;
  return (a.content - b.content).SquaredNorm() * 16 <= b.content.SquaredNorm();
}

}  // namespace mets::steps

#endif  // METS_COMMON_STEPS_STEP_CONTENT_H_
